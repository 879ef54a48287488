"""Elements of classes: rebuilt at each step with the fields that they had, and without a call of their code."""

import functools
import pickle
from dataclasses import InitVar, dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.block.structure import flatten, map_leaves
from penstock.errors import InvalidTypeError


@dataclass
class Divided:
    """The constructor changes a field."""

    x: float
    total: float = field(init=False)

    def __post_init__(self):
        self.x = self.x / 8
        self.total = self.x + 1


@dataclass(frozen=True, slots=True)
class Frozen:
    """The constructor takes what is not a field."""

    x: float
    scale: InitVar[float] = 2.0

    def __post_init__(self, scale):
        object.__setattr__(self, "x", self.x * scale)


@dataclass(kw_only=True)
class Checked:
    x: float
    inner: Any = None

    def __post_init__(self):
        if not np.isscalar(self.x):
            message = "x is a number"
            raise TypeError(message)


class Fields(NamedTuple):
    x: float
    y: float


class Counted(Fields):
    """A named tuple whose constructor counts."""

    def __new__(cls, x, y=0.0):
        return super().__new__(cls, x, y + 1)


class Attribute:
    """As attrs describes an attribute; attrs itself may not be there."""

    def __init__(self, name):
        self.name = name
        self.init = True  # Hypothesis reads it where it prints a value


class WithAttributes:
    """As `attrs.define` makes a class with a converter."""

    __attrs_attrs__ = (Attribute("_x"),)

    def __init__(self, x):
        self._x = x * 2


MADE = [
    lambda x: Divided(x),
    lambda x: Frozen(x, scale=3.0),
    lambda x: Checked(x=x),
    lambda x: Counted(x),
    lambda x: WithAttributes(x),
    lambda x: Checked(x=x, inner=(Divided(x), {"a": Counted(x)})),
]


def same(value):
    return value


def described(value):
    """Return all that an element holds, as plain values."""
    leaves, structure = flatten(value)
    return [float(leaf) for leaf in leaves], structure


@pytest.mark.parametrize("make", MADE)
@pytest.mark.parametrize("executor", ["inline", "thread", "process"])
def test_three_steps_leave_the_fields_as_they_were(make, executor):
    def opaque(value):
        "".join(["not", "traced"])
        return value

    ds = ps.Dataset.range(3).map(lambda x: make(float(x))).map(same).map(opaque).map(same)
    found = [described(value) for value in ds.iterator(executor=executor)]
    assert found == [described(make(float(x))) for x in range(3)]


@pytest.mark.parametrize("make", MADE)
def test_a_batch_has_the_class_of_its_elements(make):
    (batch,) = ps.Dataset.range(3).map(lambda x: make(float(x))).batch(3)
    leaves, structure = flatten(batch)
    assert structure == described(make(0.0))[1]
    assert [leaf.tolist() for leaf in leaves] == [
        list(column) for column in zip(*(described(make(float(x)))[0] for x in range(3)), strict=True)
    ]


@given(st.recursive(st.floats(-9, 9), lambda inner: st.builds(Checked, x=st.floats(-9, 9), inner=inner), max_leaves=3))
def test_what_flatten_takes_apart_build_puts_together(value):
    leaves, structure = flatten(value)
    assert structure.build(leaves) == value
    assert pickle.loads(pickle.dumps(structure)) == structure


class Area:
    @functools.cached_property
    def area(self):
        return self.x * 2


@dataclass
class Cached(Area):
    x: float


def test_a_cached_property_is_no_field():
    value = Cached(2.0)
    assert value.area == 4.0
    assert flatten(value)[0] == [2.0]


@dataclass
class More:
    x: float

    def __post_init__(self):
        self.area = self.x * 2


@dataclass
class Less:
    x: float
    y: float = field(init=False)


@dataclass
class Mistake(Exception):
    x: float


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (More(1.0), r"More has the attribute 'area', which is not a field"),
        (Less(1.0), r"Less lacks a field"),
        (Mistake(1.0), r"Mistake cannot be rebuilt from its fields"),
    ],
)
def test_a_class_that_cannot_be_rebuilt_is_refused(value, said):
    with pytest.raises(InvalidTypeError, match=said):
        map_leaves(same, value)
