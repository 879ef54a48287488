"""What runs on workers without being asked to: the end of a plan, and work on pictures."""

import numpy as np
import pytest
from tests.rewrite.plans import BASE, alone, also_impure, also_pure, impure, opaque, pure, rewritten, shape

import penstock as ps
from penstock.plan.inputs import Scan
from penstock.plan.ops import Prefetch
from penstock.rewrite.driver import optimise_inner, rewrite
from penstock.sources.arrays import RangeSource
from penstock.sources.source import SlicedSource


def counted():
    yield b"1"


def first(state, x):
    return state


@pytest.mark.parametrize(
    "dataset",
    [
        BASE.map(impure, 2).shuffle(3),
        BASE.map(impure, 2).map(opaque),
        BASE.map(impure, 2).shuffle(3).repeat(2).take(5),
        ps.Dataset.zip(BASE.map(impure, 2), BASE.shuffle(3)),
        BASE.interleave(ps.Dataset.range, 2, num_parallel_calls=2).batch(3),
        BASE.prefetch(2).map(opaque),
        BASE.map(impure).map(opaque, 2).shuffle(3),
        BASE.map(impure).prefetch(ps.AUTOTUNE).shuffle(3),
        BASE.prefetch(2).interleave(lambda x: ps.Dataset.range(x).map(pure), 2),
    ],
)
def test_what_follows_the_last_parallel_step_runs_ahead_of_the_loop(dataset):
    plan = rewritten(dataset)
    assert type(plan).__name__ == "Prefetch"
    assert plan.buffer_size == ps.AUTOTUNE
    assert rewrite(plan, ps.Options())[0] is plan
    assert "Prefetch" not in shape(rewritten(dataset, "noop_elimination"))[:1]


@pytest.mark.parametrize(
    "dataset",
    [
        BASE.map(impure).shuffle(3).batch(2),
        BASE.map(impure, 2),
        BASE.map(impure, 2).batch(2),
        BASE.batch(2, num_parallel_calls=2).repeat(2).take(3).enumerate(),
        BASE.interleave(ps.Dataset.range, 2, num_parallel_calls=2),
        ps.Dataset.zip(BASE.map(impure, 2), BASE),
        BASE.map(impure).prefetch(1),
    ],
)
def test_a_plan_that_is_sequential_or_ahead_already_stays(dataset):
    assert sum(name == "Prefetch" for name in shape(rewritten(dataset))) == dataset._plan.label.startswith("prefetch")


FILLED = BASE.map(impure).cache()


@pytest.mark.parametrize(
    "dataset",
    [
        BASE.map(impure, 2).map(also_impure),
        BASE.map(impure, 2).map(also_impure).batch(2),
        BASE.prefetch(2).map(impure),
        BASE.map(impure).prefetch(2).batch(2),
        BASE.map(impure, 2).prefetch(2).batch(2),
        ps.Dataset.from_generator(counted).prefetch(2).shuffle(3),
        ps.Dataset.zip(BASE.map(pure, 2), BASE.map(impure)),
        BASE.map(pure, 2).interleave(lambda x: ps.Dataset.range(x).map(impure), 2),
        BASE.map(pure, 2).group_by_window(pure, lambda key, window: window.map(impure), 2),
        BASE.map(pure, 2).batch(2).map(lambda batch: ps.map_fn(impure, batch)),
        BASE.map(pure, 2).apply(ps.experimental.group_by_reducer(pure, ps.experimental.Reducer(pure, first, impure))),
        FILLED.map(opaque, 2).prefetch(2).shuffle(3),
    ],
)
def test_nothing_that_somebody_could_see_is_moved_ahead_of_the_loop_unasked(dataset):
    plan = rewritten(dataset)
    assert plan == rewrite(plan, alone())[0]
    assert "prefetch(AUTOTUNE)" not in [node.label for node in plan.walk()]


class Own(RangeSource):
    """A source that penstock does not know, whose elements have numbers."""


@pytest.mark.parametrize("source", [RangeSource, Own])
def test_a_part_of_a_source_shows_what_the_source_does(source):
    part = ps.Dataset._of(Scan(source=source(range(10), np.dtype(np.int64))), ps.Options()).take(5)
    assert type(rewritten(part).source) is SlicedSource
    ahead = rewritten(part.prefetch(2).shuffle(3)).label
    assert ahead == ("shuffle(3)" if source is Own else "prefetch(AUTOTUNE)")


def test_what_a_full_cache_gives_shows_nothing():
    ahead = FILLED.prefetch(2).shuffle(3)
    assert rewritten(ahead).label == "shuffle(3)"
    assert list(FILLED.as_numpy_iterator()) == list(range(10))
    assert rewritten(ahead).label == "prefetch(AUTOTUNE)"


def test_inner_data_sets_end_where_they_are_read():
    inner = BASE.map(impure, 2).shuffle(3)
    assert shape(optimise_inner(inner._plan, ps.Options())) == ["Shuffle", "Map", "Scan"]


@pytest.mark.parametrize("dataset", [BASE.map(impure, 2), BASE.map(impure, 2).batch(2), BASE.batch(2, False, 2)])
def test_a_prefetch_of_what_is_ahead_already_vanishes(dataset):
    assert shape(rewritten(dataset.prefetch(ps.AUTOTUNE))) == shape(rewritten(dataset))
    assert shape(rewritten(dataset.prefetch(ps.AUTOTUNE), "map_fusion"))[0] == "Prefetch"
    assert shape(rewritten(dataset.prefetch(2))) == ["Prefetch", *shape(rewritten(dataset))]


def thumbnail(record):
    return ps.image.resize(ps.image.decode_jpeg(record), (8, 8))


def brighter(picture):
    return picture * 2


