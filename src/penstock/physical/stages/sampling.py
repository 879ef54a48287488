"""Sampling and Choosing: select the source of each element.

The source is chosen at random by weight, from a key and the number of the step only, or by the elements of a data set.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.errors import Context, InvalidArgumentError, InvalidTypeError, as_failure
from penstock.keys import fold, units
from penstock.physical.stage import Cursor, Stage, State
from penstock.physical.stages.mix import END, FAILED, NOTHING, Choices, Chooser
from penstock.physical.stretch import held
from penstock.plan.mix_weights import MixWeights, numbers, total, weights_fault
from penstock.plan.node import NamedStep


class ChosenSteps(Choices):
    """Steps chosen by a data set. A choice of a source that has ended is skipped."""

    def __init__(self, picks: np.ndarray, errors: dict[int, Exception], dry: Collection[int], count: int) -> None:
        self._picks = picks
        self._left_out = np.zeros(count, bool)
        self._left_out[list(dry)] = True
        self._any = len(dry) > 0
        self.size = len(picks)
        self.errors = errors

    def picks(self, start: int, stop: int) -> np.ndarray:
        picks = self._picks[start:stop]
        if not self._any:
            return picks
        found: np.ndarray = np.where((picks >= 0) & self._left_out[picks], NOTHING, picks)
        return found

    def ran_dry(self, source: int, at: int) -> None:
        self._left_out[source] = self._any = True


class Choosing(Chooser):
    """Reads one choice per step. A choice that is not the index of a source is a failure in its place."""

    def __init__(self, choices: Stage, count: int, step: NamedStep) -> None:
        self.inputs = (choices,)
        self._cursor = Cursor(choices)
        self._count = count
        self._step = step
        self._taken = 0

    def next(self, want: int, dry: Collection[int]) -> Choices | None:
        found = self._cursor.take(want)
        if found is None:
            return None
        errors = dict(found.failures)
        picks = np.full(found.size, FAILED)
        if found.block is not None:
            given = held(found)
            numbers = _integers(found.block)
            if numbers is None:
                errors |= {at: self._no_integer(found.block, at) for at in given.tolist()}
            else:
                wrong = (numbers < 0) | (numbers >= self._count)
                for at, number in zip(given[wrong].tolist(), numbers[wrong].tolist(), strict=True):
                    errors[at] = self._no_source(number, at)
                picks[given[~wrong]] = numbers[~wrong]
        self._taken += found.size
        return ChosenSteps(picks, errors, dry, self._count)

    def _no_source(self, number: int, row: int) -> Exception:
        message = f"A choice must be the number of a data set, from 0 to {self._count - 1}, got {number}."
        return InvalidArgumentError(message, context=self._at(row))

    def _no_integer(self, block: Block, row: int) -> Exception:
        specs = block.structure.build(block.specs())
        message = f"choice_dataset must give single integers, got an element of {specs}."
        return InvalidTypeError(message, hint="int(x) converts.", context=self._at(row))

    def _at(self, row: int) -> Context:
        return Context(self._step.label, self._step.where, self._taken + row)

    def state(self) -> State:
        return [self._cursor.state(), self._taken]

    def restore(self, state: State) -> None:
        below, self._taken = state
        self._cursor.restore(below)

    def close(self) -> None:
        self._cursor.close()


def _integers(block: Block) -> np.ndarray | None:
    column = block.columns[0] if block.structure.is_leaf else None
    if isinstance(column, DenseColumn) and column.array.ndim == 1 and column.array.dtype.kind in "iu":
        return column.array
    return None


@dataclass(slots=True)
class WeightRows:
    """Weights of `count` steps: a row for each, or one for all. Steps in `errors` have no weights."""

    weights: np.ndarray
    count: int
    errors: dict[int, Exception] = field(default_factory=dict)


class Weights(ABC):
    """Provides the weights of the next steps. By default, these depend on the number of the step only."""

    inputs: tuple[Stage, ...] = ()

    @abstractmethod
    def next(self, step: int, want: int) -> WeightRows | None:
        """Return the rows of `step` and following ones, up to `want`, or None at the end."""

    def state(self) -> State:
        return None

    def restore(self, state: State) -> None:
        return None

    def close(self) -> None:
        return None


class Constant(Weights):
    """The same weights at every step."""

    def __init__(self, weights: tuple[float, ...]) -> None:
        self._weights = np.array(weights)

    def next(self, step: int, want: int) -> WeightRows:
        return WeightRows(self._weights, want)


class Scheduled(Weights):
    """Weights from a function of the step. If it has a method `stretch`, that computes many steps at once."""

    def __init__(self, function: Callable[[int], Any], count: int, step: NamedStep) -> None:
        self._function = function
        self._count = count
        self._step = step
        self._stretch = getattr(function, "stretch", None)

    def next(self, step: int, want: int) -> WeightRows:
        if self._stretch is not None:
            return WeightRows(*self._stretch(step, want))
        function = self._function
        values: list[Any] = []
        errors: dict[int, Exception] = {}
        for number in range(step, step + want):
            try:
                values.append(function(number))
            except Exception as raised:
                errors[len(values)] = as_failure(raised, self._at(number))
                values.append(None)
        return checked(values, self._count, errors, step, self._at)

    def _at(self, step: int) -> Context:
        return Context(self._step.label, self._step.where, step)


class Handled(Weights):
    """Weights that the training loop sets while it runs."""

    def __init__(self, handle: MixWeights) -> None:
        self._handle = handle
        self._pass = handle.begin()

    def next(self, step: int, want: int) -> WeightRows:
        return WeightRows(*self._pass.draw(step, want))

    def state(self) -> State:
        return self._pass.record

    def restore(self, state: State) -> None:
        self._pass.end()
        self._pass = self._handle.begin(state)

    def close(self) -> None:
        self._pass.end()


class FromData(Weights):
    """Weights from a data set, one element per step. The mixture ends with it."""

    def __init__(self, stage: Stage, count: int, step: NamedStep) -> None:
        self.inputs = (stage,)
        self._cursor = Cursor(stage)
        self._count = count
        self._step = step

    def next(self, step: int, want: int) -> WeightRows | None:
        found = self._cursor.take(want)
        if found is None:
            return None
        column = found.block.columns[0] if found.block is not None and found.block.structure.is_leaf else None
        if isinstance(column, DenseColumn) and not found.failures:
            return checked(column.array, self._count, {}, step, self._at)
        values = [] if found.block is None else found.block.elements()
        for at, _ in found.failures:
            values.insert(at, None)
        return checked(values, self._count, dict(found.failures), step, self._at)

    def _at(self, step: int) -> Context:
        return Context(self._step.label, self._step.where, step)

    def state(self) -> State:
        return self._cursor.state()

    def restore(self, state: State) -> None:
        self._cursor.restore(state)

    def close(self) -> None:
        self._cursor.close()


def checked(
    values: Any, count: int, errors: dict[int, Exception], step: int, context: Callable[[int], Context]
) -> WeightRows:
    """Return rows from the values of a user's function or data set, and an error for each invalid value."""
    rows = None if errors else numbers(values)
    if rows is not None and rows.shape == (len(values), count):
        right = np.isfinite(rows).all(axis=1) & (rows >= 0).all(axis=1)
        sums = total(rows)
        if (right & (sums > 0) & np.isfinite(sums)).all():
            return WeightRows(rows, len(rows))
    rows = np.zeros((len(values), count))
    for at, value in enumerate(values):
        if at in errors:
            continue
        array = numbers(value)
        if array is None:
            message = f"The weights of a step must be a list of numbers, got {value!r:.60} ({type(value).__name__})."
            errors[at] = InvalidTypeError(message, context=context(step + at))
            continue
        fault = weights_fault("weights", array, count)
        if fault is None:
            rows[at] = array
        else:
            fault.context = context(step + at)
            errors[at] = fault
    return WeightRows(rows, len(rows), errors)


