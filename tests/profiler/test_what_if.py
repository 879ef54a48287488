"""Predictions of what_if(): the model on given figures, its arguments, and one running pipeline."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.golden.golden import assert_golden
from tests.profiler import figures

import penstock as ps
from penstock.profiler.analysis.advice import advice
from penstock.profiler.analysis.applied import applied
from penstock.profiler.analysis.bottleneck import bottleneck
from penstock.profiler.analysis.changes import Changes
from penstock.profiler.analysis.figures import LOOP, LaneFigures
from penstock.profiler.analysis.model import bounds, cpu_seconds, fitted, lock_seconds, rate
from penstock.profiler.analysis.prediction import predicted

PIPELINES = {
    "serial": figures.serial,
    "parallel": figures.parallel,
    "python": figures.python,
    "reading": figures.reading,
    "reading_ahead": lambda: figures.reading(parallel=True),
}


def after(found, **change):
    return predicted(found, Changes(**change))


# -- the model


def test_one_thread_does_the_sum_of_its_steps():
    found = figures.serial()
    assert rate(found) == pytest.approx(1 / (32 * (1e-5 + 1e-4 + 2e-3 + 1e-3) + 4e-4 + 1e-5))
    assert bounds(found)[0].kind == "loop"


def test_workers_divide_what_they_run_and_not_what_one_of_them_pulls():
    found = figures.parallel(workers=4, cpus=100.0, lock=False)
    pulled, run = 32 * 1.1e-4, 32 * 3e-3 + 4e-4
    by_kind = {bound.kind: bound.per_second for bound in bounds(found)}
    assert by_kind["workers"] == pytest.approx(4 / (pulled + run))
    assert by_kind["pull"] == pytest.approx(1 / pulled)


def test_cores_and_the_lock_bound_all_together():
    found = figures.parallel(workers=64)
    by_kind = {bound.kind: bound.per_second for bound in bounds(found)}
    assert by_kind["cores"] == pytest.approx(2 / cpu_seconds(found))
    assert by_kind["lock"] == pytest.approx(1 / lock_seconds(found))
    assert "lock" not in {bound.kind for bound in bounds(replace(found, lock=False))}


def test_work_in_processes_does_not_hold_the_lock():
    threads, processes = figures.parallel(), figures.parallel(executor="process")
    assert lock_seconds(threads) == pytest.approx(32 * (1e-5 + 1e-4 + 1e-3) + 4e-4 + 1e-5)
    assert lock_seconds(processes) == pytest.approx(32 * 1e-5 + 1e-5)


@pytest.mark.parametrize("name", PIPELINES)
def test_what_the_model_does_not_see_stays(name):
    found = replace(PIPELINES[name](), elements_per_second=0.6 * PIPELINES[name]().elements_per_second)
    assert fitted(found) == pytest.approx(0.6)
    unchanged = after(found)
    assert unchanged.ratio == pytest.approx(1.0)
    assert unchanged.elements_per_second == unchanged.before == found.elements_per_second


def test_a_slow_loop_says_nothing_about_the_pipeline():
    assert fitted(figures.serial(consumer_seconds=1.0, reached=0.5)) == 1.0


# -- changes


def test_a_faster_step_shifts_the_bottleneck():
    found = figures.serial()
    assert after(found, faster={"map#1": 2.0}).ratio == pytest.approx(
        rate(replace_cpu(found, "map#1", 1e-3)) / rate(found)
    )
    assert "map#2" in after(found, faster={"map#1": 1000.0}).bottleneck


def replace_cpu(found, name, cpu):
    return replace(found, steps=tuple(replace(s, cpu=cpu) if s.name == name else s for s in found.steps))


def test_without_a_step_the_others_cost_what_they_did():
    found = figures.serial()
    assert after(found, without="map#1").ratio == pytest.approx(rate(replace_cpu(found, "map#1", 0.0)) / rate(found))
    assert after(found, without=["map#1", "map#2"]).ratio > after(found, without="map#1").ratio


def test_a_cache_frees_all_that_is_in_front_of_it():
    found = figures.reading(parallel=True)
    cached = applied(found, Changes(cached_after="interleave#1"))
    assert {step.name for step in cached.steps if step.seconds} == {"interleave#1", "map#1"}
    assert cached.step("interleave#1").seconds == pytest.approx(1e3 / 1e10)  # its elements are copied once
    assert rate(cached) == pytest.approx(1 / 1e-4, rel=0.01)


def test_cores_help_what_autotune_may_spread():
    tuned, fixed = figures.parallel(lock=False), figures.parallel(lock=False, autotuned=False)
    assert after(tuned, cores=16).ratio == pytest.approx(8.0, rel=0.1)
    assert after(fixed, cores=16).ratio == pytest.approx(1.0, rel=0.1)
    assert after(tuned, cores=1).ratio == pytest.approx(0.5, rel=0.1)


def test_processes_free_a_function_of_the_lock():
    found = figures.python()
    assert bounds(found)[0].kind == "lock"
    moved = after(found, executor={"map#1": "process"})
    assert 1.85 < moved.ratio < 2.0
    assert "Sending an element of map#1" in " ".join(moved.sentences)


def test_processes_do_not_help_what_is_costly_to_send():
    found = figures.parallel(workers=2)
    heavy = replace(
        found, steps=tuple(replace(step, nbytes=1e9 if step.name == "map#1" else step.nbytes) for step in found.steps)
    )
    assert after(heavy, executor={"map#1": "process"}).ratio < 0.5


def test_parallel_calls_give_a_step_workers_of_its_own():
    found = figures.serial(lock=False, cpus=100.0)
    changed = applied(found, Changes(parallelism={"map#1": 8}))
    lane = changed.lane("map#1")
    assert (lane.workers, lane.consumer) == (8, LOOP)
    assert [(s.lane, s.parallel) for s in changed.steps] == [
        ("map#1", False),
        ("map#1", True),
        (LOOP, False),
        (LOOP, False),
    ]
    assert rate(changed) == pytest.approx(1 / (32e-3 + 4e-4 + 1e-5))  # the part in the consumer's thread


def test_autotune_takes_as_many_workers_as_waiting_calls_need():
    found = figures.reading()
    changed = applied(found, Changes(parallelism={"interleave#1": ps.AUTOTUNE}))
    assert changed.lane("interleave#1 inputs").workers == 16  # inputs open at a time
    assert after(found, parallelism={"interleave#1": ps.AUTOTUNE}).ratio > 10
    assert after(found, parallelism={"interleave#1": 2}).ratio == pytest.approx(2.0, rel=0.05)


def test_inline_gives_the_work_back_to_whoever_takes_it():
    found = figures.parallel(lock=False)
    changed = applied(found, Changes(executor={"map#1": "inline"}))
    assert [lane.name for lane in changed.lanes] == [LOOP]
    assert rate(changed) == pytest.approx(rate(figures.serial(lock=False)))


def test_a_loop_of_a_given_length_is_never_outrun():
    found = figures.serial(reached=0.5)
    slow = after(found, consumer_seconds=3.0)
    assert slow.elements_per_second < 1 / 3.0
    assert "The loop is the slow side" in slow.bottleneck


factors = st.floats(1.0, 100.0)
settings_of = {
    "serial": ["map#1", "map#2"],
    "parallel": ["map#1", "map#2"],
    "python": ["map#1"],
    "reading": ["interleave#1/TFRecordDataset", "map#1"],
    "reading_ahead": ["interleave#1/TFRecordDataset", "map#1"],
}


@given(st.sampled_from(sorted(PIPELINES)), factors, factors, st.floats(0.2, 1.0), st.data())
def test_what_costs_less_never_gives_less(name, less, more, reached, data):
    found = PIPELINES[name]()
    found = replace(found, elements_per_second=reached * found.elements_per_second)
    step = data.draw(st.sampled_from(settings_of[name]))
    low, high = sorted([less, more])
    assert after(found, faster={step: high}).ratio >= after(found, faster={step: low}).ratio - 1e-9
    assert after(found, faster={step: low}).ratio >= 1 - 1e-9
    assert after(found, without=step).ratio >= after(found, faster={step: high}).ratio - 1e-9
    assert after(found, cores=found.cpus * high).ratio >= after(found, cores=found.cpus * low).ratio - 1e-9
    assert math.isfinite(after(found, cached_after=step).elements_per_second)


# -- arguments

WRONG = {
    "unknown": {"faster": {"map#3": 2.0}},
    "near": {"cached_after": "map1"},
    "far": {"without": "tokenise"},
    "no_name": {"without": 1},
    "no_dict": {"faster": 2.0},
    "faster_zero": {"faster": {"map#1": 0}},
    "faster_text": {"faster": {"map#1": "twice"}},
    "cores": {"cores": 0},
    "consumer_seconds": {"consumer_seconds": -1},
    "executor": {"executor": {"map#1": "gpu"}},
    "executor_of_batch": {"executor": {"batch#1": "process"}},
    "parallelism": {"parallelism": {"map#1": 0}},
    "parallelism_of_source": {"parallelism": {"TFRecordDataset#1": 4}},
    "cached_and_faster": {"cached_after": "map#2", "faster": {"map#1": 2.0}},
    "without_and_executor": {"without": ["map#1"], "executor": {"map#1": "process"}},
    "without_and_cached": {"without": ["map#1"], "cached_after": "map#2"},
    "without_bytes": {"without": b"map#1"},
    "inline_and_parallelism": {"executor": {"map#1": "inline"}, "parallelism": {"map#1": 2}},
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(case):
    with pytest.raises((ps.errors.InvalidArgumentError, ps.errors.InvalidTypeError)) as caught:
        after(figures.serial(), **WRONG[case])
    assert_golden(f"argument_what_if_{case}", str(caught.value))


def test_numbers_of_numpy_are_numbers():
    found = figures.serial()
    wanted = after(found, cores=8.0, faster={"map#1": 2.0}, consumer_seconds=0.5)
    assert after(found, cores=np.int64(8), faster={"map#1": np.float32(2)}, consumer_seconds=np.float64(0.5)) == wanted


def test_no_other_analysis():
    with pytest.raises(ps.errors.InvalidTypeError) as caught:
        ps.Dataset.range(3).what_if(analysis="a text")
    assert_golden("argument_what_if_analysis", str(caught.value))
    with pytest.raises(ps.errors.InvalidTypeError, match=r"got \{\} \(dict\)"):
        ps.Dataset.range(3).what_if(analysis={})


def test_nothing_is_predicted_from_nothing():
    found = figures.serial()
    steps = tuple(replace(step, elements=0.0) if step.name == "batch#1" else step for step in found.steps)
    with pytest.raises(ps.errors.FailedPreconditionError) as caught:
        after(replace(found, steps=steps, elements=0, elements_per_second=0.0), cores=4)
    assert_golden("error_what_if_nothing", str(caught.value))
    with pytest.raises(ps.errors.FailedPreconditionError, match=r"no elements.\n  ds.explain\(analyze=True\) shows"):
        ps.Dataset.range(5).filter(lambda x: x > 9).what_if(cores=4)


# -- answers


def test_an_answer_reads_well():
    found = figures.parallel(reached=0.5)
    answers = [
        after(found),
        after(found, cores=16),
        after(found, cached_after="map#1"),
        after(replace(found, epoch_elements=800), cached_after="map#1"),
        after(found, executor={"map#2": "process"}),
        after(figures.reading(), parallelism={"interleave#1": ps.AUTOTUNE}),
        after(found, consumer_seconds=0.25),
    ]
    assert_golden("what_if", "\n".join(map(repr, answers)))


def test_the_analysis_stays_with_the_data_set(monkeypatch):
    monkeypatch.setattr("penstock.dataset.explaining._SECONDS", 0.3)
    calls = []

    def count(x):
        calls.append(1)
        return x

    ds = ps.Dataset.range(50).map(count).batch(5)
    first = ds.what_if(faster={"map#1": 2.0})
    made = len(calls)
    assert made > 0
    again = ds.what_if(without="map#1")
    assert len(calls) == made
    assert again.analysis is first.analysis
    other = ps.Dataset.range(50).map(count).batch(5).what_if(analysis=first.analysis, without="map#1")
    assert len(calls) == made
    assert other.ratio == again.ratio


def test_lanes_are_of_the_same_kind_as_those_measured():
    found = figures.serial()
    changed = applied(found, Changes(parallelism={"map#1": 3}, executor={"map#1": "process"}))
    assert changed.lane("map#1") == LaneFigures("map#1", LOOP, 3, "process")


def test_a_loop_that_makes_its_elements_itself_is_told_to_prefetch():
    # in addition to 0.1 s of its own thread's time for each
    found = figures.serial(consumer_seconds=0.1, consumer_waited=0.5)
    first = advice(found)[0]
    assert first.change.prefetch
    assert first.ratio == pytest.approx(after(found, prefetch=True).ratio) == pytest.approx(1.96, rel=0.05)
    assert bottleneck(found).step == "map#1"
    assert "Nothing is computed ahead" in bottleneck(found).sentence
    slower = replace(found, elements_per_second=1 / (0.1 + 2 * (1 / found.elements_per_second - 0.1)))
    assert fitted(slower) == pytest.approx(0.5, rel=0.02)  # preparation takes twice as long, the loop does not


def test_a_loop_that_was_seen_to_wait_is_not_the_slow_side():
    found = figures.serial(consumer_seconds=0.1, consumer_waited=0.9)
    stalled = replace(found, elements_per_second=0.1)  # ten seconds for each, of which the steps explain 0.1
    assert bottleneck(stalled).step == "map#1"
    assert "slow side" not in bottleneck(stalled).sentence
    assert advice(stalled)[0].ratio > 2


def test_a_loop_with_workers_below_has_nothing_to_prefetch():
    assert not any(each.change.prefetch for each in advice(figures.parallel(consumer_seconds=0.1)))
