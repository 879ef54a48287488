"""Tally: how many elements were left out, added up over all passes of this process."""

from __future__ import annotations

from penstock.forked import new_lock


class Tally:
    """A count that belongs to a step of a plan. Thread-safe; a copy in another process counts for itself."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._count = 0

    @property
    def count(self) -> int:
        return self._count

    def add(self) -> None:
        with self._lock:
            self._count += 1

    def __reduce__(self) -> tuple[type[Tally], tuple[()]]:
        return Tally, ()
