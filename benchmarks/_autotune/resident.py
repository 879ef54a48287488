"""The growth of the resident memory of this process and its workers."""

from __future__ import annotations

import contextlib
import itertools
import threading
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

PERIOD = 0.01  # seconds between two samples
EVERY = 20  # samples after which the program looks for new workers among all processes


class Peak:
    """Context manager that samples the memory repeatedly. Needs psutil.

    Memory that worker processes share with this process counts once for each of them.
    """

    def __enter__(self) -> Peak:
        import psutil

        self._own = psutil.Process()
        self._over = threading.Event()
        self._before = self._most = self._resident([])
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    @property
    def growth(self) -> int:
        """Return the peak growth in bytes."""
        return self._most - self._before

    def _watch(self) -> None:
        for look in itertools.count():
            if look % EVERY == 0:
                workers = self._own.children(recursive=True)
            self._most = max(self._most, self._resident(workers))
            if self._over.wait(PERIOD):
                return

    def _resident(self, workers: list[psutil.Process]) -> int:
        import psutil

        found = self._own.memory_info().rss
        for worker in workers:
            with contextlib.suppress(psutil.NoSuchProcess):
                found += worker.memory_info().rss
        return found
