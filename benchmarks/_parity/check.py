"""Checks, and the comparison of results of the two libraries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

import penstock as ps


@dataclass(frozen=True)
class Check:
    """A named check. `run` compares with the Comparer that it gets."""

    name: str
    run: Callable[[Comparer], None]


class Comparer:
    """Counts comparisons and collects differences."""

    def __init__(self) -> None:
        self.count = 0
        self.differences: list[str] = []

    def same(self, what: str, ours: Any, theirs: Any) -> None:
        """Compare two values, which must be equal to the last bit."""
        self.count += 1
        if comparable(ours) != comparable(theirs):
            self.differs(f"{what}\n    penstock:   {ours!r:.300}\n    tensorflow: {theirs!r:.300}")

    def same_or_both_refuse(
        self, what: str, ours: Callable[[], Any], theirs: Callable[[], Any], *, may_refuse: bool = False
    ) -> None:
        """Compare the results of both calls with `same`. If one call refuses its input, the other must refuse it too.

        With `may_refuse`, penstock alone may refuse the input; the caller documents the reason.
        """
        found, error = outcome(ours, Exception)
        wanted, refusal = outcome(theirs, REFUSALS)
        if error is None and refusal is None:
            self.same(what, found, wanted)
            return
        self.count += 1
        if error is not None and not isinstance(error, ps.errors.PenstockError):
            self.differs(f"{what}: penstock fails with {error!r:.300}")
        elif (error is None) != (refusal is None) and not (may_refuse and error is not None):
            refuses = "penstock" if refusal is None else "tensorflow"
            mine, other = found if error is None else error, wanted if refusal is None else refusal
            pair = f"penstock:   {mine!r:.300}\n    tensorflow: {other!r:.300}"
            self.differs(f"{what}: only {refuses} refuses it\n    {pair}")

    def listed(self, what: str, ours: Any, theirs: Any) -> None:
        """Check that the values differ, because the list of differences has this case."""
        self.count += 1
        if comparable(ours) == comparable(theirs):
            self.differs(f"{what} is listed as a difference, but both give {ours!r:.100}")

    def differs(self, text: str) -> None:
        self.differences.append(text)


REFUSALS = (tf.errors.OpError, ValueError, TypeError)


def outcome(call: Callable[[], Any], refusals: Any = REFUSALS) -> tuple[Any, BaseException | None]:
    """Return the result of a call, or None and its refusal."""
    try:
        return call(), None
    except refusals as error:
        return None, error


def comparable(value: Any) -> Any:
    """Convert a value of either library to nested tuples that compare equal exactly if the values are equal.

    Floats compare by their bits, byte strings by content. Dtypes and shapes are part of the result.
    """
    if isinstance(value, dict):
        return {name: comparable(value[name]) for name in sorted(value)}
    if isinstance(value, (tuple, list)):
        return tuple(comparable(part) for part in value)
    if isinstance(value, tf.SparseTensor | tf.compat.v1.SparseTensorValue | ps.SparseTensor):
        return ("sparse", *(comparable(np.asarray(part)) for part in (value.indices, value.values, value.dense_shape)))
    if isinstance(value, tf.RaggedTensor | ps.RaggedTensor):
        return ("ragged", comparable(value.values), comparable(value.row_splits))
    return _dense(_array(value))


def _array(value: Any) -> Any:
    return value.numpy() if isinstance(value, tf.Tensor) else value


def _dense(value: Any) -> Any:
    array = np.asarray(value)
    if array.dtype.kind in "OSU":
        return ("bytes", array.shape, tuple(array.astype(object).reshape(-1).tolist()))
    return (array.dtype.name, array.shape, array.tobytes())


SHOWN = 3


def run_all(checks: Sequence[Check]) -> int:
    """Run all checks and print a line for each, with the first differences. Return the number of failed checks."""
    failed = 0
    for check in checks:
        comparer = Comparer()
        check.run(comparer)
        differences = comparer.differences
        failed += bool(differences)
        verdict = f"{len(differences)} DIFFER" if differences else "all equal"
        print(f"{check.name}: {comparer.count} comparisons, {verdict}", flush=True)
        for text in differences[:SHOWN]:
            print(f"  {text}", flush=True)
    return failed
