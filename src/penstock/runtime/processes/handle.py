"""Worker: one worker process as its parent sees it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.block.numbers import Numbers
from penstock.block.shared_memory import Owner, Region, SharedMemory
from penstock.block.transport import unpack
from penstock.errors import Context, FailedPreconditionError, PenstockError
from penstock.physical.stretch import Fatal, Stretch
from penstock.runtime.counts import CLOCKS
from penstock.runtime.processes.failures import mistaken, not_started
from penstock.runtime.processes.link import EMPTY, SMALL, Late, Link, Message, Packed, possible
from penstock.runtime.processes.start import Process, births, search_path

if TYPE_CHECKING:
    from penstock.runtime.processes.task import ProcessTask

_START = 60.0  # seconds that a process may take to start
_PREPARE = 300.0  # and to import what a function needs, where anything is bounded


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a Block, the seconds its functions took, and the CPU seconds of all that the worker did for it.

    The worker had nothing before it `since` then, by the performance counter.
    """

    made: Stretch
    seconds: float
    cpu_seconds: float
    since: float


class Unreadable(Exception):
    """The worker could not unpickle the Block."""


class Untried(Exception):
    """The worker was lost to somebody else before it came to this Block."""


class Ended(Exception):
    """A function raised what is no `Exception`, which ends the run on every executor."""

    def __init__(self, raised: BaseException) -> None:
        super().__init__()
        self.raised = raised


@dataclass(slots=True, eq=False)
class _Asked:
    """A Block that the process has been sent, and the region it may answer in."""

    offered: Region | None = None


