"""Segment: the part of a plan between two transfers of Blocks. Workers of the pool run it ahead of its consumer.

Any free worker takes a step. It pulls the next task from upstream (one worker at a time), does the work (many at a
time), and stores the result under the task's ticket. The consumer takes results in ticket order. The bytes of waiting
results are limited separately from the number of workers, so that one slow element does not idle the other workers.

A worker that waits for the next result of an upstream segment works for that segment during the wait. Each wait is thus
for work that some thread is doing, so a pool of any size cannot deadlock.
"""

from __future__ import annotations

import threading
import time
from functools import partial

from penstock.errors import PenstockError
from penstock.physical.memory import Overspent
from penstock.physical.stage import Stage, State
from penstock.physical.stretch import Stretch, join
from penstock.physical.stretch import fatal as end_of_run
from penstock.physical.transform import agreed
from penstock.runtime.ahead import AheadLimits
from penstock.runtime.autotune.driver import Driver
from penstock.runtime.block_sizer import may_wait
from penstock.runtime.counts import CLOCKS, Counts, TaskTimes
from penstock.runtime.lane import Lane
from penstock.runtime.observers import tell
from penstock.runtime.parking import HandOver, ParkingLot
from penstock.runtime.results import ResultCounts, Results
from penstock.runtime.scheduler import PATIENCE, Scope, on_worker
from penstock.runtime.task import Task, Work, Worked
from penstock.runtime.work import BatchWork


class Aborted(BaseException):
    """A run was closed while another thread pulled from it.

    It is a BaseException, because a step must not treat it as a failed element. A StopIteration would be wrong as
    well: `repeat()` would start its input again.
    """


