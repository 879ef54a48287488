"""The parts of a lane: admission, counts of work, allowed executors, and their sums."""

import gc
import sys
import threading
from dataclasses import astuple

import pytest

from penstock.errors import InvalidArgumentError
from penstock.runtime import counts as counts_module
from penstock.runtime.autotune.figures import Knobs, TunerLimits
from penstock.runtime.counts import CLOCKS, Clock, Counts, Sums, TaskTimes
from penstock.runtime.lane import ExecutorChoice, Gate, Lane
from penstock.runtime.memory.budget import Budget

SECONDS = 30


class Nudged:
    def __init__(self):
        self.times = 0

    def nudge(self):
        self.times += 1


def test_a_gate_lets_in_as_many_as_it_says():
    gate, threads, inside = Gate(3), [], []
    for _ in range(8):
        threads.append(threading.Thread(target=lambda: inside.append(gate.enter())))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert sorted(inside) == [False] * 5 + [True] * 3


def test_who_waits_is_told_when_the_gate_opens_and_not_before():
    gate, waiter = Gate(2), Nudged()
    gate.watch(waiter)
    assert gate.enter()
    assert gate.leave() is None  # no worker was kept out
    assert gate.enter()
    assert gate.enter()
    assert gate.leave() == (waiter,)
    gate.set(1)
    assert waiter.times == 1
    assert not gate.is_open  # one worker is inside, and may stay
    gate.unwatch(waiter)
    assert gate.leave() == ()
    gate.set(2)
    assert waiter.times == 1


def test_a_gate_without_a_bound_stays_open():
    gate = Gate(None)
    assert all(gate.enter() for _ in range(100))
    assert gate.leave() is None
    gate.set(1)
    assert gate.is_open
    assert not gate.is_bounded


def test_waits_count_while_they_last_and_once():
    counts = Counts()
    counts.waited_for(1.0)
    counts.full(2.0)
    counts.full(3.0)  # unchanged
    assert (counts.sums(5.0).starved, counts.sums(5.0).full) == (4.0, 3.0)
    counts.not_waited_for(6.0)
    counts.not_full(7.0)
    counts.not_full(9.0)
    assert (counts.sums(20.0).starved, counts.sums(20.0).full) == (5.0, 5.0)


def test_a_wait_that_ends_while_somebody_looks_is_counted_once():
    """The reader has no lock, and may come between any two steps of the writer."""
    counts, seen = Counts(), []

    def look(frame, event, argument):
        if event in {"line", "opcode", "return"} and frame.f_code.co_name in {"not_waited_for", "not_full", "until"}:
            sys.settrace(None)
            seen.append((counts.sums(5.0).starved, counts.sums(5.0).full))
            sys.settrace(look)
        frame.f_trace_opcodes = True
        return look

    counts.waited_for(1.0)
    counts.full(2.0)
    before = sys.gettrace()
    sys.settrace(look)
    try:
        counts.not_waited_for(5.0)
        counts.not_full(5.0)
    finally:
        sys.settrace(before)
    assert len(seen) > 10
    assert set(seen) == {(4.0, 3.0)}


def test_extremes_are_since_the_last_question():
    counts = Counts()
    counts.enter()
    counts.enter()
    counts.leave()
    for nbytes in (10, 30, 20):
        counts.hold(nbytes)
    assert (counts.busy_most(), counts.held_between()) == (2, (30, 0))
    assert (counts.busy_most(), counts.held_between()) == (1, (20, 20))
    for nbytes in (15, 5, 10):
        counts.hold(nbytes)
    assert (counts.held_between(), counts.held_between()) == ((20, 5), (10, 10))


def test_nothing_is_counted_that_was_not_said():
    counts = Counts()
    assert (counts.busy_most(), counts.held_between(), counts.element_bytes) == (0, (0, 0), 0.0)
    assert (counts.held, counts.is_full) == (0, False)
    assert set(astuple(Sums())) == {0}
    assert counts.sums(7.0) == Sums()
    counts.worked(3)
    assert counts.sums(7.0) == Sums(inputs=3)
    counts.made(4, 100)
    counts.made(0, 20)
    assert counts.element_bytes == 30.0
    counts.enter()
    counts.leave()
    assert [counts.busy_most() for _ in range(2)] == [1, 0]
    counts.waited_for(9.0)
    assert counts.sums(8.0).starved == 0.0  # a reader whose clock reading is earlier


