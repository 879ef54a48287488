"""Facts about a function apply to all functions that are alike, and to no others."""

import functools
import gc
import json
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.block.column import DenseColumn
from penstock.block.structure import LEAF
from penstock.functions import memory
from penstock.functions.memory import own_of, recalled
from penstock.functions.shipping import why_not_shippable
from penstock.plan.visible import _verdict
from penstock.trace.purity import captured, may_draw, why_impure
from penstock.trace.traced import traced

SPECS = (DenseColumn(np.arange(3)).spec(),)
SETTING = 1
SEEN = []


def doubled(x):
    return x * 2


def shown(x):
    print(x)
    return x


def remembered(x):
    SEEN.append(x)
    return x


class Holder:
    def __init__(self, value):
        self.value = value

    def __call__(self, x):
        return x + 1


class Loud(Holder):
    def __call__(self, x):
        print(x)
        return x


class Slotted:
    __slots__ = ("__weakref__", "value")

    def __init__(self, value):
        self.value = value


# Each entry creates functions with the same code, which capture different values
MAKERS = {
    "added": lambda v: lambda x: x + v,
    "called": lambda v: lambda x: v(x),
    "first": lambda v: lambda x: x + v[0],
    "named": lambda v: lambda x: x * v["a"],
    "attribute": lambda v: lambda x: x + v.value,
    "beside": lambda v: lambda x: (x, v),
    "counted": lambda v: lambda x: x + len(v),
    "setting": lambda v: lambda x: x + SETTING + v,
    "default": lambda v: lambda x, by=v: x + by,
    "by name": lambda v: lambda x, *, by=v: x + by,
    "opaque": lambda v: lambda x: json.loads(str(int(x))) + v,
    "appended": lambda v: lambda x: v.append(x) or x,
    "branch": lambda v: lambda x: x if v else print(x),
    "identity": lambda v: lambda x: x + (v[0] is v[1]),
}


@st.composite
def values(draw, depth=2):
    """Draw a function that returns a value. Two calls return equal values and different objects."""
    kinds = ["number", "text", "array", "function"] + (["list", "dict", "object", "partial", "twice"] if depth else [])
    kind = draw(st.sampled_from(kinds))
    if kind == "number":
        one = draw(st.sampled_from([0, 1, True, 1.0, -0.0, 0.0, np.int64(1), np.float32(1), None, 2**70]))
        return lambda: one
    if kind == "text":
        one = draw(st.sampled_from(["a", "b", b"a", ""]))
        return lambda: one
    if kind == "array":
        dtype, size = draw(st.sampled_from(["i8", "f4"])), draw(st.sampled_from([1, 2, 2000]))
        start = draw(st.integers(0, 1))
        return lambda: np.arange(start, start + size).astype(dtype)
    if kind == "function":
        one = draw(st.sampled_from([doubled, shown, remembered, np.negative, print, abs, Slotted, json.dumps]))
        return lambda: one
    inner = draw(values(depth - 1))
    if kind == "list":
        return lambda: [inner(), 1]
    if kind == "dict":
        return lambda: {"a": inner()}
    if kind == "object":
        made = draw(st.sampled_from([Holder, Loud, Slotted]))
        return lambda: made(inner())
    if kind == "twice":
        return lambda: [inner()] * 2
    return lambda: functools.partial(doubled, inner())


def answers(function):
    found = traced(function, LEAF, SPECS)
    seen = captured(function)
    return {
        "impure": why_impure(function),
        "draws": may_draw(function),
        "graph": None if found.graph is None else repr(found.graph),
        "reason": found.reason,
        "holds": found.holds() and seen.unchanged(),
        "verdict": _verdict(function),
        "shippable": why_not_shippable(function),
    }


def fresh(make):
    memory._ENTRIES.clear()
    return answers(make())


@settings(max_examples=250, deadline=None)
@given(st.sampled_from([*MAKERS]), values(), values())
def test_a_function_that_is_made_again_has_the_answers_of_a_fresh_reading(name, first, second):
    make = MAKERS[name]
    wanted = [fresh(lambda one=one: make(one())) for one in (first, second)]
    memory._ENTRIES.clear()
    for one, found in ((first, 0), (second, 1), (first, 0), (second, 1)):
        assert answers(make(one())) == wanted[found]


def changed(value):
    """Change the innermost mutable object in a value. Return False if there is none."""
    if isinstance(value, list):
        if not changed(value[0]):
            value[0] = shown
        return True
    if isinstance(value, dict):
        if not changed(value["a"]):
            value["a"] = shown
        return True
    if isinstance(value, (Holder, Slotted)):
        if not changed(value.value):
            value.value = [1, 2, 3]
        return True
    if isinstance(value, np.ndarray):
        value += 5
        return True
    return False


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([*MAKERS]), values())
def test_what_is_changed_is_read_again(name, value):
    make = MAKERS[name]
    memory._ENTRIES.clear()
    kept = value()
    answers(make(kept))
    function = make(kept)
    answers(function)
    if not changed(kept):
        return
    found = answers(make(kept))
    assert traced(function, LEAF, SPECS).holds()
    assert found == fresh(lambda: make(kept))
    memory._ENTRIES.clear()
    assert answers(make(value())) == fresh(lambda: make(value()))


@pytest.mark.parametrize("other", [print, shown, "text", 2, np.float32(3)])
def test_a_global_that_is_rebound_is_read_again(monkeypatch, other):
    make = MAKERS["setting"]
    before = answers(make(1))
    monkeypatch.setitem(globals(), "SETTING", other)
    assert answers(make(1)) == fresh(lambda: make(1)) != before
    monkeypatch.undo()
    assert answers(make(1)) == before


def test_an_attribute_that_hides_a_method_is_seen():
    def make():
        held = Holder(1)
        return held, lambda x: held(x)

    before = [why_impure(make()[1]) for _ in range(2)]
    held, function = make()
    seen = captured(function)
    held.another = 1
    assert seen.unchanged()
    held.__class__ = Loud
    assert not seen.unchanged()
    assert before == [None, None] != [why_impure(function)] * 2


def test_a_large_container_is_not_read_to_its_end():
    assert own_of(MAKERS["counted"]([0] * 10**6)) is None
    assert own_of(MAKERS["added"]("a" * 10**6)) is None
    nested = []
    nested.append(nested)
    assert own_of(MAKERS["counted"](nested)).kinds == own_of(MAKERS["counted"](nested)).kinds


def test_a_function_that_captures_itself_is_let_go_of():
    def make():
        def function(x):
            return x + 1 if x > 3 else function(x + 1)

        return function

    function = make()
    answers(function)
    gone = weakref.ref(function)
    del function
    gc.collect()
    assert gone() is None


def test_the_memory_is_bounded():
    asked = []

    def ask(function):
        return recalled(function, "size", lambda: (asked.append(1), []), by_value=True)

    for number in range(memory._MOST + 10):
        ask(MAKERS["added"](number))
    assert len(memory._ENTRIES) == memory._MOST
    count = len(asked)
    ask(MAKERS["added"](memory._MOST))
    assert len(asked) == count
    ask(MAKERS["added"](0))
    assert len(asked) == count + 1
