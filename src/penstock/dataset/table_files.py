"""Data sets of files of tables: Arrow IPC, Parquet, numpy's, JSON Lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from penstock.block.leaf import as_leaf
from penstock.dataset.dataset import Dataset
from penstock.dataset.files import read_files
from penstock.errors import InvalidTypeError, PenstockError
from penstock.sources.arrow import ArrowSource
from penstock.sources.arrow_pieces import as_columns
from penstock.sources.json_kinds import Defaults
from penstock.sources.json_lines import JsonLinesSource
from penstock.sources.numpy_files import NumpySource
from penstock.sources.parquet import ParquetSource


def ArrowDataset(
    filenames: Any,
    columns: Sequence[str] | None = None,
    num_parallel_reads: int | None = None,
    *,
    fill_null: Mapping[str, Any] | None = None,
) -> Dataset:
    """The rows of Arrow IPC files (Feather V2), in the file or the stream format, as dicts of their columns.

    Local files are mapped into memory: numbers, fixed-size lists and byte strings of an uncompressed file are not
    copied. Of a file at a URL in the stream format all is read when it is opened. For everything else see
    `ParquetDataset`: columns, types and nulls are treated alike.

    >>> import pathlib, tempfile, pyarrow as pa, penstock as ps
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.arrow"
    >>> table = pa.table({"id": [1, 2], "box": pa.array([[0, 1], [2, 3]], pa.list_(pa.int32(), 2))})
    >>> with pa.ipc.new_file(path, table.schema) as writer:
    ...     writer.write_table(table)
    >>> ds = ps.ArrowDataset(path)
    >>> len(ds), next(iter(ds))
    (2, {'id': np.int64(1), 'box': array([0, 1], dtype=int32)})

    A `columns` or `fill_null` that does not fit the first file is an error of the call, where that is a local file that
    is there; so is a column whose type no tensor holds (InvalidArgumentError, InvalidTypeError). What is wrong with a
    file comes with the pass, each in the place of one element: NotFoundError for a missing file, DataLossError for a
    damaged one, InvalidTypeError for columns that differ from the first file's, InvalidArgumentError for a null. Where
    the rows of a file cannot be counted, the cardinality is unknown, and `len()`, `ds[i]` and `shuffle(ps.ALL)` raise
    what is wrong with that file.
    """
    return read_files(filenames, ArrowSource((), columns=as_columns(columns, fill_null)), num_parallel_reads)


def ParquetDataset(
    filenames: Any,
    columns: Sequence[str] | None = None,
    num_parallel_reads: int | None = None,
    *,
    fill_null: Mapping[str, Any] | None = None,
) -> Dataset:
    """The rows of Parquet files, as dicts of their columns.

    `filenames` is a path or URL, a sequence of them, or a Dataset of names. Only `columns` are read, in that order, or
    all. Numbers keep their dtype, text and binaries become bytes, times datetime64; fixed-size lists are arrays of that
    shape, lists arrays of differing length, lists of lists RaggedTensors, structs dicts. A null stands for an error,
    unless `fill_null` says by what it is replaced: `{"label": -1, "meta.name": ""}`.

    The files' footers say how many rows there are: `len()` reads nothing else, and rows can be asked for by number,
    which decodes the row group they are in. With `num_parallel_reads` the files are interleaved row by row instead,
    that many at a time, AUTOTUNE meaning a fixed 16.

    >>> import pathlib, tempfile, pyarrow as pa, pyarrow.parquet, penstock as ps
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.parquet"
    >>> pyarrow.parquet.write_table(pa.table({"id": [1, 2], "text": ["one", "two"]}), path)
    >>> ds = ps.ParquetDataset(path)
    >>> len(ds), next(iter(ds))
    (2, {'id': np.int64(1), 'text': b'one'})

    A `columns` or `fill_null` that does not fit the first file is an error of the call, where that is a local file that
    is there; so is a column whose type no tensor holds (InvalidArgumentError, InvalidTypeError). What is wrong with a
    file comes with the pass, each in the place of one element: NotFoundError for a missing file, DataLossError for a
    damaged one, InvalidTypeError for columns that differ from the first file's, InvalidArgumentError for a null. Where
    the rows of a file cannot be counted, the cardinality is unknown, and `len()`, `ds[i]` and `shuffle(ps.ALL)` raise
    what is wrong with that file.
    """
    return read_files(filenames, ParquetSource((), columns=as_columns(columns, fill_null)), num_parallel_reads)


def NumpyDataset(filenames: Any, mmap: bool = True) -> Dataset:
    """The slices along the first axis of the arrays in files of np.save and np.savez, one file after the other.

    A `.npy` file gives arrays, one of a structured dtype dicts of its fields, a `.npz` file dicts of the slices of its
    arrays, which all have the same extent. Fixed-width strings become bytes; pickled objects are never loaded.
    `filenames` is a path or URL, a sequence of them, or a Dataset of names.

    Local files are mapped into memory and read where they are looked at; compressed members, files at a URL, and all
    files with `mmap=False`, are loaded when the pass comes to them. Slices can be asked for by number, and `len()`
    reads the headers only. Functions get views of the files
    that they can only read, a loop copies.

    >>> import pathlib, tempfile, numpy as np, penstock as ps
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.npz"
    >>> np.savez(path, x=np.arange(6).reshape(3, 2), y=np.array([0, 1, 0], np.int8))
    >>> ds = ps.NumpyDataset(path)
    >>> len(ds), next(iter(ds))
    (3, {'x': array([0, 1]), 'y': np.int8(0)})

    Errors come with the pass, each in the place of one element: NotFoundError for a missing file, DataLossError for a
    damaged one, InvalidTypeError for pickled objects or arrays that differ from the first file's,
    InvalidArgumentError for extents that differ. Over such files the cardinality is unknown, and `len()`, `ds[i]` and
    `shuffle(ps.ALL)` raise what is wrong with the first of them.
    """
    return read_files(filenames, NumpySource((), mmap=bool(mmap)))


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
