"""`DispatcherBase`: the questions that every dispatcher answers in the same way, with any kind of workers."""

from __future__ import annotations

import os
import threading
import time
from abc import ABC, abstractmethod
from typing import Any

from penstock.delivery.jobs import ByteStore, Jobs, Registered, Scale
from penstock.delivery.worker import version
from penstock.errors import PenstockError

_REST = 10.0  # seconds without consumers, after which the number of workers is reduced to the initial number


class DispatcherBase(ABC):
    """The consumers, jobs, data sets and workers of a dispatcher. Its public methods are thread-safe."""

    def __init__(self, size: int, store: ByteStore, *, auto: bool) -> None:
        self._lock = threading.Lock()
        self._scale = Scale(size, auto=auto)
        self._jobs = Jobs()
        self._registered = Registered(store)
        self._waiting: dict[str, float] = {}  # share of waiting, by consumer
        self._members: dict[str, Any] = {}  # workers by name
        self._ready: dict[str, Any] = {}  # the workers that consumers can use; the values depend on the kind of worker
        self._alone = time.monotonic()  # start of the time without consumers

    def join(self, consumer: str, job: str, digest: str) -> Exception | None:
        """Add a consumer to a job. Return an error if the job's other consumers use another data set."""
        with self._lock:
            try:
                self._jobs.join(job, digest, consumer)
            except PenstockError as error:
                return error
        return None

    def leave(self, consumer: str) -> None:
        """Remove a consumer."""
        with self._lock:
            self._leave(consumer)

    def _leave(self, consumer: str) -> None:
        self._waiting.pop(consumer, None)
        self._jobs.leave(consumer)

    def cut(self, job: str, epoch: int, start: int, length: int, part: int | None) -> tuple[int, str | None]:
        """Return the end and the worker of a range of a job."""
        with self._lock:
            there = list(self._ready)
            if part is not None and there:  # the same choice as in the consumers of this part
                there = [there[part % len(there)]]
            return self._jobs.cut(job, epoch, start, length, there)

    def register(self, name: str, fingerprint: str, content: bytes) -> Exception | None:
        """Store a data set. Return an error if this fails."""
        with self._lock:
            try:
                self._registered.put(name, fingerprint, content)
            except (PenstockError, OSError) as error:
                return error
        return None

    def dataset(self, name: str) -> tuple[bytes, Exception | None]:
        """Return a data set, or an error."""
        with self._lock:
            try:
                return self._registered.get(name), None
            except (PenstockError, OSError) as error:
                return b"", error

    def status(self) -> dict[str, Any]:
        """Return the state as plain values."""
        with self._lock:
            return {
                "pid": os.getpid(),
                "workers": self._shown(),
                "most_workers": self._scale.most,
                "waiting": [round(share, 3) for share in self._waiting.values()],
                "jobs": self._jobs.told(),
                "datasets": self._registered.names(),
                "version": version(),
            }

    @abstractmethod
    def _shown(self) -> Any:
        """Return the workers that are ready, for `status`."""

    def _surplus(self) -> list[str]:
        """Return the workers to end: after a while without consumers, all above the initial number."""
        if self._waiting:
            self._alone = time.monotonic()
        elif time.monotonic() > self._alone + _REST:
            self._scale.rest()
            return list(self._members)[self._scale.wanted :]
        return []
