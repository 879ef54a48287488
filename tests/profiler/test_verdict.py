"""One analysis, one answer: `explain(analyze=True)`, the profiler and `penstock top` agree on the same figures."""

from __future__ import annotations

import re
import threading
from dataclasses import asdict, replace
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from tests.profiler import figures

import penstock as ps
from penstock.cli.top import drawn
from penstock.profiler.analysis.analyse import _per_input
from penstock.profiler.analysis.figures import Analysis, percent
from penstock.profiler.analysis.meter import Frame, MeterKey
from penstock.profiler.analysis.report import report
from penstock.profiler.live.snapshot import _pipeline, observed
from penstock.profiler.recording.pipeline import Start, Waits
from penstock.profiler.recording.sampler import Looks, Sampler
from penstock.profiler.verdict import RunVerdict, verdict

RECORDED = {
    "serial": figures.serial,
    "parallel": lambda: figures.parallel(reached=0.6),
    "python": figures.python,
    "reading": figures.reading,
    "handing": figures.idle,
    "a loop that also makes its elements": lambda: figures.serial(consumer_seconds=0.1, consumer_waited=0.5),
    "a slow loop": lambda: figures.parallel(consumer_seconds=0.5, consumer_waited=0.01),
    "a loop that never waits, whatever the model says": lambda: figures.serial(
        consumer_seconds=0.02, consumer_waited=0.0
    ),
}


def recorded(found: Analysis, starting: float = 0.0, start: Start | None = None) -> RunVerdict:
    return verdict(Analysis.of(asdict(found)), asdict(waits(found, starting)), start and asdict(start))


def waits(found: Analysis, starting: float = 0.0) -> Waits:
    waited = found.seconds * found.consumer_waited + starting
    return Waits(found.elements, waited, starting, running=found.seconds + starting, passes=1)


def of_top(found: Analysis) -> tuple[dict[str, Any], str]:
    pipeline: Any = SimpleNamespace(
        name="pipeline 1",
        plan=ps.Dataset.range(1)._plan,
        written=None,
        start=None,
        recent=lambda: (found, waits(found)),
        totals=lambda: found,
        loop=SimpleNamespace(running=1, waits_now=lambda: waits(found)),
    )
    told = _pipeline(pipeline)
    text = StringIO()
    process = {"pid": 1, "program": "train.py", "cpus": 2.0, "memory": 1, "memory_granted": 2, "pipelines": [told]}
    Console(file=text, width=200).print(drawn(process, 200))
    return told, text.getvalue()


@pytest.mark.parametrize("name", RECORDED)
def test_three_tools_name_one_step_and_one_share_of_waiting(name: str) -> None:
    found = RECORDED[name]()
    answer = recorded(found)
    told, text_of_top = of_top(found)
    texts = [report(found), answer.text, text_of_top]
    assert {" ".join(re.findall("the loop waited for data (.*?) of the time", text)) for text in texts} == {
        percent(found.consumer_waited)
    }
    assert told["verdict"]["step"] == answer.step
    assert [row["name"] for row in told["rows"] if row["bottleneck"]] == ([answer.step] if answer.step else [])
    sentence = answer.sentences[1]
    assert answer.step is None or answer.step in sentence
    assert all(sentence in re.sub(r"\s+", " ", text) for text in texts)


def filling(**more: Any) -> tuple[Analysis, Start]:
    """Build a shuffle that reads 120 elements before the first one, and a consumer that takes longer than reading."""
    found = figures.analysis(
        figures.step("from_generator#1", cpu=1e-5, waiting=1e-2),
        figures.step("shuffle#1", args="120", inputs=("from_generator#1",), cpu=1e-6),
        **more,
    )
    made = {"from_generator#1": 120.0, "shuffle#1": 1.0}
    return found, Start(1.2, made, busy={"from_generator#1": 1.2, "shuffle#1": 0.01})


def test_a_shuffle_that_filled_is_named_if_the_loop_did_not_wait_after_that() -> None:
    found, start = filling(consumer_seconds=0.02, consumer_waited=0.0)
    answer = recorded(found, 1.2, start)
    assert (answer.kind, answer.step, answer.input_bound) == ("filling", "shuffle#1", "yes")
    assert "1.2 s of 5.2 s: shuffle#1 (120) was filling its buffer with 120 elements" in answer.sentences[0]
    assert answer.sentences[1] == "After that the loop waited for data 0 % of the time."


def test_a_slow_step_is_named_however_long_the_shuffle_filled() -> None:
    found, start = filling(consumer_waited=1.0)
    answer = recorded(found, 12.0, start)
    assert answer.step == "from_generator#1" == recorded(found).step
    assert "The first elements came after 12 s in all: shuffle#1 (120) was filling" in answer.text
    assert recorded(replace(found, elements=0, elements_per_second=0.0), 12.0, start).kind == "nothing"


def test_the_work_of_a_shuffle_that_fills_is_divided_by_what_came() -> None:
    below, shuffle = (
        figures.step("range#1", elements=11.0),
        figures.step("shuffle#1", elements=1.0, cpu=0.11, wall=0.22),
    )
    assert _per_input(shuffle, below).cpu == pytest.approx(0.01)
    assert _per_input(shuffle, below).wall == pytest.approx(0.02)
    assert _per_input(replace(shuffle, elements=20.0), below) == replace(shuffle, elements=20.0)


def test_a_step_that_was_rarely_seen_waits_as_all_steps_do() -> None:
    looks = Looks()
    often, rarely = MeterKey(1, "step"), MeterKey(2, "step")
    looks.seen.update({often: 40, rarely: 1})
    looks.waits.update({often: 0, rarely: 0})
    assert looks.waiting(rarely, 1.0, 0.2) == 0.0
    looks.waits.update({often: 20})
    assert looks.waiting(rarely, 1.0, 0.2) == pytest.approx(20 / 41)
    assert looks.waiting(often, 1.0, 0.2) == pytest.approx(0.5)
    assert Looks().waiting(often, 1.0, 0.2) == pytest.approx(0.8)


def test_first_calls_are_no_part_of_what_a_step_costs_if_only_a_first_element_came() -> None:
    dataset = ps.Dataset.range(1000).map(lambda x: int(str(x))).shuffle(10)
    with ps.monitor(), iter(dataset) as elements:
        next(elements)
        (observing,) = observed()
        (pipeline,) = observing.pipelines.values()
        made = pipeline.tracer.costs()
        found = pipeline.together()
    assert found.begin.taken == 0
    for key, cost in found.costs.items():
        first = pipeline.tracer.first_calls[key]
        assert cost.wall in (made[key].wall - first.wall, made[key].wall)
    assert any(cost.calls < made[key].calls for key, cost in found.costs.items())


@pytest.mark.parametrize("queued", [0.0, 60.0])
def test_a_look_that_is_late_for_want_of_a_core_is_not_laid_to_the_lock(
    monkeypatch: pytest.MonkeyPatch, queued: float
) -> None:
    sampler, looks, key = Sampler(lambda seconds: threading.Event().wait(0.01)), Looks(), MeterKey(1, "step")
    waited = iter((0.0, queued))
    monkeypatch.setattr(sampler, "_queued", lambda: next(waited))
    monkeypatch.setattr(sampler, "_has_lock", True)
    sampler.look(0.0, [([(threading.get_native_id(), [Frame(key)], None)], looks)])
    assert looks.seen[key] == (1 if queued else 0)
