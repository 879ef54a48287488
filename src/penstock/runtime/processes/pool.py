"""ProcessPool: worker processes that stay, for functions that hold the interpreter's lock.

Processes are started when Blocks wait for them, or ahead by `warm_up`, all at once, and serve every run after that.
There are as many as threads ask at the same time: the cores granted, unless a step asks for more parallel calls, and
memory allows them: where no more can be started, those there are have to do. Those beyond the cores end when they had
nothing to do for a while. All end with their parent, however it goes.
"""

from __future__ import annotations

import atexit
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial

from penstock.block.block import Block
from penstock.block.numbers import Numbers
from penstock.block.same_kind import Decided
from penstock.block.shared_memory import SharedMemory
from penstock.block.transport import pack, portable
from penstock.errors import Context, PenstockError, annotate
from penstock.forked import in_child, new_lock
from penstock.physical.stretch import Fatal, Stretch, join
from penstock.runtime.machine.granted import granted_cpus, granted_memory
from penstock.runtime.processes.failures import in_place, poison, too_late, unsendable
from penstock.runtime.processes.handle import PATIENCE, Ended, Unreadable, Untried, Worker, started
from penstock.runtime.processes.link import Late, Packed
from penstock.runtime.processes.start import watch_forks
from penstock.runtime.processes.task import ProcessTask

__all__ = ["ProcessPool", "ProcessTask", "process_pool"]

_UNUSED = 60.0  # seconds without work after which a worker beyond the cores ends
_SHARE = 1 << 28  # bytes of memory granted, for each of which there may be a worker; one takes a fifth of it


worker_done: Callable[[int, str, float, float], None] | None = None  # told of each Block: process, step, since, seconds


