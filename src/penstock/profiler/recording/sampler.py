"""Sampler: estimates the waiting time of each step, and the share of its work under the GIL.

A thread that does not run waits for an outside event, for a core, or for the GIL. Each sample records the current call
of every thread, its state in the operating system, and whether the GIL was free. A thread that sleeps while the GIL is
free waits for an outside event.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.profiler.analysis.alone import has_lock
from penstock.profiler.analysis.meter import Frame, MeterKey
from penstock.runtime.machine.granted import Queued

_PATIENCE = 0.0004  # seconds of the longest wake-up while the GIL is free
_LEAST = 8  # minimum number of samples for an estimate
_ROUNDS = 20

Threads = Iterable[tuple[int, list[Frame], object]]


@dataclass(slots=True)
class Looks:
    """Samples of one pipeline."""

    seen: Counter[MeterKey] = field(default_factory=Counter)  # samples inside the step while the GIL was free
    # those in which the thread slept, so it waited for an outside event
    waits: Counter[MeterKey] = field(default_factory=Counter)
    # samples while the GIL was held, by the set of active steps
    late: Counter[frozenset[MeterKey]] = field(default_factory=Counter)
    free: Counter[frozenset[MeterKey]] = field(default_factory=Counter)

    def waiting(self, key: MeterKey, wall: float, cpu: float) -> float:
        """Return the seconds in which a step waited for an outside event.

        A step with too few samples gets the average share of all steps.
        """
        lost = max(wall - cpu, 0.0)
        own = self.seen[key] >= _LEAST
        seen, waits = (self.seen[key], self.waits[key]) if own else (self.seen.total(), self.waits.total())
        return lost if seen < _LEAST else min(lost, wall * waits / seen)

    def held(self) -> Mapping[MeterKey, float]:
        """Return the share of each step's work under the GIL.

        The GIL is held if any active step holds it. Each sample is attributed by the estimated shares of the other
        steps, in several rounds until the estimates are stable.
        """
        late, free = dict(self.late), dict(self.free)  # copies, because samples are added during the computation
        keys = {key for at_work in (*late, *free) for key in at_work}
        found = dict.fromkeys(keys, 0.5)
        for _ in range(_ROUNDS):
            blame: Counter[MeterKey] = Counter()
            seen: Counter[MeterKey] = Counter()
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
    """Sleeps for a moment in `look`, and records the delay of its wake-up and the calls of all threads.

    The thread that creates it calls `look`.
    """

    def __init__(self, sleep: Callable[[float], object]) -> None:
        self._sleep = sleep
        self._has_lock = has_lock()
        self._linux = sys.platform == "linux"
        self._queued = Queued().seconds  # waiting for a core, which is not due to the GIL

    def look(self, seconds: float, pipelines: Iterable[tuple[Threads, Looks]]) -> None:
        began, queued = time.perf_counter(), self._queued()
        self._sleep(seconds)
        waited = time.perf_counter() - began - seconds - (self._queued() - queued)
        late = self._has_lock and waited > _PATIENCE
        for threads, looks in pipelines:
            working: set[MeterKey] = set()
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
                    working.add(key)  # it may only be waiting for the GIL
                if not late:
                    looks.seen[key] += 1
                    looks.waits[key] += state in "SD"
            if working:
                (looks.late if late else looks.free)[frozenset(working)] += 1

    def _state(self, native: int) -> str:
        if not self._linux:
            return "S"
        try:
            text = Path(f"/proc/self/task/{native}/stat").read_bytes()
        except OSError:
            return "R"
        return chr(text[text.rindex(b")") + 2])