class Member:
    def __init__(self):
        self.counts = Counts()


@pytest.fixture
def lane():
    window = Budget(1 << 20, given=True).window("map")
    return Lane("map", "map", Knobs(2), TunerLimits(most=4), window)


def test_a_lane_adds_up_its_segments_and_keeps_those_that_ended(lane):
    segments = [Member(), Member()]
    for number, segment in enumerate(segments):
        lane.join(segment)
        segment.counts.enter()
        segment.counts.worked(5, run=(2.0, 1.0), pull=(0.5, 0.25), waiting=0.125)
        segment.counts.made(3 + number, 100)
        segment.counts.hold(100)
    assert (lane.busy, lane.held, lane.is_shared) == (2, 200, True)
    assert lane.limit == lane.window.limit / 2
    flow = lane.flow()
    assert (flow.inputs, flow.elements, flow.results, flow.nbytes) == (10, 7, 2, 200)
    assert (flow.run_seconds, flow.run_cpu, flow.pull_seconds, flow.waiting) == (4.0, 2.0, 1.0, 0.25)
    assert (flow.busy_most, flow.held_most) == (2, 200)
    lane.retire(segments[0])
    lane.retire(segments[0])  # idempotent
    assert lane.flow().elements == 0
    assert (lane.total().elements, lane.held) == (7, 100)


def test_turning_the_knobs_opens_the_gate(lane):
    assert lane.gate.enter()
    assert lane.gate.enter()
    assert not lane.gate.is_open
    lane.turn(Knobs(3), "more is better")
    assert lane.gate.is_open
    assert (lane.knobs.parallelism, lane.reason) == (3, "more is better")


def test_the_executors_are_asked_for_again_until_they_are_known():
    answers = [(), (), ("thread", "process")]
    choice = ExecutorChoice(TunerLimits(), lambda: answers.pop(0))
    assert [choice.limits.executors for _ in range(2)] == [("thread",)] * 2
    assert choice.limits.executors == choice.limits.executors == ("thread", "process")


def test_which_executorsthere_are_is_asked_once_and_what_the_user_chose_stays():
    asked = []

    def ask():
        asked.append(1)
        return ("thread", "process")

    choice = ExecutorChoice(TunerLimits(), ask)
    assert not asked
    choice.settle()
    assert choice.limits.executors == ("thread", "process")
    assert choice.stay("it holds a lock")
    assert choice.stay("another reason")
    assert (choice.limits.executors, choice.obstacle, len(asked)) == (("thread",), "it holds a lock", 1)
    assert choice.task([], lambda transforms: pytest.fail("nothing is sent any more")) is None
    assert not ExecutorChoice(TunerLimits(executors=("process",))).stay("it holds a lock")


def test_two_who_first_want_to_know_the_executorsat_once_get_one_answer():
    """A worker with its first Block, and the sampler of the lane."""
    asked, inside, go_on, found = [], threading.Event(), threading.Event(), []

    def ask():
        asked.append(1)
        inside.set()
        assert go_on.wait(SECONDS)
        return ("thread", "process")

    choice = ExecutorChoice(TunerLimits(), ask)
    threads = [threading.Thread(target=lambda: found.append(choice.limits.executors)) for _ in range(2)]
    threads[0].start()
    assert inside.wait(SECONDS)
    threads[1].start()
    threads[1].join(0.1)
    go_on.set()
    for thread in threads:
        thread.join(SECONDS)
    assert (found, len(asked)) == ([("thread", "process")] * 2, 1)


class Sent:
    def __init__(self, cpu_seconds):
        self.cpu_seconds = cpu_seconds


class Named:
    """A transform that only reports its kind."""

    def __init__(self, name):
        self.name = name

    def kin(self):
        return self.name


