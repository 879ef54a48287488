"""The pool: segments next to the consumer first, woken if there is work, stopped if they are not needed."""

import gc
import subprocess
import sys
import threading
import time
from collections import deque
from queue import SimpleQueue
from weakref import WeakSet

import pytest

import penstock as ps
from penstock.runtime import scheduler as scheduler_module
from penstock.runtime.machine.granted import granted_cpus
from penstock.runtime.parking import HandOver, new_token
from penstock.runtime.pausing import pausing
from penstock.runtime.scheduler import Scheduler, Scope, counts_as_worker, on_worker, scheduler_for
from penstock.runtime.scheduler import scheduler as shared

SECONDS = 30
HAND_OVER = HandOver(threading.RLock())


def nothing():
    """Release nothing: the run has no resources."""


class Steps:
    """A segment with a number of steps, which records the workers that did them."""

    hand_over = HAND_OVER

    def __init__(self, depth, count, log, gate=None):
        self.depth = depth
        self.left = count
        self.log = log
        self.gate = gate
        self.lock = threading.Lock()
        self.entered = threading.Event()
        self.done = threading.Event()
        self.aborted = False

    def runnable(self):
        return self.left > 0 and not self.aborted

    def step(self):
        self.entered.set()
        if self.gate is not None:
            assert self.gate.wait(SECONDS)
        with self.lock:
            if not self.left or self.aborted:
                return False
            self.left -= 1
            self.log.append((self.depth, on_worker()))
            if not self.left:
                self.done.set()
        return True

    def abort(self):
        self.aborted = True


class Once(Steps):
    """A segment for one worker: other workers cannot enter while one is inside."""

    offered = False

    def runnable(self):
        before, self.offered = self.offered, True
        return not before and super().runnable()


def joined(scheduler, threads):
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive()
    assert scheduler.threads() == 0


def test_the_segment_nearest_to_the_consumer_comes_first():
    scheduler, log, gate = Scheduler(1), [], threading.Event()
    scope = Scope(scheduler)
    first = Steps(5, 1, log, gate)
    scope.add(first, 1)  # keeps the only worker until all are there
    segments = [Steps(depth, 3, log) for depth in (2, 0, 1)]
    for segment in segments:
        scope.add(segment, 1)
    gate.set()
    for segment in (first, *segments):
        assert segment.done.wait(SECONDS)
    assert [depth for depth, _ in log] in ([5, 0, 0, 0, 1, 1, 1, 2, 2, 2], [0, 0, 0, 1, 1, 1, 2, 2, 2, 5])
    assert all(worker for _, worker in log)
    assert not on_worker()
    threads = list(scheduler._threads)
    scope.close(nothing)
    joined(scheduler, threads)


def test_runs_take_turns():
    scheduler, log, gate = Scheduler(1), [], threading.Event()
    scopes = [Scope(scheduler) for _ in range(2)]
    holding = Steps(0, 1, [], gate)
    scopes[0].add(holding, 1)
    segments = [Steps(number, 4, log) for number in (1, 2)]
    for scope, segment in zip(scopes, segments, strict=True):
        scope.add(segment, 1)
    gate.set()
    for segment in segments:
        assert segment.done.wait(SECONDS)
    order = [depth for depth, _ in log]
    assert {1, 2} == set(order[:3])  # neither waits for the other's end
    for scope in scopes:
        scope.close(nothing)


def test_a_run_that_may_have_no_other_worker_keeps_none_from_those_behind_it():
    scheduler, log, gate = Scheduler(2), [], threading.Event()
    narrow, other = Scope(scheduler, limit=1), Scope(scheduler)
    held, more = Steps(0, 1, [], gate), Steps(1, 1, [])
    narrow.add(held, 1)
    assert held.entered.wait(SECONDS)
    narrow.add(more, 1)  # always runnable, first in the row of runs, and closed to workers
    segment = Steps(0, 6, log)
    other.add(segment, 1)
    assert segment.done.wait(SECONDS)
    assert not more.entered.is_set()
    gate.set()
    assert more.done.wait(SECONDS)
    threads = list(scheduler._threads)
    narrow.close(nothing)
    other.close(nothing)
    joined(scheduler, threads)


def test_an_idle_worker_is_woken_when_something_becomes_runnable():
    scheduler, log = Scheduler(2), []
    scope = Scope(scheduler)
    segment = Steps(0, 0, log)
    scope.add(segment, 2)
    segment.left = 1
    scheduler.wake()
    assert segment.done.wait(SECONDS)
    scope.close(nothing)


