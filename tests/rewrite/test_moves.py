"""Steps that move towards the source, and into it."""

import dataclasses

import numpy as np
import pytest
from tests.rewrite.plans import BASE, alone, also_pure, impure, odd, pure, rewritten, shape

import penstock as ps
from penstock.plan.inputs import Scan
from penstock.rewrite.driver import rewrite
from penstock.sources.arrays import RangeSource
from penstock.sources.source import IndexedSource
from penstock.testing import assert_same_elements


def test_a_shuffle_moves_below_pure_maps_and_keeps_its_order():
    dataset = BASE.map(pure).map(also_pure).shuffle(4)
    plan = rewritten(dataset, "shuffle_before_map")
    assert shape(plan) == ["Map", "Map", "Shuffle", "Scan"]
    shuffle = list(plan.walk())[2]
    assert shuffle.salt == dataset._plan.salt
    assert shape(rewritten(dataset, "map_fusion")) == ["Shuffle", "FusedMap", "Scan"]


@pytest.mark.parametrize("dataset", [BASE.map(impure).shuffle(4), BASE.filter(odd).shuffle(4)])
def test_a_shuffle_stays_above_what_it_must_not_reorder(dataset):
    assert shape(rewritten(dataset))[0] == "Shuffle"


CUTS = pytest.mark.parametrize("cut", [lambda ds: ds.take(4), lambda ds: ds.skip(4), lambda ds: ds.shard(3, 1)])


@CUTS
def test_what_is_left_out_is_not_mapped(cut):
    dataset = cut(BASE.map(pure).map(also_pure, 4))
    plan = rewritten(dataset, "reorder_data_discarding_ops")
    assert shape(plan) == ["Map", "Map", type(dataset._plan).__name__, "Scan"]
    assert plan.num_parallel_calls == 4
    assert plan.cardinality == dataset.cardinality()


@CUTS
@pytest.mark.parametrize("below", [BASE.map(impure), BASE.filter(odd), BASE.shuffle(4), BASE.map(pure).batch(2)])
def test_what_counts_or_can_be_seen_is_not_left_out(cut, below):
    plan = cut(below)._plan
    assert rewrite(plan, alone("reorder_data_discarding_ops"))[0] is plan


def test_a_function_that_can_be_seen_is_called_for_all():
    calls = []

    def counted(x):
        calls.append(int(x))
        return x

    ds = BASE.map(counted).map(pure).skip(8).with_options(ps.Options())
    assert [int(x) for x in ds] == [16, 18]
    assert calls == list(range(10))  # `counted` is impure: it is called for all, and the skip stands above it


SOURCES = pytest.mark.parametrize(
    "source", [BASE, ps.Dataset.from_tensor_slices({"a": np.arange(10.0), "b": ["x"] * 10})]
)


@SOURCES
@pytest.mark.parametrize(
    "cuts",
    [
        lambda ds: ds.take(4),
        lambda ds: ds.take(0),
        lambda ds: ds.take(99),
        lambda ds: ds.skip(4),
        lambda ds: ds.skip(99),
        lambda ds: ds.skip(-1),
        lambda ds: ds.shard(3, 1),
        lambda ds: ds.shard(12, 11),
        lambda ds: ds.skip(2).take(5).shard(2, 1).skip(1).shard(2, 0),
    ],
)
def test_what_is_left_out_is_not_read(source, cuts):
    dataset = cuts(source)
    plan = rewritten(dataset, "push_into_source")
    assert shape(plan) == ["Scan"]
    assert (plan.spec, plan.cardinality) == (dataset._plan.spec, dataset.cardinality())
    assert_same_elements(list(ps.Dataset._of(plan, alone())), list(dataset.with_options(alone())))


@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_a_slice_of_a_source_reads_no_other_rows(executor):
    class Watched(RangeSource):
        def rows(self, start, stop):
            read.extend(range(start, stop))
            return super().rows(start, stop)

    read = []
    source = Watched(range(1000), np.dtype(np.int64))
    dataset = ps.Dataset._of(Scan(source=source), ps.Options()).skip(990).take(5)
    assert [int(x) for x in dataset.iterator(executor=executor)] == list(range(990, 995))
    assert read == list(range(990, 995))


def test_only_sources_in_memory_give_every_other_element():
    @dataclasses.dataclass(frozen=True)
    class File(IndexedSource):
        label, spec, cardinality = "file", ps.TensorSpec((), np.int64), 10

        def rows(self, start, stop):
            return BASE._plan.source.rows(start, stop)

        def rows_at(self, indices):
            raise AssertionError("one element at a time")

    dataset = ps.Dataset._of(Scan(source=File()), ps.Options())
    assert shape(rewritten(dataset.skip(3))) == ["Scan"]
    assert shape(rewritten(dataset.skip(3).shard(2, 1))) == ["Shard", "Scan"]
    assert [int(x) for x in dataset.skip(3).shard(2, 1)] == [4, 6, 8]


def test_a_source_that_keeps_a_place_of_its_own_is_left_alone():
    generated = ps.Dataset.from_generator(lambda: iter(range(5)), output_signature=ps.TensorSpec((), np.int64))
    assert shape(rewritten(generated.skip(2))) == ["Skip", "Scan"]
