"""The graph of a user's function, or the reason why it has none."""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from penstock.block.leaf import as_leaf
from penstock.block.spec import LeafSpec, RaggedTensorSpec, TensorSpec
from penstock.block.structure import NONE, Structure, components, flatten
from penstock.errors import PenstockError, said
from penstock.functions.captured import Captured
from penstock.functions.facts import Reason
from penstock.functions.memory import notes_of, recalled
from penstock.functions.ownership import is_users_code
from penstock.functions.uses import attribute
from penstock.trace.branches import Way, explored, parted
from penstock.trace.drawing import OF_STAND_INS, SPAN, drawing
from penstock.trace.graph import Const, Graph, GraphBuilder, NotTraceable, Operand, Ref
from penstock.trace.purity import HANDLES, METHODS, TOO_LARGE, inspected, inspected_live, why_impure
from penstock.trace.tables import among_stand_ins, holds_tables, of_each_element
from penstock.trace.tracer import Tracer, holds_stand_ins, listed, made

_CODE = FunctionType, classmethod, staticmethod, functools.cached_property


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Traced:
    """The result of tracing: a graph, or the reason why there is none."""

    graph: Graph | None
    reason: str = ""
    captured: Captured = field(default_factory=lambda: Captured(()))
    notes: dict[str, Any] = field(default_factory=dict)  # facts about the graph, shared by functions that are alike

    def holds(self) -> bool:
        """Return True if no value that the function reads from outside has changed, so that the graph is valid."""
        return self.captured.unchanged()


def trace(function: Callable[..., Any], structure: Structure, specs: Sequence[LeafSpec]) -> Traced:
    """Run `function` once on tracers for an element of this structure. Functions that are not pure are not run."""
    why, seen = inspected(function)
    live: list[np.ndarray] = []
    first = why if why and why.endswith((TOO_LARGE, HANDLES)) else None
    if first is not None:
        why, seen, live = inspected_live(function)
    why = why or why_not_made(structure)
    if any(isinstance(spec, TensorSpec) and spec.open_rank for spec in specs):
        why = why or "its elements differ in rank"
    if why:
        return Traced(None, why)
    found = first or _explored(lambda _: function, specs, structure)
    if isinstance(found, str) and among_stand_ins(function, GraphBuilder(tuple(specs)), live) is not None:
        other = _explored(lambda builder: among_stand_ins(function, builder, live), specs, structure)
        found = found if isinstance(other, str) or holds_tables(other) else other
    return Traced(None, found) if isinstance(found, str) else Traced(found, "", seen)


def _explored(of: Callable[[GraphBuilder], Any], specs: Sequence[LeafSpec], structure: Structure) -> Graph | str:
    """Return the graph of a pure function, or the reason why it has none. `of(builder)` returns the function."""

    def run(builder: GraphBuilder) -> tuple[list[Operand], Structure]:
        function = of(builder)
        element = structure.build([Tracer(builder, Ref(-1, i), spec) for i, spec in enumerate(builder.inputs)])
        with drawing(OF_STAND_INS):
            result = function(*element) if structure.unpacks else function(element)
        leaves, shape = flatten(components(result))
        if shape == NONE:
            raise NotTraceable("it returns None, which is not a leaf")
        return [output_of(leaf) for leaf in of_each_element(leaves, builder)], shape

    try:
        return explored(run, specs)
    except NotTraceable as error:
        return Reason.at(_line(error), str(error))
    except Exception as error:  # real elements decide whether this call raises
        try:
            text = said(error)
        except NotTraceable:  # the text of the error contains a tracer
            text = "of a value"
        return Reason.at(_line(error), f"on a tracer it raised {type(error).__name__}: {text}".splitlines()[0])


def _line(error: BaseException) -> int | None:
    """Return the line of the user's code that an error comes from."""
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    return next((line for code, line in reversed(frames) if is_users_code(code, None)), None)


