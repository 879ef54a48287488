"""Crew: worker processes of this machine, for one consumer at a time. They wait a moment for the next consumer."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import defaultdict

from penstock.delivery.contact import Contact, Workforce
from penstock.delivery.jobs import Scale
from penstock.errors import FailedPreconditionError
from penstock.forked import in_child, new_lock
from penstock.physical.stretch import Fatal
from penstock.runtime.processes.failures import not_started
from penstock.runtime.processes.link import Link
from penstock.runtime.processes.start import Process, births, watch_forks
from penstock.runtime.processes.worker import SERVE, START

START_SERVICE = START.replace(SERVE, "from penstock.delivery.worker import serve")
# Seconds that processes wait for another consumer. An evaluation or a checkpoint may come between two epochs. A new
# process needs about two seconds of CPU time before it is as fast.
_LINGER = 30.0
_PATIENCE = 1.0  # seconds that a process gets to end by itself
_BY_THEMSELVES = 3  # number of failed starts after which an error reports that no worker starts
_MOST_STARTS = 30  # limit of replacements for dead processes, per consumer
_STOPPED = 10.0  # seconds after which a process that a signal has stopped counts as lost
_OF_THE_MOMENT = {"PYTEST_CURRENT_TEST"}  # pytest sets it for each test, and each test would start new workers
_Kind = tuple[int, bool, frozenset[tuple[str, str]]]
_SENT = {-int(getattr(signal, name)) for name in ("SIGKILL", "SIGTERM", "SIGHUP") if hasattr(signal, name)}


class CrewMember(Contact):
    """A worker process and this end of its socket."""

    process: Process

    def __init__(self, name: str) -> None:
        with births.lock:
            self.process = Process(START_SERVICE)
            births.living.add(self)
        super().__init__(name, Link(self.process.socket))
        self._looked = time.monotonic()
        self._stopped: float | None = None  # time at which the process was first found stopped

    def end_if_stopped(self) -> None:
        """Kill the process if it has been stopped for long. Other workers then compute its ranges."""
        now = time.monotonic()
        if now < self._looked + 1.0:
            return
        self._looked = now
        if not self.process.stopped():
            self._stopped = None
        elif self._stopped is None:
            self._stopped = now
        elif now > self._stopped + _STOPPED:
            self.process.popen.kill()

    def end(self, patience: float) -> int | None:
        """End the process, by force after `patience` seconds. Return its exit status."""
        self._lent.end()
        self.process.let_go()
        return self.process.end(patience)


def _kind(size: int, *, auto: bool) -> _Kind:
    """Return a key that is equal for interchangeable crews.

    It has the environment, as workers may use keys and addresses in it.
    """
    return size, auto, frozenset(item for item in os.environ.items() if item[0] not in _OF_THE_MOMENT)


class Crew(Workforce[CrewMember]):
    """Up to `size` processes, for as long as a consumer uses them. Processes that die are replaced."""

    def __init__(self, size: int, *, auto: bool = False) -> None:
        super().__init__()
        watch_forks()
        self.kind = _kind(size, auto=auto)
        self._scale = Scale(size, auto=auto)
        self._begun = 0
        self._failed = 0
        self._starts = 0

    @property
    def pids(self) -> list[int]:
        """Return the ids of the worker processes."""
        return [member.process.popen.pid for member in self.there.values()]

    def lost(self, contact: Contact) -> bool:
        member = self.there.pop(contact.name, None)
        if member is None:
            return False
        code = member.end(_PATIENCE)
        if not member.ready and code not in _SENT:
            self._failed += 1
            if self._failed >= _BY_THEMSELVES:
                raise Fatal(not_started(EOFError(), code))
        return member.ready

    def tend(self) -> None:
        for member in self.there.values():
            member.end_if_stopped()
        while len(self.there) < self._scale.wanted:
            if self._starts >= _MOST_STARTS + self._scale.most:
                message = f"Workers died again and again: {self._starts} were started for this pass."
                hint = "A negative exit status is a signal; -9 is what the system sends when memory runs out."
                raise Fatal(FailedPreconditionError(message, hint=hint))
            self._starts += 1
            self._begun += 1
            name = f"worker {self._begun}"
            self.there[name] = CrewMember(name)

    def told(self, waiting: float) -> None:
        self._scale.told(waiting, sum(member.ready for member in self.there.values()))

    def close(self) -> None:
        """Offer this crew to the next consumer that needs this size.

        Without such a consumer, its processes end soon.
        """
        self._starts = self._failed = 0
        _RESTING.rest(self)

    def end(self) -> None:
        """End all processes."""
        members, self.there = list(self.there.values()), {}
        for member in members:
            member.process.let_go()
        for member in members:
            member.end(_PATIENCE)


class _Resting:
    """Crews without a consumer. A thread ends them after a while."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._begin()
        in_child(self._begin)  # the processes belong to the parent

    def _begin(self) -> None:
        self._crews: dict[_Kind, list[tuple[float, Crew]]] = defaultdict(list)
        self._thread: threading.Thread | None = None
        self._came = threading.Event()

    def take(self, kind: _Kind) -> Crew | None:
        with self._lock:
            crews = self._crews[kind]
            return crews.pop()[1] if crews else None

    def rest(self, crew: Crew) -> None:
        with self._lock:
            self._crews[crew.kind].append((time.monotonic() + _LINGER, crew))
            self._came.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="penstock-crews", daemon=True)
                self._thread.start()

    def _watch(self) -> None:
        while True:
            with self._lock:
                now, came = time.monotonic(), self._came
                came.clear()
                over: list[Crew] = []
                left: list[float] = []
                for kind, crews in self._crews.items():
                    over += [crew for until, crew in crews if until <= now]
                    self._crews[kind] = [(until, crew) for until, crew in crews if until > now]
                    left += [until for until, _ in self._crews[kind]]
                if not left and not over:
                    self._thread = None
                    return
            for crew in over:
                crew.end()
            if left:
                came.wait(max(min(left) - time.monotonic(), 0.01))


_RESTING = _Resting()


def crew(size: int, *, auto: bool = False) -> Crew:
    """Return processes for a consumer: a crew that has become free, or a new one.

    With `auto`, the crew grows on demand.
    """
    return _RESTING.take(_kind(size, auto=auto)) or Crew(size, auto=auto)
