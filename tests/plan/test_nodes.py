"""Nodes: frozen, checked, equal by what they do; specs and counts known without running."""

import dataclasses
import re

import numpy as np
import pytest

import penstock as ps
from penstock.plan import ops
from penstock.plan.counted import Unbatch
from penstock.plan.inputs import Scan
from penstock.plan.node import short_location, tree

INFINITE, UNKNOWN = ps.INFINITE_CARDINALITY, ps.UNKNOWN_CARDINALITY
TEN = ps.Dataset.range(10)


@pytest.mark.parametrize(
    ("dataset", "count"),
    [
        (TEN, 10),
        (ps.Dataset.range(10, 0, -3), 4),
        (ps.Dataset.range(0), 0),
        (TEN.map(str), 10),
        (TEN.filter(bool), UNKNOWN),
        (ps.Dataset.range(0).filter(bool), 0),
        (TEN.batch(3), 4),
        (TEN.batch(3, drop_remainder=True), 3),
        (TEN.batch(3).unbatch(), 10),
        (TEN.batch(3, drop_remainder=True).unbatch(), 9),
        (TEN.batch(3).map(np.array).unbatch(), UNKNOWN),
        (TEN.batch(5, drop_remainder=True).unbatch(), 10),
        (TEN.shuffle(3), 10),
        (TEN.repeat(3), 30),
        (TEN.repeat(0), 0),
        (TEN.repeat(), INFINITE),
        (ps.Dataset.range(0).repeat(), 0),
        (TEN.repeat().take(5), 5),
        (TEN.repeat().repeat(2), INFINITE),
        (TEN.take(3), 3),
        (TEN.take(30), 10),
        (TEN.take(-1), 10),
        (TEN.filter(bool).take(3), UNKNOWN),
        (TEN.filter(bool).take(0), UNKNOWN),
        (TEN.skip(3), 7),
        (TEN.skip(30), 0),
        (TEN.skip(-1), 0),
        (TEN.repeat().skip(5), INFINITE),
        (TEN.shard(3, 0), 4),
        (TEN.shard(3, 1), 3),
        (TEN.shard(20, 15), 0),
        (TEN.enumerate(), 10),
        (TEN.prefetch(2), 10),
        (TEN.cache(), 10),
        (TEN.flat_map(lambda x: TEN), UNKNOWN),
        (TEN.interleave(lambda x: TEN), UNKNOWN),
        (TEN.concatenate(TEN), 20),
        (TEN.concatenate(TEN.filter(bool)), UNKNOWN),
        (TEN.concatenate(TEN.repeat()), INFINITE),
        (ps.Dataset.zip(TEN, TEN.take(3)), 3),
        (ps.Dataset.zip(TEN, TEN.repeat()), 10),
        (ps.Dataset.zip(TEN.repeat(), TEN.repeat()), INFINITE),
        (ps.Dataset.zip(TEN, TEN.filter(bool)), UNKNOWN),
        (ps.Dataset.zip(TEN.take(0), TEN.filter(bool)), 0),
        (ps.Dataset.from_tensors((1, 2)), 1),
        (ps.Dataset.from_generator(lambda: iter([1])), UNKNOWN),
    ],
)
def test_cardinality(dataset, count):
    assert dataset.cardinality() == count


INT = ps.TensorSpec((), np.int64)


@pytest.mark.parametrize(
    ("dataset", "spec"),
    [
        (TEN, INT),
        (ps.Dataset.range(3, output_type="float32"), ps.TensorSpec((), np.float32)),
        (TEN.batch(3), ps.TensorSpec((None,), np.int64)),
        (TEN.batch(3, drop_remainder=True), ps.TensorSpec((3,), np.int64)),
        (TEN.repeat().batch(3), ps.TensorSpec((3,), np.int64)),
        (TEN.batch(3).unbatch(), INT),
        (TEN.enumerate(), (INT, INT)),
        (TEN.map(lambda x: {"a": x, "b": (x / 2, 1)}), {"a": INT, "b": (ps.TensorSpec((), np.float64), INT)}),
        (TEN.map(lambda x: b"text"), ps.TensorSpec((), bytes)),
        (ps.Dataset.zip({"x": TEN, "y": TEN.batch(2)}), {"x": INT, "y": ps.TensorSpec((None,), np.int64)}),
        (ps.Dataset.from_tensors(([[1, 2]], "t")), (ps.TensorSpec((1, 2), np.int64), ps.TensorSpec((), bytes))),
        (ps.Dataset.from_tensor_slices(np.zeros((4, 2, 3))), ps.TensorSpec((2, 3), np.float64)),
    ],
)
def test_element_spec(dataset, spec):
    assert dataset.element_spec == spec
    assert dataset._plan.spec == spec


