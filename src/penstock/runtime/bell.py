"""Bell: a condition that costs next to nothing to ring while nobody waits."""

from __future__ import annotations

import threading


class Bell(threading.Condition):
    """As `threading.Condition`, with a lock that several bells share. It is rung for every Block, mostly for nobody."""

    def __init__(self, lock: threading.RLock) -> None:
        super().__init__(lock)
        self.waiting = 0  # threads, those included that were rung for and have not come back

    def wait(self, timeout: float | None = None) -> bool:
        self.waiting += 1
        try:
            return super().wait(timeout)
        finally:
            self.waiting -= 1

    def notify_all(self) -> None:
        if self.waiting:
            super().notify_all()
