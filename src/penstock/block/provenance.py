"""Provenance: where an element was read, as a value beside it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn
from penstock.block.origin import NOBODY, Origin
from penstock.block.structure import LEAF, Structure, flatten, nest


class Provenance(NamedTuple):
    """Where an element was read; of a batch each field is an array, one entry for each element of the batch.

    `file` is the name of the file as `bytes`, or of the source where there is no file; `offset` the byte at which the
    element begins, -1 where there is none; `position` its number, counted from 0: in a source with an index the number
    by which `at` finds it, elsewhere its number in its file, or in the source where there is no file. What is not known
    (an element that a function made of several) has b"", -1 and -1, and so has what fills a batch of batches up where
    these were of different sizes.
    """

    file: Any
    offset: Any
    position: Any


_PAIR = Structure(tuple, (), (LEAF, LEAF), 2)
_FIELDS = flatten(Provenance(0, 0, 0))[1]


def with_provenance(block: Block) -> Block:
    """`(element, Provenance)` for every element."""
    origin = _unknown(block.size) if block.origin is None else block.origin
    structure = nest(_PAIR, [block.structure, _FIELDS])
    position = np.full_like(origin.offset, -1) if origin.position is None else origin.position
    fields = [_names(origin), DenseColumn(origin.offset), DenseColumn(position)]
    if (origin.file == NOBODY).any():
        fields = [_cut(field, origin.sizes()) for field in fields]
    return block.with_columns(structure, [*block.columns, *fields])


def _cut(column: Column, sizes: list[tuple[int, ...]]) -> Column:
    """Each element less what is there for larger ones."""
    corners = [tuple(slice(size) for size in element) for element in sizes]
    return ListColumn([value[corner] for value, corner in zip(column.values(), corners, strict=True)])


def _unknown(size: int) -> Origin:
    return Origin.of_source("", np.full(size, -1))


def _names(origin: Origin) -> Column:
    """The file of each element; all point into one buffer of names."""
    names = [*(name.encode() for name in origin.files), b""]  # which NOBODY, the last one, has
    lengths = np.array([len(name) for name in names], np.int64)
    starts = np.cumsum(lengths) - lengths
    buffer = np.frombuffer(b"".join(names), np.uint8)
    return BytesColumn((buffer,), starts[origin.file], lengths[origin.file])
