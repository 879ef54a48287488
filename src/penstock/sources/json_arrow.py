"""ArrowLines: many lines of JSON at once by Arrow's parser, where nobody can tell them from lines parsed one by one.

Arrow parses a chunk several times as quickly as `json` does its lines. It says less of what is wrong, and takes more
for right, so a chunk counts only where none of that can have happened: one object on each line, every key of the kind
it has, no number that two parsers might read differently. All else is given back to the reader that names line and
byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.block.arrow_values import Array, lists_of, numbers_of, objects_of, strings_of
from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn
from penstock.block.origin import Origin
from penstock.block.spec import DType
from penstock.io.tfrecord.chunk import RecordChunk
from penstock.sources.json_kinds import JsonKinds
from penstock.sources.json_leaf import EXACT, JsonLeaf

LEAST = 64  # lines: fewer take longer than one by one
_TRIES = 8  # chunks in a row given back before a file is taken to be one of those that Arrow does not help with
_OPEN, _CLOSE = b"{}"  # as bytes' numbers


class ArrowLines:
    """Parses the lines of one file whose keys and kinds are known. For one thread at a time."""

    def __init__(self, kinds: JsonKinds, file: str) -> None:
        self._kinds = kinds
        self._file = file
        self._schema = _schema(kinds.leaves)
        self._tries = _TRIES

    @property
    def helps(self) -> bool:
        """Whether to try it with further chunks."""
        return self._schema is not None and self._tries > 0

    def block(self, chunk: RecordChunk) -> Block | None:
        """The elements of neighbouring lines, exactly as they are one by one; None asks for that."""
        columns = self._columns(chunk)
        if columns is None:
            self._tries -= 1
            return None
        self._tries = _TRIES
        origin = Origin.of_file(self._file, chunk.offsets)
        return Block(self._kinds.structure, columns, len(chunk), origin)

    def _columns(self, chunk: RecordChunk) -> list[Column] | None:
        """One object on each line: one that ends on a later line than it begins on would have a `{` behind a `}`."""
        import pyarrow as pa

        buffer, first = chunk.buffer, chunk.starts
        last = first + chunk.lengths - 1
        if (last < first).any() or (buffer[first] != _OPEN).any() or (buffer[last] != _CLOSE).any():
            return None
        try:
            table = self._table(buffer[first[0] : last[-1] + 1])
            if table.num_rows != len(chunk):
                return None
            return [_column(leaf, _array(table, leaf)) for leaf in self._kinds.leaves]
        except (pa.ArrowException, UnicodeDecodeError, _Unsure):
            return None

    def _table(self, content: np.ndarray) -> Any:
        import pyarrow as pa
        from pyarrow import json

        return json.read_json(
            pa.BufferReader(pa.py_buffer(content)),
            read_options=json.ReadOptions(use_threads=False, block_size=len(content)),
            parse_options=json.ParseOptions(explicit_schema=self._schema, unexpected_field_behavior="error"),
        )


class _Unsure(Exception):
    """Arrow's values need not be those of `json`, or some line is in error."""


def _schema(leaves: Sequence[JsonLeaf]) -> Any:
    """The pyarrow.Schema of the objects; None where Arrow cannot have a part of them."""
    import pyarrow as pa

    nest: dict[str, Any] = {}
    for leaf in leaves:
        kind = _scalar(leaf.dtype)
        if kind is None or leaf.rank > 1:
            return None
        inner = nest
        for name in leaf.path[:-1]:
            inner = inner.setdefault(name, {})
        inner[leaf.path[-1]] = pa.list_(kind) if leaf.rank else kind
    try:
        return pa.schema(_fields(nest))
    except UnicodeEncodeError:  # a key with half of a surrogate pair
        return None


def _fields(nest: dict[str, Any]) -> list[tuple[str, Any]]:
    import pyarrow as pa

    return [(name, pa.struct(_fields(kind)) if isinstance(kind, dict) else kind) for name, kind in nest.items()]


def _scalar(dtype: DType) -> Any:
    """The Arrow type as which a value is parsed, which may be wider; None where rounding it would not be the same."""
    import pyarrow as pa

    if dtype is bytes:
        return pa.string()
    if dtype in (np.float32, np.float64):
        return pa.float64()
    return {"i": pa.int64(), "u": pa.int64(), "b": pa.bool_()}.get(np.dtype(dtype).kind)


def _array(table: Any, leaf: JsonLeaf) -> Array:
    """The array of a leaf, in one piece. Where an object is null, so are the values of its keys."""
    import pyarrow as pa

    found = table.column(leaf.path[0]).combine_chunks()
    for name in leaf.path[1:]:
        found = dict(zip((part.name for part in found.type), found.flatten(), strict=True))[name]
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found


def _column(leaf: JsonLeaf, array: Array) -> Column:
    if not leaf.rank:
        return _scalars(leaf, array)
    if array.null_count:
        raise _Unsure
    offsets, items = lists_of(array)
    if items.null_count:
        raise _Unsure
    return _lists(offsets, _values(leaf, items))


def _scalars(leaf: JsonLeaf, array: Array) -> Column:
    """With the default where there is none."""
    if not array.null_count:
        return _values(leaf, array)
    if leaf.default is None:
        raise _Unsure
    if leaf.dtype is bytes:
        return _values(leaf, array.fill_null(leaf.default.decode()))
    missing = np.asarray(array.is_null())
    numbers = _numbers(numbers_of(array.fill_null(False if leaf.dtype == np.bool_ else 0)), np.dtype(leaf.dtype))
    numbers[missing] = leaf.default
    return DenseColumn(numbers)


def _values(leaf: JsonLeaf, array: Array) -> DenseColumn | BytesColumn:
    """The values of the array as the leaf's dtype. There are no nulls among them."""
    if leaf.dtype is bytes:
        array.validate(full=True)  # Arrow's parser does not ask whether a text is UTF-8
        return strings_of(array)
    return DenseColumn(_numbers(numbers_of(array), np.dtype(leaf.dtype)))


def _numbers(found: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """As that dtype, in memory of their own. What is not finite may have been written in a way that is no JSON."""
    if found.dtype.kind == "f":
        if not (np.abs(found) < EXACT).all():  # an integer that large is no float64 to `json`, before it becomes one
            raise _Unsure
    elif found.dtype.kind == "i" and dtype != np.int64:
        limits = np.iinfo(dtype.name)
        if found.min(initial=0) < limits.min or found.max(initial=0) > limits.max:
            raise _Unsure
    with np.errstate(over="ignore"):
        return found.astype(dtype)


def _lists(offsets: np.ndarray, items: DenseColumn | BytesColumn) -> Column:
    sizes = np.diff(offsets)
    if (sizes == sizes[0]).all() and sizes[0]:
        return items.batched(int(sizes[0]))
    whole = objects_of(items) if isinstance(items, BytesColumn) else items.array
    return ListColumn(np.split(whole, offsets[1:-1]))