class Disturbed(Steps):
    """A segment without work. The first check creates work elsewhere, like a garbage collection."""

    def __init__(self, disturb):
        super().__init__(1, 0, [])
        self.disturb = disturb

    def runnable(self):
        disturb, self.disturb = self.disturb, None
        if disturb is not None:
            disturb()
        return False


def test_what_becomes_runnable_while_the_only_worker_looks_is_not_missed():
    scheduler, log = Scheduler(1), []
    scope = Scope(scheduler)
    first = Steps(0, 0, log)

    def disturb():
        first.left = 1
        scheduler.wake()

    with scheduler.lock:
        for segment in (first, Disturbed(disturb), Steps(2, 0, log)):
            scope.add(segment, 1)
    assert first.done.wait(SECONDS)
    scope.close(nothing)


def test_a_run_that_ends_while_a_worker_looks_is_not_missed():
    scheduler, closed = Scheduler(1), threading.Event()
    scope = Scope(scheduler)

    def disturb():
        scope.close(closed.set)

    scope.add(Disturbed(disturb), 1)
    assert closed.wait(SECONDS)
    joined(scheduler, list(scheduler._threads))


def test_a_collection_that_closes_a_run_does_not_wait_for_its_workers():
    scheduler, gate, closed = Scheduler(1), threading.Event(), threading.Event()
    scope = Scope(scheduler)
    segment = Steps(0, 1, [], gate)
    scope.add(segment, 1)
    assert segment.entered.wait(SECONDS)

    class Owner:
        def __init__(self):
            self.itself = self

        def __del__(self):
            scope.close(closed.set)

    Owner()
    collector = threading.Thread(target=gc.collect)
    collector.start()
    collector.join(SECONDS)
    waited = collector.is_alive()
    assert not waited
    assert not closed.is_set()
    gate.set()
    assert closed.wait(SECONDS)


def test_a_worker_that_looks_survives_the_end_of_other_runs():
    scheduler, log, others = Scheduler(1), [], []

    def disturb():
        for other in others:
            other.close(nothing)

    scope, first = Scope(scheduler), Disturbed(disturb)
    first.depth = 0
    others += [Scope(scheduler) for _ in range(3)]
    with scheduler.lock:
        for found in [*others, scope]:
            found.add(Steps(9, 0, log), 1)
        others[0].add(first, 1)
        scheduler._turn = 0
    steps = Steps(1, 1, log)
    scope.add(steps, 1)
    assert steps.done.wait(SECONDS)
    scope.close(nothing)


class Counted(Steps):
    """Counts the checks for work."""

    asked = 0

    def runnable(self):
        Counted.asked += 1
        return super().runnable()


def test_thousands_of_segments_are_not_looked_at_for_each_step():
    """The inputs of an interleave have a step each, and stay until all steps are taken."""
    scheduler, log, count = Scheduler(1), [], 2000
    scope = Scope(scheduler)
    segments = [Counted(1, 1, log) for _ in range(count)]
    with scheduler.lock:
        for segment in segments:
            scope.add(segment, 1)
    for segment in segments:
        assert segment.done.wait(SECONDS)
    assert Counted.asked < 5 * count
    for segment in segments:
        scope.remove(segment)
        scope.remove(segment)
    scope.close(nothing)


class Held(Steps):
    """A segment with work for any number of workers, which stay inside until they are released."""

    def __init__(self, gate, inside):
        super().__init__(0, 1 << 30, [], gate)
        self.inside = inside

    def step(self):
        self.inside.release()
        return super().step()


def test_who_starts_a_worker_does_not_keep_the_lock(monkeypatch):
    """A collection in the new thread, before it runs, may close a run."""
    scheduler, started, real = Scheduler(2), [], threading.Thread.start

    def start(thread):
        if thread.name.startswith("penstock-worker"):
            other = threading.Thread(target=Scope(scheduler).abort)
            real(other)
            other.join(SECONDS)
            started.append(not other.is_alive())
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    scope, gate, inside = Scope(scheduler), threading.Event(), threading.Semaphore(0)
    scope.add(Held(gate, inside), 2)
    for _ in range(2):
        assert inside.acquire(timeout=SECONDS)
    scope.abort()
    gate.set()
    scope.close(nothing)
    assert started == [True, True]


