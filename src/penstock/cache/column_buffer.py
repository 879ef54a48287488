"""ColumnBuffer: elements that wait to become a file, joined as they come: the Blocks they came in need not wait."""

from __future__ import annotations

from math import prod

import numpy as np

from penstock.block.arena import ARENA
from penstock.block.arrow_fixed import known_shape
from penstock.block.block import Block
from penstock.block.column import Column, DenseColumn, concat
from penstock.block.spec import LeafSpec, TensorSpec
from penstock.block.structure import Structure
from penstock.cache.alike import Kept


class ColumnBuffer:
    """Components of one shape are copied one behind the other, others stay as they come.

    So does all that follows the first Block of another spec, and a Block that alone has the bytes that are `expected`.
    """

    def __init__(self, expected: int) -> None:
        self._expected = expected
        self._places: dict[int, _Place] = {}
        self._structure: Structure | None = None
        self._specs: list[LeafSpec] = []
        self._size = 0  # elements that are joined
        self._loose: dict[int, list[Column]] = {}  # their components that are not
        self._rest: list[Kept] = []

    def add(self, block: Block, specs: list[LeafSpec]) -> None:
        """The next elements."""
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
                self._places[i] = _Place(spec, wanted)

    def kept(self) -> list[Kept]:
        """All elements."""
        if not self._size:
            return list(self._rest)
        assert self._structure is not None
        columns = [
            self._places[i].column(self._size) if i in self._places else concat(self._loose[i])
            for i in range(len(self._specs))
        ]
        return [(Block(self._structure, columns, self._size), self._specs), *self._rest]


class _Place:
    """Room for the values of one component."""

    def __init__(self, spec: TensorSpec, count: int) -> None:
        self._spec = spec
        self._values = self._room(count)

    def _room(self, count: int) -> np.ndarray:
        """For so many values or some more, of few different sizes, so that the arena has them again."""
        shape = known_shape(self._spec)
        row = prod(shape) * self._spec.dtype.itemsize
        step = 1 << max((count * row).bit_length() - 4, 0)
        memory = ARENA.empty((-(-count * row // step) * step,), np.uint8)
        return memory[: count * row].view(self._spec.dtype).reshape(count, *shape)

    def put(self, begin: int, column: Column) -> None:
        """Copy values behind `begin` others."""
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
