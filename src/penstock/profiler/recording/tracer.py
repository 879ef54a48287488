"""`RunTracer`: a Meter that also records each call as a span, and the current call of every thread.

`Tracks` buffers the spans before they are written.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from penstock.forked import new_lock
from penstock.plan.inputs import Scan
from penstock.plan.node import Node
from penstock.profiler.analysis.meter import Frame, Meter, MeterKey, Record, _Cell, _MeteredThread
from penstock.profiler.analysis.places import steps_of

_ROOM = 8192  # spans of a thread that wait for the writer; the oldest are dropped first

Span = tuple[int, int, int]  # number of the name, start and length in nanoseconds of time.perf_counter


class Tracks:
    """A ring of spans per thread and per worker process. Threads append to their own ring; the writer reads all rings.

    A full ring drops its oldest spans. The sums are stored elsewhere and stay exact.
    """

    def __init__(self, room: int = _ROOM) -> None:
        self._room = room  # 0: spans are not recorded
        self.names: list[str] = []  # of spans, by number
        self.titles: list[str] = []  # of tracks, by number
        self.reading: set[int] = set()  # names of spans in which a source reads
        self.own: set[int] = set()  # names of the user's own spans
        self._numbers: dict[str, int] = {}
        self._rings: list[deque[Span]] = []
        self._own = threading.local()
        self._processes: dict[int, deque[Span]] = {}
        self._lock = new_lock()

    @property
    def are_kept(self) -> bool:
        """True if spans are written."""
        return self._room > 0

    def name(self, text: str) -> int:
        """Return the number of a name."""
        with self._lock:
            if text not in self._numbers:
                self._numbers[text] = len(self.names)
                self.names.append(text)
            return self._numbers[text]

    def ring(self) -> deque[Span]:
        """Return the calling thread's ring."""
        try:
            found: deque[Span] = self._own.ring
        except AttributeError:
            found = self._own.ring = self._track(threading.current_thread().name)
        return found

    def process(self, pid: int) -> deque[Span]:
        """Return the ring of a worker process. The thread that sends it work fills the ring."""
        if pid not in self._processes:
            self._processes[pid] = self._track(f"worker process {pid}")
        return self._processes[pid]

    def _track(self, title: str) -> deque[Span]:
        with self._lock:
            ring: deque[Span] = deque(maxlen=self._room)
            self._rings.append(ring)
            self.titles.append(title)
            return ring

    def drained(self) -> list[int]:
        """Return all buffered spans as a flat list: track, name, start and length of each."""
        found: list[int] = []
        for number, ring in enumerate(list(self._rings)):
            for _ in range(len(ring)):
                try:
                    name, start, length = ring.popleft()
                except IndexError:  # the ring was full and dropped spans in the meantime; only this thread reads it
                    break
                found += (number, name, start, length)
        return found


_SHORTEST = 2e-5  # seconds; shorter calls count in the sums only


class RunTracer(Meter):
    """Measures all iterations over plans of one shape; `begin` starts each."""

    def __init__(self, plan: Node, tracks: Tracks) -> None:
        # (thread id of the system, calls, measurements)
        self.threads: list[tuple[int, list[Frame], dict[MeterKey, _Cell]]] = []
        self.tracks = tracks
        super().__init__(plan, warm=True)
        self._local = _TracedThread(self._cells, self.threads)

    def begin(self, copy: Node) -> None:
        """Begin another iteration. Nodes of earlier iterations are freed."""
        self._copies, self._numbers = [], {}
        super().begin(copy)

    def measured(
        self, call: Callable[..., Any], key: MeterKey, *, pulls: bool = False, record: Record | None = None
    ) -> Callable[..., Any]:
        """Return a measured and recorded version of a call."""
        if key.part == "take":
            return super().measured(call, key, pulls=pulls)  # it waits for the work of others
        name, tracks = self.tracks.name(self._title(key)), self.tracks
        if isinstance(self.nodes[key.node], Scan):
            tracks.reading.add(name)

        def to_ring(began: float, took: float) -> None:
            if took > _SHORTEST:
                tracks.ring().append((name, int(began * 1e9), int(took * 1e9)))

        return super().measured(call, key, record=to_ring)

    def _title(self, key: MeterKey) -> str:
        node = self.nodes[key.node]
        if key.part == "step":
            steps = steps_of(node)
            return steps[min(key.step, len(steps) - 1)].label
        return f"pull for {node.label}" if key.part == "pull" else node.label

    def cells_of_this_thread(self) -> dict[MeterKey, _Cell]:
        return self._local.cells


class _TracedThread(_MeteredThread):
    """The calls and measurements of a thread, with its system id for reading its state."""

    def __init__(self, all_cells: list[dict[MeterKey, _Cell]], threads: list[Any]) -> None:
        super().__init__(all_cells)
        threads.append((threading.get_native_id(), self.frames, self.cells))
