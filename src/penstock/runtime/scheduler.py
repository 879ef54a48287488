"""Scheduler: the pool of workers of this process. A free worker takes the runnable segment nearest to a consumer."""

from __future__ import annotations

import atexit
import bisect
import itertools
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Protocol
from weakref import WeakSet, finalize

from penstock.forked import in_child, new_lock
from penstock.frames import tidied
from penstock.options import Options
from penstock.runtime.machine.granted import Queued, granted_cpus
from penstock.runtime.parking import HandOver, ParkingLot, collecting, new_token
from penstock.trace.drawing import leave_generators_alone

_GIL = bool(getattr(sys, "_is_gil_enabled", lambda: True)())
PATIENCE = 0.05  # seconds after which another worker replaces one that is still in a generator of the user
_EXIT_PATIENCE = 2.0  # seconds that interpreter exit waits for workers inside functions of the user


class Runnable(Protocol):
    """The interface of a segment for workers."""

    depth: int
    hand_over: HandOver

    def runnable(self) -> bool:
        """Return True if `step` has work. Called without a lock."""

    def step(self) -> bool:
        """Do one piece of work. Return False if there was none."""

    def abort(self) -> None:
        """Start no more work, and wake all waiting threads."""


class _Row:
    """The segments of one depth, which are checked in turn.

    There may be thousands, such as the inputs of an interleave. The search begins with the segment that was found last,
    which may have more work. The segments before it have no room, and come last.
    """

    def __init__(self) -> None:
        self.segments: list[Runnable] = []
        self._known: set[Runnable] = set()  # the same segments; each segment is removed again when it is closed
        self._next = 0

    def add(self, segment: Runnable) -> None:
        self.segments.append(segment)
        self._known.add(segment)

    def pick(self) -> Runnable | None:
        segments = self.segments  # a garbage collection during this search may close runs and remove segments
        for at in itertools.chain(range(self._next, len(segments)), range(self._next)):
            segment = segments[at] if at < len(segments) else None
            if segment is not None and segment.runnable():
                self._next = at
                return segment
        return None

    def remove(self, segment: Runnable) -> None:
        if segment not in self._known:
            return
        self._known.discard(segment)
        at = self.segments.index(segment)
        del self.segments[at]
        if at < self._next:
            self._next -= 1


class Scope:
    """The segments of one run. After `close`, no worker is inside any of them.

    The contract has five rules:

    - `add` makes a segment known to the workers.
    - `abort` never waits, and may be called from any place, including a garbage collection inside a worker.
    - `close` aborts, waits until the last worker has left, and then calls `then` to release the stages. On a worker or
      in a
      garbage collection, `close` does not wait: the last worker that leaves calls `then`.
    - At most `limit` workers are inside at once, if there is a limit.
    - In a forked child, a scope with started work is `foreign`. Its workers belong to the parent, so no thread can wait
      for
      them, and their locks may be locked for ever.
    """

    def __init__(self, scheduler: Scheduler, limit: int | None = None) -> None:
        self.scheduler = scheduler
        self._limit = limit
        self._rows: dict[int, _Row] = {}  # by depth
        self._depths: list[int] = []  # sorted
        self.workers = 0  # number of wanted threads
        self.active = 0  # workers inside, counted under the lock of the scheduler
        self.closed = False
        self.foreign = False
        self.then: Callable[[], None] | None = None  # called by the last worker that leaves
        _scopes.add(self)

    def add(self, segment: Runnable, workers: int = 1) -> None:
        """Make a segment known. At least `workers` workers are wanted from now on."""
        with self.scheduler.lock:
            row = self._rows.get(segment.depth)
            if row is None:
                row = self._rows[segment.depth] = _Row()
                bisect.insort(self._depths, segment.depth)
            row.add(segment)
            self.workers = max(self.workers, workers)
            if self.closed:
                segment.abort()
                return
            self.scheduler.serve(self)  # inside the lock, so that a scope closed at the same time does not return
        self.scheduler.start_recruits()

    def want(self, workers: int) -> None:
        """Set the number of wanted workers. Surplus workers leave after their present task."""
        with self.scheduler.lock:
            self.workers = workers
            if not self.closed and any(row.segments for row in self._rows.values()):
                self.scheduler.serve(self)
        self.scheduler.start_recruits()

    def remove(self, segment: Runnable) -> None:
        """Remove a segment that has ended, such as an input of an interleave."""
        with self.scheduler.lock:
            row = self._rows.get(segment.depth)
            if row is not None:
                row.remove(segment)

    def pick(self) -> Runnable | None:
        """Return the runnable segment nearest to the consumer. Called under the lock of the scheduler."""
        for depth in self._depths:
            found = self._rows[depth].pick()
            if found is not None:
                return found
        return None

    def full(self) -> bool:
        """Return True if no other worker may come in. Called under the lock of the scheduler."""
        return self._limit is not None and self.active >= self._limit

    def delays(self) -> dict[threading.Thread, float]:
        """See `Scheduler.delays`."""
        return self.scheduler.delays()

    def abort(self) -> None:
        with self.scheduler.lock:
            self.closed = True
            for row in self._rows.values():
                for segment in list(row.segments):
                    segment.abort()
            self.scheduler.leave(self)

    def close(self, then: Callable[[], None]) -> None:
        if self.foreign:
            return
        self.abort()
        with self.scheduler.lock:
            if self.active and (on_worker() or collecting()):
                self.then = then
                return
            self.scheduler.left.wait_for(lambda: not self.active)
        then()

    def leave_to_parent(self) -> None:
        """Mark the scope as foreign in a forked child if it has work."""
        self.foreign = self.active > 0 or any(row.segments for row in self._rows.values())


