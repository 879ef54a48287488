from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.block.block import Block
from penstock.block.spec import TensorSpec
from penstock.block.structure import LEAF, Structure, flatten, is_nest, map_leaves, nest
from penstock.block.tensors import SparseTensor
from penstock.errors import InvalidTypeError


class Point(NamedTuple):
    x: Any
    y: Any


@dataclass
class Sample:
    image: Any
    label: Any = 0
    derived: Any = field(init=False, default=7)


LEAVES = st.integers(0, 99)
NESTS = st.recursive(
    LEAVES,
    lambda parts: st.one_of(
        st.lists(parts, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from("abc"), parts, max_size=3),
        st.builds(Point, parts, parts),
        st.builds(Sample, parts, parts),
    ),
    max_leaves=8,
)


@given(NESTS)
def test_building_undoes_flattening(element):
    leaves, structure = flatten(element)
    assert structure.size == len(leaves)
    assert structure.build(leaves) == element
    assert structure.flatten(element) == leaves
    assert structure.is_leaf == (not is_nest(element))


@given(NESTS, st.integers(1, 3))
def test_rows_are_the_elements_built_one_by_one(element, count):
    leaves, structure = flatten(element)
    if not leaves:
        return
    columns = [[leaf + i for i in range(count)] for leaf in leaves]
    assert structure.rows(columns) == [structure.build([leaf + i for leaf in leaves]) for i in range(count)]


@given(NESTS)
def test_every_leaf_has_a_path_of_its_own(element):
    leaves, structure = flatten(element)
    paths = structure.paths()
    assert len(set(paths)) == len(leaves)
    assert [eval(f"element{path}", {"element": element}) for path in paths] == leaves


@pytest.mark.parametrize(
    ("element", "text"),
    [
        ((1,), "(·,)"),
        ((1, {"a": 2}), "(·, {'a': ·})"),
        (Point(1, (2, 3)), "Point(x=·, y=(·, ·))"),
        (Sample(1, 2), "Sample(image=·, label=·, derived=·)"),
        (5, "·"),
    ],
)
def test_description(element, text):
    assert flatten(element)[1].describe() == text


def test_lists_arrays_specs_and_composite_tensors_are_leaves():
    sparse = SparseTensor(np.zeros((0, 1)), np.zeros(0), np.array([3]))
    for value in ([1, 2], np.zeros(3), b"x", TensorSpec((), np.int32), sparse):
        assert flatten(value)[1] is LEAF


def test_only_plain_tuples_unpack():
    assert flatten((1, 2))[1].unpacks
    assert not flatten(Point(1, 2))[1].unpacks
    assert not flatten({"a": 1})[1].unpacks
    assert not LEAF.unpacks


def test_dict_keys_may_come_in_another_order():
    _, structure = flatten({"a": 1, "b": (2, 3)})
    assert structure.flatten({"b": (20, 30), "a": 10}) == [10, 20, 30]
    assert structure.same_as(flatten({"b": (2, 3), "a": 1})[1])
    assert structure != flatten({"b": (2, 3), "a": 1})[1]


@pytest.mark.parametrize("other", [(1, 2, 3), {"a": 1, "b": 2}, Point(1, 2), 5])
def test_another_structure_is_refused_with_both_spelled_out(other):
    _, structure = flatten((1, 2))
    with pytest.raises(InvalidTypeError) as caught:
        structure.flatten(other)
    assert "(·, ·)" in caught.value.message
    assert flatten(other)[1].describe() in caught.value.message


@pytest.mark.parametrize("other", [(1, (2, 3)), (1, {"a": 2})])
def test_a_nest_in_the_place_of_a_leaf_is_refused(other):
    with pytest.raises(InvalidTypeError):
        Block.from_elements([(1, 2), other])


def test_nest_puts_whole_structures_into_the_leaves():
    outer = flatten((0, {"k": 0}))[1]
    inner = flatten(Point(1, 2))[1]
    assert nest(outer, [inner, LEAF]).build([1, 2, 3]) == (Point(1, 2), {"k": 3})


def test_map_leaves_keeps_the_nest():
    assert map_leaves(lambda v: v * 2, Point(1, {"a": 2})) == Point(2, {"a": 4})


def test_structures_are_hashable_and_equal_by_value():
    assert {flatten((1, 2))[1]: "pair"}[flatten((3, 4))[1]] == "pair"
    assert flatten((1, 2))[1] != flatten((1, (2, 3)))[1]
    assert isinstance(flatten((1,))[1], Structure)
