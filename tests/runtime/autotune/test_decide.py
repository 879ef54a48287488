"""decide never fails, stays within the limits, and depends only on its arguments."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime.autotune.scenarios import simulation
from tests.runtime.autotune.simulator import play

from penstock.runtime.autotune.figures import Decision, Flow, Knobs, Means, Sample, TunerLimits
from penstock.runtime.autotune.tuner import decide

seconds = st.floats(0, 1e6) | st.just(0.0)
counts = st.integers(0, 10**12)
names = st.sampled_from(["a", "b", "c"])


@st.composite
def knobs(draw):
    executor = draw(st.sampled_from(["thread", "process"]))
    return Knobs(
        draw(st.integers(0, 200)), executor, draw(st.integers(0, 1 << 40)), draw(st.sampled_from([0.001, 0.005, 0.02]))
    )


@st.composite
def limits(draw):
    least = draw(st.integers(0, 70))
    executors = draw(st.sampled_from([("thread",), ("process",), ("thread", "process"), ("process", "thread")]))
    return TunerLimits(least, draw(st.integers(least, 128)), executors)


@st.composite
def histories(draw):
    """Draw a few settings of a few segments over a few periods, with figures of any kind."""
    present = draw(st.lists(names, max_size=3, unique=True))
    bounds = {name: draw(limits()) for name in present}
    settings_of = {name: draw(st.lists(knobs(), min_size=1, max_size=3)) for name in present}
    now, samples = draw(seconds), []
    for _ in range(draw(st.integers(0, 12))):
        stop = now + draw(st.sampled_from([0.0, 0.1, 0.1, 0.5, 2.0, 1e5]))
        flows = tuple(
            Flow(
                name,
                draw(st.sampled_from(settings_of[name])),
                bounds[name],
                *(draw(counts) for _ in range(3)),
                *(draw(seconds) for _ in range(8)),
                *(draw(counts) for _ in range(3)),
                consumer=draw(st.none() | names),
                inputs=draw(counts),
            )
            for name in present
            if draw(st.integers(0, 9))
        )
        samples.append(Sample(now, stop, draw(seconds), flows))
        now = stop
    return samples


all_means = st.builds(Means, st.floats(0.05, 200), st.integers(16, 1 << 40), st.booleans(), st.booleans())


@settings(max_examples=100, deadline=None)
@given(histories(), all_means)
def test_limits_and_budget_hold_for_any_history(history, means):
    decision = decide(history, means)
    bounds = {flow.name: flow.limits for sample in history for flow in sample.flows}
    assert set(decision.reasons) <= set(decision.knobs)
    assert sum(value.window for value in decision.knobs.values()) <= means.ram
    assert 0 < decision.period <= 2
    for name, value in decision.knobs.items():
        assert value.window >= 1
        may_leave_threads = value.executor == "process" and len(bounds[name].executors) > 1
        assert (1 if may_leave_threads else max(bounds[name].least, 1)) <= value.parallelism
        assert value.parallelism <= max(bounds[name].most, 1)
        assert value.executor in bounds[name].executors
    last = next((sample for sample in reversed(history) if sample.flows), None)
    if last is not None and last.stop > last.start:
        assert {flow.name for flow in last.flows} <= set(decision.knobs)


@settings(max_examples=50, deadline=None)
@given(histories(), all_means)
def test_it_is_a_function(history, means):
    assert decide(history, means) == decide(list(history), replace(means))


def test_of_nothing_nothing_follows():
    assert decide([], Means(2, 1 << 30)) == Decision({})


def test_the_time_of_day_does_not_matter():
    outcome = play(simulation("sleeping", 0), 4, decide)
    later = [replace(sample, start=sample.start + 1e6, stop=sample.stop + 1e6) for sample in outcome.history]
    means = simulation("sleeping", 0).means
    for count in range(1, len(later)):
        assert decide(later[:count], means).knobs == decide(outcome.history[:count], means).knobs


def test_knobs_beyond_the_limits_are_brought_back():
    flow = Flow("a", Knobs(64, "process", 1 << 40), TunerLimits(2, 8, ("thread",)))
    decision = decide([Sample(0.0, 0.1, 0.0, (flow,))], Means(2, 1 << 20))
    assert decision.knobs["a"] == Knobs(8, "thread", 1 << 20)


def test_a_budget_shrinks_all_windows_alike():
    flows = tuple(Flow(name, Knobs(2, window=size), TunerLimits(1, 2)) for name, size in (("a", 3000), ("b", 1000)))
    decision = decide([Sample(0.0, 0.1, 0.0, flows)], Means(2, 400))
    assert [decision.knobs[name].window for name in ("a", "b")] == [300, 100]


def test_workers_that_queue_for_cores_tell_of_other_programs_only_where_nobody_counts_idle_cores():
    """Many workers that pass on the interpreter queue for cores although a core is idle."""

    def told(idle):
        flow = Flow(
            "a",
            Knobs(64, window=1 << 20),
            TunerLimits(64, 64),
            elements=900,
            results=900,
            run_seconds=64.0,
            run_cpu=0.9,
            starved=0.4,
            delayed=2.0,
        )
        return decide([Sample(float(n), n + 1.0, 0.9, (flow,), idle) for n in range(5)], Means(2, 1 << 30))

    assert told(None).crowded
    assert told(0.1).crowded
    assert not told(0.9).crowded
    assert "exclude each other" in told(0.9).reasons["a"]
    assert "other programs" in told(None).reasons["a"]


@pytest.mark.parametrize(("delayed", "more"), [(0.1, True), (1.5, False)])
def test_on_a_busy_machine_only_calls_that_sleep_get_more_workers(delayed, more):
    """Calls that compute wait for a core and get no more workers."""
    flow = Flow(
        "a",
        Knobs(2, window=1 << 20),
        TunerLimits(1, 64),
        elements=100,
        results=100,
        run_seconds=3.0,
        run_cpu=0.06,
        starved=0.9,
        delayed=delayed,
    )
    samples = [Sample(float(n), n + 1.0, 0.6, (flow,), 0.0) for n in range(5)]
    decision = decide(samples, Means(2, 1 << 30))
    assert (decision.knobs["a"].parallelism > 2) == more
