"""Rejection resampling: adds classes to elements, accepts elements by class, and estimates the class distribution."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.errors import Context, InvalidArgumentError
from penstock.keys import units
from penstock.physical.key_function import KeyFunction
from penstock.physical.stage import CountingStage, Cursor, Stage, State, StretchStage
from penstock.physical.stages.combine import paired
from penstock.physical.stretch import Stretch, failure, held
from penstock.plan.mixing import GROUP, PRIOR, acceptance
from penstock.plan.node import NamedStep


class WithClassStage(CountingStage):
    """Yields `(class, element)`; an element without a valid class is a failure."""

    def __init__(self, upstream: Stage, function: KeyFunction, num_classes: int, step: NamedStep) -> None:
        super().__init__(upstream, step)
        self._function = function
        self._num_classes = num_classes

    def make(self, want: int) -> Stretch | None:
        first = self._count
        block = self.pull(want)
        if block is None:
            return None
        classes, errors = self._function(block, first)
        for row in np.flatnonzero((classes < 0) | (classes >= self._num_classes)).tolist():
            errors.setdefault(row, self._no_class(int(classes[row]), block, row, first))
        pairs = paired(DenseColumn(classes), block)
        kept = np.array([row for row in range(block.size) if row not in errors]) if errors else None
        if kept is not None:
            return Stretch(pairs.take(kept) if len(kept) else None, tuple(sorted(errors.items())))
        return Stretch(pairs)

    def _no_class(self, found: int, block: Block, row: int, first: int) -> Exception:
        message = f"class_func must return a class below {self._num_classes}, counted from 0, got {found}."
        hint = "target_dist holds one number for each class."
        context = Context(self.label, self.where, first + row, *block.origin_at(row))
        return InvalidArgumentError(message, hint=hint, context=context)


class AcceptStage(StretchStage):
    """Accepts pairs whose random number is below the probability of their class; failures pass.

    `probabilities(pairs)` returns a row for each position of a stretch of pairs. Position n uses random number n of the
    key.
    """

    moving = ("_count",)

    def __init__(self, upstream: Estimated | Known, key: int, step: NamedStep) -> None:
        super().__init__(step.label, (upstream.stage,), step.where)
        self._upstream = self._reader = upstream
        self._key = key
        self._count = 0

    def make(self, want: int) -> Stretch | None:
        found = self._upstream.next(want)
        if found is None:
            return None
        pairs, chances = found
        given = units(self._key, self._count, pairs.size)
        self._count += pairs.size
        if pairs.block is None:
            return pairs
        places = held(pairs)
        classes = _classes(pairs.block)
        rows = given[places] < (chances[classes] if chances.ndim == 1 else chances[places, classes])
        kept = np.flatnonzero(rows)
        block = pairs.block if len(kept) == pairs.block.size else pairs.block.take(kept) if len(kept) else None
        before = np.searchsorted(places[kept], [at for at, _ in pairs.failures])
        failures = tuple(
            (int(rank) + i, error) for i, (rank, (_, error)) in enumerate(zip(before, pairs.failures, strict=True))
        )
        return Stretch(block, failures)


class Known(Cursor):
    """Pairs whose classes are accepted with constant probabilities."""

    def __init__(self, stage: Stage, chances: np.ndarray) -> None:
        super().__init__(stage)
        self._chances = chances

    def next(self, want: int) -> tuple[Stretch, np.ndarray] | None:
        try:
            if not self.fill(want):
                return None
        except Exception as error:
            return failure(error), self._chances
        return Stretch(self.take_available(want)), self._chances


class Estimated(Cursor):
    """Pairs in groups of GROUP, each with values computed from the classes counted up to the end of the group.

    `rows(distribution)` converts the class distributions to one row per group.
    """

    def __init__(self, stage: Stage, num_classes: int, rows: Callable[[np.ndarray], np.ndarray]) -> None:
        super().__init__(stage)
        self._rows = rows
        self._seen = np.full(num_classes, PRIOR, np.int64)

    def next(self, want: int) -> tuple[Stretch, np.ndarray] | None:
        """Return whole groups (fewer only at the end), and a row for each position."""
        pairs = self.take(-(-want // GROUP) * GROUP)
        if pairs is None:
            return None
        groups = -(-pairs.size // GROUP)
        counts = np.zeros((groups, len(self._seen)), np.int64)
        if pairs.block is not None:
            np.add.at(counts, (held(pairs) // GROUP, _classes(pairs.block)), 1)
        seen = self._seen + np.cumsum(counts, axis=0)
        self._seen = seen[-1]
        rows = self._rows(seen / seen.sum(axis=1, keepdims=True))
        return pairs, np.repeat(rows, GROUP, axis=0)[: pairs.size]

    def state(self) -> State:
        return [super().state(), self._seen.tolist()]

    def restore(self, state: State) -> None:
        below, seen = state
        self._seen = np.array(seen, np.int64)
        super().restore(below)


class EstimateMixStage(StretchStage):
    """Yields, for each pair or failure, the weights of unfiltered and of accepted elements."""

    def __init__(self, upstream: Estimated, step: NamedStep) -> None:
        super().__init__(step.label, (upstream.stage,), step.where)
        self._upstream = self._reader = upstream

    def make(self, want: int) -> Stretch | None:
        found = self._upstream.next(want)
        return None if found is None else Stretch(Block.single(DenseColumn(found[1])))


def accepting(target: tuple[float, ...]) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function from distributions to the probability of accepting each class."""
    wanted = np.array(target)
    return lambda distribution: acceptance(distribution, wanted)[0]


def mixing(target: tuple[float, ...]) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function from distributions to the two weights of the mixture."""
    wanted = np.array(target)

    def rows(distribution: np.ndarray) -> np.ndarray:
        share = acceptance(distribution, wanted)[1]
        return np.stack([share, 1 - share], axis=-1)

    return rows


def _classes(pairs: Block) -> np.ndarray:
    column = pairs.columns[0]
    assert isinstance(column, DenseColumn)
    return column.array
