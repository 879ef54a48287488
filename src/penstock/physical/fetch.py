"""Fetch: from the numbers of elements to the elements, a Block at a time, on any worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.block.numbers import Numbers
from penstock.physical.access import access, stretch_of
from penstock.physical.lower import Lowering
from penstock.physical.stretch import Stretch, failure
from penstock.physical.transform import Outcome, Transform
from penstock.plan.node import Node
from penstock.trace.graph import Allocate


class Fetch(Transform):
    """The elements of a plan with the numbers that come, in the pass that `lowering` describes."""

    one_to_one = True

    def __init__(self, plan: Node, lowering: Lowering) -> None:
        self.label = plan.label
        self.where = plan.where
        self._arguments = plan, lowering.beside()
        self._elements = access(*self._arguments)

    @property
    def size(self) -> int:
        """How many elements there are."""
        return self._elements.size

    def run(self, block: Block, numbers: Numbers, allocate: Callable[[int], Allocate] | None = None) -> Outcome:
        (column,) = block.columns
        assert isinstance(column, DenseColumn)
        made = self._rows(column.array)
        if not made.failures:
            return Outcome(made.block)
        rows = np.delete(np.arange(block.size), [row for row, _ in made.failures])
        return Outcome(made.block, rows, made.failures)

    def _rows(self, numbers: np.ndarray) -> Stretch:
        try:
            return self._elements.rows(numbers)
        except Exception as error:
            if len(numbers) == 1:
                return failure(error)
        return self._one_by_one(numbers)

    def _one_by_one(self, numbers: np.ndarray) -> Stretch:
        """For elements of which some are of another kind than the first: these fail."""
        found = self._rows(numbers[:1])
        for number in numbers[1:]:
            more = self._rows(np.array([number]))
            pieces = [*found.pieces(), *more.pieces()]
            try:
                found = stretch_of(pieces)
            except Exception as error:
                found = stretch_of([*found.pieces(), error])
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return Fetch, self._arguments
