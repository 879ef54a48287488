"""Stages that check the declared number of elements, or pad to it with zeros."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn
from penstock.block.spec import TensorSpec
from penstock.block.structure import LEAF, Structure, nest
from penstock.errors import Context, DataLossError, FailedPreconditionError, InvalidArgumentError, PenstockError
from penstock.physical.stage import CursorStage, Stage, UnaryStage
from penstock.plan.node import INFINITE_CARDINALITY, NamedStep
from penstock.plan.stateful import AssertCardinality


class AssertCardinalityStage(CursorStage):
    """Yields the first `expected` elements.

    One element too many, or the end after too few, is an error, then the end.
    """

    moving = ("_seen", "_failed")

    def __init__(self, upstream: Stage, node: AssertCardinality) -> None:
        super().__init__(upstream, node)
        self._expected = node.expected_cardinality
        self._file = node.file
        self._seen = 0
        self._failed = False

    def next(self, want: int) -> Block | None:
        if self._failed:
            return None
        left = want if self._expected == INFINITE_CARDINALITY else self._expected - self._seen
        try:
            more = self._cursor.fill(min(want, left) or 1)
        except Exception as error:
            if not left:
                raise self._error() from error
            self._seen += 1
            raise
        if not more:
            if self._seen == self._expected:
                return None
            raise self._error(self._seen)
        if not left:
            raise self._error()
        block = self._cursor.take_available(left)
        self._seen += block.size
        return block

    def _error(self, found: int | None = None) -> PenstockError:
        """Return the error for fewer elements (`found`) or more (None)."""
        self._failed = True
        return other_cardinality(self._expected, found, self._file, Context(self.label, self.where))


def other_cardinality(expected: int, found: int | None, file: str | None, context: Context) -> PenstockError:
    """Return the error for another number than expected: `found` elements if fewer, None if more."""
    wanted = "infinitely many elements" if expected == INFINITE_CARDINALITY else _elements(expected)
    message = f"Expected {wanted}, found {'more' if found is None else 'only ' + _elements(found)}."
    if file is not None:
        return DataLossError(message, hint="Delete the folder and prepare again.", file=file, context=context)
    hint = "Pass the real number to assert_cardinality. Filters and dropped elements reduce it."
    return FailedPreconditionError(message, hint=hint, context=context)


def _elements(count: int) -> str:
    return f"{count} element{'' if count == 1 else 's'}"


class PadToCardinalityStage(UnaryStage):
    """Yields `count` elements: those of the input, then zeros with the shapes of `specs`."""

    moving = ("_given", "_surplus", "_ended")

    def __init__(
        self,
        upstream: Stage,
        count: int,
        mask_key: str,
        structure: Structure,
        specs: Sequence[TensorSpec],
        step: NamedStep,
    ) -> None:
        super().__init__(upstream, step)
        self._count = count
        self._mask_key = mask_key
        self._structure = structure
        self._specs = specs
        self._given = 0
        self._surplus = False  # True if the input has an element too many
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


def _zeros(spec: TensorSpec, size: int) -> Column:
    shape = (size, *[dim or 0 for dim in spec.shape])
    if spec.dtype is not bytes:
        return DenseColumn(np.zeros(shape, spec.dtype))
    nothing = np.zeros(shape, np.int64)
    return BytesColumn((np.empty(0, np.uint8),), nothing, nothing)
