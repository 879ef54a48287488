"""Each rule: what it makes, what it leaves alone. That results stay equal is held in dataset/test_generated.py."""

import dataclasses

import numpy as np
import pytest

import penstock as ps
from penstock.plan import ops
from penstock.plan.node import Node, UnaryNode
from penstock.plan.scan import Scan
from penstock.plan.verify import verify
from penstock.rewrite import driver
from penstock.rewrite.driver import rewrite
from penstock.rewrite.phases import PHASES, Phase
from penstock.rewrite.rule import rule


def pure(x):
    return x * 2


def also_pure(x):
    return x + 1


def impure(x):
    print(x)
    return x


def odd(x):
    return x % 2 == 1


BASE = ps.Dataset.range(10)


def rewritten(dataset, **switches):
    options = ps.Options()
    for name, value in switches.items():
        setattr(options.experimental_optimization, name, value)
    return rewrite(dataset._plan, options)[0]


def shape(plan):
    """The plan as names from the consumer's side down to the source."""
    return [type(node).__name__ for node in plan.walk()]


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
    assert shape(rewritten(step(BASE))) == ["Scan"]
    assert shape(rewritten(step(BASE), noop_elimination=False))[-1] == "Scan"
    assert len(shape(rewritten(step(BASE), noop_elimination=False))) == 2


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
    assert len(shape(rewritten(step(BASE)))) == 2


def test_neighbouring_maps_fuse_in_their_order():
    plan = rewritten(BASE.map(pure).map(also_pure).filter(odd))
    assert shape(plan) == ["FusedMap", "Scan"]
    assert [step.label for step in plan.steps] == ["map(pure)", "map(also_pure)", "filter(odd)"]
    assert shape(rewritten(BASE.map(pure).map(also_pure), map_fusion=False)) == ["Map", "Map", "Scan"]


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
    assert len(shape(rewritten(dataset))) == 3


def test_a_pure_filter_joins_a_parallel_map():
    assert shape(rewritten(BASE.map(pure, 2).filter(odd))) == ["FusedMap", "Scan"]


def test_a_parallel_map_and_its_batch_become_one():
    plan = rewritten(BASE.map(pure, 4).map(also_pure, 4).batch(3, drop_remainder=True))
    assert shape(plan) == ["MapAndBatch", "Scan"]
    assert len(plan.steps) == 2
    assert plan.batch.drop_remainder
    assert plan.spec == ps.TensorSpec((3,), np.int64)
    assert plan.cardinality == 3


@pytest.mark.parametrize(
    "dataset",
    [
        BASE.map(pure).batch(3),
        BASE.map(pure, 4).filter(odd).batch(3),
        BASE.map(pure, 4, deterministic=True).batch(3, deterministic=False),
        BASE.map(pure, 4).shuffle(3).skip(1).batch(3),
    ],
)
def test_other_batches_stay(dataset):
    assert "MapAndBatch" not in shape(rewritten(dataset))


def test_a_shuffle_moves_below_pure_maps_and_keeps_its_order():
    dataset = BASE.map(pure).map(also_pure).shuffle(4)
    plan = rewritten(dataset, map_fusion=False)
    assert shape(plan) == ["Map", "Map", "Shuffle", "Scan"]
    shuffle = list(plan.walk())[2]
    assert shuffle.salt == dataset._plan.salt
    assert shape(rewritten(dataset, map_fusion=False, shuffle_before_map=False)) == ["Shuffle", "Map", "Map", "Scan"]


@pytest.mark.parametrize("dataset", [BASE.map(impure).shuffle(4), BASE.filter(odd).shuffle(4)])
def test_a_shuffle_stays_above_what_it_must_not_reorder(dataset):
    assert shape(rewritten(dataset))[0] == "Shuffle"


def test_every_step_keeps_the_line_it_was_made_on():
    dataset = BASE.map(pure, 4).map(also_pure, 4).batch(2)
    plan = rewritten(dataset)
    assert plan.where == dataset._plan.where
    assert {step.where for step in plan.steps} == {dataset._plan.input.where, dataset._plan.input.input.where}


def test_each_rewrite_is_recorded_with_its_rule():
    record = rewrite(BASE.map(pure).skip(0).map(also_pure)._plan, ps.Options())[1]
    assert [(step.rule, step.before) for step in record] == [
        ("drop_no_ops", "skip(0)"),
        ("fuse_maps", "map(also_pure)"),
    ]


def test_a_plan_that_needs_nothing_comes_back_itself():
    plan = BASE.batch(3)._plan
    assert rewrite(plan, ps.Options())[0] is plan


def test_rules_reach_every_input():
    plan = rewritten(ps.Dataset.zip(BASE.skip(0), BASE.concatenate(BASE.take(-1))))
    assert shape(plan) == ["Zip", "Scan", "Concatenate", "Scan", "Scan"]


def test_every_rule_has_a_switch_and_a_sentence():
    for phase in PHASES:
        for one in phase.rules:
            assert hasattr(ps.Options().experimental_optimization, one.option)
            assert one.sentence.endswith(".")


def test_rules_that_chase_each_other_are_stopped(monkeypatch):
    @rule(ops.Take, option="noop_elimination")
    def grow(take: ops.Take) -> Node:
        """Grows."""
        return dataclasses.replace(take, count=take.count + 1)

    monkeypatch.setattr(driver, "PHASES", (Phase("endless", (grow,)),))
    with pytest.raises(AssertionError, match=r"endless.*do not come to rest"):
        rewrite(BASE.take(3)._plan, ps.Options())


def test_a_plan_no_rule_may_make_is_caught():
    lone = ops.FusedMap(input=BASE._plan, steps=(BASE.map(pure)._plan,))
    with pytest.raises(AssertionError, match="one map"):
        verify(lone)
    assert issubclass(ops.FusedMap, UnaryNode)
    verify(Scan(source=BASE._plan.source))