def test_a_spec_that_only_running_can_tell_is_found_by_running():
    assert TEN.map(lambda x: str(int(x))).element_spec == ps.TensorSpec((), bytes)
    with pytest.raises(TypeError, match="without elements"):
        _ = TEN.take(0).map(lambda x: str(int(x))).element_spec


def test_concatenate_relaxes_what_differs():
    one, two = (ps.Dataset.from_tensors(np.zeros((n, 3))) for n in (1, 2))
    assert one.concatenate(two).element_spec == ps.TensorSpec((None, 3), np.float64)


def double(x):
    return x * 2


def test_nodes_are_frozen_and_equal_by_what_they_do():
    one = TEN.map(double).batch(3)._plan
    other = ps.Dataset.range(10).map(double).batch(3)._plan
    assert one == other
    assert one.where != other.where
    assert one != TEN.map(double).batch(4)._plan
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.batch_size = 5


def test_numpy_integers_are_welcome_as_counts():
    assert TEN.batch(np.int32(4))._plan.batch_size == 4
    assert type(TEN.batch(np.int32(4))._plan.batch_size) is int


def test_a_shuffle_keeps_its_salt_wherever_it_is_moved():
    plan = TEN.map(double).shuffle(3)._plan
    moved = dataclasses.replace(plan, input=plan.input.input)
    assert moved.salt == plan.salt == 2


def test_every_step_stands_on_the_line_it_was_made_on():
    plan = (
        ps.Dataset.range(3)
        .map(double)
        .batch(2)
    )._plan  # fmt: skip
    lines = [int(node.where.rpartition(":")[2]) for node in plan.walk()]
    assert lines == sorted(lines, reverse=True)
    assert all(short_location(node.where).startswith("test_nodes.py:") for node in plan.walk())


def test_the_tree_shows_every_input():
    text = tree(ps.Dataset.zip(TEN.map(double), TEN.concatenate(TEN.skip(1)))._plan)
    found = [re.sub(r"  +test_nodes.py:\d+$", "", row) for row in text.splitlines()]
    assert found == [
        "zip",
        "├ map(double)",
        "│ └ range(0, 10, 1)",
        "└ concatenate",
        "  ├ range(0, 10, 1)",
        "  └ skip(1)",
        "    └ range(0, 10, 1)",
    ]


def test_parameters_of_users_are_normalised():
    assert ops.Repeat(input=TEN._plan, count=None).count == -1
    assert TEN.interleave(lambda x: TEN, cycle_length=ps.AUTOTUNE)._plan.cycle_length == 16


@pytest.mark.parametrize("question", ["spec", "cardinality"])
def test_every_node_is_asked_once_for_an_answer(question):
    """A batch asks its input for both, and so does `unbatch`: without memory each of them doubles the time."""
    asked = []

    class Source(Scan):
        @property
        def spec(self):
            asked.append("spec")
            return super().spec

        @property
        def cardinality(self):
            asked.append("cardinality")
            return super().cardinality

    node = Source(source=TEN._plan.source)
    for _ in range(4):
        node = Unbatch(input=ops.Batch(input=node, batch_size=2, drop_remainder=True))
    asked.clear()
    found = getattr(node, question)
    assert found == (10 if question == "cardinality" else TEN.element_spec)
    assert sorted(asked) == sorted(set(asked))
    getattr(node, question)
    assert len(asked) == 2 * len(set(asked)), "the next question is answered anew: files may have come"
