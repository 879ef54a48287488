"""Scheduler: one pool of workers for the process; a free worker takes the runnable segment nearest to a consumer."""

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
from weakref import WeakSet

from penstock.forked import in_child, new_lock
from penstock.frames import tidied
from penstock.options import Options
from penstock.runtime.machine.granted import Queued, granted_cpus
from penstock.runtime.parking import ParkingLot, collecting, new_token
from penstock.trace.drawing import leave_generators_alone

_GIL = bool(getattr(sys, "_is_gil_enabled", lambda: True)())
PATIENCE = 0.05  # seconds that a worker may be in a user's generator, until another takes its place where one is needed
_EXIT_PATIENCE = 2.0  # seconds that interpreter exit waits for workers inside a user's function


class Runnable(Protocol):
    """What workers work on: a segment."""

    depth: int

    def runnable(self) -> bool:
        """Whether `step` has something to do; read without a lock."""

    def step(self) -> bool:
        """Do one piece of work; False if there was none after all."""

    def abort(self) -> None:
        """Start nothing any more, and wake everybody who waits."""


class _Row:
    """The segments of one depth, looked at in turn.

    There may be thousands, the inputs of an interleave: who looks begins with the one that was found last, which may
    have more to do. Those in front of it have made what they may, and come last.
    """

    def __init__(self) -> None:
        self.segments: list[Runnable] = []
        self._known: set[Runnable] = set()  # these, as each is taken away once more when it is closed
        self._next = 0

    def add(self, segment: Runnable) -> None:
        self.segments.append(segment)
        self._known.add(segment)

    def pick(self) -> Runnable | None:
        segments = self.segments  # a garbage collection in here may close runs, and take some away
        if len(segments) == 1:
            only = segments[0]
            return only if only.runnable() else None
        begin = self._next
        for places in (range(begin, len(segments)), range(begin)):
            for at in places:
                if at >= len(segments):
                    break
                segment = segments[at]
                if segment.runnable():
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
    """The segments of one run. Owns their work: after `close` no worker is inside any of them.

    Contract: (1) `add` makes a segment known to the workers; (2) `abort` never blocks and may be called from anywhere,
    also by the garbage collector inside a worker; (3) `close` aborts, waits until the last worker has left, and then
    lets go of what the stages hold. Called on a worker, which may be inside itself, or by a garbage collection, it does
    not wait: the last one to leave does the rest. (4) No more than `limit` workers are inside at once, where it is
    given. (5) In a forked child what workers had begun is `foreign`: they are the parent's, nobody can wait for them,
    and their locks may be taken.
    """

    def __init__(self, scheduler: Scheduler, limit: int | None = None) -> None:
        self._scheduler = scheduler
        self._limit = limit
        self._rows: dict[int, _Row] = {}  # by their depth
        self._depths: list[int] = []  # sorted
        self.workers = 0  # threads it wants
        self.active = 0  # workers inside, counted under the scheduler's lock
        self.closed = False
        self.foreign = False
        self.then: Callable[[], None] | None = None  # what the last worker to leave has to do
        _scopes.add(self)

    def add(self, segment: Runnable, workers: int = 1) -> None:
        """Make a segment known; at least so many workers are wanted from now on."""
        with self._scheduler.lock:
            row = self._rows.get(segment.depth)
            if row is None:
                row = self._rows[segment.depth] = _Row()
                bisect.insort(self._depths, segment.depth)
            row.add(segment)
            self.workers = max(self.workers, workers)
            if self.closed:
                segment.abort()
                return
            self._scheduler.serve(self)  # inside the lock: a scope that is closed meanwhile must not come back
        self._scheduler.start_recruits()

    def want(self, workers: int) -> None:
        """Have so many workers; those too many leave when they have done what they are at."""
        with self._scheduler.lock:
            self.workers = workers
            if not self.closed and any(row.segments for row in self._rows.values()):
                self._scheduler.serve(self)
        self._scheduler.start_recruits()

    def remove(self, segment: Runnable) -> None:
        """Forget a segment that has ended (an interleave's input)."""
        with self._scheduler.lock:
            row = self._rows.get(segment.depth)
            if row is not None:
                row.remove(segment)

    def pick(self) -> Runnable | None:
        """The runnable segment nearest to the consumer; asked under the scheduler's lock."""
        for depth in self._depths:
            found = self._rows[depth].pick()
            if found is not None:
                return found
        return None

    def full(self) -> bool:
        """Whether no other worker may come in now; asked under the scheduler's lock."""
        return self._limit is not None and self.active >= self._limit

    def delays(self) -> dict[threading.Thread, float]:
        """As `Scheduler.delays`."""
        return self._scheduler.delays()

    def abort(self) -> None:
        with self._scheduler.lock:
            self.closed = True
            for row in self._rows.values():
                for segment in list(row.segments):
                    segment.abort()
            self._scheduler.leave(self)

    def close(self, then: Callable[[], None]) -> None:
        if self.foreign:
            return
        self.abort()
        with self._scheduler.lock:
            if self.active and (on_worker() or collecting()):
                self.then = then
                return
            self._scheduler.left.wait_for(lambda: not self.active)
        then()

    def leave_to_parent(self) -> None:
        """In a forked child."""
        self.foreign = self.active > 0 or any(row.segments for row in self._rows.values())


