"""Watch: looks at the lanes of a run again and again, and ends the run when its time is up."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.runtime.autotune.figures import Knobs
from penstock.runtime.lane import Lane

_PERIOD = 0.01  # seconds between two looks


@dataclass(slots=True)
class Look:
    """What was seen of a lane from moment to moment."""

    looks: int = 0
    busy: int = 0  # workers inside, summed over looks
    held: int = 0  # bytes, at most
    settings: list[tuple[float, Knobs, str | None]] = field(default_factory=list)  # when, which, and why

    def again(self, lane: Lane) -> None:
        self.looks += 1
        self.busy += lane.busy
        self.held = max(self.held, lane.held)
        self.settings.append((time.perf_counter(), lane.knobs, lane.reason))

    def turned(self) -> float:
        """When another number of workers, or another executor, was last seen."""
        last = 0.0
        for (_, before, _), (at, after, _) in zip(self.settings, self.settings[1:], strict=False):
            if (before.parallelism, before.executor) != (after.parallelism, after.executor):
                last = at
        return last

    def mostly(self, since: float) -> tuple[Knobs, str | None] | None:
        """The settings that were in force most of the time, and why: a trial may have been under way in the end."""
        seen = [(knobs, reason) for at, knobs, reason in self.settings if at >= since]
        if not seen:
            return None
        most = Counter((knobs.parallelism, knobs.executor) for knobs, _ in seen).most_common(1)[0][0]
        return [each for each in seen if (each[0].parallelism, each[0].executor) == most][-1]


class Watch:
    """In a `with` block: looks at `lanes` (by node), asks for marks, and at the end of its time calls `over`."""

    def __init__(
        self,
        lanes: dict[int, Lane],
        seconds: float,
        mark_seconds: float,
        mark: Callable[[], None],
        over: Callable[[], None],
    ) -> None:
        self.looks: dict[int, Look] = {}
        self._lanes = lanes
        self._seconds = seconds
        self._mark_seconds = mark_seconds
        self._mark = mark
        self._over = over
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="penstock-watch", daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._left.set()
        self._thread.join()

    def _watch(self) -> None:
        try:
            self._look_around()
        finally:
            if not self._left.is_set():
                self._over()

    def _look_around(self) -> None:
        began = time.perf_counter()
        marked = 0.0
        while not self._left.wait(_PERIOD):
            elapsed = time.perf_counter() - began
            if elapsed >= self._seconds:
                return
            if elapsed >= marked + self._mark_seconds:
                marked = elapsed
                self._mark()
            for node, lane in list(self._lanes.items()):
                self.looks.setdefault(node, Look()).again(lane)