class SampledSteps(Choices):
    """Steps from number `step` on.

    A step uses the random number u with index `step` of the key, and the cumulative weights c of the sources that have
    not ended. Its source is the first whose c is larger than u times the last c. If this source turns out to have
    ended, the step is repeated: attempt k uses the key folded with k.
    """

    def __init__(self, key: int, step: int, rows: WeightRows, dry: Collection[int]) -> None:
        self._key = key
        self._step = step
        self._weights = rows.weights.copy()
        self._weights[..., list(dry)] = 0.0
        self._units = units(key, step, rows.count)
        self._attempt = 0
        self._attempt_at = -1
        self.size = rows.count
        self.errors = rows.errors
        self._failed = np.array(sorted(rows.errors), np.int64)

    def ran_dry(self, source: int, at: int) -> None:
        self._attempt = self._attempt + 1 if at == self._attempt_at else 1
        self._attempt_at = at
        self._units[at] = units(fold(self._key, self._attempt), self._step + at, 1)[0]
        self._weights[..., source] = 0.0

    def picks(self, start: int, stop: int) -> np.ndarray:
        units = self._units[start:stop]
        picks = (
            _picks(self._weights, units) if self._weights.ndim == 1 else _picks_by_row(self._weights[start:stop], units)
        )
        first, last = np.searchsorted(self._failed, (start, stop))
        picks[self._failed[first:last] - start] = FAILED
        return picks


