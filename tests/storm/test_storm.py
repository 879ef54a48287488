"""A short storm, which checks that it works and that it finds faults."""

import os
import sys
import time
from random import Random

import pytest
from tests.storm import __main__ as storm
from tests.storm import mutants, pipelines
from tests.storm.formats import formats
from tests.storm.worker import GROUP, Skipped, Worker, Wrong, members

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc") or not hasattr(os, "fork"), reason="looks at processes")  # noqa: PTH112

# Numbers of cases, as a failure names them. These tests do not run classes without a number here.
CASES = ["resumes:1", "moves:1", "orders:2", "damage:3", "states:1", "kills:4", "leaks:5"]


# -- functions that workers call


def fine(seed):
    """Return no fault."""


def wrong(seed):
    raise Wrong(f"number {seed} is wrong")


def odd(seed):
    raise ZeroDivisionError


def skipped(seed):
    raise Skipped("no such pipeline")


def dies(seed):
    os._exit(3)


def hangs(seed):
    time.sleep(1000)


def prints(seed):
    print("to standard output")
    print("to standard error", file=sys.stderr)
    return seed


@pytest.fixture
def worker(tmp_path):
    found = Worker(tmp_path / "worker")
    yield found
    found.kill()


def call(name):
    return f"tests.storm.test_storm:{name}"


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_case_of_every_class(case, capsys):
    assert storm.main([case]) == 0, capsys.readouterr().out


def test_every_class_has_a_case_here():
    assert [case.partition(":")[0] for case in CASES] == [one.name for one in storm.storms()]


@pytest.mark.slow
def test_what_is_wrong_is_told_with_its_number_and_ends_with_1(monkeypatch, capsys):
    found = [storm.Storm(name, call(name)) for name in ("fine", "wrong", "odd", "skipped", "dies")]
    monkeypatch.setattr(storm, "storms", lambda: found)
    assert storm.main(["--cases", "2", "--seed", "7", "--minutes", "1", "--jobs", "2"]) == 1
    out = capsys.readouterr().out
    assert "STORM_SEED=7" in out
    assert [(one.cases, len(one.failed), one.skipped) for one in found] == [
        (2, 0, 0),
        (2, 2, 0),
        (2, 2, 0),
        (2, 0, 2),
        (2, 2, 0),
    ]
    for one in found:
        for number in one.failed:
            assert f"python -m tests.storm {one.name}:{number}" in out
    assert f"number {found[1].failed[0]} is wrong" in out
    assert "ZeroDivisionError" in out
    assert "the process died with 3" in out


def test_a_case_that_hangs_is_found_and_killed(worker):
    worker.ask(call("fine"), 1, seconds=60)  # it has started
    with pytest.raises(Wrong, match="no answer in 2 seconds") as caught:
        worker.ask(call("hangs"), 1, seconds=2)
    assert "in hangs" in str(caught.value)  # the place where it was
    assert worker.ask(call("prints"), 5, seconds=30) == 5
    assert "to standard error" in worker.said()


def test_forks_answer_and_may_be_killed(worker):
    assert worker.ask(call("prints"), 6, seconds=30, fork=True) == 6
    with pytest.raises(Wrong, match="the fork ended with 3"):
        worker.ask(call("dies"), 1, seconds=30, fork=True)
    pid = worker.begin(call("hangs"), 1, fork=True)
    assert members(pid, GROUP) == [pid]
    os.kill(pid, 9)
    with pytest.raises(Wrong, match="the fork ended with -9"):
        worker.answer(30)
    assert worker.ask(call("fine"), 1, seconds=30, fork=True) is None


# -- participants


def test_every_registered_source_and_step_takes_part(monkeypatch):
    """Everything registered in tests/generated is drawn soon, and changes a pipeline."""
    steps = pipelines.all_steps()
    seen = set()

    def watched(step):
        def drawn(draw, at, deterministic):
            found = step(draw, at, deterministic)
            if found is not at:
                seen.add(step)
            return found

        return drawn

    wrapped = [watched(step) for step in steps]
    monkeypatch.setattr(pipelines, "all_steps", lambda: wrapped)
    sources = set()
    names = {name for name, _, _ in pipelines.all_sources()}
    for seed in range(3000):
        try:
            sources.add(pipelines.pipeline_of(seed).text.partition("(")[0])
        except Skipped:
            continue
        if sources == names and seen == set(steps):
            return
    assert sources == names
    assert seen == set(steps)


def test_a_number_is_always_the_same_pipeline():
    for seed in range(20):
        assert pipelines.pipeline_of(seed).text == pipelines.pipeline_of(seed).text


def test_every_way_of_damage_changes_something():
    content = bytes(range(256)) * 4
    for way in mutants.WAYS:
        changed = set()
        for number in range(20):
            data = bytearray(content)
            way(data, Random(number), 100)
            changed.add(bytes(data))
        assert len(changed - {content}) >= 1, way.__name__
    assert len({mutants.mutated(content, Random(number)) for number in range(100)}) > 95


def test_formats_have_names_of_their_own():
    assert len(formats()) > 30
