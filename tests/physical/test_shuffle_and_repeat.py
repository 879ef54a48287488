"""Epochs of a shuffle: the next is read while the last one empties, never mixed, never more than the buffer holds."""

import numpy as np
import pytest

import penstock as ps
from penstock.physical.lower import Lowering, lower
from penstock.physical.stage import Cursor
from penstock.physical.stages.scan import ScanStage
from penstock.physical.stages.shuffle import HeldStage
from penstock.plan.node import StepName
from penstock.rewrite.driver import optimise
from penstock.runtime.executors import InlineExecutor
from penstock.sources.arrays import RangeSource
from penstock.testing import assert_resumes_exactly


class Failing(RangeSource):
    """A range of which element number 3 cannot be read."""

    def rows(self, start, stop):
        if start <= 3 < stop:
            raise ValueError("no such row")
        return super().rows(start, stop)


@pytest.mark.parametrize("buffer", [1, 5, 50])
@pytest.mark.parametrize("behind", [lambda ds: ds, lambda ds: ds.repeat(2), lambda ds: ds.batch(4)])
@pytest.mark.parametrize(
    "join",
    [
        lambda a, b: a.concatenate(b),
        lambda a, b: ps.Dataset.sample_from_datasets([a, b], seed=3),
        lambda a, b: ps.Dataset.range(2).flat_map(lambda i: b if i % 2 else a),
        lambda a, b: ps.Dataset.range(2).interleave(lambda i: b if i % 2 else a, cycle_length=2),
    ],
)
def test_components_stay_under_their_names_whatever_order_their_streams_give_them_in(join, behind, buffer):
    numbers = np.arange(12)
    first = ps.Dataset.from_tensor_slices({"a": numbers[:6], "b": {"c": -numbers[:6], "d": numbers[:6] + 100}})
    second = ps.Dataset.from_tensor_slices({"b": {"d": numbers[6:] + 100, "c": -numbers[6:]}, "a": numbers[6:]})
    for element in behind(join(first, second).shuffle(buffer, seed=1)):
        assert (element["a"] >= 0).all()
        assert (element["b"]["c"] == -element["a"]).all()
        assert (element["b"]["d"] == element["a"] + 100).all()


UNFUSED = ps.Options(experimental_optimization={"shuffle_and_repeat_fusion": False})


def numbers(dataset, **settings):
    return [int(x) for x in dataset.iterator(epoch=0, **settings)]


@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize("size", [1, 3, 10, 50])
@pytest.mark.parametrize("count", [2, 3, -1])
def test_epochs_are_those_of_a_repeated_shuffle(size, count, again):
    ds = ps.Dataset.range(10).shuffle(size, reshuffle_each_iteration=again).repeat(count).take(27)
    assert numbers(ds) == numbers(ds.with_options(UNFUSED)) == numbers(ds, executor="inline")
    assert sorted(numbers(ds)[10:20]) == list(range(10))


@pytest.mark.parametrize("elements", [0, 1])
@pytest.mark.parametrize("count", [2, -1])
def test_of_nothing_there_are_no_epochs(elements, count):
    ds = ps.Dataset.range(elements).shuffle(3).repeat(count).take(4)
    assert numbers(ds) == [0] * (0 if not elements else 2 if count == 2 else 4)


def test_a_pass_continues_from_every_step():
    assert_resumes_exactly(ps.Dataset.range(7).shuffle(4).repeat(3))
    assert_resumes_exactly(ps.Dataset.range(5).map(lambda x: x + 1, 2).filter(lambda x: x > 1).shuffle(9).repeat(3))


def test_what_is_read_early_is_no_more_than_what_has_left_the_buffer():
    read = []

    def noted(x):
        read.append(int(x))
        return x

    plan = ps.Dataset.range(100).map(noted).shuffle(30).repeat(3)._plan
    options = ps.Options()
    stage = lower(optimise(plan, options), Lowering(options, InlineExecutor()))
    for given in range(1, 301):
        assert stage.next(1).size == 1
        waiting = len(read) - given
        assert waiting <= 30
        assert waiting >= 29 or given > 270, "a buffer ran dry between two epochs"
    assert stage.next(1) is None
    assert read == 3 * list(range(100))


def held(failing=False):
    kind = Failing if failing else RangeSource
    return HeldStage(ScanStage(kind(range(6), np.dtype(np.int64)), StepName("numbers")))


def taken(stage, want=2):
    found = []
    while True:
        try:
            block = stage.next(want)
        except ValueError:
            found.append("failed")
            continue
        if block is None:
            return found
        found += [int(x) for x in block.elements()]


@pytest.mark.parametrize("early", [0, 1, 2, 5, 9])
def test_a_failure_keeps_its_place_when_it_is_read_early(early):
    stage = held(failing=True)
    for _ in range(early):
        stage.hold(1, most=100)
    assert taken(stage) == [0, 1, 2, "failed", 4, 5]
    assert stage.ended


def test_no_more_is_held_than_allowed():
    stage = held()
    for _ in range(9):
        stage.hold(2, most=3)
    assert not stage.ended
    assert stage._size == 3
    assert taken(stage) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("early", [0, 1, 4])
def test_what_is_held_is_no_part_of_the_state(early):
    stage = held()
    for _ in range(early):
        stage.hold(1, most=100)
    cursor = Cursor(stage)
    assert cursor.fill(2)
    cursor.take_available(1)
    again = Cursor(held())
    again.restore(cursor.state())
    assert [int(x) for x in again.take(9).block.elements()] == [1, 2, 3, 4, 5]
