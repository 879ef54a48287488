"""Schedules: weights of a mixture as a function of the step, for `Dataset.sample_from_datasets`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from penstock.errors import InvalidArgumentError
from penstock.plan.mix_weights import check_weights
from penstock.plan.node import check_int

__all__ = ["linear", "piecewise"]


@dataclass(frozen=True, slots=True)
class Piecewise:
    """Weights that change at given steps and are constant between them."""

    steps: tuple[int, ...]
    weights: tuple[tuple[float, ...], ...]

    def __call__(self, step: int) -> np.ndarray:
        return self.stretch(step, 1)[0]

    def stretch(self, step: int, count: int) -> tuple[np.ndarray, int]:
        """Return the weights from `step` on, and the number of the `count` steps they apply to."""
        place = int(np.searchsorted(self.steps, step, side="right"))
        if place < len(self.steps):
            count = min(count, self.steps[place] - step)
        return np.array(self.weights[place - 1]), count


@dataclass(frozen=True, slots=True)
class Linear:
    """Weights that change linearly."""

    start: tuple[float, ...]
    stop: tuple[float, ...]
    steps: int

    def __call__(self, step: int) -> np.ndarray:
        return self.stretch(step, 1)[0].reshape(-1)

    def stretch(self, step: int, count: int) -> tuple[np.ndarray, int]:
        """Return the weights of `count` steps from `step` on, one row for each; after the last change only one row."""
        if step >= self.steps:
            return np.array(self.stop), count
        share = np.minimum(np.arange(step, step + count), self.steps)[:, None] / self.steps
        return (1 - share) * np.array(self.start) + share * np.array(self.stop), count


def piecewise(entries: Iterable[tuple[int, Any]]) -> Piecewise:
    """Return weights that change at given elements of a mixture.

    Args:
        entries: Pairs `(step, weights)`. The weights hold from the element `step` to the element of the next pair. The
            first step is 0.

    Returns:
        A function from the number of an element to its weights, for `Dataset.sample_from_datasets`.

    Raises:
        InvalidArgumentError: If the steps do not ascend from 0, or if the numbers of weights differ.

    Example:
        >>> import penstock as ps
        >>> schedule = ps.mixing.piecewise([(0, [1, 0]), (4, [0.5, 0.5])])
        >>> schedule(3).tolist(), schedule(4).tolist()
        ([1.0, 0.0], [0.5, 0.5])
    """
    hint = "For example [(0, [1, 0]), (1000, [0.5, 0.5])]."
    try:
        pairs = [(step, weights) for step, weights in entries]
    except (TypeError, ValueError) as error:
        message = f"piecewise takes pairs of a step and weights, got {entries!r:.60}."
        raise InvalidArgumentError(message, hint=hint) from error
    steps = tuple(
        check_int("step", step, least=0, hint="step is the number of the first element with these weights.")
        for step, _ in pairs
    )
    if not steps or steps[0] != 0 or any(a >= b for a, b in pairwise(steps)):
        raise InvalidArgumentError(f"The steps of piecewise must ascend from 0, got {list(steps)}.", hint=hint)
    count = len(check_weights("weights", pairs[0][1]))
    return Piecewise(steps, tuple(check_weights("weights", weights, count) for _, weights in pairs))


def linear(start: Any, stop: Any, steps: int) -> Linear:
    """Return weights that change linearly during a mixture.

    For element `n < steps`, the weights are `(1 - n / steps) * start + (n / steps) * stop`, in float64. After that they
    stay the same.

    Args:
        start: Weights at element 0.
        stop: Weights from element `steps` on.
        steps: Number of elements until `stop`, at least 1.

    Returns:
        A function from the number of an element to its weights, for `Dataset.sample_from_datasets`.

    Raises:
        InvalidArgumentError: If the numbers of weights differ, or if `steps` is smaller than 1.

    Example:
        >>> import penstock as ps
        >>> schedule = ps.mixing.linear([1, 0], [0, 1], steps=4)
        >>> schedule(1).tolist(), schedule(9).tolist()
        ([0.75, 0.25], [0.0, 1.0])
    """
    first = check_weights("start", start)
    last = check_weights("stop", stop, len(first))
    return Linear(
        first, last, check_int("steps", steps, least=1, hint="steps is the number of elements until the last weights.")
    )


def __dir__() -> list[str]:
    return sorted(__all__)
