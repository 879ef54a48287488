"""Steps that become one, and steps that vanish."""

import time
import urllib.parse
import urllib.request
from functools import partial

import numpy as np
import pytest
from tests.rewrite.plans import BASE, MIXED, also_pure, impure, odd, opaque, pure, rewritten, shape

import penstock as ps
from penstock.rewrite.driver import outcomes, rewrite


@pytest.mark.parametrize(
    "step",
    [
        lambda ds: ds.take(-1),
        lambda ds: ds.skip(0),
        lambda ds: ds.repeat(1),
        lambda ds: ds.prefetch(0),
        lambda ds: ds.shard(1, 0),
    ],
)
def test_no_ops_vanish(step):
    assert shape(rewritten(step(BASE), "noop_elimination")) == ["Scan"]
    assert len(shape(rewritten(step(BASE), "map_fusion"))) == 2


@pytest.mark.parametrize(
    "step",
    [
        lambda ds: ds.take(10),
        lambda ds: ds.skip(1),
        lambda ds: ds.repeat(2),
        lambda ds: ds.repeat(0),
        lambda ds: ds.prefetch(1),
        lambda ds: ds.shard(2, 0),
    ],
)
def test_steps_that_do_something_stay(step):
    assert len(shape(rewritten(step(BASE), "noop_elimination"))) == 2


def test_neighbouring_maps_fuse_in_their_order():
    plan = rewritten(BASE.map(pure).map(also_pure).filter(odd))
    assert shape(plan) == ["FusedMap", "Scan"]
    assert [step.label for step in plan.steps] == ["map(pure)", "map(also_pure)", "filter(odd)"]


@pytest.mark.parametrize(
    ("rules", "wanted"),
    [
        (["map_fusion"], [1, 1, 1, 2]),
        (["filter_fusion"], [1, 2, 1, 1]),
        (["map_fusion", "filter_fusion"], [1, 2, 2]),
        (["map_and_filter_fusion"], [4, 1]),
        (["map_fusion", "filter_fusion", "map_and_filter_fusion"], [5]),
        (["noop_elimination"], [1, 1, 1, 1, 1]),
    ],
)
def test_each_kind_of_fusion_has_its_switch(rules, wanted):
    """How many maps and filters are in each step, the consumer's side first."""
    *steps, _ = rewritten(MIXED, *rules).walk()
    assert [len(getattr(step, "steps", [step])) for step in steps] == wanted


FUSIONS = ("map_fusion", "filter_fusion", "map_and_filter_fusion")


@pytest.mark.parametrize(
    "dataset",
    [
        BASE.map(pure, 2).map(also_pure),
        BASE.map(pure).map(also_pure, 2),
        BASE.map(pure, 2).map(also_pure, 4),
        BASE.map(pure, 2, deterministic=False).map(also_pure, 2),
        BASE.map(pure, 2).filter(impure),
        BASE.filter(odd).map(pure, 2),
    ],
)
def test_maps_that_run_differently_stay_apart(dataset):
    assert len(shape(rewritten(dataset, *FUSIONS))) == 3


def sleeps(x):
    time.sleep(0.01)
    return x


def by_a_helper(x):
    return sleeps(x)


def downloads(x):
    return urllib.request.urlopen(f"http://localhost/{x}").read()


def by_a_session(x, session=urllib.request.OpenerDirector()):  # noqa: B008
    return session.open(f"http://localhost/{x}").read()


def parses(x):
    return len(urllib.parse.quote(str(x)))


@pytest.mark.parametrize("waits", [sleeps, by_a_helper, downloads, by_a_session, partial(sleeps)])
def test_maps_that_wait_have_the_calls_of_each_and_not_of_one(waits):
    for dataset in (BASE.map(waits, 4).map(pure, 4), BASE.map(pure, 4).map(waits, 4)):
        assert shape(rewritten(dataset, *FUSIONS)) == ["Map", "Map", "Scan"]
    fused = BASE.map(pure, 4).map(also_pure, 4).map(waits, 4)
    assert shape(rewritten(fused, *FUSIONS)) == ["Map", "FusedMap", "Scan"]
    for dataset in (BASE.map(waits, ps.AUTOTUNE).map(pure, ps.AUTOTUNE), BASE.map(waits).map(pure)):
        assert shape(rewritten(dataset, *FUSIONS)) == ["FusedMap", "Scan"]


def test_maps_that_compute_share_their_calls():
    assert shape(rewritten(BASE.map(parses, 4).map(opaque, 4), *FUSIONS)) == ["FusedMap", "Scan"]


def keeping():
    seen = []

    def keep(x):
        seen.append(x)
        return x

    return keep


@pytest.mark.parametrize(
    ("dataset", "executor"),
    [
        (BASE.map(pure, 2).map(also_pure, 2), "auto"),
        (BASE.map(pure, 2, executor="thread").map(also_pure, 2, executor="thread"), "thread"),
        (BASE.map(pure, 2, executor="process").map(also_pure, 2, executor="process"), "process"),
        (BASE.map(pure, 2, executor="inline").map(also_pure, 2, executor="inline"), "inline"),
        (BASE.map(pure, 2, executor="process").map(also_pure, 2), "process"),
        (BASE.map(keeping(), 2, executor="thread").map(also_pure, 2), "thread"),
        (BASE.map(keeping(), 2).map(also_pure, 2, executor="thread"), "thread"),
        (BASE.map(pure, 2).map(also_pure, 2, executor="process"), "process"),
        (BASE.map(pure, 2).filter(odd).map(also_pure, 2, executor="process"), "process"),
        (BASE.map(pure, 2, executor="thread").filter(odd), "thread"),
        (BASE.map(pure, 2, executor="process").filter(odd), "process"),
        (BASE.map(pure).map(also_pure, executor="thread"), "thread"),
        (BASE.map(pure, executor="thread").map(also_pure, executor="inline"), "inline"),
        (BASE.filter(odd).map(pure, executor="process"), "process"),
        (BASE.filter(odd).filter(odd), "auto"),
    ],
)
def test_steps_fuse_where_the_same_may_call_them(dataset, executor):
    plan = rewritten(dataset, *FUSIONS)
    assert shape(plan) == ["FusedMap", "Scan"]
    assert plan.executor == executor
    assert [int(x) for x in dataset] == [int(x) for x in dataset.iterator(executor="inline")]


