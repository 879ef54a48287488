"""The loop that consumes a pipeline: its waiting times, failures and CPU time, over all iterations."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from penstock.profiler.analysis.meter import MeterKey, _Cell

_BUCKETS = 40  # buckets for waiting times: bucket i contains those below 2**i microseconds


@dataclass(slots=True)
class Waits:
    """Waiting times of the loop. Sums are exact; times in seconds."""

    steps: int = 0  # elements (batches) that the loop received
    waited: float = 0.0  # total
    starting: float = 0.0  # the part before the first element of each iteration
    longest: float = 0.0
    running: float = 0.0  # from the first request of each iteration to its end
    passes: int = 0
    whole_passes: int = 0
    histogram: list[int] = field(default_factory=lambda: [0] * _BUCKETS)  # number of waits per bucket

    def add(self, seconds: float, steps: int) -> None:
        self.waited += seconds
        self.longest = max(self.longest, seconds)
        self.steps += steps
        self.histogram[min(int(seconds * 1e6).bit_length(), _BUCKETS - 1)] += 1


class ConsumingLoop:
    """Times of the loop over a pipeline. The loop calls `began`, `refilled`, `failed` and `ended`."""

    def __init__(self, now: float) -> None:
        self.waits = Waits()
        self.running = 0  # number of running iterators
        self.asking: float | None = None  # start of the current wait of the loop
        self.failures = 0
        self.first_failure: Exception | None = None
        self.cells: dict[MeterKey, _Cell] = {}  # measurements of the loop's thread
        self._pass_began: float | None = None  # time of the first request of the current iteration
        self._between = 0.0  # seconds without a running iterator
        self._left_at: float | None = now  # end of the latest iteration, while none is running
        self._refill_cpu = 0.0

    @property
    def taken(self) -> int:
        """The number of elements requested, including failures."""
        return self.waits.steps + self.failures

    def began(self) -> None:
        self.running += 1
        self.waits.passes += 1
        self._pass_began = None

    def refilled(self, asked: float, got: float, cpu: float, steps: int, *, first: bool) -> None:
        """Record a request for a Block of `steps` elements; 0 for a failure or the end."""
        if self._left_at is not None:
            self._between += max(asked - self._left_at, 0.0)
            self._left_at = None
        self.asking = None
        self._refill_cpu += cpu
        self.waits.add(got - asked, steps)
        if first:
            self._pass_began = asked
            self.waits.starting += got - asked

    def failed(self, error: Exception) -> None:
        self.failures += 1
        self.first_failure = self.first_failure or error

    def ended(self, began: float, now: float, *, whole: bool) -> None:
        self.running -= 1
        self.waits.running += now - began
        self.waits.whole_passes += whole
        self._pass_began, self.asking = None, None
        if not self.running:
            self._left_at = now

    def cpu(self) -> float:
        """Return the CPU seconds of the loop's requests outside of measured calls."""
        return max(self._refill_cpu - sum(cell[6] for cell in list(self.cells.values())), 0.0)

    def between(self, now: float) -> float:
        """Return the seconds without a running iterator."""
        return self._between + (0.0 if self._left_at is None else now - self._left_at)

    def waits_now(self, now: float | None = None) -> Waits:
        """Return the waiting times including the current iteration and the current wait."""
        now = time.perf_counter() if now is None else now
        since, began = self.asking, self._pass_began
        found = replace(self.waits)
        if since is not None:
            found.waited += max(now - since, 0.0)
            if began is None:
                began = since
                found.starting += max(now - since, 0.0)
        if began is not None:
            found.running += max(now - began, 0.0)
        return found
