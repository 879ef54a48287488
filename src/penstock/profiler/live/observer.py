"""Live: observes passes for those who look at them now, and writes nothing. It is on while anybody wants it."""

from __future__ import annotations

import threading
import time

from penstock.forked import in_child, new_lock
from penstock.profiler.recording.observing import MOST_PIPELINES, Observing, all_on, switch_off, switch_on
from penstock.profiler.recording.sampler import Sampler

_LOOK = 0.04  # seconds between two looks at what threads are at
_MARK = 1.0  # seconds between two marks of how far passes are
_SHOWN_FOR = 60.0  # seconds that a pass is told of after its end; its plan, and what that holds, is let go of then


class Live(Observing):
    """Begins at once, with a thread that looks at what is going on."""

    def __init__(self) -> None:
        super().__init__()
        self._over = threading.Event()
        self._ended: dict[str, float] = {}
        self._thread = threading.Thread(target=self._look_on, name="penstock-live", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self.goes_on = False
        self._over.set()

    def _has_room(self) -> bool:
        """The oldest that has ended makes way."""
        if len(self.pipelines) >= MOST_PIPELINES:
            ended = next((key for key, each in self.pipelines.items() if not each.running), None)
            if ended is None:
                return False
            del self.pipelines[ended]
        return True

    def _look_on(self) -> None:
        sampler = Sampler(self._over.wait)
        due = 0.0
        while not self._over.is_set():
            running = [each for each in list(self.pipelines.values()) if each.running]
            sampler.look(_LOOK if running else _MARK, [(each.tracer.threads, each.looks) for each in running])
            now = time.perf_counter()
            if now >= due:
                due = now + _MARK
                for each in running:
                    each.watch(now)
                self._let_go(now)

    def _let_go(self, now: float) -> None:
        with self._lock:
            for key, each in list(self.pipelines.items()):
                if each.running:
                    self._ended.pop(each.name, None)
                elif now - self._ended.setdefault(each.name, now) > _SHOWN_FOR:
                    del self.pipelines[key], self._ended[each.name]


_users = 0
_live: Live | None = None
_lock = new_lock()


def want() -> None:
    """Observe passes that begin from now on, until as many have said that they no longer want it."""
    global _users, _live
    with _lock:
        _users += 1
        if _live is None:
            _live = Live()
            switch_on(_live)


def no_longer() -> None:
    """The other side of `want`."""
    global _users, _live
    with _lock:
        _users = max(_users - 1, 0)
        if not _users and _live is not None:
            switch_off(_live)
            _live.stop()
            _live = None


def observed() -> list[Observing]:
    """All that observe passes now: a recorded run sees those that began while it was on."""
    return all_on()


@in_child
def _forget() -> None:
    global _users, _live
    _users, _live = 0, None