@pytest.mark.parametrize(
    "dataset",
    [
        BASE.map(pure, 2, executor="thread").map(also_pure, 2, executor="process"),
        BASE.map(pure, 2).map(also_pure, 2, executor="inline"),
        BASE.map(pure, 2, executor="process").map(keeping(), 2),
        BASE.map(keeping(), 2).map(pure, 2, executor="process"),
        BASE.map(pure, executor="process").map(also_pure, executor="thread"),
        BASE.map(pure, executor="process").map(keeping()),
        BASE.map(pure, executor="process").filter(impure),
    ],
)
def test_steps_stay_apart_where_others_are_to_call_them(dataset):
    assert len(shape(rewritten(dataset, *FUSIONS))) == 3


@pytest.mark.parametrize("executor", ["auto", "thread", "process", "inline"])
def test_a_batch_joins_its_map_whoever_calls_it(executor):
    plan = rewritten(BASE.map(impure, 2, executor=executor).batch(2), "map_and_batch_fusion")
    assert shape(plan) == ["MapAndBatch", "Scan"]
    assert plan.executor == executor


def test_a_pure_filter_joins_a_parallel_map():
    assert shape(rewritten(BASE.map(pure, 2).filter(odd))) == ["FusedMap", "Scan"]


PICTURES = ps.Dataset.from_tensor_slices(np.zeros((10, 32, 32), np.float32))


def test_a_parallel_map_and_its_batch_become_one():
    plan = rewritten(PICTURES.map(pure, 4).map(also_pure, 4).batch(3, drop_remainder=True))
    assert shape(plan) == ["MapAndBatch", "Scan"]
    assert len(plan.steps) == 2
    assert plan.batch.drop_remainder
    assert plan.spec == ps.TensorSpec((3, 32, 32), np.float32)
    assert plan.cardinality == 3


def test_batches_of_little_elements_are_made_by_the_workers_too():
    assert shape(rewritten(BASE.map(pure, 4).batch(3).prefetch(ps.AUTOTUNE))) == ["MapAndBatch", "Scan"]


@pytest.mark.parametrize(
    "dataset",
    [
        PICTURES.map(pure).batch(3),
        BASE.map(impure, 4).filter(impure).batch(3),
        PICTURES.map(pure, 4, deterministic=True).batch(3, deterministic=False),
        BASE.map(impure, 4).shuffle(3).skip(1).batch(3),
    ],
)
def test_other_batches_stay(dataset):
    assert "MapAndBatch" not in shape(rewritten(dataset))


def test_shuffled_epochs_become_one_step():
    dataset = BASE.shuffle(4).repeat(3)
    plan = rewritten(dataset)
    assert shape(plan) == ["ShuffleAndRepeat", "Scan"]
    assert plan.shuffle.salt == dataset._plan.input.salt
    assert (plan.spec, plan.cardinality) == (dataset._plan.spec, 30)
    assert rewritten(BASE.shuffle(4).repeat()).cardinality == ps.INFINITE_CARDINALITY


@pytest.mark.parametrize("dataset", [BASE.shuffle(4).repeat(0), BASE.repeat(2), BASE.shuffle(4).batch(2).repeat(2)])
def test_other_epochs_stay(dataset):
    assert "ShuffleAndRepeat" not in shape(rewritten(dataset))


@pytest.mark.parametrize(
    ("dataset", "kind"),
    [
        (ps.Dataset.range(4).map(pure).map(impure).filter(odd), "FusedMap"),
        (ps.Dataset.range(4).map(pure, 2).map(impure, 2).batch(2), "MapAndBatch"),
        (ps.Dataset.range(4).shuffle(2).repeat(2), "ShuffleAndRepeat"),
    ],
)
def test_parts_of_a_fused_step_have_no_input_of_their_own(dataset, kind):
    """With one, all below would be there once more for each part: in digests, comparisons, what is printed."""
    text = repr(rewritten(dataset))
    assert f"{kind}(" in text
    assert text.count("Scan(") == 1


def test_a_chain_that_fuses_is_told_once():
    """Each application names all that fused before: a record of all of them grows with the square of the steps."""
    chain = BASE
    for _ in range(5):
        chain = chain.map(pure).filter(odd)
    record = rewrite(chain._plan, ps.Options())[1]
    assert len(record) == 9
    (told,) = outcomes(record)
    assert (told.rule, told.before) == ("fuse_maps_and_filters", "filter(odd)")
    assert told.after == " · ".join(["map(pure) · filter(odd)"] * 5)
    parted = chain.batch(2).unbatch().map(pure).map(also_pure)
    record = rewrite(parted._plan, ps.Options())[1]
    assert [each.rule for each in outcomes(record)] == ["fuse_maps_and_filters", "fuse_maps"]
