"""What runs on workers without being asked to: the end of a plan, and work on pictures."""

import pytest
from tests.rewrite.plans import BASE, alone, also_impure, impure, pure, rewritten, shape

import penstock as ps
from penstock.rewrite.driver import optimise_inner, rewrite


@pytest.mark.parametrize(
    "dataset",
    [
        BASE.map(impure, 2).shuffle(3),
        BASE.map(impure, 2).map(also_impure),
        BASE.map(impure, 2).shuffle(3).repeat(2).take(5),
        ps.Dataset.zip(BASE.map(impure, 2), BASE.shuffle(3)),
        BASE.interleave(ps.Dataset.range, 2, num_parallel_calls=2).batch(3),
        BASE.prefetch(2).map(impure),
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


def test_inner_data_sets_end_where_they_are_read():
    inner = BASE.map(impure, 2).shuffle(3)
    assert shape(optimise_inner(inner._plan, ps.Options())) == ["Shuffle", "Map", "Scan"]


@pytest.mark.parametrize("dataset", [BASE.map(impure, 2), BASE.map(impure, 2).batch(2), BASE.batch(2, False, 2)])
def test_a_prefetch_of_what_is_ahead_already_vanishes(dataset):
    assert shape(rewritten(dataset.prefetch(2))) == shape(rewritten(dataset))
    assert shape(rewritten(dataset.prefetch(2), "map_fusion"))[0] == "Prefetch"


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
    "dataset", [RECORDS.map(noted), BASE.map(pure), BASE.map(impure, 2).map(also_impure), BASE.shuffle(2).map(pure)]
)
def test_other_maps_stay_sequential(dataset):
    plan = dataset._plan
    assert rewrite(plan, alone("map_parallelization"))[0] is plan
