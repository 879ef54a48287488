"""Functions that hold the interpreter lock, on simulated machines: soon in processes, also with other programs."""

import random
from functools import cache

import pytest
from tests.runtime.autotune.scenarios import BOTH, pipeline
from tests.runtime.autotune.simulator import Work, play

from penstock.runtime.autotune.figures import Knobs, TunerLimits
from penstock.runtime.autotune.trials import Action, Verdict
from penstock.runtime.autotune.tuner import decide
from penstock.runtime.autotune.tuner_state import tuner_state

SEEDS = range(0, 30, 3)  # machines whose system reports idle cores and delays, as Linux does
SECONDS = 5
PYTHON = Work(gil=0.0007, nbytes=8)
PROCESSES = Knobs(2, "process", block_seconds=0.02)


def now_and_then(seed, most, on, off):
    """Simulate other programs that compute on one to `most` threads, for some seconds from time to time."""
    generator, spans, now = random.Random(seed), [], 0.0
    while now < 60:
        begin = now + generator.expovariate(1 / off)
        now = begin + generator.expovariate(1 / on)
        spans.append((begin, now, generator.randint(1, most)))
    return lambda now: next((count for begin, stop, count in spans if begin <= now < stop), 0)


OTHERS = {
    "nobody": lambda seed: lambda now: 0,
    "one program": lambda seed: lambda now: 1,
    "two programs": lambda seed: lambda now: 2,
    "now and then": lambda seed: now_and_then(seed, 2, 0.5, 1.0),
    "mostly": lambda seed: now_and_then(seed, 3, 1.0, 0.5),
}
STARTS = {"AUTOTUNE": None, "two by hand": 2, "four by hand": 4, "remembered processes": PROCESSES}


def simulation(others, seed, start=None, work=PYTHON, **more):
    by_hand = isinstance(start, int)
    sim = pipeline(work, start=Knobs(start) if by_hand else start, noise=0.1, **more)(seed)
    if by_hand:
        sim.limits["a"] = TunerLimits(start, start, BOTH)
    sim.rivals = others
    sim.processes_start = 1.5
    return sim


@cache
def best_fixed(name, seed):
    outcomes = [play(simulation(OTHERS[name](seed), seed, knobs), SECONDS) for knobs in (Knobs(1), Knobs(2), PROCESSES)]
    return max(outcomes, key=lambda outcome: outcome.throughput(0, SECONDS))


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("name", OTHERS)
def test_from_the_second_second_on_it_is_as_fast_as_the_best_fixed_setting(name, start):
    for seed in SEEDS:
        outcome = play(simulation(OTHERS[name](seed), seed, STARTS[start]), SECONDS, decide)
        best = best_fixed(name, seed)
        assert outcome.throughput(1, 2) >= 0.9 * best.throughput(1, 2)
        assert outcome.throughput(1, SECONDS) >= 0.95 * best.throughput(1, SECONDS)
        assert outcome.final("a").executor == "process"


@pytest.mark.parametrize("seed", SEEDS[:4])
@pytest.mark.parametrize("name", OTHERS)
def test_functions_without_the_lock_stay_in_threads(name, seed):
    outcome = play(simulation(OTHERS[name](seed), seed, work=Work(cpu=0.004)), SECONDS, decide)
    assert {knobs["a"].executor for _, knobs in outcome.knobs} == {"thread"}


@pytest.mark.parametrize("seed", SEEDS[:4])
@pytest.mark.parametrize("name", OTHERS)
def test_functions_that_wait_are_as_fast_as_the_best_number_from_the_second_second_on(name, seed):
    """A few elements take long, and delay later elements if the window is full."""
    work = Work(sleep=0.0015, gil=30e-6, ahead=400)
    outcome = play(simulation(OTHERS[name](seed), seed, work=work), SECONDS, decide)
    fixed = [play(simulation(OTHERS[name](seed), seed, Knobs(count), work), SECONDS) for count in (16, 32, 64)]
    assert outcome.throughput(1, SECONDS) >= 0.95 * max(each.throughput(1, SECONDS) for each in fixed)
    assert outcome.final("a").executor == "thread"


@pytest.mark.parametrize("seed", SEEDS[:4])
@pytest.mark.parametrize("name", OTHERS)
def test_data_that_costs_more_to_hand_over_than_processes_gain_comes_back(name, seed):
    work = Work(gil=0.002, ship=0.003, nbytes=1 << 22)
    outcome = play(simulation(OTHERS[name](seed), seed, work=work), 20, decide)
    threads = play(simulation(OTHERS[name](seed), seed, Knobs(2), work), 20)
    assert outcome.throughput(0, 20) >= 0.8 * threads.throughput(0, 20)


@pytest.mark.parametrize("seed", SEEDS)
def test_processes_refused_in_a_bad_moment_are_tried_again(seed):
    """A hand-over of elements takes long during the first trial."""
    dear = Work(gil=0.0007, ship=0.002, nbytes=8)
    sim = simulation(lambda now: 0, seed, work=dear, later={1.6: {"a": PYTHON}})
    outcome = play(sim, 30, decide)
    refused = [trial for trial in tuner_state(outcome.history[:30]).trials if trial.change.kind is Action.PROCESSES]
    assert refused[0].verdict is Verdict.WORSE
    assert outcome.final("a").executor == "process"
    assert outcome.throughput(20, 30) >= 0.95 * best_fixed("nobody", seed).throughput(1, SECONDS)