def test_as_many_threads_as_are_wanted_up_to_the_cores_and_more_only_where_one_run_asks_for_them():
    scheduler, gate, inside = Scheduler(2), threading.Event(), threading.Semaphore(0)
    few, others, many = Scope(scheduler), Scope(scheduler), Scope(scheduler)
    segments = [Held(gate, inside) for _ in range(3)]
    for scope, segment, wanted, more, threads in zip(
        (few, others, many), segments, (1, 2, 5), (1, 1, 3), (1, 2, 5), strict=True
    ):
        scope.add(segment, wanted)
        assert all(inside.acquire(timeout=SECONDS) for _ in range(more))
        assert scheduler.threads() == threads
    for segment in segments:
        segment.abort()
    gate.set()
    others.close(nothing)
    threads = list(scheduler._threads)
    many.close(nothing)
    few.close(nothing)
    joined(scheduler, threads)


def test_one_segment_more_wakes_one_of_those_who_wait(monkeypatch):
    """An interleave opens one file after the other. Otherwise all workers would check for each file."""
    scheduler, gate, inside, asleep = Scheduler(4), threading.Event(), threading.Semaphore(0), threading.Semaphore(0)
    lot = scheduler._work_comes
    park = lot.park

    def counted(token):
        asleep.release()
        park(token)

    monkeypatch.setattr(lot, "park", counted)
    scope, first, second = Scope(scheduler), Held(gate, inside), Steps(0, 1, [])
    scope.add(first, 4)
    assert all(inside.acquire(timeout=SECONDS) for _ in range(4))
    threads = list(scheduler._threads)
    first.left = 0
    gate.set()
    assert all(asleep.acquire(timeout=SECONDS) for _ in range(4))
    with scheduler.lock:
        assert len(lot.registered) == 4
        scope.add(second, 4)
        assert len(lot.registered) == 3
    assert second.done.wait(SECONDS)
    assert asleep.acquire(timeout=SECONDS)
    with scheduler.lock:
        assert len(lot.registered) == 4
        scope.want(2)  # any two have to leave
        assert not lot.registered
    scope.close(nothing)
    joined(scheduler, threads)


def test_no_thread_is_started_for_work_that_is_not_there():
    scheduler = Scheduler(8)
    scope, segment = Scope(scheduler), Once(0, 1, [])
    scope.add(segment, 1_000_000)
    assert segment.done.wait(SECONDS)
    threads = list(scheduler._threads)
    scope.close(nothing)
    joined(scheduler, threads)
    assert len(threads) <= 2  # the one that found the work, and the one that looks for more
    assert next(scheduler._numbers) <= 3


