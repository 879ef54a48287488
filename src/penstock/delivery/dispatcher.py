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
from contextlib import suppress
from pathlib import Path
from typing import Any

from penstock.delivery.contact import check_version, speaking
from penstock.delivery.crew import CrewMember
from penstock.delivery.dispatcher_base import DispatcherBase
from penstock.delivery.jobs import InFolder
from penstock.delivery.sockets import connected, listening, private_folder, serve_each, token_of
from penstock.delivery.worker import version
from penstock.errors import FailedPreconditionError
from penstock.runtime.processes.link import Link
from penstock.runtime.processes.start import watch_forks

DOOR = "dispatcher"
_LOOK = 0.2  # seconds between checks of the workers
_AGAIN = 1.0  # seconds before a worker that failed to start is started again


class Dispatcher(DispatcherBase):
    """Runs `size` workers in a folder until `stop`. With `auto` it runs fewer, as long as consumers do not wait.

    A consumer that connects before `run` gets an answer once it runs. Raises FailedPreconditionError if another
    dispatcher serves in the folder.
    """

    def __init__(self, folder: str, size: int, *, auto: bool = False) -> None:
        self.folder = private_folder(folder)
        check_free(folder)
        super().__init__(size, InFolder(folder), auto=auto)
        self._token = token_of(folder)
        self._door = listening(str(Path(folder, DOOR)))
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
        with self._lock:
            surplus = self._surplus()
        for name in surplus:
            self._members[name].process.let_go()
            self._lose(name)
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
        try:
            link.send(("ready", version()))
            while True:
                kind, *rest = link.receive().head
                link.send(self._answer(me, kind, *rest))
                if kind == "stop":
                    self.stop()
        except (EOFError, OSError):
            link.close()
        finally:
            self.leave(me)

    def _answer(self, me: str, kind: str, *rest: Any) -> tuple[Any, ...]:
        match kind:
            case "workers":
                return "workers", self._workers(me, *rest)
            case "join":
                return "joined", self.join(me, *rest)
            case "cut":
                return "cut", *self.cut(*rest)
            case "register":
                return "registered", self.register(*rest)
            case "dataset":
                return "dataset", *self.dataset(*rest)
            case "status":
                return "status", self.status()
        return ("stopped",)

    def _workers(self, consumer: str, waiting: float) -> list[tuple[str, str]]:
        """Return the names of workers, and the paths of their sockets."""
        with self._lock:
            self._waiting[consumer] = waiting
            self._scale.told(waiting, len(self._ready))
            return list(self._ready.items())

    def _shown(self) -> dict[str, int]:
        """Return the process of each worker."""
        return {name: self._members[name].process.popen.pid for name in self._ready if name in self._members}


class Line:
    """A consumer's connection to the dispatcher of a folder. `ask` connects, and reconnects after an error."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._link: Link | None = None

    def ask(self, *question: Any) -> Any:
        """Return the dispatcher's answer: its value, or a list of its values.

        Raises OSError or EOFError if no dispatcher runs.
        """
        try:
            if self._link is None:
                self._link = connected(str(Path(self.folder, DOOR)), token_of(self.folder))
                check_version(self._link.receive().head[1], "The service")
            self._link.send(question)
            _, *answer = self._link.receive().head
        except BaseException:  # a later question would receive the answer to this one
            self.close()
            raise
        return answer[0] if len(answer) == 1 else answer

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
