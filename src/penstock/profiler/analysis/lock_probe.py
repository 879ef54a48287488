"""LockProbe: how much of the time each step holds the interpreter's lock.

A thread that wants the lock now and then gets it at once where the work lets go of it, and waits where it does not.
Which call it waited for is read from the meter. That tells something only while one thread works: in a pass with the
inline executor.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Collection

from penstock.profiler.analysis.meter import Frame, Key
from penstock.profiler.analysis.reference import REFERENCE

_SLEEPS = (0.0013, 0.0019, 0.0011, 0.0023, 0.0017)  # seconds; of differing length, so as not to fall in step with work
_PATIENCE = 0.0003  # seconds that a wake-up takes at most on a machine that is not busy
_CALIBRATIONS = 16
_LEAST = 8  # samples that say something
_USELESS = 0.8  # share of late wake-ups at which nothing can be told any more


def has_lock() -> bool:
    """Whether threads exclude each other in Python code."""
    enabled = getattr(sys, "_is_gil_enabled", None)
    return enabled is None or bool(enabled())


class LockProbe:
    """Samples, in a `with` block, a thread that is inside `frames`."""

    def __init__(self, frames: list[Frame]) -> None:
        self.asked: Counter[Key] = Counter()
        self.waited: Counter[Key] = Counter()
        self._frames = frames
        self._over = threading.Event()
        self._calibrated = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="penstock-lock-probe", daemon=True)

    def __enter__(self) -> LockProbe:
        if has_lock():
            self._thread.start()
            self._calibrated.wait()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def share(self, keys: Collection[Key]) -> float | None:
        """The part of some calls' time in which the lock was held; None where they were sampled too rarely to tell.

        A machine that is busy lets the probe wait as well: by so much more than during the reference's work counts.
        """
        asked = sum(self.asked[key] for key in keys)
        if asked < _LEAST:
            return None
        late = sum(self.waited[key] for key in keys) / asked
        always = self.waited[REFERENCE] / self.asked[REFERENCE] if self.asked[REFERENCE] >= _LEAST else 0.0
        return max(late - always, 0.0) / (1 - always) if always < _USELESS else None

    def rest(self) -> float:
        """The same for all those together that were sampled too rarely."""
        return self.share([key for key, count in self.asked.items() if count < _LEAST]) or 0.0

    def _sample(self) -> None:
        late = sorted(self._lateness(_SLEEPS[i % len(_SLEEPS)]) for i in range(_CALIBRATIONS))
        patience = max(_PATIENCE, 2 * late[_CALIBRATIONS // 2])
        self._calibrated.set()
        number = 0
        while not self._over.is_set():
            waited = self._lateness(_SLEEPS[number % len(_SLEEPS)]) > patience
            number += 1
            frames = self._frames
            try:
                key = frames[-1].key
            except IndexError:
                continue
            self.asked[key] += 1
            self.waited[key] += waited

    def _lateness(self, seconds: float) -> float:
        began = time.perf_counter()
        self._over.wait(seconds)
        return time.perf_counter() - began - seconds
