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
from penstock.errors import Context, InvalidTypeError, as_failure
from penstock.physical.stretch import Stretch
from penstock.physical.vectorise import Vectoriser
from penstock.trace.graph import Allocate


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a Block became: the elements left, the rows they come from (None: all), and (row, error) of the failed."""

    block: Block | None
    rows: np.ndarray | None = None
    failures: Sequence[tuple[int, Exception]] = ()


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
) -> Stretch:
    """One transform after the other. A failure keeps its place among the elements around it."""
    size = block.size
    failures: list[tuple[int, Exception]] = []  # each in front of a row of the Block as it is by now
    for transform in transforms:
        last = transform is transforms[-1] and block.size == size  # else the memory offered has too many rows
        outcome = transform.run(block, first, allocate if last else None)
        if outcome.failures:
            failures = sorted([*failures, *outcome.failures], key=_place)
        if outcome.block is None:
            return Stretch(None, tuple((i, error) for i, (_, error) in enumerate(failures)))
        if outcome.rows is not None:
            first = -1  # the count is broken
            if failures:
                places = np.searchsorted(outcome.rows, [row for row, _ in failures]).tolist()
                failures = [(row, error) for row, (_, error) in zip(places, failures, strict=True)]
        block = outcome.block
    return Stretch(block, tuple((row + i, error) for i, (row, error) in enumerate(failures)))


def _place(failed: tuple[int, Exception]) -> int:
    return failed[0]


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
        failures: list[tuple[int, Exception]] = []
        row = -1
        for row, element in enumerate(block.elements()):
            try:
                builder.add(function(*element) if unpacks else function(element))
            except Exception as raised:
                failures.append((row, as_failure(raised, self.context(block, row, first))))
        del element
        rows: np.ndarray | None = None
        origin = block.origin
        if failures:
            rows = np.delete(np.arange(block.size), [row for row, _ in failures])
            origin = None if origin is None or not len(rows) else origin.take(rows)
        if not len(builder):
            return Outcome(None, rows, failures)
        built, mixed = self._same_kind.build(builder, origin)
        if mixed:
            rows = np.arange(block.size) if rows is None else rows
            for at, error in mixed:
                error.context = self.context(block, int(rows[at]), first)
                failures.append((int(rows[at]), error))
            rows = np.delete(rows, [at for at, _ in mixed])
            failures.sort(key=_place)
        return Outcome(built, rows, failures)


class FilterTransform(Transform):
    """The elements for which `predicate(element)` is true."""

    def __init__(self, predicate: Callable[..., Any], label: str, where: str | None, *, vectorise: bool) -> None:
        self.label = label
        self.where = where
        self.function = predicate
        self.vectoriser = Vectoriser(predicate) if vectorise else None

    def run(self, block: Block, first: int, allocate: Callable[[int], Allocate] | None = None) -> Outcome:
        failures: Sequence[tuple[int, Exception]] = ()
        mask = self._vectorised(block)
        if mask is None:
            mask, failures = self._per_element(block, first)
        kept = np.flatnonzero(mask)
        if len(kept) == block.size:
            return Outcome(block)
        return Outcome(block.take(kept) if len(kept) else None, kept, failures)

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

    def _per_element(self, block: Block, first: int) -> tuple[np.ndarray, Sequence[tuple[int, Exception]]]:
        predicate = self.function
        unpacks = block.structure.unpacks
        mask = np.zeros(block.size, bool)
        failures: list[tuple[int, Exception]] = []
        for row, element in enumerate(block.elements()):
            try:
                verdict = predicate(*element) if unpacks else predicate(element)
                mask[row] = verdict if isinstance(verdict, (bool, np.bool_)) else _truth(verdict)
            except Exception as raised:
                failures.append((row, as_failure(raised, self.context(block, row, first))))
        return mask, failures


def _truth(verdict: Any) -> bool:
    if isinstance(verdict, np.ndarray) and verdict.shape == () and verdict.dtype == bool:
        return bool(verdict)
    message = f"A predicate returns one bool, got {verdict!r:.60} ({type(verdict).__name__})."
    raise InvalidTypeError(message, hint="Compare, for example `x % 2 == 0`; for arrays use .any() or .all().")
