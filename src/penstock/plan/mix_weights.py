"""MixWeights: weights of a mixture that the training changes while it runs. Such a run can be repeated."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from penstock.errors import FailedPreconditionError, InvalidArgumentError, InvalidTypeError
from penstock.forked import new_lock
from penstock.plan.node import check_int


def check_weights(name: str, value: Any, count: int | None = None, each: str = "data set") -> tuple[float, ...]:
    """Return the weights as float64. They must be finite and not negative, and at least one must be positive.

    `count` is the required number, if known.

    `each` is the noun in messages: the thing that one weight is for.

    >>> check_weights("weights", [1, 0.5])
    (1.0, 0.5)
    """
    array = numbers(value)
    if array is None:
        message = f"{name} must be a list of numbers, got {name}={value!r:.60} ({type(value).__name__})."
        raise InvalidTypeError(message, hint=_hint(each))
    fault = weights_fault(name, array, count, each)
    if fault is not None:
        raise fault
    return tuple(array.tolist())


def numbers(value: Any) -> np.ndarray | None:
    """Return a list or array of real numbers as a float64 array, or None for anything else."""
    try:
        array = np.asarray(value)
    except ValueError:  # lists of different lengths
        return None
    return array.astype(np.float64) if array.ndim and array.dtype.kind in "biuf" else None


def weights_fault(
    name: str, array: np.ndarray, count: int | None = None, each: str = "data set"
) -> InvalidArgumentError | None:
    """Return the error of an invalid array of weights, or None."""
    if array.ndim != 1 or not array.size or (count is not None and array.size != count):
        wanted = "at least one number" if count is None else f"{count} number{'' if count == 1 else 's'}"
        came = f"{array.size}" if array.ndim == 1 else f"an array of shape {array.shape}"
        message = f"{name} must hold {wanted}, one for each {each}, got {came}."
    elif not np.isfinite(array).all():
        message = f"{name} must be finite, got {_first(name, array, ~np.isfinite(array))}."
    elif (array < 0).any():
        message = f"{name} must not be negative, got {_first(name, array, array < 0)}."
    elif not array.any():
        message = f"At least one of {name} must be positive, got {name}={array.tolist()}."
    elif not np.isfinite(total(array)):
        message = f"The sum of {name} must be finite, got {name}={array.tolist()}."
    else:
        return None
    return InvalidArgumentError(message, hint=_hint(each))


def _hint(each: str) -> str:
    return f"Give one number of 0 or more for each {each}; they need not add up to 1."


def total(array: np.ndarray) -> Any:
    """Return the sum along the last axis; infinite if it is too large for float64."""
    with np.errstate(over="ignore"):
        return array.sum(axis=-1)


def _first(name: str, array: np.ndarray, wrong: np.ndarray) -> str:
    place = int(np.flatnonzero(wrong)[0])
    return f"{name}[{place}]={array[place]}"


History = list[list[Any]]  # [step, weights] in ascending order of the step, the first for step 0


class MixWeights:
    """Weights for `Dataset.sample_from_datasets` that can be changed during an iteration.

    Each change holds from a given step of the mixture. The mixture depends on the seed and the history of `(step,
    weights)` only, not on the time of the change. Changing the weights of a step that was already computed is an error.
    penstock computes steps in advance, so derive `at_step` from the step of your training and add enough distance.

    Steps are counted from 0 in every iteration, and every iteration follows the whole history. A checkpoint of an
    iterator contains the history. To repeat a run, pass `ps.mixing.piecewise(handle.history)` as weights. For an
    infinite mixture, use `on_empty="repeat"`: a `repeat()` after the mixture starts new iterations, and a checkpoint
    between two of them contains no history. Objects are thread-safe.

    Args:
        weights: Weights from step 0 on: a list of numbers that are not negative.

    Raises:
        InvalidTypeError: If the weights are not a list of numbers.
        InvalidArgumentError: If a weight is negative.

    Example:
        >>> import penstock as ps
        >>> handle = ps.MixWeights([1, 0])
        >>> ds = ps.Dataset.sample_from_datasets(
        ...     [ps.Dataset.range(9), ps.Dataset.range(100, 109)], weights=handle)
        >>> elements = iter(ds.take(6))
        >>> handle.set([0, 1], at_step=3)
        >>> [int(x) for x in elements]
        [0, 1, 2, 100, 101, 102]
        >>> handle.history
        [(0, (1.0, 0.0)), (3, (0.0, 1.0))]
    """

    def __init__(self, weights: Any) -> None:
        first = check_weights("weights", weights)
        self._lock = new_lock()
        self._count = len(first)
        self._history: History = [[0, list(first)]]
        self._passes: weakref.WeakSet[WeightsPass] = weakref.WeakSet()
        self._was_set = False

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a copy: it follows the changes so far, and has no running iterations."""
        with self._lock:
            return {"_count": self._count, "_history": _copy(self._history), "_was_set": self._was_set}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=new_lock(), _passes=weakref.WeakSet())

    def __len__(self) -> int:
        """Return the number of weights."""
        return self._count

    def set(self, weights: Any, at_step: int) -> None:
        """Use `weights` from step `at_step` on. Later changes that were set before are removed.

        Args:
            weights: One weight per data set.
            at_step: Number of the first step that uses the weights.

        Raises:
            FailedPreconditionError: If a running iteration has already computed that step.

        Example:
            >>> handle = MixWeights([1, 1])
            >>> handle.set([3, 1], at_step=1000)
            >>> handle.history
            [(0, (1.0, 1.0)), (1000, (3.0, 1.0))]
        """
        values = list(check_weights("weights", weights, self._count))
        step = check_int(
            "at_step", at_step, least=0, hint="at_step is the number of the first step that uses the weights."
        )
        with self._lock:
            drawn = self._drawn()
            if step < drawn:
                message = f"Step {step} was already computed: {drawn} steps are done, got at_step={step}."
                hint = "The engine computes steps in advance: add the number of prefetched elements to at_step."
                raise FailedPreconditionError(message, hint=hint)
            self._was_set = True
            self._history = _changed(self._history, step, values)
            for running in self._passes:
                running.record[1] = _changed(running.record[1], step, values)

    @property
    def history(self) -> list[tuple[int, tuple[float, ...]]]:
        """Pairs of (first step, weights) in ascending order, as `ps.mixing.piecewise` takes them."""
        return [(step, tuple(weights)) for step, weights in self._history]

    @property
    def drawn(self) -> int:
        """Number of steps computed by the most advanced iteration.

        Earlier steps can no longer be set. It depends on timing.
        """
        with self._lock:
            return self._drawn()

    def _drawn(self) -> int:
        return max((running.record[0] for running in self._passes), default=0)

    def begin(self, record: Any = None) -> WeightsPass:
        """Start an iteration that follows the history, or resume the one that a checkpoint recorded."""
        with self._lock:
            if record is None:
                drawn, history = 0, self._history
            else:
                drawn, history = record
                if not self._was_set:
                    self._history = _copy(history)
            found = WeightsPass(self, [drawn, _copy(history)])
            self._passes.add(found)
            return found

    def end(self, running: WeightsPass) -> None:
        """Forget an iteration: its steps no longer limit `set`."""
        with self._lock:
            self._passes.discard(running)


class WeightsPass:
    """One iteration that follows a `MixWeights`.

    `record` is its part of the state: [number of steps computed, history].

    The record is live: a state that was created earlier and is saved now includes later changes. Otherwise the
    checkpoint would lose a change for steps that were computed ahead but not yet consumed.
    """

    __slots__ = ("__weakref__", "_handle", "record")

    def __init__(self, handle: MixWeights, record: list[Any]) -> None:
        self._handle = handle
        self.record = record

    def draw(self, step: int, count: int) -> tuple[np.ndarray, int]:
        """Return the weights from `step` on, and the number of the `count` steps they apply to.

        These steps count as computed.
        """
        with self._handle._lock:
            history = self.record[1]
            place = max(i for i, (first, _) in enumerate(history) if first <= step)
            if place + 1 < len(history):
                count = min(count, history[place + 1][0] - step)
            self.record[0] = max(self.record[0], step + count)
            return np.array(history[place][1]), count

    def end(self) -> None:
        self._handle.end(self)


def _changed(history: History, step: int, weights: list[float]) -> History:
    return [*(entry for entry in history if entry[0] < step), [step, weights]]


def _copy(history: History) -> History:
    return [[step, list(weights)] for step, weights in history]
