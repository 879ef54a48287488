"""The loop of a worker: it takes parts of plans once, then ranges, and sends back the results.

Messages to it: ("part", digest, folder, path) with the packed part; ("job", name, digest, epoch, kept) for a pass;
("make", job, start, stop, region or -1); ("region", number, bytes) with an open file, to be lent for results;
("unmap", number); ("drop", job): no consumer needs it any more; ("listen", path, folder): let others connect, too.

Answers: ("ready", version) once; to "make" ("made", job, start, stop, elements, ended, seconds, bytes) with the packed
stretches; or ("mistaken", job, start, error, traceback) if the part itself fails; or ("ended", job, start) with a
packed exception that ends the run; or ("unready", job, start, text) for a part that cannot be unpickled; or ("unmade",
job, start) for a dropped job.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from penstock.delivery.maker import KEPT_BYTES, Makers
from penstock.delivery.part import PlanPart, opened
from penstock.delivery.results import Regions, send
from penstock.runtime.machine.malloc import KEPT_ALONE, keep_freed_memory
from penstock.runtime.processes.link import EMPTY, Link, Message, Pickled, follow

MOST_PARTS = 8  # parts that a consumer may assume a worker has stored


def version() -> str:
    """Return the versions that must match on both sides, because functions travel as bytecode."""
    ours = getattr(sys.modules["penstock"], "__version__")  # noqa: B009 - the package itself stands above this layer
    return f"penstock {ours}, Python {sys.version_info[0]}.{sys.version_info[1]}"


def serve(descriptor: int, lifeline: int) -> None:
    """Answer until the parent ends.

    A descriptor of -1 means: read the socket from standard input, without a lifeline.
    """
    if descriptor < 0:
        end = socket.fromshare(sys.stdin.buffer.read())  # type: ignore[attr-defined]
    else:
        follow(lifeline)
        end = socket.socket(fileno=descriptor)
        for each in (end.fileno(), lifeline):
            os.set_inheritable(each, False)
        os.register_at_fork(after_in_child=end.close)
    keep_freed_memory(kept=KEPT_ALONE)
    server = Server()
    server.attach(Link(end), gone=server.stop)
    server.run()


class PartSetting(NamedTuple):
    """A part, and the base folder and module path that its functions expect."""

    part: PlanPart
    folder: str
    path: list[str]


@dataclass(slots=True, eq=False)
class Client:
    """A connected consumer. A thread sends the answers while the next range is computed."""

    link: Link
    answers: SimpleQueue[tuple[tuple[Any, ...], Pickled, int] | None] = field(default_factory=SimpleQueue)
    regions: Regions = field(default_factory=Regions)
    jobs: set[str] = field(default_factory=set)
    # the last parts that it has sent, or the reason why a part is invalid
    parts: dict[str, PartSetting | str] = field(default_factory=dict)
    gone: bool = False

    def answer(self, head: tuple[Any, ...], content: Pickled = EMPTY, region: int = -1) -> None:
        """Send an answer. Its arrays go into the region that was lent for it, if they fit.

        The thread that has computed the arrays copies them, because they are still in the cache of its core.
        """
        if self.gone:
            return
        if self.regions.write(content, region):
            content = content.placed()
        else:
            region = -1
        self.answers.put((head, content, region))


@dataclass(slots=True)
class _Job:
    setting: PartSetting | str
    epoch: int
    kept: bool
    users: set[Client] = field(default_factory=set)


_NOTHING = np.empty(0, np.uint8)


class Server:
    """The parts, jobs and results of this process. The thread that calls `run` computes the ranges."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._questions: SimpleQueue[tuple[Client, Message] | None] = SimpleQueue()
        self._jobs: dict[str, _Job] = {}
        self._makers = Makers(kept_bytes)

    def attach(self, link: Link, gone: Callable[[], None] | None = None) -> None:
        """Answer on another link. `gone` is called when the other side has gone."""
        client = Client(link)
        client.answer(("ready", version()))
        threading.Thread(target=self._listen, args=(client, gone), name="penstock-asked", daemon=True).start()
        threading.Thread(target=_speak, args=(client,), name="penstock-answers", daemon=True).start()

    def _open(self, path: str, folder: str) -> None:
        """Accept connections from programs that know the folder's token."""
        from penstock.delivery.sockets import listening, serve_each, token_of

        serve_each(listening(path), token_of(folder), self.attach)

    def stop(self) -> None:
        """Make `run` return."""
        self._questions.put(None)

    def run(self) -> None:
        """Answer questions in order."""
        while (asked := self._questions.get()) is not None:
            client, message = asked
            kind, *rest = message.head
            if kind == "make":
                self._make(client, *rest)
            elif kind == "part":
                _take(client, message)
            elif kind == "job":
                self._begin(client, *rest)
            elif kind == "drop":
                self._drop(client, rest[0])
            elif kind == "region":
                assert message.descriptor is not None
                client.regions.map(rest[0], rest[1], message.descriptor)
            elif kind == "unmap":
                client.regions.unmap(rest[0])
            elif kind == "listen":
                self._open(*rest)
                client.answer(("listening", rest[0]))
            elif kind == "gone":
                for job in list(client.jobs):
                    self._drop(client, job)

    def _listen(self, client: Client, gone: Callable[[], None] | None) -> None:
        with suppress(EOFError, OSError):
            while True:
                message = client.link.receive()
                if message.head[0] == "drop":
                    client.jobs.discard(message.head[1])  # its waiting ranges are left out
                elif message.head[0] == "job":
                    client.jobs.add(message.head[1])
                self._questions.put((client, message))
        client.gone = True
        client.answers.put(None)
        self._questions.put((client, Message(("gone",), memoryview(b""), [], [], -1, _NOTHING, None)))
        if gone is not None:
            gone()

    def _begin(self, client: Client, name: str, digest: str, epoch: int, kept: bool) -> None:  # noqa: FBT001
        setting = client.parts.get(digest, "It is not here: ask again.")
        job = self._jobs.setdefault(name, _Job(setting, epoch, kept))
        job.users.add(client)
        client.jobs.add(name)

    def _drop(self, client: Client, name: str) -> None:
        job = self._jobs.get(name)
        client.jobs.discard(name)
        if job is None:
            return
        job.users.discard(client)
        if not job.users:
            del self._jobs[name]
            self._makers.drop(name)

    def _make(self, client: Client, name: str, start: int, stop: int, region: int) -> None:
        if client.gone or name not in client.jobs:
            client.answer(("unmade", name, start))
            return
        job = self._jobs[name]

        def part() -> PlanPart | str:
            if isinstance(job.setting, str):
                return job.setting
            _settle(job.setting)
            return job.setting.part

        client.answer(*self._makers.answer(name, start, stop, part, job.epoch, keep=job.kept), region)
        sys.stdout.flush()


def _take(client: Client, message: Message) -> None:
    _, digest, folder, path = message.head
    try:
        _settle((folder, path))
        client.parts[digest] = PartSetting(opened(message.content, message.buffers()), folder, path)
    except Exception as raised:
        client.parts[digest] = "".join(traceback.format_exception(raised)).rstrip()
    while len(client.parts) > MOST_PARTS:
        del client.parts[next(iter(client.parts))]


def _settle(setting: PartSetting | tuple[str, list[str]]) -> None:
    """Set the working folder and module path of a part's sender."""
    *_, folder, path = setting
    if sys.path != path:
        sys.path[:] = path
    if [folder] != _WHERE:
        os.chdir(folder)
        _WHERE[:] = [folder]


_WHERE: list[str] = []  # the current folder of this process


def _speak(client: Client) -> None:
    while (answer := client.answers.get()) is not None:
        try:
            send(client.link, *answer)
        except OSError:
            client.gone = True
            return
        del answer
    client.link.close()
