"""Sampling: each step draws its source by weight, from a key and the number of the step alone."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from penstock.keys import fold, units
from penstock.physical.stage import State
from penstock.physical.stages.mix import END, FAILED, Choices, Chooser
from penstock.physical.stages.weight_rows import Constant, WeightRows, Weights


class Sampled(Choices):
    """Steps from number `step` on.

    A step takes u, number `step` of the key, and the sums c of the weights of the sources that have not run dry: its
    source is the first whose c is above u times the last c. If that one turns out to be dry, the step draws again:
    attempt k from the key folded with k.
    """

    def __init__(self, key: int, step: int, rows: WeightRows, dry: Collection[int]) -> None:
        self._key = key
        self._step = step
        self._weights = rows.weights.copy()
        self._weights[..., list(dry)] = 0.0
        self._units = units(key, step, rows.count)
        self._attempt = 0
        self._attempt_at = -1
        self.errors = rows.errors
        self.picks = np.empty(rows.count, np.int64)
        self._pick(0)

    def ran_dry(self, source: int, at: int) -> None:
        self._attempt = self._attempt + 1 if at == self._attempt_at else 1
        self._attempt_at = at
        self._units[at] = units(fold(self._key, self._attempt), self._step + at, 1)[0]
        self._weights[..., source] = 0.0
        self._pick(at)

    def _pick(self, start: int) -> None:
        if self._weights.ndim == 1:
            self.picks[start:] = _picks(self._weights, self._units[start:])
        else:
            self.picks[start:] = _picks_by_row(self._weights[start:], self._units[start:])
        self.picks[[at for at in self.errors if at >= start]] = FAILED


def _picks(weights: np.ndarray, units: np.ndarray) -> np.ndarray | int:
    sums = np.cumsum(weights)
    if sums[-1] == 0:
        return END
    picks = sums_up_to(sums, units * sums[-1])
    found: np.ndarray = np.minimum(picks, np.flatnonzero(weights)[-1])  # u * sum may round up to the sum
    return found


_PARTS = 1 << 12  # of the range of the sums
_MANY = 16  # sums, from which a search among them takes longer than to look at these


def sums_up_to(sums: np.ndarray, values: np.ndarray) -> np.ndarray:
    """How many of some rising sums are not above each value, which is not above the last.

    As `np.searchsorted(sums, values, side="right")`, which takes the longer the more there are. Here each value falls
    into one of equal parts of the range; where none of the sums is in the same, it is those in the parts below.

    >>> sums_up_to(np.array([1.0, 2.0, 4.0]), np.array([0.5, 1.0, 3.9]))
    array([0, 1, 2])
    """
    with np.errstate(all="ignore"):
        scale = _PARTS / sums[-1]
    if len(sums) < _MANY or not np.isfinite(scale) or len(values) < _PARTS:
        return np.searchsorted(sums, values, side="right")
    inside = np.bincount((sums * scale).astype(np.int64), minlength=_PARTS + 2)
    part = (values * scale).astype(np.int64)  # rounding keeps the order: what is in a lower part is less
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
    """A draw for every step."""

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
        chosen = Sampled(self._key, self._step, rows, dry)
        self._step += rows.count
        return chosen

    def state(self) -> State:
        return [self._step, self._weights.state()]

    def restore(self, state: State) -> None:
        self._step, below = state
        self._weights.restore(below)

    def close(self) -> None:
        self._weights.close()
