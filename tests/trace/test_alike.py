"""Functions with one code and equal captured values share their facts, until a value changes."""

import gc
import weakref

import numpy as np
import pytest

import penstock as ps
from penstock.block.column import DenseColumn
from penstock.block.structure import LEAF
from penstock.physical.vectorise import Ready, check_of
from penstock.trace.purity import captured, may_draw, why_impure
from penstock.trace.traced import traced

OFFSET = 1.5
SPECS = (DenseColumn(np.arange(3)).spec(),)


def adds(value):
    return lambda x: x + value


def counts(table):
    return lambda x: x + len(table)


def by_default(value):
    def function(x, value=value, *, other=value):
        return x * value + other

    return function


def graph(function):
    return traced(function, LEAF, SPECS).graph


@pytest.mark.parametrize("make", [adds, by_default])
def test_functions_alike_are_traced_and_tried_once(make):
    first, second = traced(make(1e9), LEAF, SPECS), traced(make(float("1e9")), LEAF, SPECS)
    assert first.graph is second.graph
    assert check_of(first, Ready.of(first.graph)) is check_of(second, Ready.of(second.graph))


@pytest.mark.parametrize("make", [adds, by_default])
@pytest.mark.parametrize(
    "others", [(1, True), (1, 1.0), (1, np.int64(1)), (0.0, -0.0), (np.float32(0), np.float32(-0.0)), (3, 4)]
)
def test_other_values_are_traced_anew(make, others):
    functions = [make(value) for value in (*others, *others)]
    graphs = [graph(function) for function in functions]
    assert graphs[0] is not graphs[1]
    assert graphs[:2] == graphs[2:]


def test_functions_alike_draw_alike():
    def draws():
        return lambda x: ps.image.random_flip_left_right(x)

    assert [may_draw(draws()) for _ in range(3)] == [why_impure(draws()) is None for _ in range(3)] == [True] * 3
    assert [may_draw(adds(1)) for _ in range(3)] == [False] * 3


def test_another_object_with_equal_content_is_alike():
    assert graph(counts([1, 2])) is graph(counts([1, 2]))
    assert graph(counts([1, 2])) is not graph(counts([1, 2, 3]))
    assert graph(counts([1, 2])) is not graph(counts((1, 2)))


def test_what_is_changed_is_seen():
    table = [1]
    before = graph(counts(table))
    table.append(2)
    assert graph(counts(table)) != before


def test_nothing_of_the_users_is_kept():
    """Captured objects and large arrays are freed with their function."""
    table = np.arange(3000)
    gone = weakref.ref(table)
    assert graph(counts(table)) is not None
    del table
    gc.collect()
    assert gone() is None


def test_a_global_that_is_changed_is_seen(monkeypatch):
    def make():
        return lambda x: x + OFFSET

    before = graph(make())
    assert graph(make()) is before
    monkeypatch.setitem(globals(), "OFFSET", 2.5)
    assert graph(make()) is not before
    monkeypatch.setitem(globals(), "OFFSET", print)
    assert why_impure(make()) is not None


def test_each_watches_its_own_cell():
    def make(value):
        def change(other):
            nonlocal value
            value = other

        return lambda x: x + value, change

    (first, change), (second, _) = make(1), make(1)
    found = [traced(function, LEAF, SPECS) for function in (first, second)]
    seen = [captured(function) for function in (first, second)]
    change(2)
    assert [one.holds() for one in found] == [one.unchanged() for one in seen] == [False, True]
    assert graph(first) is not graph(second)
    change(object())
    assert [why_impure(first) is None, why_impure(second) is None] == [False, True]


def test_a_function_is_let_go_of():
    functions = [adds(number) for number in range(30)]
    for function in functions:
        assert graph(function) is not None
    gone = [weakref.ref(function) for function in functions]
    del function, functions
    gc.collect()
    assert [weak() for weak in gone] == [None] * 30


@pytest.mark.parametrize("vectorise", [True, False])
def test_inputs_that_map(vectorise):
    options = ps.Options()
    options.experimental_optimization.map_vectorization = vectorise
    ds = ps.Dataset.range(40).flat_map(lambda i: ps.Dataset.range(3).map(lambda x, k=int(i) % 3: (x * i, x + k)))
    found = list(ds.with_options(options))
    wanted = [(x * i, x + i % 3) for i in range(40) for x in range(3)]
    assert [(int(a), int(b)) for a, b in found] == wanted
