"""Sampler: of the time that a step takes beside its work, how much it waits; and whether its work holds Python's lock.

A thread that is off its core waits for something outside, for a core, or for the lock. Now and then it is looked at
what every thread is at, what the system says of it, and whether the lock was free just then: whoever sleeps while
nobody holds the lock waits for something outside.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.profiler.analysis.alone import has_lock
from penstock.profiler.analysis.meter import Frame, Key

_PATIENCE = 0.0004  # seconds that a wake-up takes at most where nobody holds the lock
_LEAST = 8  # looks that say something
_ROUNDS = 20

Threads = Iterable[tuple[int, list[Frame], object]]


@dataclass(slots=True)
class Looks:
    """What was seen of one pipeline."""

    seen: Counter[Key] = field(default_factory=Counter)  # at it, while nobody held the lock
    waits: Counter[Key] = field(default_factory=Counter)  # of these: asleep, so it waited for something outside
    late: Counter[frozenset[Key]] = field(default_factory=Counter)  # the lock was held, with these at work
    free: Counter[frozenset[Key]] = field(default_factory=Counter)

    def waiting(self, key: Key, wall: float, cpu: float) -> float:
        """Return the seconds in which a step waited for something outside, of those that it took beside its work.

        A step that was seen too rarely is taken to wait for as much of its time as all steps together.
        """
        lost = max(wall - cpu, 0.0)
        own = self.seen[key] >= _LEAST
        seen, waits = (self.seen[key], self.waits[key]) if own else (self.seen.total(), self.waits.total())
        return lost if seen < _LEAST else min(lost, wall * waits / seen)

    def held(self) -> Mapping[Key, float]:
        """The part of each step's work in which it holds the lock.

        The lock is held if any of those at work holds it: each look is laid to their charge by what the others hold
        anyway, again and again until it fits.
        """
        late, free = dict(self.late), dict(self.free)  # others read while there is looked
        keys = {key for at_work in (*late, *free) for key in at_work}
        found = dict.fromkeys(keys, 0.5)
        for _ in range(_ROUNDS):
            blame: Counter[Key] = Counter()
            seen: Counter[Key] = Counter()
            for at_work, count in late.items():
                none = 1.0
                for key in at_work:
                    none *= 1 - found[key]
                for key in at_work:
                    blame[key] += count * found[key] / max(1 - none, 1e-6)  # type: ignore[assignment]
                    seen[key] += count
            for at_work, count in free.items():
                for key in at_work:
                    seen[key] += count
            found = {key: min(blame[key] / seen[key], 1.0) if seen[key] else 0.0 for key in keys}
        return found


class Sampler:
    """`look` sleeps for a moment, and sees how late it wakes up and what all threads are at then."""

    def __init__(self, sleep: Callable[[float], object]) -> None:
        self._sleep = sleep
        self._has_lock = has_lock()
        self._linux = sys.platform == "linux"

    def look(self, seconds: float, pipelines: Iterable[tuple[Threads, Looks]]) -> None:
        began, queued = time.perf_counter(), self._queued()
        self._sleep(seconds)
        waited = time.perf_counter() - began - seconds - (self._queued() - queued)
        late = self._has_lock and waited > _PATIENCE
        for threads, looks in pipelines:
            working: set[Key] = set()
            for native, frames, _ in list(threads):
                try:
                    key = frames[-1].key
                except IndexError:
                    continue
                if key.part == "take":
                    continue
                state = self._state(native)
                if state == "R":
                    working.add(key)
                elif late and state == "S":
                    working.add(key)  # perhaps it only wants the lock
                if not late:
                    looks.seen[key] += 1
                    looks.waits[key] += state in "SD"
            if working:
                (looks.late if late else looks.free)[frozenset(working)] += 1

    def _queued(self) -> float:
        """Return the seconds that the calling thread has waited for a core, which says nothing about the lock."""
        try:
            return int(Path("/proc/thread-self/schedstat").read_bytes().split()[1]) / 1e9
        except OSError:
            return 0.0

    def _state(self, native: int) -> str:
        if not self._linux:
            return "S"
        try:
            text = Path(f"/proc/self/task/{native}/stat").read_bytes()
        except OSError:
            return "R"
        return chr(text[text.rindex(b")") + 2])