class Worker:
    """One process, with the transforms and the regions it has been given.

    Several threads may use it at a time: what they ask for waits in the process, which so has its next Block as soon
    as it has done one, and each hears its own answer in its turn.

    EOFError or OSError from a method: the process is gone. `Late`: it was not done in time, and has to go. `Untried`:
    it is gone, or has to go, for what another thread has asked of it.
    """

    def __init__(self, memory: SharedMemory, make: Callable[[], Process] = Process) -> None:
        self._memory = memory
        self._owner = Owner()
        self._mapped: dict[int, Region] = {}  # by the process
        self.known: set[int] = set()  # transforms
        self.stale: deque[int] = deque()  # transforms that nobody will ask for
        self.idle_since = 0.0  # by the monotonic clock; the pool says
        self.users = 0  # threads; the pool says
        self._lost = False
        self._losing = threading.RLock()  # apart from `_turn`, which may be held until the process has been killed
        self._ready = False
        self._asked: deque[_Asked] = deque()  # in the order of the answers
        self._turn = threading.Condition()  # whose answer is next; never held while something is sent
        self._sending = threading.RLock()  # one message behind the other
        with births.lock:
            self.process = make()
            births.living.add(self)
        self._link = Link(self.process.socket)

    def wait_until_ready(self) -> None:
        """Until the process has started; `Late` if that takes too long, or somebody has stopped it."""
        deadline = time.monotonic() + _START
        self._wait(1.0, deadline)
        self._link.receive(deadline=deadline)
        self._ready = True

    def run(self, task: ProcessTask, packed: Packed, numbers: Numbers) -> Answer:
        """Have the process run the task's transforms on a packed Block, behind those it has been sent before."""
        asked = _Asked()
        try:
            self._ask(asked, task, packed, numbers)
            CLOCKS.own.has_sent()
            since = self._come_to_turn(asked)
            answer = self._answer(task, asked, since)
        except (Unreadable, Ended, PenstockError, Fatal):
            self._next(asked)
            raise
        except BaseException as error:
            if self._lose() or not isinstance(error, (EOFError, OSError)):
                raise
            raise Untried from None
        self._next(asked)
        return answer

    def _ask(self, asked: _Asked, task: ProcessTask, packed: Packed, numbers: Numbers) -> None:
        while not self._has_asked(asked, task, packed, numbers):
            with self._turn:
                self._turn.wait_for(lambda: self._lost or not self._asked)

    def _has_asked(self, asked: _Asked, task: ProcessTask, packed: Packed, numbers: Numbers) -> bool:
        """False where it has to have transforms first, for which it may have nothing else to answer."""
        with self._sending:
            self._check()
            if not self._ready:
                self._come()
            if task.number not in self.known:
                if self._asked:
                    return False
                self._prepare(task)
            with self._turn:
                deadline = None if self._asked else _behind(task.element_timeout)
                self._asked.append(asked)
            with suppress(ConnectionError):  # what it has answered before is read first
                self._tidy(deadline)
                asked.offered = self._region(task.expects, deadline)
                region = None if self._memory.scarce() else self._region(packed.nbytes, deadline)
                if region is not None:
                    packed.write(region.array)
                head = "run", task.number, numbers, _number(asked.offered)
                self._link.send(head, packed, _number(region), deadline=deadline)
        return True

    def _come_to_turn(self, asked: _Asked) -> float:
        """Wait until the others before it have their answers; when that is. It is no time that the Block takes."""
        began = time.perf_counter()
        with self._turn:
            self._turn.wait_for(lambda: self._lost or self._asked[0] is asked)
            self._check()
        since = time.perf_counter()
        CLOCKS.own.queued += since - began
        return since

    def _check(self) -> None:
        if self._lost:
            raise Untried

    def _next(self, asked: _Asked) -> None:
        """Its answer has come, if it has been asked for."""
        with self._turn:
            if self._asked and self._asked[0] is asked:
                self._asked.popleft()
                self._turn.notify_all()

    def _lose(self) -> bool:
        """It answers no more, or what nobody has asked; whether this is new. Others hear of it when it is ended."""
        with self._losing:
            new, self._lost = not self._lost, True
        return new

    def _answer(self, task: ProcessTask, asked: _Asked, since: float) -> Answer:
        deadline = _behind(task.element_timeout)
        message = self._link.receive(deadline=deadline)
        while message.head[0] == "larger":
            self._take_back(asked)
            if not self._sending.acquire(timeout=-1 if deadline is None else max(deadline - time.monotonic(), 0.0)):
                raise Late
            try:
                asked.offered = self._region(message.head[1], deadline)
                self._link.send(("into", _number(asked.offered)), deadline=deadline)
            finally:
                self._sending.release()
            message = self._link.receive(deadline=deadline)
        kind, *rest, gone = message.head
        for number in gone:
            self._memory.give_back(self._mapped[number])
        if kind == "unreadable":
            self._take_back(asked)
            raise Unreadable(rest[0])
        if kind == "mistaken":
            self._take_back(asked)
            raise mistaken(rest[0], rest[1], task.label, task.where)
        if kind == "ended":
            self._take_back(asked)
            raise Ended(unpack(message.content, message.buffers()))
        task.expects = message.nbytes
        seconds, cpu_seconds = rest
        return Answer(self._made(message, asked), seconds, cpu_seconds, since)

    def _come(self) -> None:
        try:
            self.wait_until_ready()
        except Late:  # nothing that the Block has to do with
            raise EOFError from None

    def _tidy(self, deadline: float | None) -> None:
        """Have the process forget what nobody needs any more."""
        while self.stale:
            number = self.stale.popleft()
            if number in self.known:
                self.known.discard(number)
                self._link.send(("forget", number), deadline=deadline)
        while self._owner.dropped:
            number = self._owner.dropped.pop()
            if self._mapped.pop(number, None) is not None:
                self._link.send(("drop", number), deadline=deadline)

    def _prepare(self, task: ProcessTask) -> None:
        """Send the transforms. What they import may take longer than an element, so other bounds hold."""
        patience = task.element_timeout
        deadline = None if patience is None else time.monotonic() + _PREPARE
        self._link.send(("transforms", task.number, _folder(), search_path()), task.packed, deadline=deadline)
        if patience is not None and deadline is not None:
            self._wait(patience, deadline)
        _, error = self._link.receive(deadline=deadline).head
        if error is not None:
            message = f"{task.label} could not be set up in a worker process:\n{error}"
            hint = "What its function imports must be there for other processes, too: a module on sys.path."
            raise FailedPreconditionError(message, hint=hint, context=Context(task.label, task.where))
        self.known.add(task.number)

    def _wait(self, patience: float, deadline: float) -> None:
        """Until the process says something, or ends; `Late` once it has been stopped for that long."""
        while not possible(self.process.socket.fileno(), deadline=time.monotonic() + patience):
            if self.process.stopped() or time.monotonic() > deadline:
                raise Late

    def _region(self, nbytes: int, deadline: float | None) -> Region | None:
        """A region of that size that the process has mapped, if so much is worth one, and can be had."""
        if nbytes <= SMALL:
            return None
        region = self._memory.take(self._owner, nbytes)
        if region is not None and region.number not in self._mapped:
            head = "region", region.number, region.nbytes
            self._link.send(head, EMPTY, -1, region.descriptor, deadline=deadline)
            region.sent()
            self._mapped[region.number] = region
        return region

    def _take_back(self, asked: _Asked) -> None:
        if asked.offered is not None:
            self._memory.give_back(asked.offered)

    def _made(self, message: Message, asked: _Asked) -> Stretch:
        memory = None
        if asked.offered is not None and message.region < 0:
            self._memory.give_back(asked.offered)
        elif asked.offered is not None:
            memory = self._memory.lend(asked.offered)
            if self._memory.scarce():
                memory = np.array(memory[: message.nbytes])
        return Stretch(*unpack(message.content, message.buffers(memory)))

    def dismiss(self) -> None:
        """Have an idle process end by itself; `end` has to follow."""
        self.process.socket.close()

    def kill(self, patience: float = 0.0) -> int | None:
        """End the process, if it does not end by itself; whoever uses it learns of that. The status it ended with."""
        self._lose()
        status = self.process.end(patience)
        with self._turn:
            self._turn.notify_all()
        return status

    def end(self, patience: float = 0.0) -> int | None:
        """The same, and let go of it: nobody uses it any more."""
        status = self.kill(patience)
        self.process.let_go()
        self._memory.forget(self._owner)
        return status

    def fit(self) -> bool:
        """Whether the process runs: it may have ended, or been stopped, while nobody needed it."""
        return not self._lost and self.process.popen.poll() is None and not self.process.stopped()