def test_transforms_are_sent_once_and_what_is_spent_on_them_elsewhere_adds_up():
    choice, sent = ExecutorChoice(TunerLimits(executors=("thread", "process"))), []

    def make(transforms):
        sent.append([transform.kin() for transform in transforms])
        return Sent(2.5)

    tasks = [choice.task([Named("a"), Named("b")], make) for _ in range(2)]
    assert tasks[0] is tasks[1]
    assert choice.task([Named("a")], make) is not tasks[0]
    assert sent == [["a", "b"], ["a"]]
    assert choice.cpu_seconds() == 5.0
    choice.here = Sent(0.5)
    assert choice.cpu_seconds() == 5.5


def test_what_cannot_be_sent_stays_unless_the_user_wants_it_in_processes():
    def make(transforms):
        raise InvalidArgumentError("it holds a lock")

    tried = ExecutorChoice(TunerLimits(executors=("thread", "process")))
    assert tried.task([Named("a")], make) is None
    assert (tried.limits.executors, tried.obstacle) == (("thread",), "it holds a lock")
    assert tried.cpu_seconds() == 0.0
    with pytest.raises(InvalidArgumentError, match="it holds a lock"):
        ExecutorChoice(TunerLimits(executors=("process",))).task([Named("a")], make)


class Time:
    """Replaces the module; its time is set by hand."""

    def __init__(self, monkeypatch, now=0.0, cpu=0.0):
        self.now, self.cpu = now, cpu
        monkeypatch.setattr(counts_module, "time", self)

    def perf_counter(self):
        return self.now

    def thread_time(self):
        return self.cpu


def test_a_short_time_since_the_last_reading_is_taken_for_cpu_time(monkeypatch):
    time = Time(monkeypatch)
    for began in (2e-5, 1.00002, 0.0):
        time.cpu = 7.0
        clock = Clock()
        assert clock.cpu(began) == 7.0
        time.cpu = 8.0
        assert clock.cpu(began) == 7.0
        assert 7.0 < clock.cpu(began + 2e-5) < 7.0001
        assert clock.cpu(began + 1.0) == 8.0
        time.cpu = 9.0
        assert clock.cpu(began + 0.5) == 9.0


def test_what_is_to_be_called_when_a_task_is_on_its_way_is_called_once():
    clock, sent = Clock(), []
    clock.has_sent()
    clock.sent = lambda: sent.append(clock.sent)
    clock.has_sent()
    clock.has_sent()
    assert sent == [None]


def test_the_times_of_a_task_are_told_apart_from_those_of_tasks_inside_it(monkeypatch):
    time, clock = Time(monkeypatch, 100.0, 10.0), Clock()
    monkeypatch.setattr(CLOCKS, "own", clock)
    times = TaskTimes("lane")
    assert (clock.aside, clock.aside_cpu, clock.queued, clock.lane) == (0.0, 0.0, 0.0, "lane")
    assert (times.started, times.pull, times.run, times.waited) == (100.0, (0.0, 0.0), (0.0, 0.0), 0.0)
    time.now, time.cpu = 103.0, 11.5
    clock.aside, clock.aside_cpu = 1.0, 0.25  # it has waited for another segment, and worked there
    times.pulled()
    assert (times.pull, times.waited, clock.lane) == ((2.0, 1.25), 1.0, None)
    time.now, time.cpu, clock.queued = 107.0, 13.0, 0.5
    assert times.stop() == 107.0
    assert times.run == (3.5, 1.5)
    assert (clock.aside, clock.aside_cpu, clock.queued, clock.lane) == (0.0, 3.0, 0.0, None)
    clock.aside, clock.aside_cpu, clock.queued, clock.lane = 5.0, 0.5, 0.125, "outer"
    times = TaskTimes("lane")
    assert (clock.aside, clock.aside_cpu, clock.queued) == (0.0, 0.0, 0.0)
    time.now, time.cpu = 108.0, 15.0
    times.pulled()
    times.stop()
    assert (clock.aside, clock.aside_cpu, clock.queued, clock.lane) == (5.0, 2.5, 0.125, "outer")