def test_where_the_system_gives_no_more_threads_those_there_are_have_to_do(monkeypatch):
    scheduler, log, gate = Scheduler(8), [], threading.Event()
    scope, segment = Scope(scheduler), Steps(0, 20, log, gate)
    plain, started = threading.Thread.start, []

    def start(thread):
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        plain(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    scope.add(segment, 8)
    gate.set()
    assert segment.done.wait(SECONDS)
    scope.close(nothing)
    joined(scheduler, started)
    assert len(started) == 2


def test_the_pool_starts_again_after_it_had_ended():
    scheduler = Scheduler(1)
    for number in range(1, 4):
        scope, segment = Scope(scheduler), Steps(0, 2, [])
        scope.add(segment, 1)
        assert segment.done.wait(SECONDS)
        threads = list(scheduler._threads)
        assert [thread.name for thread in threads] == [f"penstock-worker-{number}"]
        scope.close(nothing)
        joined(scheduler, threads)


def test_closing_waits_for_the_worker_inside_and_then_lets_go():
    scheduler, gate, log = Scheduler(1), threading.Event(), []
    scope, segment = Scope(scheduler), Steps(0, 1, log, gate)
    scope.add(segment, 1)
    assert segment.entered.wait(SECONDS)
    let_go = threading.Event()
    closer = threading.Thread(target=scope.close, args=(let_go.set,), daemon=True)
    closer.start()
    with scheduler.lock:
        assert scope.active == 1
        assert not let_go.is_set()
    gate.set()
    assert let_go.wait(SECONDS)
    closer.join(SECONDS)
    assert scope.active == 0


def test_closing_on_a_worker_leaves_the_rest_to_the_last_one_inside():
    scheduler, let_go, after = Scheduler(1), threading.Event(), []

    class Closing(Steps):
        def step(self):
            scope.close(let_go.set)
            after.append(let_go.is_set())
            return super().step()

    scope = Scope(scheduler)
    scope.add(Closing(0, 1, []), 1)
    assert let_go.wait(SECONDS)
    assert after == [False]


def test_closing_on_a_worker_while_another_is_inside_leaves_the_rest_to_that_one():
    class Closing(Once):
        def step(self):
            assert held.entered.wait(SECONDS)
            scope.close(let_go.set)
            closers.put(threading.current_thread())
            return True

    scheduler, gate, let_go, closers = Scheduler(2), threading.Event(), threading.Event(), SimpleQueue()
    scope, held = Scope(scheduler), Once(0, 1, [], gate)
    scope.add(held, 2)
    threads = list(scheduler._threads)
    scope.add(Closing(1, 1, []), 2)
    closer = closers.get(timeout=SECONDS)
    closer.join(SECONDS)  # it is not needed any more
    assert (closer.is_alive(), scope.active, let_go.is_set()) == (False, 1, False)
    gate.set()
    assert let_go.wait(SECONDS)
    joined(scheduler, threads)


@pytest.mark.parametrize("when", ["step", "runnable", "close"])
def test_another_takes_the_place_of_a_worker_that_an_error_has_ended(when, monkeypatch):
    """Otherwise it would count as working, and a pool of one would do no more work."""

    def fails():
        raise RuntimeError(when)

    class Fails(Once):
        def runnable(self):
            if when == "runnable" and not self.offered:
                self.offered = True
                fails()
            return super().runnable()

        def step(self):
            if when == "close":
                scope.close(fails)
            else:
                fails()

    raised = SimpleQueue()
    monkeypatch.setattr(threading, "excepthook", raised.put)
    scheduler, segment = Scheduler(1), Steps(1, 1, [])
    scope, other = Scope(scheduler), Scope(scheduler)
    with scheduler.lock:
        scope.add(Fails(0, 1, []))
        other.add(segment)
    assert segment.done.wait(SECONDS)
    found = raised.get(timeout=SECONDS)
    assert str(found.exc_value) == when
    threads = [found.thread, *scheduler._threads]
    other.close(nothing)
    scope.close(nothing)
    joined(scheduler, threads)
    assert (scheduler._idle, scheduler._queued, list(scheduler._work_comes.registered)) == (0, {}, [])
    assert raised.empty()


def test_a_segment_added_to_a_closed_scope_is_aborted():
    scheduler = Scheduler(1)
    scope = Scope(scheduler)
    scope.close(nothing)
    segment = Steps(0, 3, [])
    scope.add(segment, 1)
    assert segment.aborted
    assert scheduler.threads() == 0


def test_shutting_down_ends_everything():
    scheduler = Scheduler(2)
    scope, segment = Scope(scheduler), Steps(0, 0, [])
    scope.add(segment, 2)
    threads = list(scheduler._threads)
    scheduler.shut_down()
    assert segment.aborted
    joined(scheduler, threads)


def test_shutting_down_waits_for_the_workers_to_come_home(monkeypatch):
    def join(timeout):
        gate.set()
        plain(timeout)
        waited.append((0 < timeout <= scheduler_module._EXIT_PATIENCE, worker.is_alive()))

    scheduler, gate, waited = Scheduler(1), threading.Event(), []
    scope, segment = Scope(scheduler), Steps(0, 1, [], gate)
    scope.add(segment)
    assert segment.entered.wait(SECONDS)
    [worker] = scheduler._threads
    plain = worker.join
    worker.join = join
    scheduler._threads.add(threading.Thread())  # which has not been started
    monkeypatch.setattr(scheduler_module, "_pools", WeakSet([scheduler]))
    scheduler_module._shut_down()
    assert waited == [(True, False)]
    assert segment.aborted


class Crowd:
    """A segment whose steps wait until `at_once` workers are inside."""

    hand_over = HAND_OVER

    depth = 0

    def __init__(self, count, at_once):
        self.left = count
        self.inside = self.most = 0
        self.lock = threading.Lock()
        self.full = threading.Event()
        self.done = threading.Event()
        self.at_once = at_once

    def runnable(self):
        return self.left > 0

    def step(self):
        with self.lock:
            if self.left <= 0:
                return False
            self.left -= 1
            self.inside += 1
            self.most = max(self.most, self.inside)
            if self.inside >= self.at_once:
                self.full.set()
        assert self.full.wait(SECONDS)
        with self.lock:
            self.inside -= 1
            if not self.left and not self.inside:
                self.done.set()
        return True

    def abort(self):
        self.left = 0


def test_no_more_workers_come_in_than_a_run_allows():
    scheduler = Scheduler(4)
    narrow, wide = Scope(scheduler, limit=2), Scope(scheduler)
    few, many = Crowd(40, 2), Crowd(40, 2)
    narrow.add(few, 4)
    wide.add(many, 4)
    assert few.done.wait(SECONDS)
    assert many.done.wait(SECONDS)
    assert few.most == 2
    threads = list(scheduler._threads)
    narrow.close(nothing)
    wide.close(nothing)
    joined(scheduler, threads)


def test_a_run_that_comes_wakes_all_the_workers_it_wants():
    """If others run as many as there are cores, no more are needed: the workers sleep."""
    scheduler = Scheduler(2)
    first, second = Scope(scheduler), Scope(scheduler)
    before, behind = Crowd(2, 2), Crowd(2, 2)
    first.add(before, 2)
    assert before.done.wait(SECONDS)
    deadline = time.monotonic() + SECONDS
    while len(scheduler._work_comes.registered) < 2:  # wait until both sleep, which they do not report
        assert time.monotonic() < deadline
    second.add(behind, 2)
    assert behind.done.wait(SECONDS)
    threads = list(scheduler._threads)
    first.close(nothing)
    second.close(nothing)
    joined(scheduler, threads)


def test_a_fixed_pool_does_not_grow():
    scheduler = Scheduler(2, fixed=True)
    scope = Scope(scheduler)
    crowd = Crowd(20, 2)
    scope.add(crowd, 8)
    assert crowd.done.wait(SECONDS)
    assert crowd.most == scheduler.threads() == 2
    threads = list(scheduler._threads)
    scope.close(nothing)
    joined(scheduler, threads)


class Waits(Once):
    """A step that waits for another's result until `gate`, and then works until `end`."""

    def __init__(self, scheduler, gate, end):
        super().__init__(1, 1, [], end)
        self.scheduler, self.until, self.waits, self.goes_on = scheduler, gate, threading.Event(), threading.Event()

    def step(self):
        self.scheduler.begin_waiting()
        self.waits.set()
        assert self.until.wait(SECONDS)
        self.scheduler.end_waiting()
        self.goes_on.set()
        return super().step()


def test_nobody_takes_the_place_of_one_that_waits_in_a_fixed_pool():
    scheduler, gate = Scheduler(1, fixed=True), threading.Event()
    scope, waits = Scope(scheduler), Waits(scheduler, gate, gate)
    scope.add(waits)
    assert waits.waits.wait(SECONDS)
    threads = list(scheduler._threads)
    gate.set()
    assert waits.done.wait(SECONDS)
    scope.close(nothing)
    joined(scheduler, threads)
    assert len(threads) == 1


def test_where_more_are_at_work_than_are_wanted_the_others_begin_nothing(monkeypatch):
    """Three threads for one place: two have waited, and continue."""
    scheduler, gate, end, asleep = Scheduler(1), threading.Event(), threading.Event(), threading.Semaphore(0)
    lot = scheduler._work_comes
    park = lot.park

    def counted(token):
        asleep.release()
        park(token)

    monkeypatch.setattr(lot, "park", counted)
    scope, segment = Scope(scheduler), Steps(2, 0, [])
    scope.add(segment)
    two = [Waits(scheduler, gate, end) for _ in range(2)]
    for waits in two:
        scope.add(waits)
        assert waits.waits.wait(SECONDS)
    gate.set()
    assert all(waits.goes_on.wait(SECONDS) for waits in two)
    while not lot.registered:
        assert asleep.acquire(timeout=SECONDS)
    with scheduler.lock:
        assert scheduler.threads() == 3
        while asleep.acquire(blocking=False):
            pass
        segment.left = 1
        lot.unpark_one()  # like a wake-up for other work that is gone
    assert asleep.acquire(timeout=SECONDS)
    assert not segment.entered.is_set()
    threads = list(scheduler._threads)
    end.set()
    assert segment.done.wait(SECONDS)
    scope.close(nothing)
    joined(scheduler, threads)


def test_who_has_passed_by_a_run_that_was_full_is_told_when_it_is_so_no_more():
    """The one that leaves goes elsewhere, because runs take turns."""

    class Leaves(Once):
        def step(self):
            found = super().step()
            scheduler._turn = 1
            elsewhere.left = 1  # as if it had been woken for this
            return found

    scheduler, gate, end = Scheduler(2), threading.Event(), threading.Event()
    narrow, other = Scope(scheduler, limit=1), Scope(scheduler)
    elsewhere, more = Steps(0, 0, [], end), Steps(1, 1, [])
    leaves = Leaves(0, 1, [], gate)
    narrow.add(leaves)
    assert leaves.entered.wait(SECONDS)
    other.add(elsewhere)
    narrow.add(more)
    deadline = time.monotonic() + SECONDS
    while not scheduler._work_comes.registered:  # wait until the other one sleeps, which it does not report
        assert time.monotonic() < deadline
    gate.set()
    assert more.done.wait(SECONDS)
    assert elsewhere.entered.wait(SECONDS)
    threads = list(scheduler._threads)
    end.set()
    assert elsewhere.done.wait(SECONDS)
    narrow.close(nothing)
    other.close(nothing)
    joined(scheduler, threads)


def test_nobody_is_woken_where_as_many_are_at_work_as_are_wanted():
    scheduler, token = Scheduler(1), new_token()
    scheduler._work_comes.register(token)
    scheduler.wake()
    assert not token.acquire(blocking=False)
    scheduler._target = 1
    scheduler.wake()
    assert token.acquire(blocking=False)


class Pauses(Once):
    """A step in a generator that has been running for long, and waits for an event outside."""

    def __init__(self, scheduler, scope, meanwhile):
        super().__init__(1, 1, [])
        self.scheduler, self.scope, self.meanwhile, self.found = scheduler, scope, meanwhile, []

    def step(self):
        self.entered.set()
        self.scheduler.go_outside(time.perf_counter() - SECONDS)
        pausing(self.scope)(SECONDS, self.wait)
        self.found.append(threading.get_ident() in self.scheduler._outside)
        self.scheduler.come_back()
        self.found.append(self.scheduler._waiting)
        return super().step()

    def wait(self, seconds):
        assert self.meanwhile.entered.wait(seconds)
        self.scheduler.replace_outside()  # like a thread that waits for a result
        self.found.append(self.scheduler._waiting)


def test_a_worker_that_waits_in_a_generator_counts_once():
    """It has given up its place itself. A second replacement would be one more than needed."""
    scheduler, gate = Scheduler(1), threading.Event()
    scope = Scope(scheduler)
    meanwhile = Steps(2, 1, [], gate)
    pauses = Pauses(scheduler, scope, meanwhile)
    scope.add(pauses, 1)
    scope.add(meanwhile, 1)
    assert pauses.done.wait(SECONDS)
    gate.set()
    assert meanwhile.done.wait(SECONDS)
    threads = list(scheduler._threads)
    scope.close(nothing)
    joined(scheduler, threads)
    assert pauses.found == [1, True, 0]


class Outside(Once):
    """A step in a generator that started some time ago, and ends when `meanwhile` has been entered."""

    def __init__(self, scheduler, meanwhile, seconds_ago):
        super().__init__(1, 1, [])
        self.scheduler, self.meanwhile, self.seconds_ago = scheduler, meanwhile, seconds_ago

    def step(self):
        self.scheduler.go_outside(time.perf_counter() - self.seconds_ago)
        self.entered.set()
        assert self.meanwhile.wait(SECONDS)
        self.was_outside = self.scheduler.come_back(), self.scheduler.come_back()
        return super().step()


def test_another_takes_the_place_of_a_worker_that_has_long_been_in_a_generator():
    scheduler, log = Scheduler(1), []
    scope, behind = Scope(scheduler), Steps(2, 1, log)
    outside = Outside(scheduler, behind.done, SECONDS)
    scope.add(outside, 1)
    assert outside.entered.wait(SECONDS)
    scope.add(behind, 1)  # no worker is free for it
    for _ in range(3):
        scheduler.replace_outside()
    assert outside.done.wait(SECONDS)
    assert outside.was_outside == (True, False)
    assert (scheduler._waiting, scheduler._outside, scheduler._replaced) == (0, {}, set())
    threads = list(scheduler._threads)
    assert next(scheduler._numbers) <= 3
    assert all(thread.daemon for thread in threads)  # no thread delays the interpreter's exit
    scope.close(nothing)
    joined(scheduler, threads)


def test_nobody_takes_the_place_of_a_worker_that_has_just_gone_into_a_generator():
    scheduler, back = Scheduler(1), threading.Event()
    scope = Scope(scheduler)
    outside = Outside(scheduler, back, -SECONDS)
    scope.add(outside, 1)
    assert outside.entered.wait(SECONDS)
    scheduler.replace_outside()
    assert (scheduler._waiting, scheduler._replaced) == (0, set())
    back.set()
    assert outside.done.wait(SECONDS)
    threads = list(scheduler._threads)
    scope.close(nothing)
    joined(scheduler, threads)


def test_nobody_is_replaced_where_fewer_are_at_work_than_are_wanted():
    scheduler, back = Scheduler(2), threading.Event()
    scope = Scope(scheduler)
    outside = Outside(scheduler, back, SECONDS)
    scope.add(outside, 2)
    assert outside.entered.wait(SECONDS)
    threads = list(scheduler._threads)
    scheduler.replace_outside()
    assert (scheduler._waiting, scheduler._replaced) == (0, set())
    back.set()
    assert outside.done.wait(SECONDS)
    scope.close(nothing)
    joined(scheduler, threads)


def test_workers_in_generators_are_replaced_also_where_they_are_more_than_are_wanted_by_now():
    scheduler, behind = Scheduler(2), Steps(2, 1, [])
    scope = Scope(scheduler)
    outside = [Outside(scheduler, behind.done, SECONDS) for _ in range(2)]
    for each in outside:
        scope.add(each, 2)
        assert each.entered.wait(SECONDS)
    scope.want(1)
    scope.add(behind, 1)
    scheduler.replace_outside()
    for each in (behind, *outside):
        assert each.done.wait(SECONDS)
    threads = list(scheduler._threads)
    scope.close(nothing)
    joined(scheduler, threads)
    assert (scheduler._waiting, scheduler._outside, scheduler._replaced) == (0, {}, set())


def test_a_thread_that_another_has_started_meanwhile_is_not_started_again():
    class Taken(deque):
        def popleft(self):
            self.clear()  # like another thread that starts them
            return super().popleft()

    scheduler = Scheduler(1)
    scheduler._recruits = Taken([threading.Thread()])
    scheduler.start_recruits()
    assert not scheduler._recruits


def idle_scope():
    """Return a scope without workers."""
    scheduler = Scheduler(1)
    scheduler.serve = lambda scope: None
    return Scope(scheduler)


def test_of_one_depth_those_that_were_added_first_are_looked_at_first_and_then_in_turn():
    scope = idle_scope()
    segments = [Steps(1, 1, []) for _ in range(3)]
    for segment in segments:
        scope.add(segment)
    assert scope.workers == 1
    assert scope.pick() is segments[0]
    segments[0].left = 0
    assert scope.pick() is segments[1]
    segments[0].left = 1
    assert scope.pick() is segments[1]  # it may have more work
    scope.remove(segments[0])
    assert scope.pick() is segments[1]
    segments[2].left = 0
    scope.remove(segments[1])
    assert scope.pick() is None


def test_a_segment_is_forgotten_once_and_others_that_are_not_known_are_not():
    scope, segment = idle_scope(), Steps(1, 1, [])
    scope.add(segment)
    for other in (Steps(1, 1, []), Steps(2, 1, [])):
        scope.remove(other)
    assert scope.pick() is segment
    for _ in range(2):
        scope.remove(segment)
        assert scope.pick() is None


def test_segments_may_go_while_somebody_looks():
    """A garbage collection may close runs at any place."""
    scope = idle_scope()

    class Leaves(Steps):
        def runnable(self):
            for segment in segments:
                scope.remove(segment)
            return False

    for segments in ([Leaves(1, 1, []), Steps(1, 1, [])], [Leaves(1, 1, [])]):
        for segment in [*segments, Steps(1, 0, [])]:
            scope.add(segment)
        assert scope.pick() is None


def test_a_run_is_found_whoever_s_turn_it_is():
    scheduler, scopes, segments = Scheduler(1), [], []
    scheduler.serve = scheduler._scopes.append
    for _ in range(3):
        scopes.append(Scope(scheduler))
        segments.append(Steps(1, 0, []))
        scopes[-1].add(segments[-1])
    for turn in range(4):
        for scope, segment in zip(scopes, segments, strict=True):
            scheduler._turn, segment.left = turn, 1
            assert scheduler._pick() == (scope, segment)
            segment.left = 0
            assert scheduler._pick() is None


def test_a_run_is_full_when_as_many_are_inside_as_it_allows():
    scope = Scope(Scheduler(1), limit=1000)
    found = []
    for inside in (999, 1000, 1001):
        scope.active = inside
        found.append(scope.full())
    assert found == [False, True, True]


def test_a_thread_of_anybody_else_is_no_worker():
    found = []
    thread = threading.Thread(target=lambda: found.append(on_worker()))
    thread.start()
    thread.join(SECONDS)
    assert found == [False]


def test_a_run_has_the_pool_of_the_process_or_one_of_its_own():
    def pool(size):
        return scheduler_for(ps.Options(threading={"private_threadpool_size": size}))

    assert pool(None) is shared()
    for size, threads in ((granted_cpus() + 1, granted_cpus() + 1), (0, granted_cpus())):
        found = pool(size)
        assert found is not shared()
        scope = Scope(found)
        scope.add(Steps(0, 0, []), granted_cpus() + 5)
        assert found._target == threads
        scope.close(nothing)


def test_workers_that_are_wanted_for_nothing_are_not_started():
    scheduler = Scheduler(2)
    scope = Scope(scheduler)
    scope.want(2)
    assert (scope.workers, scheduler.threads(), scheduler._scopes) == (2, 0, [])


def test_the_process_has_one_pool():
    assert shared() is shared()


def test_in_a_forked_child_nobody_waits_for_what_the_parent_s_workers_had_begun():
    for begun in (False, True):
        scope, closed = idle_scope(), []
        if begun:
            scope.add(Steps(1, 1, []))
        scope.leave_to_parent()
        scope.close(lambda closed=closed: closed.append(True))
        assert closed == ([] if begun else [True])


def test_in_a_forked_child_what_a_worker_is_inside_of_is_the_parent_s():
    scope = idle_scope()
    scope.active = 1  # its segment has ended, and is not registered any more
    scope.leave_to_parent()
    assert scope.foreign


def test_a_forked_child_begins_with_pools_without_threads(monkeypatch):
    pool, scope = Scheduler(1), idle_scope()
    scope.add(Steps(1, 1, []))
    monkeypatch.setattr(scheduler_module, "_pools", WeakSet([pool]))
    monkeypatch.setattr(scheduler_module, "_scopes", WeakSet([scope]))
    lock, pool._idle = pool.lock, 1
    counts_as_worker(True)
    scheduler_module._forget()
    assert (pool._idle, scope.foreign, on_worker()) == (0, True, False)
    assert pool.lock is not lock


def test_where_the_system_gives_no_thread_at_all_the_caller_hears_of_it(monkeypatch):
    scheduler = Scheduler(2)
    scope = Scope(scheduler)

    def start(thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        with pytest.raises(RuntimeError, match="can't start"):
            scope.add(Steps(1, 1, []))
    assert scheduler.threads() == 0
    segment = Steps(0, 1, [])
    scope.add(segment)  # the scope has a segment again
    assert segment.done.wait(SECONDS)
    threads = list(scheduler._threads)
    scope.close(nothing)
    joined(scheduler, threads)


def test_a_thread_whose_start_was_interrupted_is_started_by_the_next(monkeypatch):
    scheduler, log = Scheduler(1), []
    scope, segment = Scope(scheduler), Steps(1, 1, log)

    def start(thread):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        with pytest.raises(KeyboardInterrupt):
            scope.add(segment)
    scheduler.start_recruits()
    assert segment.done.wait(SECONDS)
    threads = list(scheduler._threads)
    scope.close(nothing)
    joined(scheduler, threads)


EXIT = """
import threading, weakref
at_exit = weakref.finalize._exitfunc
def counted(*_):
    print(sum(thread.name.startswith("penstock-worker") for thread in threading.enumerate()))
    at_exit()
weakref.finalize._exitfunc = counted
import penstock as ps
elements = iter(ps.Dataset.range(10**9).map(lambda x: x + 1, num_parallel_calls=2))
next(elements)
"""


def test_no_worker_adds_a_finalizer_while_the_interpreter_runs_them_at_exit():
    done = subprocess.run([sys.executable, "-c", EXIT], capture_output=True, text=True, check=True, timeout=SECONDS)
    assert (done.stdout, done.stderr) == ("0\n", "")
