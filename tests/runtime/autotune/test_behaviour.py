"""The tuner's behaviour besides speed: the number of workers, their cost, and its messages."""

import pytest
from tests.runtime.autotune.scenarios import BOTH, MIB, pipeline, simulation, tuned
from tests.runtime.autotune.simulator import Work, play

from penstock.runtime.autotune.figures import Knobs, TunerLimits
from penstock.runtime.autotune.tuner import decide

SEEDS = (0, 1, 2)
seeds = pytest.mark.parametrize("seed", SEEDS)


@seeds
@pytest.mark.parametrize(
    ("name", "most"),
    [("contended, computing", 2), ("contended, sleeping", 2), ("contended on 8 cores", 4), ("one disk", 2)],
)
def test_workers_that_exclude_each_other_are_few(name, most, seed):
    outcome = tuned(name, seed)
    assert outcome.final("a").parallelism <= most
    assert outcome.final("a").executor == "thread"


@seeds
@pytest.mark.parametrize("name", ["jpeg", "heavy augment", "parse-bound", "free-threaded", "half a core"])
def test_a_pipeline_that_uses_its_cores_is_left_alone(name, seed):
    outcome = tuned(name, seed)
    assert outcome.changes_after(0.0) == 0


@seeds
def test_a_slow_consumer_gets_what_it_needs_and_no_more(seed):
    sim = simulation("slow consumer", seed)
    outcome = play(sim, 10, decide)
    assert outcome.final("a").parallelism == 1
    assert outcome.final("a").window < sim.start["a"].window / 4
    assert outcome.throughput(3, 10) == pytest.approx(1 / 0.03, rel=0.01)
    assert outcome.cpu(6, 10) <= 1.1 * 0.005 / 0.03


@seeds
def test_many_workers_are_let_go_before_a_slow_consumer(seed):
    sim = pipeline(Work(sleep=0.02), start=Knobs(64), consumer=0.01)(seed)
    outcome = play(sim, 10, decide)
    assert 2 <= outcome.final("a").parallelism <= 8
    assert outcome.throughput(3, 10) >= 0.99 / 0.01


@seeds
def test_workers_come_back_within_a_second_when_the_consumer_speeds_up(seed):
    outcome = tuned("the consumer speeds up", seed)
    more = [time for time, knobs in outcome.knobs if time > 8.0 and knobs["a"].parallelism >= 2]
    starves = next(sample.stop for sample in outcome.history if sample.start >= 8.0 and sample.flows[0].starved > 0.05)
    assert more[0] <= starves + 1.5


@seeds
def test_processes_run_what_holds_the_lock_if_they_are_allowed(seed):
    free = play(pipeline(Work(gil=0.005))(seed), 6, decide)
    assert free.final("a").executor == "process"
    assert free.throughput(3, 6) >= 1.8 * 0.97 / 0.005 / 1.06
    held = play(pipeline(Work(gil=0.005), executors=("thread",))(seed), 6, decide)
    assert held.final("a").executor == "thread"
    assert held.final("a").parallelism <= 2


def by_hand(work, seed):
    """Set 64 calls by hand."""
    sim = pipeline(work, start=Knobs(64))(seed)
    sim.limits["a"] = TunerLimits(64, 64, BOTH)
    return sim


@seeds
def test_many_calls_by_hand_that_wait_are_not_sent_to_as_many_processes(seed):
    """If there are so many that they use most of a core, they look as if they waited for each other."""
    sim = by_hand(Work(sleep=0.005, gil=0.00004, cpu=0.00004), seed)
    outcome = play(sim, 4, decide)
    assert 0.75 <= outcome.cpu(1, 4) <= 1.4
    assert outcome.final("a").executor == "thread"
    assert sim.asked_at is None


@seeds
def test_many_calls_by_hand_that_hold_the_lock_are_sent_to_a_process_for_each_core(seed):
    outcome = play(by_hand(Work(gil=0.005), seed), 6, decide)
    assert outcome.final("a").executor == "process"
    most = max(knobs["a"].parallelism for _, knobs in outcome.knobs if knobs["a"].executor == "process")
    assert most <= 4  # twice as many on trial
    assert all(knobs["a"].parallelism == 64 for _, knobs in outcome.knobs if knobs["a"].executor == "thread")


@seeds
def test_a_number_by_hand_of_processes_is_kept(seed):
    sim = pipeline(Work(gil=0.005), start=Knobs(16, "process"))(seed)
    sim.limits["a"] = TunerLimits(16, 16, ("process",))
    outcome = play(sim, 3, decide)
    assert {knobs["a"].parallelism for _, knobs in outcome.knobs} == {16}