def _picks(weights: np.ndarray, units: np.ndarray) -> np.ndarray:
    sums = np.cumsum(weights)
    if sums[-1] == 0:
        return np.full(len(units), END)
    picks = sums_up_to(sums, units * sums[-1])
    found: np.ndarray = np.minimum(picks, np.flatnonzero(weights)[-1])  # u * sum may be rounded up to the sum
    return found


_PARTS = 1 << 12  # parts of the range of the sums
_MANY = 16  # number of sums above which a search takes longer than this method


def sums_up_to(sums: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return how many of some ascending sums are not larger than each value. No value is larger than the last sum.

    The result is that of `np.searchsorted(sums, values, side="right")`, whose time grows with the number of sums. Here,
    the range is divided into equal parts. If no sum lies in the part of a value, the result is the number of sums in
    lower parts.

    >>> sums_up_to(np.array([1.0, 2.0, 4.0]), np.array([0.5, 1.0, 3.9]))
    array([0, 1, 2])
    """
    with np.errstate(all="ignore"):
        scale = _PARTS / sums[-1]
    if len(sums) < _MANY or not np.isfinite(scale) or len(values) < _PARTS:
        return np.searchsorted(sums, values, side="right")
    inside = np.bincount((sums * scale).astype(np.int64), minlength=_PARTS + 2)
    part = (values * scale).astype(np.int64)  # rounding keeps the order, so sums in a lower part are smaller
    found: np.ndarray = (np.cumsum(inside) - inside)[part]
    beside = np.flatnonzero(inside[part])
    found[beside] = np.searchsorted(sums, values[beside], side="right")
    return found


def _picks_by_row(weights: np.ndarray, units: np.ndarray) -> np.ndarray:
    sums = np.cumsum(weights, axis=1)
    picks = (sums <= (units * sums[:, -1])[:, None]).sum(axis=1)
    last = weights.shape[1] - 1 - np.argmax(weights[:, ::-1] > 0, axis=1)
    found: np.ndarray = np.where(sums[:, -1] == 0, END, np.minimum(picks, last))
    return found


class Sampling(Chooser):
    """Chooses the source of every step at random."""

    def __init__(self, key: int, weights: Weights) -> None:
        self._key = key
        self._weights = weights
        self._step = 0
        self.inputs = weights.inputs
        self.foreseen = isinstance(weights, Constant)

    def next(self, want: int, dry: Collection[int]) -> Choices | None:
        rows = self._weights.next(self._step, want)
        if rows is None:
            return None
        chosen = SampledSteps(self._key, self._step, rows, dry)
        self._step += rows.count
        return chosen

    def state(self) -> State:
        return [self._step, self._weights.state()]

    def restore(self, state: State) -> None:
        self._step, below = state
        self._weights.restore(below)

    def close(self) -> None:
        self._weights.close()
