"""Pool: threads that wait for servers, made when there is work and gone when there is none."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from penstock.forked import in_child

MOST = 64  # requests of a process at a time
_IDLE = 1.0  # seconds without work after which a thread ends


class Pool:
    """Up to `most` daemon threads. A forked child, which has none of them, begins with an empty one."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._begin_anew()
        in_child(self._begin_anew)

    def _begin_anew(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._work: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._threads = 0
        self._idle = 0

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        """Have a thread call it. What it must not do is wait for other work of this pool."""
        future: Future[Any] = Future()
        with self._changed:
            self._work.append((future, call))
            if self._idle >= len(self._work) or self._threads >= self._most:
                self._changed.notify()
                return future
            self._threads += 1
            try:
                threading.Thread(target=self._run, args=(self._changed,), name="penstock-remote", daemon=True).start()
            except BaseException:  # there can be no further thread now; later there may
                self._threads -= 1
                self._work.remove((future, call))
                raise
        return future

    def _run(self, changed: threading.Condition) -> None:
        while True:
            with changed:
                if not self._work:
                    self._idle += 1
                    changed.wait(_IDLE)
                    self._idle -= 1
                if not self._work:
                    self._threads -= 1
                    return
                future, call = self._work.popleft()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:
                    future.set_exception(error)
            del future, call


POOL = Pool()