def _number(region: Region | None) -> int:
    return -1 if region is None else region.number


def _folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - a path as it is
    except OSError:
        return os.sep


def _behind(seconds: float | None) -> float | None:
    """The moment so many seconds from now, on the monotonic clock."""
    return None if seconds is None else time.monotonic() + seconds


PATIENCE = 1.0  # seconds that processes get to end by themselves
_ATTEMPTS = 3  # where a process fails by itself: it will again
_FROM_OUTSIDE = 30  # where somebody ends it, which says nothing about the next one
_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.5  # seconds before the next attempt: memory may have run out for a moment
_SENT = {-getattr(signal, name) for name in ("SIGKILL", "SIGTERM", "SIGHUP") if hasattr(signal, name)}  # statuses


def started(make: Callable[[], Worker], wanted: Callable[[], bool], *, wait: bool = True) -> Worker:
    """A new worker, ready for its first task if it is to `wait` for that.

    No further attempt is made when nobody wants it any more. Raises FailedPreconditionError where none can be had.
    """
    by_itself = from_outside = 0
    pause = _FIRST_PAUSE
    while True:
        found = _attempt(make, wait=wait)
        if isinstance(found, Worker):
            return found
        error, sent = found
        by_itself += not sent
        from_outside += sent
        if by_itself == _ATTEMPTS or from_outside == _FROM_OUTSIDE or not wanted():
            raise error
        if sent:
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def _attempt(make: Callable[[], Worker], *, wait: bool) -> Worker | tuple[PenstockError, bool]:
    """A worker, or why there is none, and whether that came from outside: by a signal that ends or stops processes."""
    try:
        worker = make()
    except Exception as error:
        return not_started(error, None), False
    if not wait:
        return worker
    try:
        worker.wait_until_ready()
    except Exception as error:
        late = isinstance(error, Late)
        stopped = late and worker.process.stopped()
        code = worker.end(0.0 if late else PATIENCE)
        return not_started(error, code), stopped or (code in _SENT and not late)
    return worker
