"""Options that limit the workers of a run and the bytes of its segments."""

import pytest

import penstock as ps
from penstock.rewrite.driver import optimise
from penstock.runtime.machine.granted import at_most, autotuned_workers
from penstock.runtime.memory.kept import KEPT
from penstock.runtime.run import Run, RunSettings
from penstock.runtime.scheduler import scheduler, scheduler_for
from penstock.runtime.segment import Segment


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({}, 6),
        ({"autotune": {"enabled": False}}, 1),
        ({"autotune": {"cpu_budget": 2}}, 2),
        ({"autotune": {"cpu_budget": 9}}, 9),
        ({"autotune": {"min_parallelism": 3}}, 6),
        ({"autotune": {"min_parallelism": 20}}, 20),
        ({"autotune": {"min_parallelism": 20, "cpu_budget": 8}}, 8),
        ({"threading": {"private_threadpool_size": 3}}, 3),
        ({"threading": {"private_threadpool_size": 0}}, 6),
        ({"threading": {"private_threadpool_size": 3}, "autotune": {"cpu_budget": 8}}, 3),
    ],
)
def test_autotune_means_as_many_workers_as_are_granted(settings, wanted):
    options = ps.Options(**settings)
    assert autotuned_workers(options, cpus=6) == wanted
    assert at_most(options, 1000) == min(
        [1000, *(n for n in (options.autotune.cpu_budget, options.threading.private_threadpool_size) if n)]
    )


def test_a_pool_of_one_s_own_is_made_only_if_asked_for():
    assert scheduler_for(ps.Options()) is scheduler()
    options = ps.Options(threading={"private_threadpool_size": 2})
    assert scheduler_for(options) is not scheduler()
    assert scheduler_for(options) is not scheduler_for(options)


def segments(dataset, options):
    """Return the segments of a data set without a run, and the objects to close."""
    run = Run(optimise(dataset._plan, options), options, 0, RunSettings())
    found, stages = [], [run.root]
    while stages:
        stage = stages.pop()
        found += [stage] if isinstance(stage, Segment) else []
        stages += stage.inputs
    return found, run.close


def noted(x):
    print(x)
    return x


STAGES = ps.Dataset.range(9).map(noted, 2).shuffle(3).map(noted, 2).shuffle(3).batch(2, num_parallel_calls=2)


@pytest.fixture
def no_holes(monkeypatch):
    """Keep other tests from changing the holes in heaps."""
    monkeypatch.setattr(KEPT, "_polled", {})


def test_a_budget_is_divided_by_the_segments_of_a_run(no_holes):
    for budget in (3_000, 100):
        found, close = segments(STAGES, ps.Options(autotune={"ram_budget": budget}))
        assert len(found) == 3
        limits = {segment.lane.limit for segment in found}
        assert len(limits) == 1
        made = budget - budget // 8  # an eighth is for elements in progress
        assert (made - budget // 8) // 3 <= limits.pop() <= made // 3  # up to one Block is left from earlier tests
        close()


def test_without_a_budget_each_segment_has_a_bound_of_its_own():
    found, close = segments(STAGES, ps.Options())
    assert len({segment.lane.limit for segment in found}) == 1
    assert 1 << 20 < found[0].lane.limit <= 1 << 26
    close()