def noted(record):
    print(len(record))
    return ps.image.decode_jpeg(record)


RECORDS = ps.Dataset.from_tensor_slices([b"1", b"2"])


def test_work_on_pictures_is_parallel_and_what_follows_joins_it():
    plan = rewritten(RECORDS.map(thumbnail).map(brighter).batch(2))
    assert shape(plan) == ["MapAndBatch", "Scan"]
    assert [(step.num_parallel_calls, step.deterministic) for step in plan.steps] == [(ps.AUTOTUNE, True)] * 2


def test_a_pure_map_joins_the_workers_in_front_of_it():
    plan = rewritten(BASE.map(impure, 3, deterministic=False).map(pure), "map_parallelization")
    assert (plan.num_parallel_calls, plan.deterministic) == (3, False)


@pytest.mark.parametrize(
    "dataset",
    [
        RECORDS.map(noted),
        BASE.map(pure),
        BASE.map(impure, 2).map(also_impure),
        BASE.shuffle(2).map(pure),
        RECORDS.map(impure).map(thumbnail),
        RECORDS.map(impure).prefetch(2).map(thumbnail),
        RECORDS.map(impure, 2).prefetch(2).map(thumbnail),
        ps.Dataset.from_generator(counted).map(thumbnail),
        RECORDS.flat_map(lambda x: ps.Dataset.from_generator(counted)).map(thumbnail),
    ],
)
def test_other_maps_stay_sequential(dataset):
    plan = dataset._plan
    assert rewrite(plan, alone("map_parallelization"))[0] is plan


def test_a_map_that_is_to_stay_is_not_moved_to_workers():
    dataset = RECORDS.map(thumbnail, executor="inline")
    assert rewritten(dataset, "map_parallelization") is dataset._plan
    behind = BASE.map(impure, 3).map(pure, executor="inline")
    assert rewritten(behind, "map_parallelization") is behind._plan
    in_front = BASE.map(impure, 3, executor="inline").map(pure)
    assert rewritten(in_front, "map_parallelization") is in_front._plan


@pytest.mark.parametrize(
    ("below", "above", "wanted"),
    [
        ("auto", "auto", "auto"),
        ("thread", "auto", "auto"),
        ("process", "auto", "auto"),
        ("thread", "thread", "thread"),
        ("process", "process", "process"),
    ],
)
def test_a_pure_map_joins_the_workers_in_front_of_it_whoever_they_are(below, above, wanted):
    dataset = BASE.map(impure, 3, executor=below).map(pure, executor=above)
    plan = rewritten(dataset, "map_parallelization")
    assert (plan.num_parallel_calls, plan.executor) == (3, wanted)
    assert shape(rewritten(dataset, "map_parallelization", "map_fusion")) == ["FusedMap", "Scan"]


def test_a_pure_map_does_not_join_workers_of_another_kind():
    dataset = BASE.map(impure, 3, executor="thread").map(pure, executor="process")
    assert rewritten(dataset, "map_parallelization") is dataset._plan


def test_a_plan_that_ends_in_the_loops_thread_ends_there():
    for dataset in (
        BASE.map(impure, 2).map(pure, executor="inline"),
        BASE.map(impure, 2).map(pure, 2, executor="inline"),
    ):
        assert "Prefetch" not in shape(rewritten(dataset))
        assert "Prefetch" not in shape(rewritten(dataset.batch(2)))
    ahead = BASE.map(pure, executor="inline").map(impure, 2).shuffle(3)
    assert shape(rewritten(ahead))[0] == "Prefetch"


def test_a_prefetch_of_what_has_no_workers_stays():
    assert shape(rewritten(BASE.map(impure, 2, executor="inline").prefetch(2)))[0] == "Prefetch"
    assert shape(rewritten(BASE.map(impure, 2, executor="inline").batch(2).prefetch(2)))[0] == "Prefetch"


@pytest.mark.parametrize(
    "dataset",
    [
        BASE.map(pure, ps.AUTOTUNE).map(also_pure, ps.AUTOTUNE).batch(4).prefetch(ps.AUTOTUNE),
        BASE.map(pure, ps.AUTOTUNE).repeat().batch(4).take(3).prefetch(ps.AUTOTUNE),
        ps.Dataset.from_tensor_slices(([1, 2], [0.5, 1.5])).map(lambda a, b: (a * 2, b), ps.AUTOTUNE).enumerate(),
    ],
)
def test_a_little_arithmetic_on_memory_is_done_where_it_is_asked_for(dataset):
    plan = rewritten(dataset)
    assert not any(isinstance(node, Prefetch) for node in plan.walk())
    assert all(getattr(node, "num_parallel_calls", None) is None for node in plan.walk())
    assert list(map(repr, dataset.take(5))) == list(map(repr, dataset.take(5).iterator(executor="inline")))


@pytest.mark.parametrize(
    "dataset",
    [
        BASE.map(pure, 2),
        BASE.map(pure, ps.AUTOTUNE, executor="thread"),
        BASE.map(impure, ps.AUTOTUNE),
        RECORDS.map(thumbnail, ps.AUTOTUNE),
        BASE.shuffle(4).map(pure, ps.AUTOTUNE),
        ps.Dataset.from_tensor_slices(np.zeros((4, 64))).map(pure, ps.AUTOTUNE),
        BASE.map(impure).prefetch(ps.AUTOTUNE),
        BASE.prefetch(4),
    ],
)
def test_workers_stay_where_they_were_asked_for_or_may_help(dataset):
    plan = rewritten(dataset, "map_parallelization", "noop_elimination")
    assert any(isinstance(node, Prefetch) or getattr(node, "num_parallel_calls", None) for node in plan.walk())