def test_what_a_worker_has_done_is_added_up():
    counts = Counts()
    for _ in range(2):
        counts.worked(3, run=(1.0, 2.0), pull=(4.0, 8.0), waiting=16.0)
    sums = counts.sums(now=0.0)
    assert (sums.inputs, sums.run_seconds, sums.run_cpu, sums.waiting) == (6, 2.0, 4.0, 32.0)
    assert (sums.pull_seconds, sums.pull_cpu) == (8.0, 16.0)


class Room:
    """A window of 101 bytes that records its calls."""

    limit = 101

    def __init__(self):
        self.asked, self.wished = [], []

    def measure(self, held):
        self.held = held

    def ask(self, nbytes):
        self.asked.append(nbytes)

    def wish(self, nbytes):
        self.wished.append(nbytes)


def with_room(parallelism, *, bounded=False):
    room = Room()
    return Lane("map", "map", Knobs(parallelism), TunerLimits(), room, bounded=bounded), room


def test_a_lane_begins_with_one_of_everything():
    lane, _ = with_room(1)
    assert (lane.reads, lane.at_once, lane.want, lane.calls, lane.limit) == (False, 1, 1, 1, 101.0)


def test_segments_side_by_side_have_their_calls_each_up_to_a_number_and_share_the_room():
    for bounded, parallelism, few, many in ((False, 3, 6, 256), (True, 3, 3, 3), (False, 300, 300, 300)):
        lane, _ = with_room(parallelism, bounded=bounded)
        segments = [Member() for _ in range(200)]
        lane.join(segments[0])
        assert (lane.calls, lane.limit, lane.is_shared) == (parallelism, 101.0, False)
        lane.join(segments[1])
        assert (lane.calls, lane.limit, lane.is_shared) == (few, 50.5, bounded)
        for segment in segments:
            lane.join(segment)
        assert lane.calls == many


def test_room_is_asked_for_by_what_is_made_and_by_what_is_wanted():
    lane, room = with_room(3)
    segments = [Member(), Member()]
    for segment in segments:
        lane.join(segment)
        lane.ask(8.0, 0.0)
    lane.ask(8.0, 1000.0)
    assert room.asked == [44, 88, 1000]  # one and a half for each call, and one for each segment
    lane.retire(segments[0])
    assert len(room.asked) == 3
    lane.retire(segments[1])
    assert room.asked[3:] == [0]


def test_room_is_asked_for_again_only_where_something_has_changed():
    lane, room = with_room(3)
    first, other = Member(), Member()
    lane.join(first)
    for change in (
        lambda: None, lambda: lane.join(other), lambda: lane.turn(Knobs(5), "so"), lambda: setattr(lane, "at_once", 2),
    ):  # fmt: skip
        before = len(room.asked)
        change()
        lane.ask(8.0, 0.0)
        lane.ask(8.0, 0.0)
        assert len(room.asked) == before + 1


def test_the_next_segment_asks_again_though_a_worker_of_the_last_one_was_still_at_it():
    lane, room = with_room(3)
    first, later = Member(), Member()
    lane.join(first)
    room.ask = lambda nbytes: (room.asked.append(nbytes), nbytes or lane.ask(8.0, 0.0))
    lane.retire(first)
    lane.join(later)
    before = len(room.asked)
    lane.ask(8.0, 0.0)
    assert len(room.asked) == before + 1
    assert room.asked[-1] > 0


def test_a_window_that_is_wished_for_anew_is_told():
    lane, room = with_room(1)
    for window in (Knobs(1).window, 1000, int("1000"), 2000):
        lane.turn(Knobs(1, window=window), "so")
    assert room.wished == [1000, 2000]


def test_a_window_knows_what_a_lane_holds_and_does_not_hold_the_lane():
    lane, room = with_room(1)
    segments = [Member(), Member()]
    for held, segment in enumerate(segments, 3):
        lane.join(segment)
        segment.counts.hold(held)
    assert room.held() == 7
    del lane
    gc.collect()
    assert room.held() == 0