class _Local(threading.local):
    worker = False


_local = _Local()


def on_worker() -> bool:
    """Return True if the calling thread is a worker of the pool, or works for one that waits for it."""
    return _local.worker


def counts_as_worker(yes: bool) -> None:  # noqa: FBT001
    """Set whether the calling thread works for a worker of the pool that waits for it."""
    _local.worker = yes


class Scheduler:
    """The pool of workers. Threads start when there is work for them, and end with the last run.

    The number of active workers is at most the wanted number of all runs, up to `cpus`. One run may want more for
    itself if its functions wait. A worker that waits for a result of another worker is not active, and an additional
    thread takes its place. The same holds for a worker that has been in a generator of the user for long, if another
    thread waits for a result. Generators may wait for each other, or for ever. A `fixed` pool has up to `cpus` threads
    in all.
    """

    def __init__(self, cpus: int, *, fixed: bool = False) -> None:
        self._cpus = cpus
        self._fixed = fixed
        self.begin()

    def begin(self) -> None:
        """Begin without threads and runs, and with new locks. Also called in a forked child."""
        # Reentrant: a garbage collection inside a critical section may close an abandoned run. The lock is entered
        # directly, not through a Condition: Condition.__enter__ is Python code, and a Ctrl-C inside it would leave the
        # lock locked for ever.
        self.lock = threading.RLock()
        self._work_comes = ParkingLot(self.lock)  # idle workers wait here
        # closing runs wait here for workers to leave, separately, so that a wake-up reaches the right kind
        self.left = ParkingLot(self.lock)
        self._scopes: list[Scope] = []
        self._threads: set[threading.Thread] = set()
        self._recruits: deque[threading.Thread] = deque()  # threads to start
        self._queued: dict[threading.Thread, Queued] = {}
        self._target = 0  # wanted number of active threads
        self._idle = 0  # threads that look for work or wait for it
        self._waiting = 0  # threads inside a segment that wait for results of others
        self._outside: dict[int, float] = {}  # threads in a generator of the user, with the start time
        self._replaced: set[int] = set()  # threads in generators that count as waiting
        self._spare = 0  # recent maximum of waiting threads: so many threads above the target are kept for reuse
        self._numbers = itertools.count(1)
        self._turn = 0

    def serve(self, scope: Scope) -> None:
        """Let workers work for a scope. The caller must call `start_recruits` afterwards.

        All idle workers look at a new run, which may have work for each. For a known run with the same number of wanted
        workers, only one looks. An interleave adds hundreds of segments per second, and each would otherwise wake all
        idle workers.
        """
        with self.lock:
            new = scope not in self._scopes
            if new:
                self._scopes.append(scope)
            if scope.closed:  # closed by a garbage collection in this call; nothing else would remove the scope
                self._scopes.remove(scope)
            before = self._target
            self._aim()
            self._recruit()
            if new or self._target != before:
                self._work_comes.unpark_all()
            else:
                self._work_comes.unpark_one()

    def _aim(self) -> None:
        self._target = self._wanted()
        self._spare = self._waiting

    def _recruit(self) -> None:
        """Make sure that one thread looks for work while fewer than the target are active.

        A thread that finds work recruits the next.
        """
        if self._idle or len(self._threads) >= self._most(self._waiting):
            return
        thread = threading.Thread(target=self._work, name=f"penstock-worker-{next(self._numbers)}", daemon=True)
        self._threads.add(thread)
        self._idle += 1  # it looks for work at once
        self._recruits.append(thread)

    def start_recruits(self) -> None:
        """Start the recruited threads, without the lock.

        Thread.start waits until the thread runs. A garbage collection in this wait may close a run, which takes the
        lock.
        """
        while self._recruits:
            try:
                thread = self._recruits.popleft()
            except IndexError:  # another thread was faster
                return
            try:
                thread.start()
            except RuntimeError:  # the system cannot start another thread: continue with fewer
                with self.lock:
                    self._idle -= 1
                    self._threads.discard(thread)
                    if not self._threads:
                        raise
            except BaseException:
                if thread.ident is None:
                    self._recruits.append(thread)
                raise

    def leave(self, scope: Scope) -> None:
        """Stop work for a scope. Surplus workers end."""
        with self.lock:
            if scope in self._scopes:
                self._scopes.remove(scope)
            self._aim()
            self._work_comes.unpark_all()

    def begin_waiting(self) -> None:
        """Announce that the calling worker, inside a segment, will wait for another worker.

        Not under a segment's lock.
        """
        with self.lock:
            self._waiting += 1
            self._spare = max(self._spare, self._waiting)
            self._recruit()
            self._work_comes.unpark_one()
        self.start_recruits()

    def end_waiting(self) -> None:
        """Announce the end of the wait."""
        with self.lock:
            self._waiting -= 1

    def go_outside(self, now: float) -> None:
        """Announce that the calling worker will run a generator of the user, which may take any time."""
        self._outside[threading.get_ident()] = now

    def come_back(self) -> bool:
        """Announce the end of the generator. Return True if the worker was in one.

        Waits of the worker, and its work for others, do not count as time in the generator. `replace_outside` reads
        `_outside` after its own change, and this method reads that change after its own.
        """
        if not self._outside:  # then this worker is not outside either
            return False
        thread = threading.get_ident()
        was = self._outside.pop(thread, None) is not None
        if thread in self._replaced:
            with self.lock:
                self._take_back(thread)
        return was

    def _take_back(self, thread: int) -> None:
        if thread in self._replaced:
            self._replaced.discard(thread)
            self._waiting -= 1

    def replace_outside(self) -> None:
        """Replace workers that have been in a generator for long. Called by a thread that waits for a result."""
        if not self._outside or self._at_work() < self._target:
            return
        long_ago = time.perf_counter() - PATIENCE
        with self.lock:
            for thread, since in list(self._outside.items()):
                if since < long_ago and thread not in self._replaced:
                    self._replaced.add(thread)
                    self._waiting += 1
                    if self._outside.get(thread) != since:  # it has just come back
                        self._take_back(thread)
            self._spare = max(self._spare, self._waiting)
            self._recruit()
            self._work_comes.unpark_one()
        self.start_recruits()

    def wake(self) -> None:
        """Wake one idle worker for new work, unless the wanted number is active.

        Active workers look for work after their present task. An idle worker registers before it looks, and this method
        reads the registrations after the change. One of the two therefore notices the other. This needs an order of all
        reads and writes, which the interpreter's lock gives. A worker that has been woken already needs no second
        wake-up.
        """
        if (self._work_comes.registered and self._at_work() < self._target) or not _GIL:
            with self.lock:
                self._work_comes.unpark_one()

    def threads(self) -> int:
        """Return the number of living workers."""
        return len(self._threads)

    def delays(self) -> dict[threading.Thread, float]:
        """Return the seconds that each worker was ready to run but had no core."""
        with self.lock:
            queued = dict(self._queued)
        return {thread: found.seconds() for thread, found in queued.items()}

    def _wanted(self) -> int:
        if self._fixed:
            return self._cpus if self._scopes else 0
        wanted = [scope.workers for scope in self._scopes]
        if not wanted:
            return 0
        return max(min(self._cpus, sum(wanted)), *wanted)

    def _work(self) -> None:
        """Run a thread until it is surplus, or until an error that no run has handled."""
        counts_as_worker(True)
        leave_generators_alone()
        thread = threading.current_thread()
        self._queued[thread] = Queued()
        try:
            self._take_steps(thread)
        finally:
            if thread in self._threads:  # after an error: without this the thread would count as active for ever
                with self.lock:
                    self._dismiss(thread)
                    self._recruit()
                self.start_recruits()

    def _dismiss(self, thread: threading.Thread) -> None:
        self._threads.discard(thread)
        self._queued.pop(thread, None)
        self._work_comes.unpark_all()

    def _take_steps(self, thread: threading.Thread) -> None:
        token = new_token()
        looking = True  # a recruited thread already counts as idle
        while True:
            with self.lock:
                self._idle += not looking
                looking = False
                found = None
                try:
                    while len(self._threads) <= self._most(self._spare):
                        self._work_comes.register(token)  # before the search: see `wake`
                        if self._at_work() < self._target and (found := self._pick()) is not None:
                            break
                        self._work_comes.park(token)
                finally:
                    self._work_comes.unregister(token)
                    self._idle -= 1
                if found is None:
                    self._dismiss(thread)
                    return
                self._recruit()
                scope, segment = found
                hand_over = segment.hand_over
                scope.active += 1
            try:
                self.start_recruits()
                tidied(segment.step)
            finally:
                del segment, found
                with self.lock:
                    if scope.full():
                        self._work_comes.unpark_one()  # other workers skipped the full scope, and this one may leave it
                    scope.active -= 1
                    then = None
                    if scope.closed and not scope.active:
                        self.left.unpark_all()
                        then, scope.then = scope.then, None
                del scope
            if then is not None:
                then()
                del then
            if self._at_work() == 1:  # otherwise the consumer competes with other workers anyway
                hand_over.wait()

    def _most(self, waiting: int) -> int:
        """Return the largest number of threads while `waiting` of them wait."""
        return self._target if self._fixed or not self._target else self._target + waiting

    def _at_work(self) -> int:
        return len(self._threads) - self._idle - self._waiting

    def _pick(self) -> tuple[Scope, Runnable] | None:
        """Return the runnable segment nearest to its consumer. Runs take turns."""
        scopes = list(self._scopes)  # a garbage collection in this search may close runs
        for i in range(len(scopes)):
            scope = scopes[(self._turn + i) % len(scopes)]
            if scope.full():
                continue
            segment = scope.pick()
            if segment is not None:
                self._turn += 1
                return scope, segment
        return None

    def shut_down(self) -> None:
        """Abort all runs at interpreter exit, and wait a moment for their workers."""
        with self.lock:
            scopes = list(self._scopes)
            threads = list(self._threads)
        for scope in scopes:
            scope.abort()
        deadline = time.monotonic() + _EXIT_PATIENCE
        for thread in threads:
            if thread.is_alive():  # a recruited thread may not have started
                thread.join(max(deadline - time.monotonic(), 0))


_pools: WeakSet[Scheduler] = WeakSet()
_scopes: WeakSet[Scope] = WeakSet()
_lock = new_lock()
_shared: list[Scheduler] = []


def scheduler() -> Scheduler:
    """Return the pool of the process."""
    with _lock:
        if not _shared:
            _shared.append(_made(Scheduler(granted_cpus())))
        return _shared[0]


def scheduler_for(options: Options) -> Scheduler:
    """Return the pool for a run with these options: the pool of the process, or a new one for the run."""
    size = options.threading.private_threadpool_size
    return scheduler() if size is None else _made(Scheduler(size or granted_cpus(), fixed=True))


def _made(pool: Scheduler) -> Scheduler:
    _at_exit()
    _pools.add(pool)
    return pool


@cache
def _at_exit() -> None:
    finalize(_shut_down, list).atexit = False  # the exit function of finalizers then runs after this one
    atexit.register(_shut_down)


@in_child
def _forget() -> None:
    """Reset all pools in a forked child, which has none of their threads, and may have locked locks."""
    for scope in list(_scopes):
        scope.leave_to_parent()
    for pool in list(_pools):
        pool.begin()
    counts_as_worker(False)


def _shut_down() -> None:
    for pool in list(_pools):
        pool.shut_down()
