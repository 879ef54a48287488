"""Where a mixture's weights come from, step by step: constants, a function of the step, a handle, a data set."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.block.column import DenseColumn
from penstock.errors import Context, InvalidTypeError, as_failure
from penstock.physical.stage import Cursor, Stage, State
from penstock.plan.mix_weights import MixWeights
from penstock.plan.weights import numbers, total, weights_fault


@dataclass(slots=True)
class WeightRows:
    """Weights of `count` steps: a row for each, or one for all. Steps in `errors` have none."""

    weights: np.ndarray
    count: int
    errors: dict[int, Exception] = field(default_factory=dict)


class Weights(ABC):
    """Gives the weights of the next steps."""

    inputs: tuple[Stage, ...] = ()

    @abstractmethod
    def next(self, step: int, want: int) -> WeightRows | None:
        """The rows of step `step`, and up to `want` in all; None at the end."""

    @abstractmethod
    def state(self) -> State: ...

    @abstractmethod
    def restore(self, state: State) -> None: ...

    @abstractmethod
    def close(self) -> None: ...


class _OfStep(Weights):
    """Weights that follow from the number of the step alone."""

    def state(self) -> State:
        return None

    def restore(self, state: State) -> None:
        return None

    def close(self) -> None:
        return None


class Constant(_OfStep):
    """The same weights at every step."""

    def __init__(self, weights: tuple[float, ...]) -> None:
        self._weights = np.array(weights)

    def next(self, step: int, want: int) -> WeightRows:
        return WeightRows(self._weights, want)


class Scheduled(_OfStep):
    """A function of the step; one that has a `stretch` gives many steps at once."""

    def __init__(self, function: Callable[[int], Any], count: int, label: str, where: str | None) -> None:
        self._function = function
        self._count = count
        self._context = Context(label, where)
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
        return Context(self._context.stage, self._context.where, step)


class Handled(Weights):
    """What the training sets while it runs."""

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
    """One element of a data set for each step; the mixture ends with it."""

    def __init__(self, stage: Stage, count: int, label: str, where: str | None) -> None:
        self.inputs = (stage,)
        self._cursor = Cursor(stage)
        self._count = count
        self._context = Context(label, where)

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
        return Context(self._context.stage, self._context.where, step)

    def state(self) -> State:
        return self._cursor.state()

    def restore(self, state: State) -> None:
        self._cursor.restore(state)

    def close(self) -> None:
        self._cursor.close()


def checked(
    values: Any, count: int, errors: dict[int, Exception], step: int, context: Callable[[int], Context]
) -> WeightRows:
    """Rows from what a user's function or data set gave, and an error for each that is no list of weights."""
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
