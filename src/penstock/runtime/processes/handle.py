"""Worker: one worker process as its parent sees it."""

from __future__ import annotations

import os
import select
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.block.numbers import Numbers
from penstock.block.region import Owner, Region
from penstock.block.shared_memory import SharedMemory
from penstock.block.transport import unpack
from penstock.errors import Context, FailedPreconditionError
from penstock.physical.stretch import Stretch
from penstock.runtime.processes.failures import mistaken
from penstock.runtime.processes.link import EMPTY, SMALL, Late, Link, Message, Packed
from penstock.runtime.processes.start import Process, births, search_path

if TYPE_CHECKING:
    from penstock.runtime.processes.task import ProcessTask

_START = 60.0  # seconds that a process may take to start
_PREPARE = 300.0  # and to import what a function needs, where anything is bounded


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a Block, the seconds its functions took, and the CPU seconds of all that the worker did for it."""

    made: Stretch
    seconds: float
    cpu_seconds: float


class Unreadable(Exception):
    """The worker could not unpickle the Block."""


class Ended(Exception):
    """A function raised what is no `Exception`, which ends the run on every executor."""

    def __init__(self, raised: BaseException) -> None:
        super().__init__()
        self.raised = raised


class Worker:
    """One process, with the transforms and the regions it has been given. Used by one thread at a time.

    EOFError or OSError from a method: the process is gone. `Late`: it was not done in time, and has to go.
    """

    def __init__(self, memory: SharedMemory, make: Callable[[], Process] = Process) -> None:
        self._memory = memory
        self._owner = Owner()
        self._mapped: dict[int, Region] = {}  # by the process
        self.known: set[int] = set()  # transforms
        self.stale: deque[int] = deque()  # transforms that nobody will ask for
        self.idle_since = 0.0  # by the monotonic clock; the pool says
        self._ready = False
        with births.lock:
            self.process = make()
            births.living.add(self)
        self._link = Link(self.process.socket)

    def wait_until_ready(self) -> None:
        """Until the process has started; `Late` if that takes too long, or somebody has stopped it."""
        self._within(_START)
        self._wait(1.0)
        self._link.receive()
        self._ready = True

    def run(self, task: ProcessTask, packed: Packed, numbers: Numbers) -> Answer:
        """Have the process run the task's transforms on a packed Block."""
        if not self._ready:
            self._come()
        self._within(task.element_timeout)
        self._tidy()
        if task.number not in self.known:
            self._prepare(task)
            self._within(task.element_timeout)
        offered = self._region(task.expects)
        self._ask(task.number, packed, numbers, offered)
        message = self._link.receive()
        while message.head[0] == "larger":
            self._take_back(offered)
            offered = self._region(message.head[1])
            self._link.send(("into", _number(offered)))
            message = self._link.receive()
        kind, *rest, gone = message.head
        for number in gone:
            self._memory.give_back(self._mapped[number])
        if kind == "unreadable":
            self._take_back(offered)
            raise Unreadable(rest[0])
        if kind == "mistaken":
            self._take_back(offered)
            raise mistaken(rest[0], rest[1], task.label, task.where)
        if kind == "ended":
            self._take_back(offered)
            raise Ended(unpack(message.content, message.buffers()))
        task.expects = message.nbytes
        return Answer(self._made(message, offered), *rest)

    def _come(self) -> None:
        try:
            self.wait_until_ready()
        except Late:  # nothing that the Block has to do with
            raise EOFError from None

    def _within(self, seconds: float | None) -> None:
        self._link.deadline = None if seconds is None else time.monotonic() + seconds

    def _tidy(self) -> None:
        """Have the process forget what nobody needs any more."""
        while self.stale:
            number = self.stale.popleft()
            if number in self.known:
                self.known.discard(number)
                self._link.send(("forget", number))
        while self._owner.dropped:
            number = self._owner.dropped.pop()
            if self._mapped.pop(number, None) is not None:
                self._link.send(("drop", number))

    def _prepare(self, task: ProcessTask) -> None:
        """Send the transforms. What they import may take longer than an element, so other bounds hold."""
        patience = task.element_timeout
        self._within(None if patience is None else _PREPARE)
        self._link.send(("transforms", task.number, _folder(), search_path()), task.packed)
        if patience is not None:
            self._wait(patience)
        _, error = self._link.receive().head
        if error is not None:
            message = f"{task.label} could not be set up in a worker process:\n{error}"
            hint = "What its function imports must be there for other processes, too: a module on sys.path."
            raise FailedPreconditionError(message, hint=hint, context=Context(task.label, task.where))
        self.known.add(task.number)

    def _wait(self, patience: float) -> None:
        """Until the process says something, or ends; `Late` once it has been stopped for that long."""
        deadline = self._link.deadline
        assert deadline is not None
        while not _readable(self.process.socket.fileno(), patience):
            if self.process.stopped() or time.monotonic() > deadline:
                raise Late

    def _ask(self, number: int, packed: Packed, numbers: Numbers, offered: Region | None) -> None:
        region = None if self._memory.scarce() else self._region(packed.nbytes)
        if region is not None:
            packed.write(region.array)
        self._link.send(("run", number, numbers, _number(offered)), packed, _number(region))

    def _region(self, nbytes: int) -> Region | None:
        """A region of that size that the process has mapped, if so much is worth one, and can be had."""
        if nbytes <= SMALL:
            return None
        region = self._memory.take(self._owner, nbytes)
        if region is not None and region.number not in self._mapped:
            self._link.send(("region", region.number, region.nbytes), EMPTY, -1, region.descriptor)
            region.sent()
            self._mapped[region.number] = region
        return region

    def _take_back(self, offered: Region | None) -> None:
        if offered is not None:
            self._memory.give_back(offered)

    def _made(self, message: Message, offered: Region | None) -> Stretch:
        memory = None
        if offered is not None and message.region < 0:
            self._memory.give_back(offered)
        elif offered is not None:
            memory = self._memory.lend(offered)
            if self._memory.scarce():
                memory = np.array(memory[: message.nbytes])
        return Stretch(*unpack(message.content, message.buffers(memory)))

    def dismiss(self) -> None:
        """Have an idle process end by itself; `end` has to follow."""
        self.process.socket.close()

    def end(self, patience: float = 0.0) -> int | None:
        """Let go of the process, killed if it does not end by itself. The status it ended with."""
        status = self.process.end(patience)
        self.process.let_go()
        self._memory.forget(self._owner)
        return status

    def fit(self) -> bool:
        """Whether the process runs: it may have ended, or been stopped, while nobody needed it."""
        return self.process.popen.poll() is None and not self.process.stopped()


def _number(region: Region | None) -> int:
    return -1 if region is None else region.number


def _folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - a path as it is
    except OSError:
        return os.sep


def _readable(descriptor: int, seconds: float) -> bool:
    """Whether a socket has something to say within so many seconds."""
    if not hasattr(select, "poll"):
        return bool(select.select([descriptor], [], [], seconds)[0])
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
