"""What a check is, and how results of the two libraries are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

import penstock as ps


@dataclass(frozen=True)
class Check:
    """`run` compares by means of the Comparer it is given."""

    name: str
    run: Callable[[Comparer], None]


class Comparer:
    """Counts comparisons and keeps what differed."""

    def __init__(self) -> None:
        self.count = 0
        self.differences: list[str] = []

    def same(self, what: str, ours: Any, theirs: Any) -> None:
        """Both must be equal to the last bit."""
        self.count += 1
        if comparable(ours) != comparable(theirs):
            self.differs(f"{what}\n    penstock:   {ours!r:.300}\n    tensorflow: {theirs!r:.300}")

    def same_or_both_refuse(
        self, what: str, ours: Callable[[], Any], theirs: Callable[[], Any], *, may_refuse: bool = False
    ) -> None:
        """As `same` for what both calls give; where one refuses its input, the other must, too.

        With `may_refuse` penstock may be the stricter one; the caller says why.
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
        """They differ, as is listed with the reason; if not, the list is to be shortened."""
        self.count += 1
        if comparable(ours) == comparable(theirs):
            self.differs(f"{what} gives the same by now, {ours!r:.100}, and is listed as a difference")

    def differs(self, text: str) -> None:
        self.differences.append(text)


REFUSALS = (tf.errors.OpError, ValueError, TypeError)


def outcome(call: Callable[[], Any], refusals: Any = REFUSALS) -> tuple[Any, BaseException | None]:
    """What a call gives, or how it refuses."""
    try:
        return call(), None
    except refusals as error:
        return None, error


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
    """Run them all, print a line each and the first differences; the number of checks that failed."""
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
