"""Worker: the handle of one worker process in its parent."""

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
from penstock.block.shared_memory import Region, RegionOwner, SharedMemory
from penstock.block.transport import unpack
from penstock.errors import Context, FailedPreconditionError, PenstockError
from penstock.physical.stretch import Fatal, Stretch
from penstock.runtime.counts import CLOCKS
from penstock.runtime.processes.failures import mistaken, not_started
from penstock.runtime.processes.link import EMPTY, SMALL, Late, Link, Message, Pickled, possible
from penstock.runtime.processes.start import Process, births, search_path

if TYPE_CHECKING:
    from penstock.runtime.processes.task import ProcessTask

_START = 60.0  # longest start of a process in seconds
_PREPARE = 300.0  # longest import of the modules of a function in seconds, if there is a time limit at all


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a Block, with the seconds of its functions and the CPU seconds of the worker.

    `since` is the time at which the worker had finished earlier Blocks, on the performance counter.
    """

    made: Stretch
    seconds: float
    cpu_seconds: float
    since: float


class Unreadable(Exception):
    """The worker could not unpickle the Block."""


class Untried(Exception):
    """The worker was lost because of another thread before it began with this Block."""


class FunctionEnded(Exception):
    """A function raised an exception other than `Exception`, which ends the run on every executor."""

    def __init__(self, raised: BaseException) -> None:
        super().__init__()
        self.raised = raised


@dataclass(slots=True, eq=False)
class _Asked:
    """A Block that was sent to the process, and the region for the answer."""

    offered: Region | None = None


class Worker:
    """One process, with its loaded transforms and mapped regions.

    Several threads may use it at the same time. Their Blocks wait in the process, so the process has its next Block as
    soon as it is free. Each thread reads its own answer in turn.

    Methods raise three kinds of errors:

    - EOFError or OSError: the process has ended.
    - `Late`: the process exceeded its time, and must end.
    - `Untried`: the process has ended, or must end, because of another thread's Block.
    """

    def __init__(self, memory: SharedMemory, make: Callable[[], Process] = Process) -> None:
        self._memory = memory
        self._owner = RegionOwner()
        self._mapped: dict[int, Region] = {}  # mapped by the process
        self.known: set[int] = set()  # transforms
        self.stale: deque[int] = deque()  # transforms that no thread will ask for again
        self.idle_since = 0.0  # on the monotonic clock; set by the pool
        self.users = 0  # threads; set by the pool
        self._lost = False
        self._losing = threading.RLock()  # separate from `_turn`, which may be held until the process was killed
        self._ready = False
        self._asked: deque[_Asked] = deque()  # in the order of the answers
        self._turn = threading.Condition()  # the turn to read an answer; never held while a thread sends
        self._sending = threading.RLock()  # one message after the other
        with births.lock:
            self.process = make()
            births.living.add(self)
        self._link = Link(self.process.socket)

    def wait_until_ready(self) -> None:
        """Wait until the process has started. Raises `Late` if this takes too long, or if the process was stopped."""
        deadline = time.monotonic() + _START
        self._wait(1.0, deadline)
        self._link.receive(deadline=deadline)
        self._ready = True

    def run(self, task: ProcessTask, packed: Pickled, numbers: Numbers) -> Answer:
        """Run the transforms of the task on a packed Block, after earlier Blocks of this process."""
        asked = _Asked()
        try:
            self._ask(asked, task, packed, numbers)
            CLOCKS.own.has_sent()
            since = self._come_to_turn(asked)
            answer = self._answer(task, asked, since)
        except (Unreadable, FunctionEnded, PenstockError, Fatal):
            self._next(asked)
            raise
        except BaseException as error:
            if self._lose() or not isinstance(error, (EOFError, OSError)):
                raise
            raise Untried from None
        self._next(asked)
        return answer

    def _ask(self, asked: _Asked, task: ProcessTask, packed: Pickled, numbers: Numbers) -> None:
        while not self._has_asked(asked, task, packed, numbers):
            with self._turn:
                self._turn.wait_for(lambda: self._lost or not self._asked)

    def _has_asked(self, asked: _Asked, task: ProcessTask, packed: Pickled, numbers: Numbers) -> bool:
        """Send a Block. Return False if the transforms must be sent first, which needs an idle process."""
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
            with suppress(ConnectionError):  # earlier answers of the process are read first
                self._tidy(deadline)
                asked.offered = self._region(task.expects, deadline)
                region = None if self._memory.scarce() else self._region(packed.nbytes, deadline)
                if region is not None:
                    packed.write(region.array)
                head = "run", task.number, numbers, _number(asked.offered)
                self._link.send(head, packed, _number(region), deadline=deadline)
        return True

    def _come_to_turn(self, asked: _Asked) -> float:
        """Wait for the answers of earlier Blocks, and return the end of this wait.

        The wait is no time of this Block.
        """
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
        """Let the next thread read its answer."""
        with self._turn:
            if self._asked and self._asked[0] is asked:
                self._asked.popleft()
                self._turn.notify_all()

    def _lose(self) -> bool:
        """Mark the process as lost. Return True if this is new. Other threads notice when the process has ended."""
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
            raise FunctionEnded(unpack(message.content, message.buffers()))
        task.expects = message.nbytes
        seconds, cpu_seconds = rest
        return Answer(self._made(message, asked), seconds, cpu_seconds, since)

    def _come(self) -> None:
        try:
            self.wait_until_ready()
        except Late:  # not caused by the Block
            raise EOFError from None

    def _tidy(self, deadline: float | None) -> None:
        """Tell the process to drop unused transforms and regions."""
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
        """Send the transforms. Their imports may take longer than an element, so they have another time limit."""
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
        """Wait until the process sends something or ends. Raises `Late` if it was stopped for `patience` seconds."""
        while not possible(self.process.socket.fileno(), deadline=time.monotonic() + patience):
            if self.process.stopped() or time.monotonic() > deadline:
                raise Late

    def _region(self, nbytes: int, deadline: float | None) -> Region | None:
        """Return a region of that size that the process has mapped, or None for small sizes or without memory."""
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
        """Let an idle process end by itself. `end` must follow."""
        self.process.socket.close()

    def kill(self, patience: float = 0.0) -> int | None:
        """End the process, unless it ends by itself, and return its exit status. Its users notice the end."""
        self._lose()
        status = self.process.end(patience)
        with self._turn:
            self._turn.notify_all()
        return status

    def end(self, patience: float = 0.0) -> int | None:
        """End the process and free its resources. It must have no users."""
        status = self.kill(patience)
        self.process.let_go()
        self._memory.forget(self._owner)
        return status

    def fit(self) -> bool:
        """Return True if the process runs. An idle process may have ended or have been stopped."""
        return not self._lost and self.process.popen.poll() is None and not self.process.stopped()


def _number(region: Region | None) -> int:
    return -1 if region is None else region.number


def _folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - the unchanged path
    except OSError:
        return os.sep


def _behind(seconds: float | None) -> float | None:
    """Return the time in `seconds` from now, on the monotonic clock."""
    return None if seconds is None else time.monotonic() + seconds


PATIENCE = 1.0  # seconds that processes get to end by themselves
_ATTEMPTS = 3  # for a process that fails by itself, because it would fail again
_FROM_OUTSIDE = 30  # for a process that another program ends, because the next one may survive
_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.5  # seconds before the next attempt: memory may be short for a moment
_SENT = {-getattr(signal, name) for name in ("SIGKILL", "SIGTERM", "SIGHUP") if hasattr(signal, name)}  # exit statuses


def started(make: Callable[[], Worker], wanted: Callable[[], bool], *, wait: bool = True) -> Worker:
    """Start a worker. If `wait` is True, return it when it is ready for its first task.

    The attempts end when `wanted()` is False. Raises FailedPreconditionError if no worker can start.
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
    """Return a worker, or an error with True if a signal from outside has ended or stopped the process."""
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
