"""ColumnBuffer joins the elements that wait for their file, and checks them against one spec."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from penstock.block.arena import ARENA
from penstock.block.arrow_leaf import known_shape
from penstock.block.block import Block, concat_blocks
from penstock.block.column import Column, DenseColumn, concat
from penstock.block.spec import LeafSpec, TensorSpec
from penstock.block.structure import Structure, flatten
from penstock.errors import InvalidTypeError

Kept = tuple[Block, list[LeafSpec]]


class Alike:
    """Reorders dict keys as in the first Block, and records the spec that all elements so far satisfy."""

    def __init__(self, spec: Any = None) -> None:
        self._structure: Structure | None = None
        self._specs: list[LeafSpec] = []
        if spec is not None:
            self._specs, self._structure = flatten(spec)

    @property
    def spec(self) -> Any:
        """The nest of specs, or None before the first element."""
        return None if self._structure is None else self._structure.build(list(self._specs))

    def __call__(self, block: Block) -> Kept:
        """Return the Block in the order of the first Block, and its specs.

        Raises:
            InvalidTypeError: If files cannot store the elements, or the elements have another structure or rank.
        """
        columns = list(block.columns)
        specs = [column.spec() for column in columns]
        if self._structure is None:
            from penstock.block.arrow import schema_of

            schema_of(block.structure, specs)  # raises an error before the first file is written
            self._structure, self._specs = block.structure, specs
        elif block.structure != self._structure:
            order = self._structure.flatten(block.structure.build(list(range(len(block.columns)))))
            columns, specs = [columns[i] for i in order], [specs[i] for i in order]
        self._specs = relaxed(self._specs, specs)
        return Block(self._structure, columns, block.size), specs  # files do not store the origin of a Block


def relaxed(before: list[LeafSpec], now: list[LeafSpec]) -> list[LeafSpec]:
    """Return the specs that elements of both lists satisfy."""
    found = []
    for one, other in zip(before, now, strict=True):
        both = one.relax(other, any_rank=True)  # an earlier step has already refused ranks that may not differ
        if both is None:
            message = f"All elements of a saved data set have one spec: before it was {one}, now it is {other}."
            raise InvalidTypeError(message, hint="np.float32(value) converts.")
        found.append(both)
    return found


def joined(waiting: Sequence[Kept]) -> Iterator[Kept]:
    """Join neighbouring Blocks into one Block, or into two if the second is smaller and has another spec."""
    alike = next((i for i, (_, specs) in enumerate(waiting) if specs != waiting[0][1]), len(waiting))
    first = sum(block.size for block, _ in waiting[:alike])
    # A smaller last batch must not turn the columns of all other elements into lists.
    parts = [waiting[:alike], waiting[alike:]] if 2 * first >= sum(block.size for block, _ in waiting) else [waiting]
    for part in parts:
        if part:
            yield whole(part)


def whole(parts: Sequence[Kept]) -> Kept:
    """Return neighbouring Blocks as one Block, with the specs that all of them satisfy."""
    specs = functools.reduce(relaxed, [specs for _, specs in parts])
    return concat_blocks([block for block, _ in parts]), specs


def stored_as(spec: Any) -> Any:
    """Return the nest of specs if its elements can be stored, else raise InvalidTypeError."""
    from penstock.block.arrow import schema_of

    leaves, structure = flatten(spec)
    schema_of(structure, leaves)
    return spec


class ColumnBuffer:
    """Copies components of one shape into one array, and stores other components as they are.

    Two kinds of Blocks are also stored as they are: a Block with other specs than the first one, and a Block that alone
    has the `expected` number of bytes. All later Blocks are then stored as they are.
    """

    def __init__(self, expected: int) -> None:
        self._expected = expected
        self._places: dict[int, _ComponentMemory] = {}
        self._structure: Structure | None = None
        self._specs: list[LeafSpec] = []
        self._size = 0  # number of joined elements
        self._loose: dict[int, list[Column]] = {}  # columns of components without one fixed shape, by component
        self._rest: list[Kept] = []

    def add(self, block: Block, specs: list[LeafSpec]) -> None:
        """Add the next elements."""
        if self._rest or (specs != self._specs if self._size else block.nbytes >= self._expected):
            self._rest.append((block, specs))
            return
        if not self._size:
            self._structure, self._specs = block.structure, specs
            self._begin(block)
        for i, column in enumerate(block.columns):
            if i in self._places:
                self._places[i].put(self._size, column)
            else:
                self._loose.setdefault(i, []).append(column)
        self._size += block.size

    def _begin(self, block: Block) -> None:
        wanted = block.size * (1 + self._expected // max(block.nbytes, 1))
        for i, spec in enumerate(self._specs):
            if isinstance(spec, TensorSpec) and spec.dtype is not bytes and spec.fixed:
                self._places[i] = _ComponentMemory(spec, wanted)

    def kept(self) -> list[Kept]:
        """Return all elements."""
        if not self._size:
            return list(self._rest)
        assert self._structure is not None
        columns = [
            self._places[i].column(self._size) if i in self._places else concat(self._loose[i])
            for i in range(len(self._specs))
        ]
        return [(Block(self._structure, columns, self._size), self._specs), *self._rest]


class _ComponentMemory:
    """Memory for the values of one component."""

    def __init__(self, spec: TensorSpec, count: int) -> None:
        self._spec = spec
        self._values = self._room(count)

    def _room(self, count: int) -> np.ndarray:
        """Return memory for at least `count` values.

        The sizes are rounded to few different values, so that the arena can reuse the memory.
        """
        shape = known_shape(self._spec)
        row = prod(shape) * self._spec.dtype.itemsize
        step = 1 << max((count * row).bit_length() - 4, 0)
        memory = ARENA.empty((-(-count * row // step) * step,), np.uint8)
        return memory[: count * row].view(self._spec.dtype).reshape(count, *shape)

    def put(self, begin: int, column: Column) -> None:
        """Copy the values of a column to position `begin`."""
        stop = begin + len(column)
        if stop > len(self._values):
            before, self._values = self._values, self._room(2 * stop)
            self._values[:begin] = before[:begin]
        if isinstance(column, DenseColumn):
            self._values[begin:stop] = column.array
        else:
            np.stack(column.values(), out=self._values[begin:stop])

    def column(self, size: int) -> DenseColumn:
        return DenseColumn(self._values[:size])