@seeds
def test_processes_are_asked_for_before_they_are_tried(seed):
    outcome = play(pipeline(Work(gil=0.005))(seed), 6, decide)
    asked = next(time for time, decision in outcome.decisions if decision.want_processes)
    used = next(time for time, knobs in outcome.knobs if knobs["a"].executor == "process")
    assert used >= asked + 0.6
    assert all(not decision.settled for time, decision in outcome.decisions if asked <= time < used)


@seeds
def test_processes_may_take_a_moment_until_they_work(seed):
    sim = pipeline(Work(gil=0.005))(seed)
    sim.processes_load = 0.35
    outcome = play(sim, 6, decide)
    assert outcome.final("a").executor == "process"
    assert sum(knobs["a"].executor == "process" for _, knobs in outcome.knobs) == 1


@seeds
def test_threads_without_a_common_lock_are_never_left(seed):
    outcome = play(pipeline(Work(gil=0.005, sleep=0.005), gil=False)(seed), 8, decide)
    assert all(knobs["a"].executor == "thread" for _, knobs in outcome.knobs)


@seeds
def test_data_that_is_dear_to_ship_stays_in_threads(seed):
    outcome = tuned("lock, dear to ship", seed)
    assert outcome.final("a").executor == "thread"
    assert sum(knobs["a"].executor == "process" for _, knobs in outcome.knobs) == 1


@seeds
def test_a_blocked_window_takes_room_from_one_that_is_not_used(seed):
    works = (Work(cpu=0.0001, nbytes=1000), Work(cpu=0.0015, nbytes=100_000, ahead=600))
    start = {"a": Knobs(2, window=192 * MIB), "b": Knobs(2, window=16 * MIB)}
    sim = pipeline(*works, start=start, ram=256 * MIB)(seed)
    outcome = play(sim, 8, decide)
    assert outcome.final("b").window >= 128 * MIB
    assert all(sum(k.window for k in knobs.values()) <= 256 * MIB for _, knobs in outcome.knobs)
    assert outcome.throughput(3, 8) >= 0.95 * 2 / 0.00165


@seeds
def test_an_unused_window_shrinks_in_the_end(seed):
    outcome = play(pipeline(Work(cpu=0.005))(seed), 40, decide)
    assert outcome.final("a").window <= 16 * MIB
    assert outcome.changes_after(0.0) <= 3


@seeds
def test_a_segment_that_waits_for_its_input_is_not_touched(seed):
    outcome = tuned("the first of two waits", seed)
    assert outcome.final("b") == Knobs(2)
    assert outcome.final("a").parallelism >= 32


@seeds
def test_what_fills_a_window_nobody_waits_for_hides_no_bottleneck(seed):
    outcome = tuned("the second of two waits", seed)
    assert outcome.final("b").parallelism == 64


@seeds
def test_workers_that_brought_much_are_not_given_back_for_a_loss(seed):
    def speed_of(workers):
        return 25_000 * (workers / 33.3 if workers < 32 else 0.96 + 0.04 * (workers - 32) / 32)

    outcome = play(pipeline(Work(sleep=0.001, speed_of=speed_of), noise=0.01)(seed), 8, decide)
    assert outcome.final("a").parallelism == 64
    assert outcome.throughput(3, 8) >= 0.99 * 25_000


@seeds
def test_failed_trials_are_repeated_ever_more_rarely(seed):
    outcome = play(pipeline(Work(sleep=0.05, speed_of=lambda workers: 300))(seed), 120, decide)
    assert outcome.throughput(4, 120) >= 0.98 * 300
    assert outcome.changes_after(4.0) <= 10
    assert outcome.changes_after(60.0) <= 4


@seeds
def test_with_nothing_to_choose_nothing_is_turned(seed):
    make = pipeline(Work(sleep=0.01), most=2, executors=("thread",))
    sim = make(seed)
    sim.limits = {"a": type(sim.limits["a"])(2, 2, ("thread",))}
    outcome = play(sim, 8, decide)
    assert outcome.changes_after(0.0) == 0
    assert outcome.settled_at() <= 1.0


def test_reasons_tell_figures():
    def reason(name, seed=0):
        return tuned(name, seed).decisions[-1][1].reasons["a"]

    assert reason("interpreter's lock").startswith("2 workers in processes: ")
    assert "times as much as threads, which held the interpreter's lock" in reason("interpreter's lock")
    assert "64 workers: its calls wait 100 % of their time" in reason("sleeping")
    assert "16 gave 0.2" in reason("sleeping")
    assert "2 of 2 cores are in use" in reason("jpeg")
    assert "the workers are waited for 0 % of the time" in reason("slow consumer")
    assert "worker processes gave 0." in reason("lock, dear to ship")
