"""Counts: what a segment has done so far, how full it was, and who waited for it."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import NamedTuple


@dataclass(slots=True)
class Sums:
    """What grows while a segment works: see `Flow`, which is the difference of two."""

    inputs: int = 0
    elements: int = 0
    results: int = 0
    nbytes: int = 0
    run_seconds: float = 0.0
    run_cpu: float = 0.0
    pull_seconds: float = 0.0
    pull_cpu: float = 0.0
    waiting: float = 0.0
    starved: float = 0.0
    full: float = 0.0

    def add(self, other: Sums) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class _Time(NamedTuple):
    """Seconds of what is over, and since when it goes on again. Replaced as a whole, so that nobody sees half of it."""

    before: float = 0.0
    since: float | None = None

    def until(self, now: float) -> float:
        """Seconds in all."""
        return self.before if self.since is None else self.before + max(now - self.since, 0.0)


class Counts:
    """Sums of one segment, and the extremes since its lane last asked.

    The segment writes them under its lock, but for the waits of its consumer, who alone notes these. Anybody reads them
    at any time without one, as of about now: `sums` counts a wait that still goes on, and none twice.

    >>> counts = Counts()
    >>> counts.enter(); counts.made(elements=8, nbytes=64); counts.hold(64); counts.hold(0); counts.leave()
    >>> counts.sums(now=0.0).elements, counts.busy_most(), counts.held_between()
    (8, 1, (64, 0))
    """

    __slots__ = ("_busy_most", "_full", "_least", "_most", "_starved", "_sums", "busy", "held")

    def __init__(self) -> None:
        self.busy = 0  # workers inside
        self.held = 0  # bytes made and not taken
        self._sums = Sums()
        self._busy_most = 0
        self._most = self._least = 0
        self._full = self._starved = _Time()

    # -- written by the segment

    def enter(self) -> None:
        """A worker comes in."""
        self.busy += 1
        if self.busy > self._busy_most:
            self._busy_most = self.busy

    def leave(self) -> None:
        """A worker goes."""
        self.busy -= 1

    def hold(self, nbytes: int) -> None:
        """Note that `nbytes` are held from now on."""
        self.held = nbytes
        if nbytes > self._most:
            self._most = nbytes
        if nbytes < self._least:
            self._least = nbytes

    def worked(
        self,
        inputs: int,
        *,
        run: tuple[float, float] = (0.0, 0.0),
        pull: tuple[float, float] = (0.0, 0.0),
        waiting: float = 0.0,
    ) -> None:
        """A worker has done something: `run` and `pull` are seconds by the clock and of CPU, `waiting` by the clock."""
        sums = self._sums
        sums.inputs += inputs
        sums.run_seconds += run[0]
        sums.run_cpu += run[1]
        sums.pull_seconds += pull[0]
        sums.pull_cpu += pull[1]
        sums.waiting += waiting

    def made(self, elements: int, nbytes: int) -> None:
        """A result came out."""
        self._sums.results += 1
        self._sums.elements += elements
        self._sums.nbytes += nbytes

    def full(self, now: float) -> None:
        """There is no room for more, unless that was known already."""
        if self._full.since is None:
            self._full = _Time(self._full.before, now)

    @property
    def is_full(self) -> bool:
        """Whether there was no room when that was last said."""
        return self._full.since is not None

    def not_full(self, now: float) -> None:
        """There is room again."""
        if self._full.since is not None:
            self._full = _Time(self._full.until(now))

    def waited_for(self, now: float) -> None:
        """The consumer waits for a result."""
        self._starved = _Time(self._starved.before, now)

    def not_waited_for(self, now: float) -> None:
        """It goes on."""
        if self._starved.since is not None:
            self._starved = _Time(self._starved.until(now))

    # -- read by anybody

    @property
    def element_bytes(self) -> float:
        """Bytes of an element that came out; 0 before the first."""
        return self._sums.nbytes / self._sums.elements if self._sums.elements else 0.0

    def held_between(self) -> tuple[int, int]:
        """The most and the least bytes held since the last call."""
        found = self._most, self._least
        self._most = self._least = self.held
        return found

    def busy_most(self) -> int:
        """The most workers inside at once since the last call."""
        found, self._busy_most = max(self._busy_most, self.busy), 0
        return found

    def sums(self, now: float | None = None) -> Sums:
        """What was done until now."""
        now = time.perf_counter() if now is None else now
        return replace(self._sums, starved=self._starved.until(now), full=self._full.until(now))