class _Local(threading.local):
    worker = False


_local = _Local()


def on_worker() -> bool:
    """Whether the calling thread is one of the pool's, or works for one that waits for it."""
    return _local.worker


def counts_as_worker(yes: bool) -> None:  # noqa: FBT001
    """Say whether the calling thread works for one of the pool's, which waits for it."""
    _local.worker = yes


class Scheduler:
    """The pool. Threads are started when there is work for them and end with the last run.

    No more are at work than the runs want, up to `cpus` for all of them, or as one run wants for itself where that is
    more: its functions wait. One that waits for another's result is not at work, and a thread more takes its place; so
    does one for a worker that has been in a user's generator for long, where somebody waits for a result: generators
    may wait for one another, or for what never comes. A `fixed` pool has up to `cpus` in all.
    """

    def __init__(self, cpus: int, *, fixed: bool = False) -> None:
        self._cpus = cpus
        self._fixed = fixed
        self.begin()

    def begin(self) -> None:
        """Without threads and runs, and with locks that nobody has: also in a forked child."""
        # Reentrant: a garbage collection inside our critical section may close an abandoned run. Entered by itself and
        # not through a Condition, whose __enter__ is Python: a Ctrl-C inside that would leave the lock taken for ever.
        self.lock = threading.RLock()
        self._work_comes = ParkingLot(self.lock)  # idle workers wait here
        self.left = ParkingLot(self.lock)  # closing runs, for workers to leave: a wake-up must reach its kind
        self._scopes: list[Scope] = []
        self._threads: set[threading.Thread] = set()
        self._recruits: deque[threading.Thread] = deque()  # to be started
        self._queued: dict[threading.Thread, Queued] = {}
        self._target = 0  # threads wanted at work
        self._idle = 0  # threads that look for work or wait for it
        self._waiting = 0  # threads inside a segment that wait for another's result
        self._outside: dict[int, float] = {}  # threads in a user's generator, and since when
        self._replaced: set[int] = set()  # those of them that count as waiting
        self._spare = 0  # the most of these lately: threads beyond the target, to be used again
        self._numbers = itertools.count(1)
        self._turn = 0

    def serve(self, scope: Scope) -> None:
        """Let workers work for a scope; `start_recruits` is to follow.

        All idle ones look at a run that is new: it may have work for each. Of a run that is known, where no more and no
        fewer are wanted, one looks at what is new: an interleave adds hundreds of segments a second, for each of which
        all idle workers would look around.
        """
        with self.lock:
            new = scope not in self._scopes
            if new:
                self._scopes.append(scope)
            if scope.closed:  # by a garbage collection in here: nobody would let go of it any more
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
        """Below the target somebody always looks for work; who finds some is followed by another."""
        if self._idle or len(self._threads) >= self._most(self._waiting):
            return
        thread = threading.Thread(target=self._work, name=f"penstock-worker-{next(self._numbers)}", daemon=True)
        self._threads.add(thread)
        self._idle += 1  # it looks as soon as it runs
        self._recruits.append(thread)

    def start_recruits(self) -> None:
        """Start the threads that are wanted, without the lock.

        Who starts a thread waits until it runs. A garbage collection that begins in there may close a run, which takes
        the lock.
        """
        while self._recruits:
            try:
                thread = self._recruits.popleft()
            except IndexError:  # another one was quicker
                return
            try:
                thread.start()
            except RuntimeError:  # the system gives no more: those there are have to do
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
        """Stop working for a scope; workers that nobody wants any more end."""
        with self.lock:
            if scope in self._scopes:
                self._scopes.remove(scope)
            self._aim()
            self._work_comes.unpark_all()

    def begin_waiting(self) -> None:
        """The calling worker, inside a segment, is to wait for what another has to do. Not under a segment's lock."""
        with self.lock:
            self._waiting += 1
            self._spare = max(self._spare, self._waiting)
            self._recruit()
            self._work_comes.unpark_one()
        self.start_recruits()

    def end_waiting(self) -> None:
        """It goes on."""
        with self.lock:
            self._waiting -= 1

    def go_outside(self, now: float) -> None:
        """The calling worker is to run a user's generator, which may take any time."""
        self._outside[threading.get_ident()] = now

    def come_back(self) -> bool:
        """It has; whether it was outside. What it waits for itself, or does for others meanwhile, is no such time.

        Who replaces looks into `_outside` behind its change, and we at the change behind ours.
        """
        if not self._outside:  # nor is this one, and it came back when it last was
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
        """Somebody waits for a result: others take the place of the workers that have been outside for long."""
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
        """Something became runnable: one idle worker looks, unless there are as many at work as are wanted.

        Those look when they have done what they are at. Who is idle says so before looking around, and we look for the
        idle after the change: one of us sees the other. That needs an order of all reads and writes, which Python's
        lock gives. Who has been woken already need not be woken for this.
        """
        if (self._work_comes.registered and self._at_work() < self._target) or not _GIL:
            with self.lock:
                self._work_comes.unpark_one()

    def threads(self) -> int:
        """Workers alive."""
        return len(self._threads)

    def delays(self) -> dict[threading.Thread, float]:
        """Seconds that each worker was ready to run and got no core."""
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
        """A thread's life: as long as it is wanted, or until an error comes up that no run has taken in."""
        counts_as_worker(True)
        leave_generators_alone()
        thread = threading.current_thread()
        self._queued[thread] = Queued()
        try:
            self._take_steps(thread)
        finally:
            if thread in self._threads:  # ended by an error: at work for ever, if nobody took its place
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
        looking = True  # counted as idle since it was recruited
        while True:
            with self.lock:
                self._idle += not looking
                looking = False
                found = None
                try:
                    while len(self._threads) <= self._most(self._spare):
                        self._work_comes.register(token)  # before looking: see `wake`
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
                scope.active += 1
            try:
                self.start_recruits()
                tidied(segment.step)
            finally:
                del segment, found
                with self.lock:
                    if scope.full():
                        self._work_comes.unpark_one()  # others have passed it by, and this one may go elsewhere
                    scope.active -= 1
                    then = None
                    if scope.closed and not scope.active:
                        self.left.unpark_all()
                        then, scope.then = scope.then, None
                del scope
            if then is not None:
                then()
                del then

    def _most(self, waiting: int) -> int:
        """Threads there may be, when so many of them wait."""
        return self._target if self._fixed or not self._target else self._target + waiting

    def _at_work(self) -> int:
        return len(self._threads) - self._idle - self._waiting

    def _pick(self) -> tuple[Scope, Runnable] | None:
        """The runnable segment nearest to its consumer; runs take turns."""
        scopes = list(self._scopes)  # a garbage collection in here may close runs
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
        """At interpreter exit: abort all runs and wait a moment for workers to come home."""
        with self.lock:
            scopes = list(self._scopes)
            threads = list(self._threads)
        for scope in scopes:
            scope.abort()
        deadline = time.monotonic() + _EXIT_PATIENCE
        for thread in threads:
            if thread.is_alive():  # one may still have to be started
                thread.join(max(deadline - time.monotonic(), 0))


_pools: WeakSet[Scheduler] = WeakSet()
_scopes: WeakSet[Scope] = WeakSet()
_lock = new_lock()
_shared: list[Scheduler] = []


def scheduler() -> Scheduler:
    """The process's pool."""
    with _lock:
        if not _shared:
            _shared.append(_made(Scheduler(granted_cpus())))
        return _shared[0]


def scheduler_for(options: Options) -> Scheduler:
    """The pool that a run with these options works on: the process's, or a new one of the run's own."""
    size = options.threading.private_threadpool_size
    return scheduler() if size is None else _made(Scheduler(size or granted_cpus(), fixed=True))


def _made(pool: Scheduler) -> Scheduler:
    _at_exit()
    _pools.add(pool)
    return pool


@cache
def _at_exit() -> None:
    atexit.register(_shut_down)


@in_child
def _forget() -> None:
    """It has none of the threads, and perhaps their locks taken."""
    for scope in list(_scopes):
        scope.leave_to_parent()
    for pool in list(_pools):
        pool.begin()
    counts_as_worker(False)


def _shut_down() -> None:
    for pool in list(_pools):
        pool.shut_down()