def one_of(by: Tracer, functions: Sequence[Callable[[], Any]]) -> tuple[list[Tracer], Structure]:
    """Return the result of the function with number `by`. Each function is traced with the builder of `by`."""
    builder, ways = by.builder, []
    begin, drawn, decided = len(builder.equations), builder.draws, builder.decided
    written = set(builder.written)
    builder.decided = None  # no branches inside, because a branch includes all code after it
    for function in functions:
        try:
            leaves, structure = flatten(function())
            leaves = [made(builder, leaf) if isinstance(leaf, np.ndarray) and leaf.ndim else leaf for leaf in leaves]
            if structure == NONE or builder.draws > drawn + SPAN:
                raise NotTraceable(f"a branch returns None, or uses more than {SPAN} random keys")
            if builder.written != written:
                raise NotTraceable("a branch writes into an array")
            own = GraphBuilder(builder.inputs, [*builder.equations], builder.draws)
            ways.append(Way(own, [output_of(leaf) for leaf in leaves], structure))
        finally:
            del builder.equations[begin:]
            builder.draws, builder.written = drawn, set(written)
    builder.decided, builder.draws = decided, drawn + SPAN
    refs = parted(builder, by.ref, ways)
    specs = builder.equations[-1].specs
    return [Tracer(builder, ref, spec) for ref, spec in zip(refs, specs, strict=True)], ways[0].structure


def why_not_made(structure: Structure) -> str | None:
    """Return why no element can be built from tracers, or None. A class with own methods could detect the tracers."""
    if structure.kind is not None:
        for name in METHODS:  # an object with one of these counts as an array or a builtin nest
            if isinstance(inspect.getattr_static(structure.kind, name, None), (*_CODE, property)):
                return f"the elements' class {structure.kind.__name__} has a {name} of its own"
    return next((why for why in map(why_not_made, structure.children) if why), None)


def output_of(leaf: Any) -> Operand:
    if isinstance(leaf, Tracer):
        return leaf.ref
    if type(leaf) is list and holds_stand_ins(leaf):
        return listed(leaf, as_leaf=True).ref
    try:
        value = as_leaf(leaf)
    except PenstockError as error:
        raise NotTraceable(f"it returns a value that is not a leaf: {error.message}") from None
    if not isinstance(value, (np.generic, bytes)):
        raise NotTraceable("it returns an array that is the same for every element")
    return Const(value)


def traced(function: Callable[..., Any], structure: Structure, specs: Sequence[LeafSpec]) -> Traced:
    """Return the result of `trace`, remembered per function and kind of element until a captured value changes."""
    key = ("traced", structure, tuple(specs))
    notes = notes_of(function)
    found: Traced | None = None if notes is None else notes.get(key)
    if found is None or not found.holds():
        found = _traced_alike(function, key)
        if notes is not None:
            notes[key] = found
    return found


def _traced_alike(function: Callable[..., Any], key: tuple[str, Structure, tuple[LeafSpec, ...]]) -> Traced:
    """Return the result of `trace`, or that of an earlier function with the same code and equal captured values."""
    if not isinstance(function, FunctionType):
        found = trace(function, *key[1:])
        return replace(found, captured=found.captured.without(function)) if _is_its_own_place(function) else found

    def read() -> tuple[Traced, list[Any] | None]:
        found = trace(function, *key[1:])
        if found.graph is None or why_impure(function) is not None:  # the graph reads from large arrays
            return found, None
        return replace(found, captured=Captured(())), [found.captured]

    found, seen = recalled(function, ("graph", *key[1:]), read, by_value=True)
    seen = Captured((*found.captured.reads, *seen.reads))
    return replace(found, captured=seen.without(function))  # else the function is never freed


def _is_its_own_place(function: Any) -> bool:
    """Return True for a callable object. Its reads refer to the object and would keep it in memory."""
    return type(function).__weakrefoffset__ != 0 and type(function) not in (functools.partial, MethodType)


def traced_spec(function: Callable[..., Any], spec: Any) -> Any:
    """Return the specs of the result of `function` for an element of `spec`, or None if only a call can show them.

    A function of penstock may know more than its code shows, such as a decoder of data with described features. Such a
    function has `__penstock_spec__(spec)`.
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
    return graph.structure.build([graph.output_spec(k) for k in range(len(graph.outputs))])
