"""Reference and generated steps: steps that carry a state from element to element."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, takewhile
from typing import Any

import numpy as np
from hypothesis import strategies as st
from tests.generated import cardinality
from tests.reference import call, elements, leaves_of, value_of
from tests.strategies import PREDICATES, SMALL, Pipeline

import penstock as ps
from penstock.keys import draw, fold
from penstock.plan import stateful

# -- meaning


def _positions(node: stateful.StatefulMap, context: Any) -> Iterator[Any]:
    """What stands in each place: an element, or the exception of one that failed."""
    state = node.initial_state.carried().copied()
    for element in elements(node.input, context):
        try:
            following, output = node.function(state, element)
        except ValueError as error:
            yield error
            continue
        state = value_of(following)
        yield value_of(output)


@elements.register
def _(node: stateful.StatefulMap, context: Any) -> Iterator[Any]:
    for element in _positions(node, context):
        if isinstance(element, ValueError):
            raise element
        yield element


@elements.register
def _(node: stateful.IgnoreErrors, context: Any) -> Iterator[Any]:
    if not isinstance(node.input, stateful.StatefulMap):
        return elements(node.input, context)
    return (element for element in _positions(node.input, context) if not isinstance(element, ValueError))


@elements.register
def _(node: stateful.TakeWhile, context: Any) -> Iterator[Any]:
    return takewhile(lambda element: bool(call(node.predicate, element)), elements(node.input, context))


@elements.register
def _(node: stateful.Unique, context: Any) -> Iterator[Any]:
    seen = set()
    for element in elements(node.input, context):
        (leaf,) = leaves_of(element, element)
        array = np.asarray(leaf) if not isinstance(leaf, bytes) else leaf
        key = array if isinstance(array, bytes) else (array.shape, str(array.tolist()))
        if key not in seen:
            seen.add(key)
            yield element


@elements.register
def _(node: stateful.AssertCardinality, context: Any) -> Iterator[Any]:
    return elements(node.input, context)


@elements.register
def _(node: stateful.Random, context: Any) -> Iterator[Any]:
    key = fold(context.options.seed if node.seed is None else node.seed, 0x72616E646F6D)
    if node.rerandomize:
        key = fold(key, context.epoch)
    return (np.int64(draw(key, number, 1 << 32)) for number in count())


# -- steps


def _sum_of(element: Any) -> np.int64:
    """A number that follows from every leaf, whatever the element is."""
    leaves = leaves_of(element, element)
    parts = [_values(leaf) for leaf in leaves]
    return np.int64(sum(len(part) if isinstance(part, bytes) else np.size(part) for part in parts))


def _values(leaf: Any) -> Any:
    if isinstance(leaf, ps.RaggedTensor):
        return leaf.flat_values
    return leaf.values if isinstance(leaf, ps.SparseTensor) else leaf


def _numbered(c: int) -> Any:
    return lambda state, x: (state + 1, (x, state * c))


def _lengths(c: int) -> Any:
    return lambda state, x: ({"n": state["n"] + _sum_of(x), "all": state["all"]}, state["n"])


def _history(c: int) -> Any:
    return lambda state, x: (np.append(state, np.int64(c))[-5:], state)


def _failing(c: int) -> Any:
    def step(state: Any, x: Any) -> Any:
        if state % (c + 2) == 1 and _sum_of(x) % 2:
            raise ValueError("a bad element")
        return state + 1, state

    return step


SCANS = [
    ("numbered", 0, _numbered, "other"),
    ("lengths", {"n": 0, "all": (b"text", np.float32(0.5))}, _lengths, "other"),
    ("history", np.zeros(0, np.int64), _history, "other"),
]


def _scan(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    name, state, make, kind = draw(st.sampled_from(SCANS))
    c = draw(SMALL)
    return at.then(f"scan({name} {c})", at.dataset.scan(state, make(c)), kind)


def _some_fail(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    if at.infinite:  # there may be no element that does not fail
        return at
    c = draw(SMALL)
    dataset = at.dataset.scan(np.int64(draw(SMALL)), _failing(c)).ignore_errors()
    return at.then(f"scan(failing {c}).ignore_errors()", dataset, "int")


def _take_while(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    if at.kind not in PREDICATES:
        return at
    name, make = draw(st.sampled_from(PREDICATES[at.kind]))
    c = draw(SMALL)
    return at.then(f"take_while({name} {c})", at.dataset.take_while(make(c)))


def _unique(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    if at.kind not in ("int", "vector", "ragged", "bytes", "rows") or at.infinite:
        return at
    return at.then("unique()", at.dataset.unique())


def _with_random(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    seed, again = draw(st.sampled_from([None, 3])), draw(st.booleans())
    zipped = ps.Dataset.zip(at.dataset, ps.Dataset.random(seed, again))
    return at.then(f"zip(·, random({seed}, {again}))", zipped, "pair" if at.kind == "int" else "other")


def _counted(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    count = cardinality(at)
    if count == ps.UNKNOWN_CARDINALITY or "repeat()" in at.text:  # of unknown many, for ever, counts as infinite
        return at
    return at.then(f"assert_cardinality({count})", at.dataset.assert_cardinality(count))


STEPS: list[Any] = [_scan, _scan, _some_fail, _take_while, _unique, _with_random, _counted]
