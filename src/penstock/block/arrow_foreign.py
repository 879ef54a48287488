"""Arrow data that others wrote, as columns: what each Arrow type becomes, and what a null is replaced by.

| Arrow | element |
|---|---|
| booleans, integers, floats, times | numpy scalars; times as datetime64 and timedelta64 |
| strings, binaries | bytes |
| fixed-size lists, arrow.fixed_shape_tensor | arrays of that shape |
| lists | arrays of differing length; lists of lists RaggedTensors |
| structs, maps | dicts; a list of structs is a dict of lists |
| dictionary-encoded and extension types | what they stand for |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from penstock.block.arrow_nest import column_names
from penstock.block.arrow_values import Array, is_strings, lists_of, numbers_of, objects_of, strings_of
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn
from penstock.block.spec import LeafSpec, TensorSpec, ValueSpec
from penstock.block.structure import Structure, flatten, map_leaves
from penstock.block.tensors import RaggedTensor
from penstock.errors import InvalidArgumentError, InvalidTypeError


def foreign_columns(
    batch: Any, fill_null: Mapping[str, Any] | None = None, first_row: int = 0
) -> tuple[Structure, list[Column]]:
    """The structure of the elements, and their columns, of a pyarrow.RecordBatch.

    `fill_null` names columns, or fields of structs as "struct.field", and what stands in for their nulls; `first_row`
    is what errors call the first row. Raises InvalidArgumentError for a null without a value to stand in for it,
    InvalidTypeError for a type that has no counterpart.
    """
    start = _Place("", fill=fill_null or {}, first_row=first_row)
    leaves, structure = flatten(_nest(batch.schema, batch.columns, start))
    return structure, [leaf.column() for leaf in leaves]


def foreign_spec(schema: Any, fill_null: Mapping[str, Any] | None = None) -> Any:
    """The nest of specs that `foreign_columns` gives for batches of a schema.

    Raises InvalidArgumentError when `fill_null` names what is not there.
    """
    arrays = [_extended(_empty(getattr(part.type, "storage_type", part.type)), part.type) for part in schema]
    nest = _nest(schema, arrays, _Place("", fill=fill_null or {}))
    names = column_names(flatten(nest)[1])
    for name in fill_null or ():
        if name not in names:
            message = f"fill_null names {name!r}, and the columns are {', '.join(names)}."
            raise InvalidArgumentError(message)
    return map_leaves(lambda leaf: leaf.spec(), nest)


def _empty(kind: Any) -> Array:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):  # pa.array() makes none of string views, which polars uses
        return pa.DictionaryArray.from_arrays(pa.array([], kind.index_type), pa.array([], kind.value_type))
    return pa.array([], kind)


def _extended(storage: Array, kind: Any) -> Array:
    import pyarrow as pa

    return pa.ExtensionArray.from_storage(kind, storage) if isinstance(kind, pa.BaseExtensionType) else storage


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in a row an array stands: its name, the lists around it, and what fills its nulls."""

    name: str
    fill: Mapping[str, Any]
    levels: tuple[np.ndarray, ...] = ()  # offsets, those of the outermost list first
    first_row: int = 0

    def below(self, name: str) -> _Place:
        return replace(self, name=f"{self.name}.{name}" if self.name else name)

    def inside(self, offsets: np.ndarray) -> _Place:
        return replace(self, levels=(*self.levels, offsets))

    def row(self, item: int) -> int:
        for offsets in reversed(self.levels):
            item = int(np.searchsorted(offsets, item, side="right")) - 1
        return self.first_row + item


class _Leaf:
    """Values inside any number of lists."""

    def __init__(self, values: DenseColumn | BytesColumn, place: _Place) -> None:
        self.values = values
        self.levels = place.levels

    def spec(self) -> LeafSpec:
        found = self.values.spec()
        if len(self.levels) > 1:
            return ValueSpec(RaggedTensor, found.dtype)
        return TensorSpec((None, *found.shape), found.dtype) if self.levels else found

    def column(self) -> Column:
        if not self.levels:
            return self.values
        values = self.values
        whole: Any = objects_of(values) if isinstance(values, BytesColumn) else values.array
        for offsets in reversed(self.levels[1:]):
            whole = RaggedTensor(whole, offsets)
        ends = self.levels[0].tolist()
        if isinstance(whole, RaggedTensor):
            rows = RaggedTensor(whole, self.levels[0])
            return ListColumn([rows[i] for i in range(len(rows))])
        return ListColumn([whole[a:b] for a, b in pairwise(ends)])


