"""A user's function as a graph, where that is possible; the reason, where it is not."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from types import FunctionType, MethodType
from typing import Any, TypeVar

import numpy as np

from penstock.block.leaf import as_leaf
from penstock.block.spec import LeafSpec, RaggedTensorSpec, TensorSpec, spec_of
from penstock.block.structure import NONE, Structure, components, flatten
from penstock.errors import PenstockError, said
from penstock.forked import new_lock
from penstock.functions.captured import Captured, known_alike, values_of
from penstock.functions.uses import attribute
from penstock.trace.drawing import OF_STAND_INS, drawing
from penstock.trace.graph import Const, Graph, GraphBuilder, NotTraceable, Operand, Ref
from penstock.trace.purity import METHODS, TOO_LARGE, inspected, inspected_live
from penstock.trace.tables import among_stand_ins, holds_tables, of_each_element
from penstock.trace.tracer import Tracer, holds_stand_ins, listed

_CODE = FunctionType, classmethod, staticmethod, functools.cached_property

R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Traced:
    """The outcome: a graph, or why there is none."""

    graph: Graph | None
    reason: str = ""
    captured: Captured = field(default_factory=lambda: Captured(()))
    like: Traced | None = None  # the same of an earlier function, of the same code with the same values

    def holds(self) -> bool:
        """Whether the function would still be traced to this graph: nothing it reads from outside has changed."""
        return self.captured.unchanged()


def trace(function: Callable[..., Any], structure: Structure, specs: Sequence[LeafSpec]) -> Traced:
    """Run `function` once on stand-ins for an element of this structure; known-impure functions are not run."""
    why, seen = inspected(function)
    live: list[np.ndarray] = []
    if why and why.endswith(TOO_LARGE):
        too_large = why
        why, seen, live = inspected_live(function)
    why = why or why_not_made(structure)
    if any(isinstance(spec, TensorSpec) and spec.open_rank for spec in specs):
        why = why or "its elements differ in rank"
    if why:
        return Traced(None, why)
    found = too_large if live else _run(function, GraphBuilder(tuple(specs)), structure)
    if isinstance(found, str):
        builder = GraphBuilder(tuple(specs))
        among = among_stand_ins(function, builder, live)
        other = found if among is None else _run(among, builder, structure)
        found = found if isinstance(other, str) or holds_tables(other) else other
    return Traced(None, found) if isinstance(found, str) else Traced(found, "", seen)


def _run(function: Callable[..., Any], builder: GraphBuilder, structure: Structure) -> Graph | str:
    """The graph of a pure function, or why there is none."""
    stand_ins = [Tracer(builder, Ref(-1, i), spec) for i, spec in enumerate(builder.inputs)]
    try:
        element = structure.build(stand_ins)
        with drawing(OF_STAND_INS):
            result = function(*element) if structure.unpacks else function(element)
        leaves, shape = flatten(components(result))
        if shape == NONE:
            return "it returns None, which is no leaf"
        return builder.finish([output_of(leaf) for leaf in of_each_element(leaves, builder)], shape)
    except NotTraceable as error:
        return str(error)
    except Exception as error:  # the real elements decide: the same call on them raises, or it does not
        return f"on a stand-in it raised {type(error).__name__}: {said(error)}".splitlines()[0]


def why_not_made(structure: Structure) -> str | None:
    """Why no element is made of stand-ins: one of its classes would notice."""
    for name in ("__post_init__", "__attrs_post_init__"):
        if hasattr(structure.kind, name):
            assert structure.kind is not None
            return f"the elements' class {structure.kind.__name__} has a {name}"
    if structure.kind is not None:
        for name in METHODS:  # whatever has these is taken for an array, or for one of Python's own nests
            if isinstance(inspect.getattr_static(structure.kind, name, None), (*_CODE, property)):
                return f"the elements' class {structure.kind.__name__} has a {name} of its own"
    for one in getattr(structure.kind, "__attrs_attrs__", ()):
        if one.converter is not None or one.validator is not None:
            assert structure.kind is not None
            return f"the elements' class {structure.kind.__name__} checks or converts {one.name}"
    return next((why for why in map(why_not_made, structure.children) if why), None)


def output_of(leaf: Any) -> Operand:
    if isinstance(leaf, Tracer):
        return leaf.ref
    if type(leaf) is list and holds_stand_ins(leaf):
        return listed(leaf, as_leaf=True).ref
    try:
        value = as_leaf(leaf)
    except PenstockError as error:
        msg = f"it returns what is no leaf: {error.message}"
        raise NotTraceable(msg) from None
    if not isinstance(value, (np.generic, bytes)):
        msg = "it returns an array that is the same for every element"
        raise NotTraceable(msg)
    return Const(value)


_cache: weakref.WeakKeyDictionary[Any, dict[Any, Traced]] = weakref.WeakKeyDictionary()
_lock = new_lock()


def remembered(cache: MutableMapping[Any, dict[Any, R]], function: Any) -> dict[Any, R] | None:
    """What is known of this very callable; None where another one may be equal to it, or nothing can be kept of it."""
    equals: Any = type(function).__eq__
    if equals is not object.__eq__ and type(function) is not MethodType:
        return None
    try:
        with _lock:
            return cache.setdefault(function, {})
    except TypeError:  # callables without hash or weak reference
        return None


def traced(function: Callable[..., Any], structure: Structure, specs: Sequence[LeafSpec]) -> Traced:
    """`trace`, remembered per function and kind of element while what the function captures stays the same."""
    key = (structure, tuple(specs))
    known = remembered(_cache, function)
    if known is None:
        return trace(function, structure, specs)
    found = known.get(key)
    if found is None or not found.holds():
        found = known[key] = _traced_alike(function, key)
    return found


def _traced_alike(function: Callable[..., Any], key: tuple[Structure, tuple[LeafSpec, ...]]) -> Traced:
    """`trace`, or what it found of an earlier function of the same code that has captured equal values."""
    if not isinstance(function, FunctionType):
        found = trace(function, *key)
        return replace(found, captured=found.captured.without(function)) if _is_its_own_place(function) else found
    values = values_of(function)
    alike = None if values is None else known_alike(function)
    if alike is not None:
        first = alike.found.get((values, key))
        if first is not None:
            return Traced(first.graph, "", alike.captured_by(function).without(function), first)
    found = trace(function, *key)
    found = replace(found, captured=found.captured.without(function))  # or it would never be let go of
    alike = None if found.graph is None or values is None else known_alike(function)
    if alike is not None and values == values_of(function):
        first = Traced(found.graph)
        alike.keep((values, key), first)
        found = replace(found, like=first)
    return found


def _is_its_own_place(function: Any) -> bool:
    """Whether it is an object, which stays in memory for as long as anybody holds what it reads."""
    return type(function).__weakrefoffset__ != 0 and type(function) not in (functools.partial, MethodType)


def traced_spec(function: Callable[..., Any], spec: Any) -> Any:
    """The nest of specs `function` returns for an element of `spec`; None where only running it can tell.

    A function of the library may know more than its code tells, such as a decoder of data whose features are written
    down: it has `__penstock_spec__(spec)`.
    """
    if spec is None:
        return None
    told = attribute(function, "__penstock_spec__")
    if isinstance(told, (FunctionType, MethodType)):
        return told(spec)
    leaves, structure = flatten(spec)
    leaves = [leaf.as_value() if isinstance(leaf, RaggedTensorSpec) else leaf for leaf in leaves]
    graph = traced(function, structure, leaves).graph
    if graph is None or graph.presumes:
        return None
    found = []
    for output in graph.outputs:
        known = graph.spec_of(output)
        if isinstance(known, Const):
            known = spec_of(known.value)
        found.append(known)
    return graph.structure.build(found)
