"""JsonLinesDataset: the objects of JSON Lines files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from penstock.block.leaf import as_leaf
from penstock.dataset.dataset import Dataset
from penstock.dataset.files import read_files
from penstock.errors import InvalidTypeError, PenstockError
from penstock.sources.json_kinds import Defaults
from penstock.sources.json_lines import JsonLinesSource


def JsonLinesDataset(
    filenames: Any,
    compression_type: str | None = None,
    buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
    *,
    defaults: Mapping[str, Any] | None = None,
) -> Dataset:
    r"""The objects of JSON Lines files, one on every line, as dicts of leaves.

    Text becomes bytes (UTF-8), an integer int64, another number float32, a list one array, an object inside an object
    a dict. Empty lines count for nothing. The first line says which keys there are, and the dtype and rank of each, for
    the whole pass; an integer may stand where the first line has a float. `defaults` gives keys a value where a line
    has none or null, and their dtype: `{"age": np.int32(-1), "score": 0.0}`, nested as the objects are. `filenames` and
    the other arguments are as for `TextLineDataset`.

    >>> import pathlib, tempfile, penstock as ps
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pets.jsonl"
    >>> _ = path.write_text('{"name": "Rex", "kg": 31.5}\n{"kg": 4, "name": "Tom"}\n{"name": "Ada"}\n')
    >>> for pet in ps.JsonLinesDataset(path, defaults={"kg": 0.0}):
    ...     print(pet)
    {'name': b'Rex', 'kg': np.float32(31.5)}
    {'name': b'Tom', 'kg': np.float32(4.0)}
    {'name': b'Ada', 'kg': np.float32(0.0)}

    A line that cannot be read is one element that failed, with file and byte offset: DataLossError for one that is no
    JSON object, InvalidTypeError for other keys, a null, or a value of another kind, InvalidArgumentError for an
    integer that does not fit and a list whose items differ in shape. Raises NotFoundError in the place of a missing
    file.
    """
    given = {} if defaults is None else defaults
    if not isinstance(given, Mapping):
        message = f"defaults is a dict from keys to values, got defaults={defaults!r:.60}."
        raise InvalidTypeError(message)
    source = JsonLinesSource((), compression_type, buffer_size, defaults=_leaves(given, ()))
    return read_files(filenames, source, num_parallel_reads)


def _leaves(given: Mapping[str, Any], above: tuple[str, ...]) -> Defaults:
    found: Defaults = {}
    for name, value in given.items():
        path = (*above, name)
        if not isinstance(name, str):
            message = f"The keys of JSON are text, got {name!r} in defaults."
            raise InvalidTypeError(message)
        if isinstance(value, Mapping):
            found |= _leaves(value, path)
            continue
        try:
            leaf = as_leaf(value)
        except PenstockError as error:
            message = f"The default of key {name!r}: {error.message}"
            raise type(error)(message, hint="Leave out keys without a default.") from None
        if isinstance(leaf, np.ndarray):
            leaf = leaf.copy()
            leaf.flags.writeable = False
        elif not isinstance(leaf, (bytes, np.generic)):
            message = f"A default is a number, a text or an array of them, got {type(value).__name__} for {name!r}."
            raise InvalidTypeError(message)
        found[path] = leaf
    return found
