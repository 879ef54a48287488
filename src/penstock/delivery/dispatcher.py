"""Dispatcher: a process that owns worker processes, and gives their addresses to consumers of this machine.

It delivers no elements and stores no positions, because each consumer knows its position. When it dies, its workers end
too. Consumers wait for the next dispatcher of the same folder, and resume there.
Questions to it, and answers: ("workers", share of its time that the
consumer has waited): ("workers", [(name, path), ...]); ("join", job, digest): ("joined", None or
an error); ("cut", job, epoch, start, length, part or None): ("cut", stop, worker or None);
("register", name, fingerprint, content): ("registered", None or an error);
("dataset", name): ("dataset", content, None or an error);
("status",): ("status", values); ("stop",): ("stopped",).
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from penstock.delivery.contact import check_version, speaking
from penstock.delivery.crew import CrewMember
from penstock.delivery.jobs import InFolder, Jobs, Registered, Scale
from penstock.delivery.sockets import connected, listening, private_folder, serve_each, token_of
from penstock.delivery.worker import version
from penstock.errors import FailedPreconditionError, PenstockError, said
from penstock.runtime.processes.link import Link
from penstock.runtime.processes.start import watch_forks

DOOR = "dispatcher"
_LOOK = 0.2  # seconds between checks of the workers
_REST = 10.0  # seconds without consumers, after which the number of workers is reduced to the initial number
_AGAIN = 1.0  # seconds before a worker that failed to start is started again


class Dispatcher:
    """Runs `size` workers in a folder until `stop`. With `auto` it runs fewer, as long as consumers do not wait.

    A consumer that connects before `run` gets an answer once it runs. Raises FailedPreconditionError if another
    dispatcher serves in the folder.
    """

    def __init__(self, folder: str, size: int, *, auto: bool = False) -> None:
        self.folder = private_folder(folder)
        check_free(folder)
        self._token = token_of(folder)
        self._door = listening(str(Path(folder, DOOR)))
        self._scale = Scale(size, auto=auto)
        self._waiting: dict[str, float] = {}  # share of waiting, by consumer
        self._alone = time.monotonic()  # start of the time without consumers
        self._members: dict[str, CrewMember] = {}
        self._ready: dict[str, str] = {}  # worker names and the paths of their sockets
        self._jobs = Jobs()
        self._registered = Registered(InFolder(folder))
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._numbers = itertools.count(1)
        watch_forks()

    def run(self) -> None:
        """Serve consumers until `stop`."""
        try:
            serve_each(self._door, self._token, self._serve)
            while not self._over.is_set():
                self._tend()
        finally:
            self._door.close()
            with suppress(OSError):
                Path(self.folder, DOOR).unlink()
            self._end()

    def stop(self) -> None:
        """Make `run` return."""
        self._over.set()

    # -- workers

    def _tend(self) -> None:
        self._settle()
        for member in self._members.values():
            member.end_if_stopped()
        while len(self._members) < self._scale.wanted:
            name = f"worker {os.getpid()}.{next(self._numbers)}"
            self._members[name] = CrewMember(name)
        heard = speaking(self._members.values(), _LOOK)
        for contact in heard:
            try:
                message = contact.hear()
                if message is None:
                    path = str(Path(self.folder, contact.name.replace(" ", "-")))
                    contact.link.send(("listen", path, self.folder))
                elif message.head[0] == "listening":
                    with self._lock:
                        self._ready[contact.name] = message.head[1]
            except (EOFError, OSError):
                self._lose(contact.name)

    def _settle(self) -> None:
        """Reduce the number of workers after a while without consumers."""
        with self._lock:
            if self._waiting:
                self._alone = time.monotonic()
                return
            if time.monotonic() < self._alone + _REST:
                return
            self._scale.rest()
        for name in list(self._members)[self._scale.wanted :]:
            self._members[name].process.let_go()
            self._lose(name)

    def _lose(self, name: str) -> None:
        member = self._members.pop(name)
        with self._lock:
            path = self._ready.pop(name, None)
        member.end(1.0)
        if path is None:
            self._over.wait(_AGAIN)
            return
        with suppress(OSError):
            Path(path).unlink()

    def _end(self) -> None:
        for name in list(self._members):
            self._members[name].process.let_go()
        for name in list(self._members):
            self._members.pop(name).process.end(1.0)
        for path in self._ready.values():
            with suppress(OSError):
                Path(path).unlink()

    # -- consumers

    def _serve(self, link: Link) -> None:
        """Answer one consumer, in a thread of its own."""
        me = f"{id(link)}"
        jobs: set[str] = set()
        try:
            link.send(("ready", version()))
            while True:
                kind, *rest = link.receive().head
                with self._lock:
                    answer = self._answer(kind, rest, me, jobs)
                link.send(answer)
                if kind == "stop":
                    self.stop()
        except (EOFError, OSError):
            link.close()
        finally:
            with self._lock:
                self._waiting.pop(me, None)
                for job in jobs:
                    self._jobs.leave(job, me)

    def _answer(self, kind: str, rest: list[Any], me: str, jobs: set[str]) -> tuple[Any, ...]:
        if kind == "workers":
            self._waiting[me] = rest[0]
            self._scale.told(rest[0], len(self._ready))
            return "workers", list(self._ready.items())
        if kind == "join":
            job, digest = rest
            try:
                self._jobs.join(job, digest, me)
            except PenstockError as error:
                return "joined", error
            jobs.add(job)
            return "joined", None
        if kind == "cut":
            job, epoch, start, length, part = rest
            there = list(self._ready)
            if part is not None and there:  # the same choice as in the consumers of this part
                there = [there[part % len(there)]]
            return ("cut", *self._jobs.cut(job, epoch, start, length, there))
        if kind == "register":
            try:
                self._registered.put(*rest)
            except (PenstockError, OSError) as error:
                return "registered", error
            return "registered", None
        if kind == "dataset":
            try:
                return "dataset", self._registered.get(rest[0]), None
            except (PenstockError, OSError) as error:
                return "dataset", b"", error
        if kind == "status":
            return "status", self._status()
        return ("stopped",)

    def _status(self) -> dict[str, Any]:
        return {
            "pid": os.getpid(),
            "workers": {name: self._members[name].process.popen.pid for name in self._ready if name in self._members},
            "most_workers": self._scale.most,
            "waiting": [round(share, 3) for share in self._waiting.values()],
            "jobs": self._jobs.told(),
            "datasets": self._registered.names(),
            "version": version(),
        }


class Line:
    """A consumer's connection to the dispatcher of a folder. `ask` connects, and reconnects after an error."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._link: Link | None = None

    def ask(self, *question: Any) -> tuple[Any, ...]:
        """Return the dispatcher's answer. Raises OSError or EOFError if no dispatcher runs."""
        try:
            if self._link is None:
                self._link = connected(str(Path(self.folder, DOOR)), token_of(self.folder))
                check_version(self._link.receive().head[1], "The service")
            self._link.send(question)
            answer: tuple[Any, ...] = self._link.receive().head
        except BaseException:  # a later question would receive the answer to this one
            self.close()
            raise
        return answer

    @property
    def connected(self) -> bool:
        return self._link is not None

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None


def check_free(folder: str) -> None:
    """Raise FailedPreconditionError if a service runs in this folder."""
    with suppress(EOFError, OSError):
        connected(str(Path(folder, DOOR)), token_of(folder)).close()
        message = f"A service runs in {folder!r} already."
        hint = "Stop it, with `penstock service stop`, or give another folder."
        raise FailedPreconditionError(message, hint=hint)


def wait_until_there(
    folder: str, seconds: float, workers: int = 1, alive: Callable[[], bool] = lambda: True
) -> dict[str, Any]:
    """Return the dispatcher's status once it has enough workers.

    Raises FailedPreconditionError if this takes too long.
    """
    until = time.monotonic() + seconds
    line = Line(folder)
    try:
        while True:
            try:
                _, status = line.ask("status")
                if len(status["workers"]) >= workers:
                    return dict(status)
                reason = f"{len(status['workers'])} of {workers} workers are there"
            except (EOFError, OSError) as error:
                reason = said(error)
            if time.monotonic() > until or not alive():
                message = f"No service answers in {folder!r}: {reason}."
                raise FailedPreconditionError(message, hint="`penstock service start` starts one.")
            time.sleep(0.02)
    finally:
        line.close()
