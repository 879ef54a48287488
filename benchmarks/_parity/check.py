"""What a check is, and how results of the two libraries are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

import penstock as ps


class MismatchError(AssertionError):
    """penstock and TensorFlow differ."""


@dataclass(frozen=True)
class Check:
    """`run` compares and counts its comparisons; it raises MismatchError at the first difference."""

    name: str
    run: Callable[[], int]


def comparable(value: Any) -> Any:
    """A value of either library as nested tuples of plain values that compare equal exactly when they are equal.

    Floats compare by their bits, byte strings by content; dtypes and shapes are part of it.
    """
    if isinstance(value, dict):
        return {name: comparable(value[name]) for name in sorted(value)}
    if isinstance(value, (tuple, list)):
        return tuple(comparable(part) for part in value)
    if isinstance(value, tf.SparseTensor | tf.compat.v1.SparseTensorValue | ps.SparseTensor):
        return ("sparse", *(comparable(np.asarray(part)) for part in (value.indices, value.values, value.dense_shape)))
    if isinstance(value, tf.RaggedTensor | ps.RaggedTensor):
        return ("ragged", comparable(_array(value.values)), comparable(_array(value.row_splits)))
    return _dense(_array(value))


def _array(value: Any) -> Any:
    return value.numpy() if isinstance(value, tf.Tensor) else value


def _dense(value: Any) -> Any:
    array = np.asarray(value)
    if array.dtype.kind in "OSU":
        return ("bytes", array.shape, tuple(array.astype(object).reshape(-1).tolist()))
    return (array.dtype.name, array.shape, array.tobytes())


def same(what: str, ours: Any, theirs: Any) -> None:
    """Raise MismatchError unless both are equal to the last bit."""
    if comparable(ours) != comparable(theirs):
        message = f"{what}\n    penstock:   {ours!r:.400}\n    tensorflow: {theirs!r:.400}"
        raise MismatchError(message)


def same_or_both_refuse(what: str, ours: Callable[[], Any], theirs: Callable[[], Any]) -> bool:
    """As `same` for what both calls give; where one refuses its input, the other must, too. Whether both accepted."""
    found = [_outcome(ours, ps.errors.PenstockError), _outcome(theirs, (tf.errors.OpError, ValueError, TypeError))]
    accepted = [error is None for _, error in found]
    if accepted[0] != accepted[1]:
        gives, refuses = ("penstock", "tensorflow") if accepted[0] else ("tensorflow", "penstock")
        value, error = found[not accepted[0]][0], found[accepted[0]][1]
        message = f"{what}: {gives} accepts it, {refuses} does not\n    {value!r:.400}\n    {error!r:.400}"
        raise MismatchError(message)
    if accepted[0]:
        same(what, found[0][0], found[1][0])
    return accepted[0]


def _outcome(call: Callable[[], Any], refusals: Any) -> tuple[Any, BaseException | None]:
    try:
        return call(), None
    except refusals as error:
        return None, error


def run_all(checks: Sequence[Check]) -> int:
    """Run them all, print a line each; the number that failed."""
    failed = 0
    for check in checks:
        try:
            count = check.run()
            print(f"ok      {check.name}: {count} comparisons", flush=True)
        except MismatchError as error:
            failed += 1
            print(f"DIFFERS {check.name}: {error}", flush=True)
    return failed