class Segment(Worked):
    """A Stage whose results are computed ahead. See the module.

    `Results` stores the results and their order, `Counts` the measurements. The lane limits the workers inside and the
    waiting bytes. The segment itself decides which thread does the next work, and which threads wait for it.
    """

    def __init__(
        self,
        work: Work,
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
        for transform in work.transforms:
            transform.apart = True
        self.depth = depth
        self.lane = lane
        self.counts = Counts()
        self.alone = ordered  # otherwise the state contains a log that other threads extend
        self._scope = scope
        self._driver = driver
        self._lock = threading.RLock()  # see Scheduler for the kind of this lock and of the next two
        self._changed = ParkingLot(self._lock)  # workers wait here for work
        self.hand_over = HandOver(self._lock)  # consumers wait here for a result or the end
        self._results = Results(work.state(), ordered=ordered, inputs=work.inputs)
        # `parallelism` is that of this segment alone; the segments of a lane share its knobs
        self._limits = AheadLimits(self._results, lane, driver.memory.budget, parallelism, max_elements)
        self._pulling = False
        self._started = False
        self._left_to_workers = False
        self._fatal: BaseException | None = None  # ends the run, or is `Aborted`: not a failure of an element
        lane.join(self)

    @property
    def seen(self) -> bool:
        return False  # taking computed results has no side effects

    @property
    def seen_below(self) -> bool:
        """The value of the last pull. Only a pulling thread may ask the stages below."""
        if not self._has_looked:
            with self._lock:
                # The pulling thread will soon know the value. The caller may store the present answer.
                self._changed.wait_for(lambda: self._has_looked or self._closed or not self._pulling, PATIENCE)
                if self._has_looked:
                    return self._acts_below
                if self._pulling or self._closed:
                    return True  # until the value is known
                self._pulling = True
            try:
                self._look_below()
            finally:
                with self._lock:
                    self._pulling = False
                    self._tell()
                self._scope.scheduler.wake()
        return self._acts_below

    def _look_below(self) -> None:
        """Ask the stages below. This may make the stages of the next epoch, and fail."""
        look, acts = Stage.latest_look, self.acts or any(below.seen_below for below in self.inputs)
        news = not self._has_looked or acts != self._acts_below
        self._is_seen_below = look, acts
        if news:
            self.look_again()
            if self._changed.registered:
                self.nudge()

    @property
    def _has_looked(self) -> bool:
        return self._is_seen_below[0] is not None

    @property
    def _acts_below(self) -> bool:
        """True if pulling has side effects of the user, as of the last check."""
        return self._is_seen_below[1]

    @property
    def _closed(self) -> bool:
        return isinstance(self._fatal, Aborted)

    @property
    def may_grow(self) -> bool:
        return not self._results.ordered or super().may_grow

    @property
    def at_end(self) -> bool:
        results = self._results
        return results.complete and not results.waiting and self._fatal is None and self._stretch is None

    def statistics(self) -> ResultCounts:
        """Return approximate present counts."""
        return self._results.statistics()

    # -- the workers' side

    def runnable(self) -> bool:
        if self._pulling or self._results.complete or self.counts.busy >= self._limits.parallelism:
            return False
        return self.lane.gate.is_open and self._room()

    def _room(self) -> bool:
        return self._limits.has_room(seen=self._acts_below)

    def step(self) -> bool:
        gate = self.lane.gate
        with self._lock:
            if not self.runnable() or not gate.enter():
                return False
            self._pulling = True
            self.counts.enter()
        try:
            done = self._work_once()
        finally:
            if (kept_out := gate.leave()) is not None:
                self._scope.scheduler.wake()
                for segment in kept_out:
                    segment.nudge()
        if done > self._driver.due:
            self._driver.look(done)
        return True

    def _work_once(self) -> float:
        """Pull and run one task, and return the time of its end."""
        work = self.work
        self._size_blocks(work)
        times = TaskTimes(self.lane)
        task, fatal = self._pulled(times.started)
        times.pulled()
        if task is None:
            done = times.stop()
            self._finish(fatal, times.waited)
            return done
        in_turn = self.lane.at_once > 1  # a worker process with several tasks must get them in order
        with self._lock:
            self._results.begin(task)
            self._results.complete = self._results.complete or work.over
            if not in_turn:
                self._let_pull()
        if in_turn:
            times.clock.sent = self._pull_on
        elif not self.lane.reads:
            self._scope.scheduler.wake()  # another worker may pull while this one works
        made: Stretch | None = None
        try:
            made = work.run(task)
        except Exception as error:  # failures of elements are in the result instead
            fatal = end_of_run(error, self.label, self.where)
        except BaseException as error:
            fatal = error
        if in_turn:
            times.clock.has_sent()
        done = times.stop()
        if made is not None and any(work.transforms[place].decided != kind for place, kind in made.kinds):
            made.again = partial(work.again, task)
        try:
            if fatal is None:
                seconds, cpu = times.run
                work.observe(task, made, seconds, cpu)
            self.lane.want = work.sizer.want
            tell(self._driver.instrument, self.label, times.started, done)
        except Exception as error:  # without this, an error of an instrument would leave the task open for ever
            fatal = fatal or end_of_run(error, self.label, self.where)
        ticket, inputs = task.ticket, task.span[1]
        del task
        with self._lock:
            self._done(ticket, inputs, made, fatal, times, done)
        if work.over:
            self._leave()
        elif self._left_to_workers:
            self._close_if_left()
        return done

    def _size_blocks(self, work: Work) -> None:
        """Set the size of the next task."""
        lane, sizer = self.lane, work.sizer
        knobs = lane.knobs
        if knobs.executor == "thread":
            left = lane.elements - work.count() + work.start if may_wait(work.transforms) else 0
            sizer.aim(knobs.block_seconds, knobs.parallelism, max(left, 0) or None, self._driver.memory.budget.total)
        else:
            sizer.seconds = knobs.block_seconds
        if not self._results.begun:
            sizer.resume(lane.want)

    def _pulled(self, started: float) -> tuple[Task | None, BaseException | None]:
        """Return the next task, or None with an optional error that ends the run."""
        outside = False
        try:
            if self._is_seen_below[0] is not Stage.latest_look:
                self._look_below()
            seen = self._acts_below
            self.work.most = self._may_make() if seen else None
            outside = seen and self.work.upstream.seen
            if outside:
                self._scope.scheduler.go_outside(started)
            return self.work.pull(), None
        except Exception as error:  # failures of elements are tasks
            return None, end_of_run(error, self.label, self.where)
        except BaseException as error:
            return None, error
        finally:
            if outside:
                self._scope.scheduler.come_back()

    def _may_make(self) -> int | None:
        """Return the number of results that the next task may compute if pulling has side effects. None: no limit.

        If each pull has a side effect, the number is one. Functions are called for whole Blocks here, unless the user
        has set the number of results ahead.
        """
        upstream = self.work.upstream
        if upstream.seen or (isinstance(self.work, BatchWork) and upstream.seen_below):
            return 1
        with self._lock:  # a result that is being stored counts neither as computed nor as in progress
            return self._limits.of_task()

    def _let_pull(self) -> None:
        self._pulling = False
        if self._changed.registered:
            self._changed.unpark_all()

    def _pull_on(self) -> None:
        with self._lock:
            self._let_pull()
        self._scope.scheduler.wake()

    def _done(
        self,
        ticket: int,
        inputs: int,
        made: Stretch | None,
        fatal: BaseException | None,
        times: TaskTimes,
        now: float,
    ) -> None:
        """Record the end of a task. The worker leaves."""
        counts = self.counts
        counts.leave()
        self._results.finish(inputs)
        if self.lane.reads:  # pulling is the work
            counts.worked(inputs, times.pull, (0.0, 0.0), times.waited)
        else:
            counts.worked(inputs, times.run, times.pull, times.waited)
        if made is not None:
            try:
                self._store(ticket, made)
            except PenstockError as error:  # larger than the whole budget
                fatal = Overspent(error)
        if fatal is not None:
            self._die(fatal)
        if not counts.is_full and not self._room():
            counts.full(now)
        self._tell()

    def _store(self, ticket: int, made: Stretch) -> None:
        size = nbytes = 0
        results, counts, block = self._results, self.counts, made.block
        if block is not None:
            size, nbytes = block.size, block.nbytes
            if nbytes > self._driver.memory.budget.total:
                self._driver.memory.check_fits(nbytes, self.label, self.where, elements=size)
        results.put(ticket, made, nbytes)
        counts.made(size, nbytes)
        counts.hold(results.nbytes)
        self.lane.ask(results.mean, max(self._limits.wanted, 0) * counts.element_bytes)

    def _finish(self, fatal: BaseException | None, waiting: float) -> None:
        with self._lock:
            self.counts.worked(0, waiting=waiting)
            self.counts.leave()
            self._pulling = False
            self._results.complete = True
            if fatal is not None:
                self._die(fatal)
            self._tell()
        self._leave()

    def _leave(self) -> None:
        """Take the segment from the workers after its last pull."""
        self.lane.elements = self.work.count() - self.work.start
        if self.lane.reads:
            self._scope.remove(self)  # hundreds of inputs may wait for their turn after they have been read
        self._close_if_left()

    def _tell(self) -> None:
        """Wake waiting threads that have a reason. A needless wake-up would delay a working thread."""
        if self._changed.registered:
            self._changed.unpark_all()
        if self.hand_over.waiting.registered and (self._results.at_hand() or self._exhausted()):
            self.hand_over.call()

    def nudge(self) -> None:
        """Wake waiting workers, because the gate of the lane has opened or the check below has changed."""
        with self._lock:
            self._changed.unpark_all()

    def _die(self, fatal: BaseException) -> None:
        """Deliver nothing more than this error."""
        self._fatal = self._fatal or fatal
        self._results.complete = True

    def _close_if_left(self) -> None:
        """Close the work if `close` left this to the last worker inside."""
        if self._left_to_workers and not self.counts.busy:
            self.work.close()

    # -- the consumer's side

    def keep_ahead(self, elements: int) -> None:
        """Note that the user wants so many results ahead, if memory allows them."""
        self._limits.wanted = max(self._limits.wanted, elements)

    def start(self) -> None:
        super().start()
        self._enlist()

    def _enlist(self) -> None:
        """Register the segment with the workers."""
        if not self._started:
            self._started = True
            self._scope.add(self, 1 if self.lane.is_shared else self._driver.workers())

    def make(self, want: int) -> Stretch | None:
        if not self._started:
            self._enlist()
        if self._results.ready:
            with self._lock:
                made = self._taken(want)
            if made is not None:
                self._wake_for_room()
                return self._agreed(made)
        return self._awaited(want)

    def _wake_for_room(self) -> None:
        """Wake a worker, because there is room for further results."""
        if not self._results.complete:
            self._scope.scheduler.wake()

    def _agreed(self, made: list[Stretch]) -> Stretch:
        """Join the next results. Results with other decided types are computed again first."""
        for at, taken in enumerate(made):
            while not agreed(self.work.transforms, made[at].kinds):
                assert taken.again is not None
                made[at] = taken.again()
        return join(made)

    def _taken(self, want: int) -> list[Stretch] | None:
        """Return the next results, up to `want` elements, or None. Called under the lock."""
        results, counts = self._results, self.counts
        self.hand_over.answer()
        made = results.take()
        if made is None:
            return None
        # the number of results ahead is limited: a taken result counts as reached
        counted = self._acts_below and self._limits.wanted > 0
        taken = results.take_more(made, want) if results.ready and not counted else [made]
        counts.hold(results.nbytes)
        if counts.is_full and self._room():
            counts.not_full(time.perf_counter())
        return taken

    def _awaited(self, want: int) -> Stretch | None:
        """Wait for the next result and return it."""
        here, helper = CLOCKS.own, on_worker()
        before = here.aside
        self.lane.consumer = here.lane
        # a wait or other work does not count as time in a generator
        outside = helper and self._scope.scheduler.come_back()
        watches = helper and self.lane.is_shared
        if watches:
            self.lane.gate.watch(self)
        started = time.perf_counter()
        self.counts.waited_for(started)
        try:
            while True:
                worked = helper and self._may_help() and self.step()
                with self._lock:
                    made = self._taken(want)
                    exhausted = made is None and self._exhausted()
                if made is not None:
                    self._wake_for_room()
                    return self._agreed(made)
                if exhausted:
                    self._end()
                    return None
                if not worked:
                    self._sleep(helper=helper)
        finally:
            if watches:
                self.lane.gate.unwatch(self)
            now = time.perf_counter()
            if outside:
                self._scope.scheduler.go_outside(now)
            here.aside = before + now - started
            self.counts.not_waited_for(now)
            if now > self._driver.due:
                self._driver.look(now)

    def _may_help(self) -> bool:
        """Return True if a worker that waits for the next result may work here during the wait.

        If pulling has side effects, for example in a generator, a pull may last until the consumer has used the awaited
        result. While that result is in progress, the consumer must not pull.
        """
        return not self._acts_below or self._results.waiting == 0

    def _sleep(self, *, helper: bool) -> None:
        """Sleep until there is a result or work, or until a sample is due."""
        if helper:
            self._scope.scheduler.begin_waiting()
        try:
            with self._lock:
                changed = self._changed if helper else self.hand_over.waiting
                patience = self._driver.patience()
                patience = PATIENCE if patience is None else min(patience, PATIENCE)
                late = not changed.wait_for(partial(self._something, helper=helper), patience)
        finally:
            if helper:
                self._scope.scheduler.end_waiting()
        if late:  # no other thread has finished anything for a while
            self._scope.scheduler.replace_outside()
            self._driver.look(time.perf_counter())

    def _something(self, *, helper: bool) -> bool:
        if self._results.at_hand() or self._exhausted():
            return True
        return helper and self._may_help() and self.runnable()

    def _exhausted(self) -> bool:
        return self._fatal is not None or (self._results.complete and not self.counts.busy and not self._results.ready)

    def _end(self) -> None:
        """Raise the error of the run at the end, if there is one."""
        self._scope.remove(self)
        fatal, self._fatal = self._fatal, None
        if fatal is not None:
            self.abort()
            raise fatal

    # -- both

    def can_skip(self) -> bool:
        return self.work.can_skip()

    def pass_over(self, count: int) -> int:
        assert not self._started
        passed = self.work.skip(count)
        self._results.begin_at(self.work.state())
        return passed

    def place(self) -> State:
        if self._results.ordered:
            return self._results.place(self.work.start)
        with self._lock:
            return self._results.place(self.work.start)

    def go_to(self, place: State) -> None:
        below, done, first, start = place
        self.work.restore(below, [tuple(span) for span in done], [tuple(span) for span in first], start)
        self._results.begin_at(self.work.state(), self.work.pinned())

    def abort(self) -> None:
        with self._lock:
            self._fatal = Aborted()
            self._results.complete = True
            self._results.clear()
            self.counts.hold(0)
            self._tell()
        self.lane.retire(self)

    def close(self) -> None:
        """Wait until no worker is inside, then close everything upstream.

        A worker never waits here. The garbage collector may call this at any place inside a function of the user, for
        which the workers inside may wait. The last of them then closes the work.
        """
        self.abort()
        for stage in _segments_below(self.work.upstream):
            stage.abort()  # a worker that waits for the segment comes out
        self._scope.remove(self)
        with self._lock:
            self._left_to_workers = self.counts.busy > 0 and on_worker()
            if self._left_to_workers:
                return
            self._changed.wait_for(lambda: not self.counts.busy)
        self.work.close()


def _segments_below(stage: Stage) -> list[Segment]:
    found = [stage] if isinstance(stage, Segment) else []
    for below in stage.inputs:
        found.extend(_segments_below(below))
    return found
