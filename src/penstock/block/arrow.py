"""Blocks as Arrow record batches and back, for caches, snapshots and files for other tools.

`to_arrow` writes the nest of the columns, their dtypes and their shapes into the metadata of the schema, so that
`from_arrow` restores the Block exactly. `foreign_columns` reads other batches by their Arrow types. Nothing is pickled.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from penstock.block.arrow_leaf import decode, encode, leaf_type
from penstock.block.arrow_nest import column_names, spec_from_json, spec_to_json, structure_from_json, structure_to_json
from penstock.block.arrow_values import Array, is_strings, lists_of, numbers_of, objects_of, strings_of
from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn
from penstock.block.spec import LeafSpec, RaggedTensorSpec, TensorSpec
from penstock.block.structure import Structure, flatten, map_leaves
from penstock.block.tensors import RaggedTensor
from penstock.errors import DataLossError, InvalidArgumentError, InvalidTypeError

# | Arrow | element |
# |---|---|
# | booleans, integers, floats, times | numpy scalars; times as datetime64 and timedelta64 |
# | strings, binaries | bytes |
# | fixed-size lists, arrow.fixed_shape_tensor | arrays of that shape |
# | lists | arrays of differing length; lists of lists RaggedTensors |
# | structs, maps | dicts; a list of structs is a dict of lists |
# | decimals | float64, with a warning |
# | dictionary-encoded and extension types | the values that they encode |


def foreign_columns(
    batch: Any, fill_null: Mapping[str, Any] | None = None, first_row: int = 0
) -> tuple[Structure, list[Column]]:
    """Return the structure of the elements of a pyarrow.RecordBatch, and their columns.

    `fill_null` maps names of columns, or "struct.field" for fields of structs, to values that replace their nulls.
    `first_row` is the number of the first row in error messages.
    """
    start = _ArrowPlace("", fill=fill_null or {}, first_row=first_row)
    leaves, structure = flatten(_nest(batch.schema, batch.columns, start))
    return structure, [leaf.column() for leaf in leaves]


def foreign_spec(schema: Any, fill_null: Mapping[str, Any] | None = None) -> Any:
    """Return the nest of specs of the elements that `foreign_columns` returns for batches of a schema.

    Raises:
        InvalidArgumentError: If `fill_null` names a column that does not exist.
    """
    import pyarrow as pa

    arrays = [_extended(pa.nulls(0, getattr(part.type, "storage_type", part.type)), part.type) for part in schema]
    nest = _nest(schema, arrays, _ArrowPlace("", fill=fill_null or {}))
    decimals = [part.name for part in schema if with_types(part.type, pa.types.is_decimal, pa.null()) != part.type]
    if decimals:
        message = f"Decimals are read as float64, which keeps 15 digits: {', '.join(decimals)}. "
        hint = "ParquetDataset and ArrowDataset read their text with decimals=bytes; decimals=np.float64 does not warn."
        warnings.warn(message + hint, stacklevel=2)
    names = column_names(flatten(nest)[1])
    for name in fill_null or ():
        if name not in names:
            raise InvalidArgumentError(f"fill_null names {name!r}, and the columns are {', '.join(names)}.")
    return map_leaves(lambda leaf: leaf.spec(), nest)


def with_types(kind: Any, which: Callable[[Any], bool], other: Any) -> Any:
    """Return an Arrow type in which `other` replaces the types for which `which` returns True."""
    import pyarrow as pa

    if which(kind):
        return other
    if pa.types.is_list(kind):
        return pa.list_(with_types(kind.value_type, which, other))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, with_types(field.type, which, other)) for field in kind])
    return kind


def _extended(storage: Array, kind: Any) -> Array:
    import pyarrow as pa

    return pa.ExtensionArray.from_storage(kind, storage) if isinstance(kind, pa.BaseExtensionType) else storage


@dataclass(frozen=True, slots=True)
class _ArrowPlace:
    """Position of an array in a row: its name, the lists around it, and the replacements for nulls."""

    name: str
    fill: Mapping[str, Any]
    levels: tuple[np.ndarray, ...] = ()  # offsets of the lists, the outermost list first
    first_row: int = 0

    def below(self, name: str) -> _ArrowPlace:
        return replace(self, name=f"{self.name}.{name}" if self.name else name)

    def inside(self, offsets: np.ndarray) -> _ArrowPlace:
        return replace(self, levels=(*self.levels, offsets))

    def row(self, item: int) -> int:
        for offsets in reversed(self.levels):
            item = int(np.searchsorted(offsets, item, side="right")) - 1
        return self.first_row + item


class _Leaf:
    """Values inside any number of lists."""

    def __init__(self, values: DenseColumn | BytesColumn, place: _ArrowPlace) -> None:
        self.values = values
        self.levels = place.levels

    def spec(self) -> LeafSpec:
        found = self.values.spec()
        if len(self.levels) > 1:
            return RaggedTensorSpec((*(None,) * len(self.levels), *found.shape), found.dtype)
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


def _nest(names: Any, arrays: list[Array], place: _ArrowPlace) -> dict[str, Any]:
    """Return a dict of leaves, one for each array: the columns of a batch or the fields of a struct."""
    return {part.name: _walk(array, place.below(part.name)) for part, array in zip(names, arrays, strict=True)}


def _walk(array: Array, place: _ArrowPlace) -> Any:
    import pyarrow as pa

    types = pa.types
    if isinstance(array, pa.ExtensionArray):
        return _extension(array, place)
    if types.is_dictionary(array.type):
        return _walk(_decoded(array), place)
    if types.is_run_end_encoded(array.type):
        return _walk(pa.compute.run_end_decode(array), place)
    if types.is_struct(array.type):  # nulls of a struct become nulls of its fields
        # a file in a Hugging Face data set: its path may be null
        if {field.name for field in array.type} == {"bytes", "path"}:
            place = replace(place, fill={f"{place.name}.path": "", **place.fill})
        return _nest(array.type, array.flatten(), place)
    array = _without_nulls(array, place)
    if types.is_nested(array.type) and not types.is_union(array.type):
        return _list(array, place)
    if is_strings(array.type):
        return _Leaf(strings_of(array), place)
    if types.is_boolean(array.type) or types.is_integer(array.type) or types.is_floating(array.type):
        return _Leaf(DenseColumn(numbers_of(array)), place)
    if types.is_decimal(array.type):
        return _Leaf(DenseColumn(numbers_of(array.cast(pa.float64()))), place)
    if types.is_temporal(array.type) and not types.is_interval(array.type):
        return _Leaf(DenseColumn(numbers_of(array)), place)
    message = f"Column {place.name!r} is of the Arrow type {array.type}, which no tensor holds."
    hint = "Cast it where the file is written, or leave it out with columns=[...]."
    raise InvalidTypeError(message, hint=hint)


def _decoded(array: Array) -> Array:
    """Return the values of a dictionary-encoded array."""
    import pyarrow as pa

    words = array.dictionary
    # polars stores categories as string views
    if pa.types.is_string_view(words.type) or pa.types.is_binary_view(words.type):
        kind = pa.large_string() if pa.types.is_string_view(words.type) else pa.large_binary()
        return words.cast(kind).take(array.indices)  # pyarrow cannot take elements from views
    return array.dictionary_decode()


def _list(array: Array, place: _ArrowPlace) -> Any:
    offsets, values = lists_of(array)
    inside = place.inside(offsets)
    found = _walk(values, inside)
    fixed = getattr(array.type, "list_size", None)
    if fixed is None or not isinstance(found, _Leaf) or len(found.levels) > len(inside.levels):
        return found
    return _Leaf(_shaped(found.values, len(array), (fixed,)), place)


def _shaped(values: Any, count: int, shape: tuple[int, ...]) -> Any:
    """Return `count` elements of `shape`, each made of neighbouring values."""
    if isinstance(values, DenseColumn):
        return DenseColumn(values.array.reshape(count, *shape, *values.array.shape[1:]))
    shape = (count, *shape, *values.starts.shape[1:])
    return BytesColumn(values.buffers, values.starts.reshape(shape), values.lengths.reshape(shape))


def _extension(array: Array, place: _ArrowPlace) -> Any:
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


def _without_nulls(array: Array, place: _ArrowPlace) -> Array:
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


KEY = b"penstock"  # key in the metadata of the schema
_STATED = re.compile(r"alloc of size (\d+) failed")
_ANY_MEMORY = 1 << 40  # bytes, assumed if the system does not tell the size of its memory
_VERSION = 1


def too_little_memory(error: Exception) -> bool:
    """Return True if the machine has too little memory for the data of a file.

    Return False if a damaged file states an absurd size.

    A single buffer larger than the memory of the machine counts as an absurd size.
    """
    return isinstance(error, MemoryError) and (asked_for(error) or 0) < _all_memory()


def asked_for(error: MemoryError) -> int | None:
    """Return the number of bytes that Arrow tried to allocate, or None if the error does not contain it."""
    stated = _STATED.search(str(error))
    return None if stated is None else int(stated[1])


@cache
def _all_memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return _ANY_MEMORY


def schema_of(structure: Structure, specs: Sequence[LeafSpec]) -> Any:
    """Return the pyarrow.Schema of batches with elements of a structure, with one spec per leaf.

    Raises:
        InvalidTypeError: If a leaf or a dict key cannot be stored.
    """
    import pyarrow as pa

    names = column_names(structure)
    kinds = [leaf_type(spec) for spec in specs]
    parts = [pa.field(name, kind, nullable=pa.types.is_null(kind)) for name, kind in zip(names, kinds, strict=True)]
    if not parts:
        parts = [pa.field("empty", pa.null())]  # a batch without columns would have no length
    stored = {
        "version": _VERSION,
        "columns": [part.name for part in parts],
        "nest": structure_to_json(structure),
        "leaves": [spec_to_json(spec) for spec in specs],
    }
    return pa.schema(parts, metadata={KEY: json.dumps(stored).encode()})


def to_arrow(block: Block, specs: Sequence[LeafSpec] | None = None) -> Any:
    """Return a pyarrow.RecordBatch of the Block's elements. Numbers and contiguous byte strings are not copied.

    `specs` has one spec per leaf. They may be wider than those of the Block, because all batches of a file share one
    schema. An array whose spec has a dimension None is stored as a list.

    Raises:
        InvalidTypeError: If a leaf cannot be stored, or does not satisfy its spec in `specs`.
    """
    import pyarrow as pa

    own = block.specs()
    chosen = own if specs is None else list(specs)
    for path, found, wanted in zip(block.structure.paths(), own, chosen, strict=True):
        if wanted.relax(found) != wanted:
            message = f"Component {path or 'value'} is {found}, and the file holds {wanted}."
            raise InvalidTypeError(message, hint="All elements of a file have one spec.")
    schema = schema_of(block.structure, chosen)
    arrays = [encode(column, spec) for column, spec in zip(block.columns, chosen, strict=True)]
    return pa.RecordBatch.from_arrays(arrays or [pa.nulls(block.size)], schema=schema)


def from_arrow(
    batch: Any,
    *,
    structure: Structure | None = None,
    fill_null: Mapping[str, Any] | None = None,
    first_row: int = 0,
) -> Block:
    """Return the elements of a pyarrow.RecordBatch. Arrays and byte strings point into Arrow's memory if possible.

    `structure` replaces the stored structure, for classes that cannot be imported by name. `fill_null` and `first_row`
    apply to batches of other programs, see `foreign_columns`.

    Raises:
        InvalidTypeError: If a type or class has no counterpart.
        InvalidArgumentError: If there is a null without a replacement.
    """
    stored = _stored(batch.schema)
    if stored is None:
        structure, columns = foreign_columns(batch, fill_null, first_row)
        return Block(structure, columns, batch.num_rows)
    structure = structure or structure_from_json(stored["nest"])
    specs = [spec_from_json(spec) for spec in stored["leaves"]]
    columns = [decode(array, spec) for array, spec in zip(batch.columns[: len(specs)], specs, strict=True)]
    return Block(structure, columns, batch.num_rows)


def spec_from_schema(schema: Any, fill_null: Mapping[str, Any] | None = None) -> Any:
    """Return the nest of specs of the elements that `from_arrow` returns for batches of a schema."""
    stored = _stored(schema)
    if stored is None:
        return foreign_spec(schema, fill_null)
    return structure_from_json(stored["nest"]).build([spec_from_json(spec) for spec in stored["leaves"]])


def _stored(schema: Any) -> Any:
    """Return the metadata that `schema_of` wrote, or None.

    A schema of another program has no such metadata. For a selection of columns of one of our schemas, the result is
    None, too.
    """
    text = (schema.metadata or {}).get(KEY)
    if text is None:
        return None
    stored = json.loads(text)
    if stored.get("version") != _VERSION:
        message = f"The Arrow data was written by another version of penstock (format {stored.get('version')!r})."
        raise DataLossError(message)
    return stored if schema.names == stored["columns"] else None
