"""ProcessPool: persistent worker processes, for functions that hold the interpreter's lock.

Processes start when Blocks wait for them, or early by `warm_up`, all at once, and then serve every run. The pool has as
many as threads ask at the same time. Usually this is the number of granted cores. A step may ask for more parallel
calls, as far as memory allows. If no more processes can start, the pool continues with fewer. Processes beyond the
number of cores end after a while without work. All end with their parent, even if it is killed.
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
from penstock.runtime.processes.handle import PATIENCE, FunctionEnded, Unreadable, Untried, Worker, started
from penstock.runtime.processes.link import Late, Pickled
from penstock.runtime.processes.start import watch_forks
from penstock.runtime.processes.task import ProcessTask

__all__ = ["ProcessPool", "ProcessTask", "process_pool"]

_UNUSED = 60.0  # seconds without work after which a worker beyond the cores ends
_SHARE = 1 << 28  # granted bytes of memory per worker; a worker uses a fifth of it


# called for each Block with process, step, start, seconds
worker_done: Callable[[int, str, float, float], None] | None = None


class ProcessPool:
    """Worker processes. Each serves up to `at_once` threads, one after the other. Thread-safe."""

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
        in_child(self._begin)  # the workers belong to the parent

    def _begin(self) -> None:
        self._lock = threading.RLock()  # reentrant: a garbage collection inside a critical section may call this pool
        self._free = threading.Condition(self._lock)
        self._idle: list[Worker] = []
        self._workers: set[Worker] = set()  # idle or busy
        self._forgotten: deque[int] = deque()
        self._waiting = 0  # number of threads
        self._starting = 0
        self._failed: Exception | None = None  # error of the last processes that did not start
        self._closed = 0  # number of calls of `close`

    # -- Blocks

    def run(self, task: ProcessTask, block: Block, numbers: Numbers, kinds: Decided, *, alone: bool = False) -> Stretch:
        """Run a Block in a worker.

        If the worker dies, the Block is run again, and then in halves, until the element that kills workers is found.
        If the Block exceeds its time, each element is run alone.

        Args:
            task: The transforms.
            block: The elements.
            numbers: The numbers of the elements.
            kinds: The decided types of the results.
            alone: If True, the Block is one element of a Block that exceeded its time.
        """
        codes: list[int | None] = []
        by_value = False
        packed: Pickled | None = None
        again = False
        while len(codes) < 2:
            try:
                packed = packed or Pickled.of(*pack((portable(block), kinds), by_value=by_value))
            except Exception as error:
                return self._in_halves(task, block, numbers, kinds, unsendable(error))
            worker = self._take(task, block, again=again)
            again = True
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
            except FunctionEnded as ended:
                self._give_back(worker)
                raise ended.raised from None
            except (PenstockError, Fatal):  # the worker cannot load the transforms, or a transform itself failed
                self._give_back(worker)
                raise
            except MemoryError as error:  # no memory for the message of the worker
                self._lose(worker)
                annotate(error, Context(task.label, task.where))
                raise
            except BaseException:  # after an interrupt, answers would no longer match questions
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
        """Run the halves of a Block, one after the other. A single element fails."""
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
        """Start workers until there are `count`, without waiting for them. 0: the number of cores."""
        with self._lock:
            self._begin_more((count or self._cpus) - len(self._workers) - self._starting)

    def ready(self) -> bool:
        """Return True if as many workers as cores have started."""
        return len(self._workers) >= self._cpus

    def size(self) -> int:
        """Return the number of workers."""
        return len(self._workers)

    def _take(self, task: ProcessTask, block: Block, *, again: bool) -> Worker:
        """Wait for a worker that is free. `again`: the Block was sent to another one before."""
        with self._lock:
            if not self._waiting:
                self._failed = None  # an old error, from before this wait
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
        """Return a busy worker that may get a Block in advance, or None. Dead workers are replaced."""
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
        """Mark a worker as idle from now on, and return the present time."""
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
        """Release a lost worker. Its last user ends it."""
        with self._lock:
            worker.users -= 1
            gone = not worker.users and worker not in self._workers
            self._free.notify_all()  # a worker has room, or the last one was lost
        if gone:
            worker.end()

    def forget(self, number: int) -> None:
        """Drop transforms that no run uses any more. Workers are told with their next task.

        The garbage collector may call this at any place, so it takes no lock.
        """
        self._forgotten.append(number)

    def close(self) -> None:
        """End idle workers, and workers that are starting."""
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
    """Return the pool of this process."""
    with _lock:
        if not _shared:
            _shared.append(ProcessPool(granted_cpus()))
            atexit.register(_shared[0].close)
        return _shared[0]
