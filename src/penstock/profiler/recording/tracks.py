"""Tracks: the spans of each thread, on their way to the disk."""

from __future__ import annotations

import threading
from collections import deque

from penstock.forked import new_lock

_ROOM = 8192  # spans of a thread that wait for the writer; the oldest give way

Span = tuple[int, int, int]  # number of the name, start and length in nanoseconds of time.perf_counter


class Tracks:
    """A ring of spans for each thread, and one for each worker process. Threads append to their own; the writer drains.

    A ring that is full loses its oldest spans, never the thread's time: sums are kept elsewhere, and stay exact.
    """

    def __init__(self, room: int = _ROOM) -> None:
        self._room = room  # 0: spans are not kept at all
        self.names: list[str] = []  # of spans, by number
        self.titles: list[str] = []  # of tracks, by number
        self.reading: set[int] = set()  # names of spans in which a source reads
        self.own: set[int] = set()  # names of spans of the user's own
        self._numbers: dict[str, int] = {}
        self._rings: list[deque[Span]] = []
        self._own = threading.local()
        self._processes: dict[int, deque[Span]] = {}
        self._lock = new_lock()

    @property
    def are_kept(self) -> bool:
        """Whether spans are written anywhere."""
        return self._room > 0

    def name(self, text: str) -> int:
        """The number that a name goes by."""
        with self._lock:
            if text not in self._numbers:
                self._numbers[text] = len(self.names)
                self.names.append(text)
            return self._numbers[text]

    def ring(self) -> deque[Span]:
        """The calling thread's ring."""
        try:
            found: deque[Span] = self._own.ring
        except AttributeError:
            found = self._own.ring = self._track(threading.current_thread().name)
        return found

    def process(self, pid: int) -> deque[Span]:
        """The ring of a worker process, which the thread that asked it fills."""
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
        """All spans that wait, flat: track, name, start and length of each."""
        found: list[int] = []
        for number, ring in enumerate(list(self._rings)):
            for _ in range(len(ring)):
                try:
                    name, start, length = ring.popleft()
                except IndexError:  # never by others; a ring that was full has given way
                    break
                found += (number, name, start, length)
        return found
