"""Blocks as Arrow record batches and back: what caches, snapshots and files for other tools are made of.

Written by `to_arrow`, a batch says in the metadata of its schema what nest its columns were, with which dtypes and
shapes, and comes back exactly. Any other batch is read by its Arrow types (`arrow_foreign`). Nothing is pickled.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from penstock.block.arrow_foreign import foreign_columns, foreign_spec
from penstock.block.arrow_leaf import decode, encode, leaf_type
from penstock.block.arrow_nest import column_names, spec_from_json, spec_to_json, structure_from_json, structure_to_json
from penstock.block.block import Block
from penstock.block.spec import LeafSpec
from penstock.block.structure import Structure
from penstock.errors import DataLossError, InvalidTypeError

KEY = b"penstock"  # of the schema's metadata
_STATED = re.compile(r"alloc of size (\d+) failed")
_ANY_MEMORY = 1 << 40  # bytes, where the system does not say how many it has
_VERSION = 1


def too_little_memory(error: Exception) -> bool:
    """Whether an error says that there was no memory for what a file holds, and not for what a damaged one states.

    A single buffer of more than all the memory of the machine is taken for the latter.
    """
    return isinstance(error, MemoryError) and (asked_for(error) or 0) < _all_memory()


def asked_for(error: MemoryError) -> int | None:
    """The bytes that Arrow could not have, as far as it says so."""
    stated = _STATED.search(str(error))
    return None if stated is None else int(stated[1])


@cache
def _all_memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on Windows
        return _ANY_MEMORY


def schema_of(structure: Structure, specs: Sequence[LeafSpec]) -> Any:
    """The pyarrow.Schema of batches that hold elements of a structure, with one spec per leaf.

    Raises InvalidTypeError for a leaf, or a dict key, that cannot be stored.
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
    """A pyarrow.RecordBatch of the Block's elements; numbers and neighbouring byte strings are not copied.

    `specs`, one per leaf, are wider than the Block's own where all batches of a file share a schema: an array whose
    spec has a dimension None is stored as a list.

    Raises InvalidTypeError for a leaf that cannot be stored, or that `specs` do not admit.
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
    """The elements of a pyarrow.RecordBatch; their arrays and byte strings point into Arrow's memory where they can.

    `structure` replaces the stored one, for classes that cannot be found by their names. `fill_null` and `first_row`
    are for batches of others, see `foreign_columns`.

    Raises InvalidTypeError for types or classes without a counterpart, InvalidArgumentError for a null.
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
    """The nest of specs of the elements that `from_arrow` gives for batches of a schema."""
    stored = _stored(schema)
    if stored is None:
        return foreign_spec(schema, fill_null)
    return structure_from_json(stored["nest"]).build([spec_from_json(spec) for spec in stored["leaves"]])


def _stored(schema: Any) -> Any:
    """What `schema_of` wrote, or None for a schema of others, or for some columns of one of ours."""
    text = (schema.metadata or {}).get(KEY)
    if text is None:
        return None
    stored = json.loads(text)
    if stored.get("version") != _VERSION:
        message = f"The Arrow data was written by another version of penstock (format {stored.get('version')!r})."
        raise DataLossError(message)
    return stored if schema.names == stored["columns"] else None