def _nest(names: Any, arrays: list[Array], place: _Place) -> dict[str, Any]:
    """A dict of leaves for neighbouring arrays: the columns of a batch, the fields of a struct."""
    return {part.name: _walk(array, place.below(part.name)) for part, array in zip(names, arrays, strict=True)}


def _walk(array: Array, place: _Place) -> Any:
    import pyarrow as pa

    types = pa.types
    if isinstance(array, pa.ExtensionArray):
        return _extension(array, place)
    if types.is_dictionary(array.type):
        return _walk(_decoded(array), place)
    if types.is_run_end_encoded(array.type):
        return _walk(pa.compute.run_end_decode(array), place)
    if types.is_struct(array.type):  # the nulls of a struct become those of its fields
        return _nest(array.type, array.flatten(), place)
    array = _without_nulls(array, place)
    if types.is_nested(array.type) and not types.is_union(array.type):
        return _list(array, place)
    if is_strings(array.type):
        return _Leaf(strings_of(array), place)
    if types.is_boolean(array.type) or types.is_integer(array.type) or types.is_floating(array.type):
        return _Leaf(DenseColumn(numbers_of(array)), place)
    if types.is_temporal(array.type) and not types.is_interval(array.type):
        return _Leaf(DenseColumn(numbers_of(array)), place)
    message = f"Column {place.name!r} is of the Arrow type {array.type}, which no tensor holds."
    hint = "Cast it where the file is written, or leave it out with columns=[...]."
    raise InvalidTypeError(message, hint=hint)


def _decoded(array: Array) -> Array:
    """What a dictionary-encoded array stands for."""
    import pyarrow as pa

    words = array.dictionary
    if pa.types.is_string_view(words.type) or pa.types.is_binary_view(words.type):  # as polars has categories
        kind = pa.large_string() if pa.types.is_string_view(words.type) else pa.large_binary()
        return words.cast(kind).take(array.indices)  # pyarrow takes none of views
    return array.dictionary_decode()


def _list(array: Array, place: _Place) -> Any:
    offsets, values = lists_of(array)
    inside = place.inside(offsets)
    found = _walk(values, inside)
    fixed = getattr(array.type, "list_size", None)
    if fixed is None or not isinstance(found, _Leaf) or len(found.levels) > len(inside.levels):
        return found
    return _Leaf(_shaped(found.values, len(array), (fixed,)), place)


def _shaped(values: Any, count: int, shape: tuple[int, ...]) -> Any:
    """`count` elements of `shape`, each made of neighbouring values."""
    if isinstance(values, DenseColumn):
        return DenseColumn(values.array.reshape(count, *shape, *values.array.shape[1:]))
    shape = (count, *shape, *values.starts.shape[1:])
    return BytesColumn(values.buffers, values.starts.reshape(shape), values.lengths.reshape(shape))


def _extension(array: Array, place: _Place) -> Any:
    import pyarrow as pa

    kind, storage = array.type, array.storage
    if not isinstance(kind, pa.FixedShapeTensorType):
        return _walk(storage, place)
    storage = _without_nulls(storage, place)
    flat = _walk(storage.flatten(), place.inside(np.arange(len(array) + 1, dtype=np.int64) * storage.type.list_size))
    shaped = _shaped(flat.values, len(array), tuple(kind.shape))
    order = kind.permutation
    if order is not None:
        shaped = DenseColumn(shaped.array.transpose(0, *(axis + 1 for axis in order)))
    return _Leaf(shaped, place)


def _without_nulls(array: Array, place: _Place) -> Array:
    import pyarrow as pa
    import pyarrow.compute

    if not array.null_count and not pa.types.is_null(array.type):
        return array
    nested = pa.types.is_nested(array.type)
    if place.name not in place.fill or isinstance(place.fill[place.name], list) != nested:
        if not len(array):
            message = f"Column {place.name!r} is of the Arrow type null."
            raise InvalidTypeError(message, hint=f'Give what stands in its place: fill_null={{"{place.name}": ...}}.')
        row = place.row(int(np.flatnonzero(np.asarray(array.is_null()))[0]))
        value = "[]" if nested else '""' if is_strings(array.type) else "0"
        message = f"Column {place.name!r} is null in row {row}."
        hint = f'A tensor has no null: give what stands in its place, such as fill_null={{"{place.name}": {value}}}.'
        raise InvalidArgumentError(message, hint=hint)
    value = place.fill[place.name]
    try:
        if pa.types.is_null(array.type):
            return pa.array([value] * len(array), pa.scalar(value).type)
        return pyarrow.compute.fill_null(array, pa.scalar(value, array.type))
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        message = f"fill_null gives {value!r:.60} for column {place.name!r}, which is of the Arrow type {array.type}."
        raise InvalidTypeError(message) from error
