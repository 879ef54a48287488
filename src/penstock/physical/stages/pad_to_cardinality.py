"""PadToCardinality: elements with a mark, and zeros without it up to a number of elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn
from penstock.block.spec import TensorSpec
from penstock.block.structure import LEAF, Structure, nest
from penstock.errors import Context, InvalidArgumentError
from penstock.physical.stage import Stage, State


class PadToCardinality(Stage):
    """`count` elements: those of the input, then zeros of `specs`."""

    def __init__(
        self,
        upstream: Stage,
        count: int,
        mask_key: str,
        structure: Structure,
        specs: Sequence[TensorSpec],
        label: str,
        where: str | None,
    ) -> None:
        super().__init__(label, (upstream,), where)
        self._upstream = upstream
        self._count = count
        self._mask_key = mask_key
        self._structure = structure
        self._specs = specs
        self._given = 0
        self._surplus = False  # whether an element came that there is no room for
        self._ended = False

    def next(self, want: int) -> Block | None:
        if self._ended:
            return None
        if self._surplus:
            self._ended = True
            message = f"The data set has more elements than cardinality={self._count}."
            context = Context(stage=self.label, where=self.where, element=self._given)
            raise InvalidArgumentError(message, hint="Padding never drops elements; take() does.", context=context)
        try:
            block = self._upstream.next(want)
        except Exception:
            self._given += 1
            raise
        if block is None:
            return self._zeros(want)
        room = max(self._count - self._given, 0)
        self._surplus = block.size > room
        if not room:
            return self.next(want)
        found = block.slice(0, room)
        self._given += found.size
        return self._marked(found, valid=True)

    def _zeros(self, want: int) -> Block | None:
        size = min(want, self._count - self._given)
        if size <= 0:
            return None
        self._given += size
        return self._marked(Block(self._structure, [_zeros(spec, size) for spec in self._specs], size), valid=False)

    def _marked(self, block: Block, *, valid: bool) -> Block:
        structure = block.structure
        names = (*structure.names, self._mask_key)
        outer = Structure(dict, names, (LEAF,) * len(names), len(names))
        mark = DenseColumn(np.full(block.size, valid))
        return block.with_columns(nest(outer, [*structure.children, LEAF]), [*block.columns, mark])

    def state(self) -> State:
        return [self._upstream.state(), self._given, self._surplus, self._ended]

    def restore(self, state: State) -> None:
        below, self._given, self._surplus, self._ended = state
        self._upstream.restore(below)


def _zeros(spec: TensorSpec, size: int) -> Column:
    shape = (size, *[dim or 0 for dim in spec.shape])
    if spec.dtype is not bytes:
        return DenseColumn(np.zeros(shape, spec.dtype))
    nothing = np.zeros(shape, np.int64)
    return BytesColumn((np.empty(0, np.uint8),), nothing, nothing)
