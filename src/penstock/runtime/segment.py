"""Segment: the part of a plan between two hand-overs, run ahead of its consumer by the pool's workers.

Any free worker takes a step: it pulls the next task from upstream (one worker at a time), does the work (many at a
time), and leaves the result under the task's ticket. The consumer takes results in ticket order. What has been made and
not been taken is bounded in bytes, apart from the number of workers, so that one slow element does not idle the others.

A worker that waits for an upstream segment's next result works for that segment meanwhile. Waiting thus always is for
work that some thread is doing, and a pool of any size cannot deadlock.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from functools import partial

from penstock.errors import PenstockError
from penstock.physical.fatal import fatal as end_of_run
from penstock.physical.memory import Overspent
from penstock.physical.stage import Stage, State
from penstock.physical.stretch import Stretch
from penstock.runtime.autotune.driver import Driver
from penstock.runtime.bell import Bell
from penstock.runtime.clock import CLOCKS
from penstock.runtime.free_order import Log, OutOfTurn
from penstock.runtime.lane import Lane, Sums
from penstock.runtime.scheduler import PATIENCE, Scheduler, Scope, on_worker
from penstock.runtime.task import Task, Work
from penstock.runtime.work import BatchWork
from penstock.runtime.worked import Worked


class Aborted(BaseException):
    """A run that was closed while somebody still pulled from it.

    It is no failure of an element, and no end either, behind which an endless repetition would only begin anew.
    """


class Segment(Worked):
    """A Stage whose results are made ahead. See the module for how."""

    def __init__(
        self,
        work: Work,
        scheduler: Scheduler,
        scope: Scope,
        driver: Driver,
        lane: Lane,
        *,
        parallelism: int,
        ordered: bool,
        depth: int,
        max_elements: int = -1,
    ) -> None:
        super().__init__(work)
        self.depth = depth
        self._scheduler = scheduler
        self._scope = scope
        self._driver = driver
        self.lane = lane
        self._parallelism = parallelism  # of this segment alone; those of a lane have its knobs in common
        self._ordered = ordered
        self.alone = ordered  # else what was given is told by a log that others write
        self._max_elements = max_elements
        self._wanted = max_elements  # elements that the user wants ahead; none where that is left to us
        self._lock = threading.RLock()  # see Scheduler for both choices
        self._changed = Bell(self._lock)  # workers wait here, for what they may do
        self._arrived = Bell(self._lock)  # others, for a result or the end
        self._results: dict[int, tuple[Stretch, int]] = {}  # with their bytes
        self._after: dict[int, State] = {}
        self._spans: dict[int, list[int]] = {}
        self._delivered: set[int] = set()  # tickets beyond `_next`, in free order
        self._next = 0  # the first ticket not delivered
        self._tickets = 0  # tickets begun
        self._bytes = 0
        self._elements = 0
        self._in_work = 0  # elements that tasks at work take
        self._out = 0  # elements handed over with the one that the consumer is at
        self._mean = 0.0  # bytes of a result
        self._busy = 0
        self._pulling = False
        self._filling = False  # whether the last ticket needs further tasks: then there is room for them
        self._ended = False
        self._closed = False
        self._sums = Sums()
        self._busy_most = 0
        self._most = self._least = 0  # bytes held since somebody asked
        self._full_since: float | None = None  # it could make more and has no room
        self._waiting_since: float | None = None  # its consumer
        self._started = False
        self._left_to_workers = False
        self._seen = False  # whether somebody sees what is pulled, as it was when last asked ...
        self._known = False  # ... if ever
        self._fatal: BaseException | None = None  # no failure of an element: the end of the run
        self._before: State = work.state()  # upstream state before ticket `_next`
        self._base = 0  # number of the upstream element that comes first there
        self._log = Log()  # what was given, in free order
        self._replayed = 0  # elements that come in the order of an earlier run
        lane.join(self)

    @property
    def seen(self) -> bool:
        return False  # asking takes what workers have made

    @property
    def seen_below(self) -> bool:
        """As it was when something was pulled last: only who pulls may ask the stages below."""
        if not self._known:
            with self._lock:
                if self._pulling or self._closed:
                    return True  # until it is known
                self._pulling = True
            try:
                self._look_below()
            finally:
                with self._lock:
                    self._pulling = False
                    self._tell()
                self._scheduler.wake()
        return self._seen

    def _look_below(self) -> None:
        """Which may make the stages of the next epoch, and fail."""
        seen = self.acts or any(stage.seen_below for stage in self.inputs)
        if seen != self._seen or not self._known:
            self._seen, self._known = seen, True
            self.look_again()

    # -- the workers' side

    def runnable(self) -> bool:
        if self._pulling or self._ended or self._closed or self._busy >= self._parallelism:
            return False
        return (not self.lane.bounded or self.lane.open()) and self._room()

    def _room(self) -> bool:
        waiting = self._tickets - self._next - len(self._delivered)
        if waiting == 0 or self._filling:
            return True
        if 0 <= self._max_elements <= self._elements:
            return False
        if 0 < self._wanted <= self._elements + self._out and self._seen:
            return False
        in_work = waiting - len(self._results) + self._driver.memory.budget.given  # one more fits into what was given
        return self._bytes + in_work * self._mean < self.lane.limit

    def step(self) -> bool:
        lane = self.lane
        with self._lock:
            if not self.runnable() or (lane.bounded and not lane.enter()):
                return False
            self._pulling = True
            self._busy += 1
            if self._busy > self._busy_most:
                self._busy_most = self._busy
        try:
            done = self._work_once()
        finally:
            if lane.bounded and (watchers := lane.leave()) is not None:
                self._scheduler.wake()
                for segment in watchers:
                    segment.nudge()
        if done > self._driver.due:
            self._driver.look(done)
        return True

    def _work_once(self) -> float:
        """Pull and do one task; when that was done."""
        lane, work, here = self.lane, self.work, CLOCKS.own
        outer = here.aside, here.aside_cpu, here.lane
        here.aside = here.aside_cpu = 0.0
        here.lane = lane
        work.pace.seconds = lane.knobs.block_seconds
        if not self._tickets:
            work.pace.resume(lane.want)
        started = time.perf_counter()
        cpu = here.cpu(started)
        task = None
        fatal: BaseException | None = None
        outside = False
        try:
            self._look_below()
            work.most = self._may_make() if self._seen else None
            outside = self._seen and work.upstream.seen
            if outside:
                self._scheduler.go_outside(started)
            task = work.pull()
        except Exception as error:  # those of elements are tasks
            fatal = end_of_run(error, self.label, self.where)
        except BaseException as error:
            fatal = error
        if outside:
            self._scheduler.come_back()
        pulled = time.perf_counter()
        pulled_cpu = here.cpu(pulled)
        pull, pull_cpu, waiting = pulled - started - here.aside, pulled_cpu - cpu - here.aside_cpu, here.aside
        here.lane = None
        if task is None:
            here.aside, here.aside_cpu, here.lane = outer[0], outer[1] + pulled_cpu - cpu, outer[2]
            self._finish(fatal, waiting)
            return pulled
        with self._lock:
            self._begin(task)
        self._scheduler.wake()  # another worker may pull while this one works
        made: Stretch | None = None
        try:
            made = work.run(task)
        except Exception as error:  # those of elements are in their places
            fatal = end_of_run(error, self.label, self.where)
        except BaseException as error:
            fatal = error
        done = time.perf_counter()
        done_cpu = here.cpu(done)
        if fatal is None:
            work.observe(task, made, done - pulled, done_cpu - pulled_cpu)
        lane.want = work.pace.want
        here.aside, here.aside_cpu, here.lane = outer[0], outer[1] + done_cpu - cpu, outer[2]
        self._driver.instrument.span(self.label, started, done)
        ticket = task.ticket
        inputs = task.span[1]
        del task
        with self._lock:
            self._busy -= 1
            self._in_work -= inputs
            sums = self._sums
            sums.inputs += inputs
            sums.waiting += waiting
            if lane.reads:
                sums.run_seconds += pull
                sums.run_cpu += pull_cpu
            else:
                sums.pull_seconds += pull
                sums.pull_cpu += pull_cpu
                sums.run_seconds += done - pulled
                sums.run_cpu += done_cpu - pulled_cpu
            if made is not None:
                try:
                    self._store(ticket, made)
                except PenstockError as error:  # larger than all there is
                    fatal = Overspent(error)
            if fatal is not None:
                self._die(fatal)
            if self._full_since is None and not self._room():
                self._full_since = done
            self._tell()
        if self._left_to_workers:
            self._close_if_left()
        return done

    def _may_make(self) -> int | None:
        """Results that the next task may make, of what somebody sees: one, where pulling is what is seen.

        Functions are called here by Blocks, unless it was said how many results are wanted ahead.
        """
        upstream = self.work.upstream
        if upstream.seen or (isinstance(self.work, BatchWork) and upstream.seen_below):
            return 1
        return max((self._wanted - self._ahead()) // self._parallelism, 1) if self._wanted > 0 else None

    def _ahead(self) -> int:
        """Elements that are made, or being made, in front of what the consumer is at."""
        return self._elements + self._in_work + self._out

    def _begin(self, task: Task) -> None:
        self._pulling = False
        ticket, _, after, (first, count) = task
        if ticket == self._tickets:
            self._tickets += 1
            self._spans[ticket] = [first, count]
        else:
            self._spans[ticket][1] += count
        self._in_work += count
        self._filling = after is None
        if after is not None:
            self._after[ticket] = after
        if self._changed.listening:
            self._changed.ring()

    def _finish(self, fatal: BaseException | None, waiting: float) -> None:
        with self._lock:
            self._sums.waiting += waiting
            self._pulling = False
            self._busy -= 1
            self._ended = True
            if fatal is not None:
                self._die(fatal)
            self._tell()
        self._close_if_left()

    def _tell(self) -> None:
        """Who waits: a thread that wakes up for nothing takes its turn of the interpreter from one that works."""
        if self._changed.listening:
            self._changed.ring()
        if self._arrived.listening and (self._head() is not None or self._exhausted()):
            self._arrived.ring()

    def _die(self, fatal: BaseException) -> None:
        """Nothing more is delivered but this."""
        self._fatal = self._fatal or fatal
        self._ended = True

    def _close_if_left(self) -> None:
        """What `close` left to the last worker inside."""
        if self._left_to_workers and not self._busy:
            self.work.close()

    def _store(self, ticket: int, made: Stretch) -> None:
        nbytes = 0 if made.block is None else made.block.nbytes
        if made.block is not None:
            if nbytes > self._driver.memory.budget.total:
                self._driver.memory.check_fits(nbytes, self.label, self.where, elements=made.block.size)
            self._bytes += nbytes
            self._elements += made.block.size
            self._mean = nbytes if not self._mean else 0.9 * self._mean + 0.1 * nbytes
            self._sums.elements += made.block.size
            self._sums.nbytes += nbytes
            if self._bytes > self._most:
                self._most = self._bytes
            if self._wanted > 0 and self._sums.elements:
                self.lane.window.ask(self._wanted * self._sums.nbytes // self._sums.elements)
        self._sums.results += 1
        self._results[ticket] = made, nbytes

    # -- the consumer's side

    def keep_ahead(self, elements: int) -> None:
        """Its user wants so many results made ahead, if there is memory for them."""
        self._wanted = max(self._wanted, elements)

    def start(self) -> None:
        super().start()
        self._enlist()

    def _enlist(self) -> None:
        """Let the workers know."""
        if not self._started:
            self._started = True
            self._scope.add(self, self._driver.workers())

    def _head(self) -> int | None:
        if self._next in self._results:
            return self._next
        if not self._ordered and self._results and self._base >= self._replayed:
            return min(self._results)
        return None

    def _exhausted(self) -> bool:
        return self._closed or self._fatal is not None or (self._ended and not self._busy and not self._results)

    def make(self, want: int) -> Stretch | None:
        if not self._started:
            self._enlist()
        if self._results:
            with self._lock:
                ticket = self._head()
                made = None if ticket is None else self._deliver(ticket)
            if made is not None:
                self._scheduler.wake()  # there is room again
                return made
        return self._awaited()

    def _awaited(self) -> Stretch | None:
        """The next result, which is not there yet."""
        here = CLOCKS.own
        before = here.aside
        self.lane.consumer = here.lane
        self._waiting_since = started = time.perf_counter()
        try:
            return self._wait()
        finally:
            now = time.perf_counter()
            here.aside = before + now - started
            self._sums.starved += now - started
            self._waiting_since = None
            if now > self._driver.due:
                self._driver.look(now)

    def _wait(self) -> Stretch | None:
        helper = on_worker()
        watches = helper and self.lane.is_shared
        if watches:
            self.lane.watch(self)
        try:
            while True:
                worked = helper and self._may_help() and self.step()
                with self._lock:
                    ticket = self._head()
                    made = None if ticket is None else self._deliver(ticket)
                    exhausted = made is None and self._exhausted()
                if made is not None:
                    self._scheduler.wake()  # there is room again
                    return made
                if exhausted:
                    self._end()
                    return None
                if not worked:
                    self._sleep(helper=helper)
        finally:
            if watches:
                self.lane.unwatch(self)

    def _may_help(self) -> bool:
        """Whether a worker that waits for the next result may work here meanwhile.

        Where somebody sees what is made, a generator say, pulling may last until the consumer has had what it waits
        for: once that is under way, nothing more is pulled by the one who is to take it.
        """
        return not self._seen or self._tickets - self._next - len(self._delivered) == 0

    def _sleep(self, *, helper: bool) -> None:
        """Until there is something to take or to do, or it is time to look."""
        if helper:
            self._scheduler.begin_waiting()
        try:
            with self._lock:
                changed = self._changed if helper else self._arrived
                patience = self._driver.patience()
                patience = PATIENCE if patience is None else min(patience, PATIENCE)
                late = not changed.wait_for(partial(self._something, helper=helper), patience)
        finally:
            if helper:
                self._scheduler.end_waiting()
        if late:  # nothing has finished for so long that nobody else did
            self._scheduler.replace_outside()
            self._driver.look(time.perf_counter())

    def _something(self, *, helper: bool) -> bool:
        return self._head() is not None or self._exhausted() or (helper and self._may_help() and self.runnable())

    def _end(self) -> None:
        """What there is to say at the end: nothing, if it is one."""
        self._scope.remove(self)
        fatal, self._fatal = self._fatal, None
        if fatal is not None:
            self.abort()
            raise fatal
        if self._closed:
            raise Aborted

    # -- what the lane asks, without a lock

    def held(self) -> int:
        return self._bytes

    def held_between(self) -> tuple[int, int]:
        found = self._most, self._least
        self._most = self._least = self._bytes
        return found

    def busy(self) -> int:
        return self._busy

    def busy_most(self) -> int:
        found, self._busy_most = max(self._busy_most, self._busy), 0
        return found

    def sums(self, now: float) -> Sums:
        sums = replace(self._sums)
        for name, since in (("starved", self._waiting_since), ("full", self._full_since)):
            if since is not None:  # and still goes on
                setattr(sums, name, getattr(sums, name) + max(now - since, 0.0))
        return sums

    def nudge(self) -> None:
        """The lane has opened: who waits may help again."""
        with self._lock:
            self._changed.ring()

    def _deliver(self, ticket: int) -> Stretch:
        made, nbytes = self._results.pop(ticket)
        self._out = max(made.size - 1, 0)
        if made.block is not None:
            self._bytes -= nbytes
            self._elements -= made.block.size
            if self._bytes < self._least:
                self._least = self._bytes
        if self._full_since is not None and self._room():
            self._sums.full += time.perf_counter() - self._full_since
            self._full_since = None
        if self._ordered:
            self._pass_by()
            return made
        first, count = self._spans[ticket]
        self._log.add(first, count)
        self._delivered.add(ticket)
        while self._next in self._delivered:
            self._delivered.discard(self._next)
            self._pass_by()
        return made

    def _pass_by(self) -> None:
        """The first ticket not delivered is so no more."""
        ticket = self._next
        self._base += self._spans.pop(ticket)[1]
        self._before = self._after.pop(ticket)
        self._next = ticket + 1

    # -- both

    def can_skip(self) -> bool:
        return self.work.can_skip()

    def pass_over(self, count: int) -> int:
        assert not self._started
        passed = self.work.skip(count)
        self._before = self.work.state()
        return passed

    def place(self) -> State:
        if self._ordered:
            return [self._before, [], [], self.work.start + self._base]
        with self._lock:
            view = self._log.view(self._base)
            return [self._before, OutOfTurn(view), view, self.work.start + self._base]

    def go_to(self, place: State) -> None:
        below, done, first, start = place
        self.work.restore(below, [tuple(span) for span in done], [tuple(span) for span in first], start)
        self._replayed = self.work.pinned()
        self._before = self.work.state()

    def abort(self) -> None:
        with self._lock:
            self._closed = self._ended = True
            self._results.clear()
            self._bytes = 0
            self._tell()
        self.lane.retire(self, time.perf_counter())

    def close(self) -> None:
        """Wait until no worker is inside, then let go of everything upstream.

        A worker never waits here: the garbage collector may have called us anywhere inside a user's function, which the
        workers inside may be waiting for. The last of them lets go then.
        """
        self.abort()
        for stage in _segments_below(self.work.upstream):
            stage.abort()  # so that a worker waiting for them comes out
        self._scope.remove(self)
        with self._lock:
            self._left_to_workers = self._busy > 0 and on_worker()
            if self._left_to_workers:
                return
            self._changed.wait_for(lambda: not self._busy)
        self.work.close()


def _segments_below(stage: Stage) -> list[Segment]:
    found = [stage] if isinstance(stage, Segment) else []
    for below in stage.inputs:
        found.extend(_segments_below(below))
    return found
