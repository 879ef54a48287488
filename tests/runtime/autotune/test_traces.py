"""Recorded runs are read back unchanged, and the tuner makes the same decisions on them."""

import json
from pathlib import Path

import pytest
from tests.runtime.autotune.scenarios import SCENARIOS, simulation
from tests.runtime.autotune.simulator import play

from penstock.runtime.autotune.figures import from_json, to_json
from penstock.runtime.autotune.measure import steady_periods
from penstock.runtime.autotune.tuner import decide
from penstock.runtime.autotune.tuner_state import compacted

TRACES = sorted((Path(__file__).parent / "traces").glob("*.json"))


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_trace_is_read_as_it_was_written(name):
    sim = simulation(name, 0)
    history = play(sim, 1.5, decide).history
    assert from_json(to_json(history, sim.means)) == (history, sim.means)


@pytest.mark.parametrize("text", ["[]", '{"format": 2}', "{}"])
def test_another_format_is_refused(text):
    with pytest.raises(ValueError, match="A trace has format 1"):
        from_json(text)


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_runs_recorded_on_a_machine_lead_where_they_should(path):
    """A file has a trace and, by segment, the setting that a tuner should have chosen at its end."""
    found = json.loads(path.read_text())
    history, means = from_json(json.dumps(found["trace"]))
    decision = decide(history, means)
    assert decision.settled
    for name, expected in found["expected"].items():
        least, most = expected["parallelism"]
        assert least <= decision.knobs[name].parallelism <= most
        assert decision.knobs[name].executor == expected["executor"]


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_recorded_runs_are_within_their_limits_at_every_moment(path):
    history, means = from_json(json.dumps(json.loads(path.read_text())["trace"]))
    limits = {flow.name: flow.limits for sample in history for flow in sample.flows}
    for count in range(1, len(history) + 1):
        for name, knobs in decide(history[:count], means).knobs.items():
            assert limits[name].least <= knobs.parallelism <= limits[name].most
            assert knobs.executor in limits[name].executors


def test_there_are_recorded_runs():
    assert len(TRACES) >= 3


def test_a_long_history_stays_short_and_keeps_what_was_tried():
    sim = simulation("link", 0)
    history, period = [], 0.1
    for _ in range(400):
        sim.run(period)
        history = compacted(history, sim.sample(), most=64)
        decision = decide(history, sim.means_now())
        sim.set(decision.knobs)
        period = decision.period
        assert len(history) <= 64
        assert history[-1].stop == sim.now
    assert history[0].start < sim.now - 150
    assert {period.knobs["a"].parallelism for period in steady_periods(history)} >= {16, 32}


def test_merging_loses_no_figure():
    sim = simulation("jpeg", 0)
    whole, short = [], []
    for _ in range(200):
        sim.run(0.5)
        sample = sim.sample()
        whole.append(sample)
        short = compacted(short, sample, most=64)
    assert len(short) == 64
    covered = [sample for sample in whole if sample.start >= short[0].start]
    assert covered == whole
    for figure in ("elements", "results", "nbytes", "inputs"):
        total = sum(getattr(sample.flows[0], figure) for sample in whole)
        assert sum(getattr(sample.flows[0], figure) for sample in short) == total
    assert sum(sample.cpu for sample in short) == pytest.approx(sum(sample.cpu for sample in whole))
