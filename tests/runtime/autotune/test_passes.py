"""Short iterations over functions that wait: each continues with the settings of the last one, in simulations."""

import pytest
from tests.runtime.autotune.scenarios import pipeline
from tests.runtime.autotune.simulator import Work, play

from penstock.runtime.autotune.figures import Knobs, TunerLimits
from penstock.runtime.autotune.tuner import decide
from penstock.runtime.autotune.tuner_state import continued, tuner_state

PYTHON = 30e-6  # CPU seconds of an element besides its wait, with the interpreter lock


def hindering(most, from_workers):
    """Simulate threads that slow each other down if there are too many."""
    return lambda workers: most / (1 + max(workers - from_workers, 0) / from_workers)


WAITS = {
    "1 ms": (Work(sleep=0.001, gil=PYTHON),),
    "5 ms": (Work(sleep=0.005, gil=PYTHON),),
    "20 ms": (Work(sleep=0.02, gil=PYTHON),),
    "100 ms": (Work(sleep=0.1, gil=PYTHON),),
    "5 ms, skewed": (Work(sleep=0.005, gil=PYTHON, ahead=400),),
    "5 ms, hindering each other": (Work(sleep=0.005, gil=PYTHON, speed_of=hindering(6000, 32)),),
    "20 ms, behind an interleave": (Work(sleep=0.001, gil=PYTHON), Work(sleep=0.02, gil=PYTHON)),
    "20 ms, batches of 32": (Work(sleep=0.02, gil=PYTHON, rows=32),),
    "5 ms, in front of a shuffle": (Work(sleep=0.005, gil=PYTHON), Work(cpu=PYTHON, fill=500)),
}
ONE = TunerLimits(1, 1, ("thread",))  # the worker that pulls for a shuffle


def simulation(name, seed, start=None):
    sim = pipeline(*WAITS[name], noise=0.1, executors=("thread",), start=start)(seed)
    for segment in [segment for segment, work in sim.segments.items() if work.fill]:
        sim.limits[segment], sim.knobs[segment] = ONE, Knobs(1)
    return sim


def passes(name, seed, count, seconds):
    history, start = [], None
    for number in range(count):
        outcome = play(simulation(name, 10 * seed + number, start), seconds, decide, history=history)
        yield outcome
        history = continued(outcome.history, 0.0)
        start = dict(tuner_state(history).knobs)


def best_fixed(name, seed, seconds=1.5):
    grid = [Knobs(workers) for workers in (2, 8, 16, 32, 64)]
    return max(play(simulation(name, seed, knobs), seconds).throughput(0.2, seconds) for knobs in grid)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", WAITS)
def test_from_the_third_pass_on_it_is_as_fast_as_the_best_number_and_stays_there(name, seed):
    made = [outcome.throughput(0.2, 1.5) for outcome in passes(name, seed, 6, 1.5)]
    best = best_fixed(name, 10 * seed)
    assert min(made[2:]) >= 0.9 * max(made[2:])
    assert sum(made[2:]) / 4 >= 0.95 * best


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", WAITS)
def test_within_two_seconds_of_the_first_pass_it_is_nearly_there(name, seed):
    (first,) = passes(name, seed, 1, 2.5)
    best = best_fixed(name, 10 * seed)
    assert first.throughput(1.9, 2.5) >= 0.8 * best
    assert first.throughput(0.8, 1.8) >= 0.8 * best  # the second second, after the start of the iteration


def test_a_trial_that_the_end_of_a_pass_cut_off_is_no_trial():
    (first,) = passes("5 ms", 0, 1, 0.95)
    assert first.history[-1].flows[0].knobs.parallelism > 2
    for length in range(2, len(first.history) + 1):
        history = first.history[:length]
        later = continued(history, 100.0)
        seen = tuner_state(later)
        assert later[-1].stop == pytest.approx(100.0)
        assert seen.current is None or seen.current.verdict.value != "open" or seen.current.went_badly
        assert len(later) < length
    assert continued(first.history[:1], 100.0) == continued([], 100.0) == []
