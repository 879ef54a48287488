"""Transforms: stateless work on one Block, the part of a plan that any number of workers may do at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.block.block import Block, Builder
from penstock.block.column import DenseColumn
from penstock.block.same_kind import SameKind
from penstock.errors import Context, InvalidTypeError, annotate
from penstock.physical.vectorise import Vectoriser
from penstock.trace.graph import Allocate


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a Block became: the elements before the first error in their order, and that error."""

    block: Block | None
    error: BaseException | None = None


class Transform(ABC):
    """One step on a Block. Thread-safe: called by several workers at once."""

    label: str
    where: str | None

    @abstractmethod
    def run(self, block: Block, first: int, allocate: Callable[[int], Allocate] | None = None) -> Outcome:
        """Transform a Block whose elements are numbers `first`, `first` + 1, … of this step's input (-1: unknown).

        `allocate(k)` offers memory for leaf k of the results.
        """

    def context(self, block: Block, row: int, first: int, inner: int = 0) -> Context:
        file, offset = (None, None) if block.origin is None else block.origin.at(row, inner)
        return Context(self.label, self.where, first + row if first >= 0 else None, file, offset)


def run_all(
    transforms: Sequence[Transform], block: Block, first: int, allocate: Callable[[int], Allocate] | None = None
) -> Outcome:
    """One transform after the other; the error that comes first in element order wins."""
    error: BaseException | None = None
    for i, transform in enumerate(transforms):
        last = i == len(transforms) - 1
        outcome = transform.run(block, first, allocate if last else None)
        error = outcome.error or error  # a later step works on the elements before an earlier step's error
        if outcome.block is None:
            return Outcome(None, error)
        if outcome.block.size < block.size:
            first = -1  # a filter has broken the count
        block = outcome.block
    return Outcome(block, error)


class MapTransform(Transform):
    """`function(element)` for every element, a Block at a time where that is known to be equal."""

    def __init__(self, function: Callable[..., Any], label: str, where: str | None, *, vectorise: bool) -> None:
        self.label = label
        self.where = where
        self.function = function
        self.vectoriser = Vectoriser(function) if vectorise else None
        self._same_kind = SameKind("The function's result")

    def run(self, block: Block, first: int, allocate: Callable[[int], Allocate] | None = None) -> Outcome:
        if self.vectoriser is not None:
            found = self.vectoriser.run(block, allocate)
            if found is not None:
                return Outcome(found)
        return self._per_element(block, first)

    def _per_element(self, block: Block, first: int) -> Outcome:
        function = self.function
        unpacks = block.structure.unpacks
        builder = Builder()
        row = 0
        error: Exception | None = None
        try:
            for element in block.elements():
                if unpacks:
                    builder.add(function(*element))
                else:
                    builder.add(function(element))
                row += 1
        except Exception as raised:
            annotate(raised, self.context(block, row, first))
            error = raised
        if not len(builder):
            return Outcome(None, error)
        origin = block.origin if row == block.size or block.origin is None else block.origin.slice(0, row)
        built, mixed = self._same_kind.build(builder, origin)
        if mixed is not None:
            mixed.context = self.context(block, mixed.context.element or 0, first)
            error = mixed
        return Outcome(built, error)


class FilterTransform(Transform):
    """The elements for which `predicate(element)` is true."""

    def __init__(self, predicate: Callable[..., Any], label: str, where: str | None, *, vectorise: bool) -> None:
        self.label = label
        self.where = where
        self.function = predicate
        self.vectoriser = Vectoriser(predicate) if vectorise else None

    def run(self, block: Block, first: int, allocate: Callable[[int], Allocate] | None = None) -> Outcome:
        mask, error = self._vectorised(block), None
        if mask is None:
            mask, error = self._per_element(block, first)
        kept = np.flatnonzero(mask)
        if len(kept) == block.size:
            return Outcome(block, error)
        return Outcome(block.take(kept) if len(kept) else None, error)

    def _vectorised(self, block: Block) -> np.ndarray | None:
        if self.vectoriser is None:
            return None
        found = self.vectoriser.run(block, None)
        if found is None or not found.structure.is_leaf:
            return None
        column = found.columns[0]
        if isinstance(column, DenseColumn) and column.array.dtype == bool and column.array.ndim == 1:
            return column.array
        return None

    def _per_element(self, block: Block, first: int) -> tuple[np.ndarray, Exception | None]:
        predicate = self.function
        unpacks = block.structure.unpacks
        mask = np.zeros(block.size, bool)
        row = 0
        try:
            for element in block.elements():
                verdict = predicate(*element) if unpacks else predicate(element)
                if not isinstance(verdict, (bool, np.bool_)):
                    verdict = _truth(verdict)
                mask[row] = verdict
                row += 1
        except Exception as raised:
            annotate(raised, self.context(block, row, first))
            return mask, raised
        return mask, None


def _truth(verdict: Any) -> bool:
    if isinstance(verdict, np.ndarray) and verdict.shape == () and verdict.dtype == bool:
        return bool(verdict)
    message = f"A predicate returns one bool, got {verdict!r:.60} ({type(verdict).__name__})."
    raise InvalidTypeError(message, hint="Compare, for example `x % 2 == 0`; for arrays use .any() or .all().")