class ProcessPool:
    """Worker processes; each serves so many threads `at_once`, one after the other. Thread-safe."""

    def __init__(
        self, cpus: int, *, most: int | None = None, memory: SharedMemory | None = None, at_once: int = 1
    ) -> None:
        self.numbers = itertools.count()
        self._cpus = cpus
        self.at_once = at_once
        self._most = max(cpus, granted_memory() // _SHARE) if most is None else most
        self.memory = SharedMemory(granted_memory()) if memory is None else memory
        self._begin()
        watch_forks()
        in_child(self._begin)  # workers are the parent's

    def _begin(self) -> None:
        self._lock = threading.RLock()  # garbage collection inside our critical section may lead here
        self._free = threading.Condition(self._lock)
        self._idle: list[Worker] = []
        self._workers: set[Worker] = set()  # idle, or at work
        self._forgotten: deque[int] = deque()
        self._waiting = 0  # threads
        self._starting = 0
        self._failed: Exception | None = None  # why the last processes did not start
        self._closed = 0  # times

    # -- Blocks

    def run(self, task: ProcessTask, block: Block, numbers: Numbers, kinds: Decided, *, alone: bool = False) -> Stretch:
        """What becomes of a Block; `alone`: of an element of one that was too late.

        A Block whose worker dies is done once more, and then in halves, until the element that kills them is found. One
        that is too late is done again element by element.
        """
        codes: list[int | None] = []
        by_value = False
        packed: Packed | None = None
        while len(codes) < 2:
            try:
                packed = packed or Packed.of(*pack((portable(block), kinds), by_value=by_value))
            except Exception as error:
                return self._in_halves(task, block, numbers, kinds, unsendable(error))
            worker = self._take()
            started = time.perf_counter()
            try:
                answer = worker.run(task, packed, numbers)
            except Untried:
                self._leave(worker)
            except (EOFError, OSError):
                codes.append(self._lose(worker, PATIENCE))
            except Late:
                self._lose(worker)
                return self._too_late(task, block, numbers, kinds, alone=alone)
            except Unreadable as error:
                self._give_back(worker)
                if by_value:
                    return self._in_halves(task, block, numbers, kinds, unsendable(error))
                packed, by_value = None, True
            except Ended as ended:
                self._give_back(worker)
                raise ended.raised from None
            except (PenstockError, Fatal):  # the worker cannot prepare what it was sent, or made a mistake with it
                self._give_back(worker)
                raise
            except MemoryError as error:  # none for what the worker sends
                self._lose(worker)
                annotate(error, Context(task.label, task.where))
                raise
            except BaseException:  # interrupted between question and answer: they would no longer match
                self._lose(worker)
                raise
            else:
                self._give_back(worker)
                done = time.perf_counter()
                task.count(block.size, answer.seconds, answer.cpu_seconds, done - started)
                if worker_done is not None:
                    seconds = min(answer.seconds, done - answer.since)
                    worker_done(worker.process.popen.pid, task.label, answer.since, seconds)
                return answer.made
        return self._in_halves(task, block, numbers, kinds, poison(task.transforms, codes))

    def _in_halves(
        self, task: ProcessTask, block: Block, numbers: Numbers, kinds: Decided, error: PenstockError
    ) -> Stretch:
        """The Block's halves, one after the other; a single element fails."""
        if block.size == 1:
            return in_place(error, task.transforms, block, numbers)
        middle = block.size // 2
        parts = [(block.slice(*span), numbers.part(*span)) for span in ((0, middle), (middle, block.size))]
        return join([self.run(task, part, those, kinds) for part, those in parts])

    def _too_late(self, task: ProcessTask, block: Block, numbers: Numbers, kinds: Decided, *, alone: bool) -> Stretch:
        if alone:
            assert task.element_timeout is not None
            return in_place(too_late(task.transforms, task.element_timeout), task.transforms, block, numbers)
        parts = [(block.slice(row, row + 1), numbers.part(row, row + 1)) for row in range(block.size)]
        return join([self.run(task, part, those, kinds, alone=True) for part, those in parts])

    # -- workers

    def warm_up(self, count: int = 0) -> None:
        """Have so many workers started (0: as many as cores), without waiting for them."""
        with self._lock:
            self._begin_more((count or self._cpus) - len(self._workers) - self._starting)

    def ready(self) -> bool:
        """Whether as many workers as cores have been started."""
        return len(self._workers) >= self._cpus

    def size(self) -> int:
        """Workers there are."""
        return len(self._workers)

    def _take(self) -> Worker:
        with self._lock:
            if not self._waiting:
                self._failed = None  # while nobody waited
            self._waiting += 1
            try:
                while True:
                    while self._idle:
                        worker = self._idle.pop()
                        if worker.fit():
                            worker.users += 1
                            return worker
                        self._workers.discard(worker)
                        worker.end()
                    shared = self._shared()
                    if shared is not None:
                        shared.users += 1
                        return shared
                    if self._failed is None:
                        self._begin_more(self._waiting - self._starting)
                    elif not self._workers and not self._starting:
                        error, self._failed = self._failed, None
                        self._free.notify_all()
                        raise error
                    self._free.wait()
            finally:
                self._waiting -= 1

    def _shared(self) -> Worker | None:
        """A worker that is busy and may be given something to do next; those that have died are replaced."""
        if self.at_once == 1:
            return None
        missing = self._cpus - len(self._workers) - self._starting
        if missing > 0 and self._failed is None:
            self._begin_more(missing)
        found = [worker for worker in self._workers if worker.users < self.at_once and worker.fit()]
        return min(found, key=lambda worker: worker.users, default=None)

    def _begin_more(self, count: int) -> None:
        """Start processes, each in a thread that ends when the process is ready."""
        for _ in range(min(count, self._most - len(self._workers) - self._starting)):
            self._failed = None
            thread = threading.Thread(target=self._start, args=(self._closed,), name="penstock-start", daemon=True)
            self._starting += 1
            try:
                thread.start()
            except BaseException:
                self._starting -= 1
                raise

    def _start(self, closed: int) -> None:
        worker = None
        try:
            worker = self._begin_worker(lambda: closed == self._closed or self._waiting > 0)
        except PenstockError as raised:
            error = raised
        with self._lock:
            self._starting -= 1
            if worker is None:
                self._failed = error
                self._free.notify_all()
            elif closed == self._closed or self._waiting:
                self._workers.add(worker)
                self._rests(worker)
                self._free.notify_all()
                return
        if worker is not None:
            worker.end()

    def _begin_worker(self, wanted: Callable[[], bool]) -> Worker:
        return started(partial(Worker, self.memory), wanted)

    def _rests(self, worker: Worker) -> float:
        """A worker has nothing to do from now on, which is the time that comes back."""
        worker.idle_since = time.monotonic()
        self._idle.append(worker)
        return worker.idle_since

    def _give_back(self, worker: Worker) -> None:
        unused = None
        with self._lock:
            while self._forgotten:
                number = self._forgotten.popleft()
                for other in self._workers:
                    other.stale.append(number)
            if worker.users > 1 or worker not in self._workers:
                self._leave(worker)
                return
            worker.users = 0
            now = self._rests(worker)
            self._free.notify()
            if len(self._workers) > self._cpus and now - self._idle[0].idle_since > _UNUSED:
                unused = self._idle.pop(0)
                self._workers.discard(unused)
        if unused is not None:
            unused.dismiss()
            unused.end(PATIENCE)

    def _lose(self, worker: Worker, patience: float = 0.0) -> int | None:
        status = worker.kill(patience)
        with self._lock:
            self._workers.discard(worker)
        self._leave(worker)
        return status

    def _leave(self, worker: Worker) -> None:
        """The last of its users to leave one that is lost lets go of it."""
        with self._lock:
            worker.users -= 1
            gone = not worker.users and worker not in self._workers
            self._free.notify_all()  # there is room at one, or it was the last
        if gone:
            worker.end()

    def forget(self, number: int) -> None:
        """No run uses these transforms any more; the workers hear of it when they have next something to do.

        Called by the garbage collector, wherever it runs: without a lock.
        """
        self._forgotten.append(number)

    def close(self) -> None:
        """End the workers that are idle, and those on their way."""
        with self._lock:
            self._closed += 1
            idle, self._idle = self._idle, []
            self._workers.difference_update(idle)
        for worker in idle:
            worker.dismiss()
        deadline = time.monotonic() + PATIENCE
        for worker in idle:
            worker.end(max(deadline - time.monotonic(), 0.0))


_lock = new_lock()
_shared: list[ProcessPool] = []


def process_pool() -> ProcessPool:
    """This process's workers."""
    with _lock:
        if not _shared:
            _shared.append(ProcessPool(granted_cpus()))
            atexit.register(_shared[0].close)
        return _shared[0]
