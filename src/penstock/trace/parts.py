"""Parts: the beginning of a function that can be traced as a graph, and the rest of it as a function.

A function that does something unknown is called for every element, but what it does before that can run a Block at a
time: nobody can notice how often or when that is computed. The rest is a function of the variables that it reads. It is
called per element, in order, and does what the function would have done from there on.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from penstock.block.spec import LeafSpec, TensorSpec
from penstock.block.structure import Structure
from penstock.trace.arithmetic import ASTYPE, UFUNCS, WHERE
from penstock.trace.captured import CONTENT, MISSING, SIZE, Captured
from penstock.trace.drawing import OF_STAND_INS, drawing
from penstock.trace.graph import Graph, GraphBuilder, NotTraceable, Operand, Ref
from penstock.trace.purity import inspected, is_plain_object
from penstock.trace.statements import Cut, cut, inlined, reads, returns, text_of, writes
from penstock.trace.traced import remembered, traced, why_not_made
from penstock.trace.tracer import Tracer

_CONSTANTS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))
_NAMED = (FunctionType, BuiltinFunctionType, ModuleType, type, np.dtype, np.ufunc, np.generic)
_CHEAP = (*UFUNCS.values(), ASTYPE, WHERE)  # numpy does as well by itself
_WATCHED = 64  # places that the beginning may read, which are looked at before each call of the rest
_DIGESTED = 1 << 12  # bytes of captured arrays, likewise

Step = tuple[FunctionType, list[str], list[str]]  # what it does, from which variables, to which


@dataclass(frozen=True, slots=True)
class Same:
    """A value that is the same for every element."""

    value: Any


@dataclass(frozen=True, slots=True)
class Slot:
    """A value of the element: output number `index` of the graph."""

    index: int


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """A tuple, list or dict, which every element has its own of."""

    kind: type
    keys: tuple[Any, ...]
    items: tuple[Template, ...]


Template = Same | Slot | Made


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Parts:
    """`graph` computes what the variables that the rest reads are made of; `steps` is the same per element."""

    graph: Graph
    inputs: Callable[..., Any]
    arguments: tuple[str, ...]
    steps: tuple[Step, ...]
    names: tuple[str, ...]
    variables: tuple[Template, ...]
    rest: FunctionType
    draws: int
    captured: Captured
    broken: str  # by what, and where

    def plainly(self, arguments: Sequence[Any]) -> list[Any]:
        """The leaves that `graph` computes, as the function computes them for one element."""
        variables = dict(zip(self.arguments, self.inputs(*arguments), strict=True))
        for function, takes, gives in self.steps:
            variables.update(zip(gives, function(*[variables[name] for name in takes]), strict=True))
        found: dict[int, Any] = {}
        for template, name in zip(self.variables, self.names, strict=True):
            _leaves(template, variables[name], found)
        return [found[index] for index in range(len(found))]

    def rows(self, columns: Sequence[list[Any]], count: int) -> Iterator[tuple[Any, ...]]:
        """The arguments of `rest` for each element, from the values of the graph's outputs."""
        made: dict[int, list[Any]] = {}
        return zip(*[_rows(template, columns, count, made) for template in self.variables], strict=True)


def _leaves(template: Template, value: Any, found: dict[int, Any]) -> None:
    if isinstance(template, Slot):
        found[template.index] = value
    elif isinstance(template, Made):
        parts = [value[key] for key in template.keys] if template.kind is dict else list(value)
        for item, part in zip(template.items, parts, strict=True):
            _leaves(item, part, found)


def _rows(template: Template, columns: Sequence[list[Any]], count: int, made: dict[int, list[Any]]) -> list[Any]:
    if isinstance(template, Slot):
        return columns[template.index]
    if isinstance(template, Same):
        return [template.value] * count
    known = made.get(id(template))
    if known is None:
        parts = [_rows(item, columns, count, made) for item in template.items]
        rows = zip(*parts, strict=True) if parts else (() for _ in range(count))
        if template.kind is dict:
            known = [dict(zip(template.keys, row, strict=True)) for row in rows]
        else:
            known = [template.kind(row) for row in rows]
        made[id(template)] = known
    return known


class _Kept:
    """Variables of a traced function as templates: the same value is the same slot, and the same dict the same."""

    def __init__(self, called: _Called) -> None:
        self._given = *called.given, *called.named.values()
        self.outputs: list[Operand] = []
        self._made: dict[int, Template] = {}
        self._values: list[Any] = []  # so that no id is given twice

    def template(self, value: Any) -> Template:
        if type(value) is Tracer:
            if not isinstance(value.spec, TensorSpec):
                message = "a sparse, ragged or composite value in front of what is not known"
                raise NotTraceable(message)
            if value.ref not in self.outputs:
                self.outputs.append(value.ref)
            return Slot(self.outputs.index(value.ref))
        if any(value is given for given in self._given):
            return Same(value)  # whatever it is: the function is given this very object each time
        if type(value) in (tuple, list, dict):
            return self._nest(value)
        if type(value) in _CONSTANTS or isinstance(value, _NAMED):
            return Same(value)
        message = f"a {type(value).__name__} in front of what is not known"
        raise NotTraceable(message)

    def _nest(self, value: Any) -> Template:
        known = self._made.get(id(value))
        if known is None:
            keys = tuple(value) if type(value) is dict else ()
            items = value.values() if type(value) is dict else value
            known = self._made[id(value)] = Made(type(value), keys, tuple(map(self.template, items)))
            self._values.append(value)
        return known


@dataclass(frozen=True, slots=True)
class _Called:
    """The function behind a method, a partial or an object, and what it is given beside the element."""

    function: FunctionType
    given: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)
    reads: tuple[tuple[Any, Any, Any], ...] = ()


def _called(function: Any) -> _Called | None:
    if type(function) is FunctionType:
        return _Called(function)
    if type(function) is functools.partial:
        below = _called(function.func)
        if below is None or below.named:
            return None
        items = [(function.keywords, name, value) for name, value in function.keywords.items()]
        watched = (*below.reads, (function.keywords, SIZE, len(items)), *items)
        return _Called(below.function, (*below.given, *function.args), dict(function.keywords), watched)
    if type(function) is MethodType:
        plain, owner = function.__func__, function.__self__
        return _Called(plain, (owner,)) if type(plain) is FunctionType and is_plain_object(owner) else None
    if not is_plain_object(function):
        return None
    kinds = type(function).__mro__[:-1]
    method: Any = next((vars(kind)["__call__"] for kind in kinds if "__call__" in vars(kind)), None)
    watched = tuple((vars(kind), "__call__", vars(kind).get("__call__", MISSING)) for kind in kinds)
    return _Called(method, (function,), {}, watched) if type(method) is FunctionType else None


def parts(function: Callable[..., Any], structure: Structure, specs: Sequence[LeafSpec]) -> Parts | None:
    """A function's beginning and rest; None where it has no beginning worth it, or there is no telling."""
    called = _called(function)
    if called is None or why_not_made(structure) or not _may_gain(called.function, called.given):
        return None
    whole = None if traced(function, structure, specs).graph is not None else cut(called.function)
    if whole is None:
        return None
    tracing = _Tracing(whole, called, structure, specs)
    try:
        return tracing.parts()
    except NotTraceable:
        return None
    except Exception:  # on stand-ins: the real elements decide
        return None


def broken_by(function: Callable[..., Any], structure: Structure, specs: Sequence[LeafSpec]) -> str:
    """The line and the expression that a function cannot be traced beyond, with the reason; empty if nothing tells.

    >>> from penstock.block.structure import LEAF
    >>> broken_by(len, LEAF, [])
    ''
    """
    called = _called(function)
    whole = None if called is None or why_not_made(structure) else cut(called.function)
    if called is None or whole is None:
        return ""
    try:
        return _Tracing(whole, called, structure, specs).broken()
    except (NotTraceable, Exception):
        return ""


def _may_gain(function: FunctionType, given: Sequence[Any]) -> bool:
    """Whether it may call a function of ours, or one that does."""
    code = function.__code__
    closure = [cell.cell_contents for cell in function.__closure__ or () if _filled(cell)]
    values = chain(closure, (function.__globals__.get(name) for name in code.co_names))
    return bool(given) or any(
        isinstance(value, FunctionType) or (isinstance(value, ModuleType) and value.__name__.startswith("penstock"))
        for value in values
    )


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _nothing(value: Any) -> None:
    """Takes a value that is to be looked at as an argument is."""


class _Tracing:
    """Runs a function's statements on stand-ins, one after the other, up to the first that cannot be."""

    def __init__(self, whole: Cut, called: _Called, structure: Structure, specs: Sequence[LeafSpec]) -> None:
        self._whole = whole
        self._called = called
        self._structure = structure
        self._builder = GraphBuilder(tuple(specs))
        self._variables: dict[str, Any] = {}
        self._reads: list[tuple[Any, Any, Any]] = []
        self._objects: dict[str, Any] = {}  # variables that hold the same object of the user's for every element
        self._steps: list[Step] = []

    def parts(self) -> Parts | None:
        inputs = self._inputs()
        at, why = self._run()
        if all(equation.primitive in _CHEAP for equation in self._builder.equations):
            return None
        return self._parted(inputs, at, why)

    def broken(self) -> str:
        self._inputs()
        at, why = self._run()
        return self._told(at, why) if at < len(self._whole.statements) else ""

    def _inputs(self) -> Callable[..., Any]:
        """Gives the arguments their values."""
        whole, builder = self._whole, self._builder
        inputs = whole.bound()
        self._inspect(inputs)
        kinds = ("__code__", "__defaults__", "__kwdefaults__")
        self._reads.extend((whole.function, kind, getattr(whole.function, kind)) for kind in kinds)
        self._reads.extend(self._called.reads)
        for value in (*self._called.given, *self._called.named.values()):
            if not is_plain_object(value):
                self._inspect(functools.partial(_nothing, value))
        names = whole.function.__code__.co_varnames
        given = zip(names, self._called.given, strict=False)
        self._objects = {name: value for name, value in given if is_plain_object(value)}
        element = self._structure.build([Tracer(builder, Ref(-1, i), spec) for i, spec in enumerate(builder.inputs)])
        behind = functools.partial(inputs, *self._called.given, **self._called.named)
        values = behind(*element) if self._structure.unpacks else behind(element)
        self._variables.update(zip(whole.arguments(), values, strict=True))
        return behind

    def _told(self, at: int, why: str) -> str:
        return f"{text_of(self._whole.statements, at)}: {why}"

    def _inspect(self, function: Callable[..., Any]) -> None:
        why, seen = inspected(function, self._objects)
        if why:
            raise NotTraceable(why)
        self._reads.extend(seen.reads)

    def _run(self) -> tuple[int, str]:
        """How many statements could be traced, and why not the next."""
        statements, local = self._whole.statements, self._whole.local
        for i, statement in enumerate(statements):
            if returns(statement):
                return i, traced(self._whole.function, self._structure, self._builder.inputs).reason
            later = set().union(*[reads(other, local) for other in statements[i + 1 :]])
            needs, makes = reads(statement, local), writes(statement, local)
            if not needs - makes <= set(self._variables):  # one that it makes itself, as a loop does, may come to be
                return i, "it reads what has no value yet"
            gives = sorted(makes & later)
            takes = sorted(needs.union(gives).intersection(self._variables))
            step = self._whole.part([statement], takes, gives), takes, gives
            known = len(self._builder.equations), self._builder.draws, len(self._reads)
            before = _Kept(self._called)
            held = [before.template(value) for value in self._variables.values()]
            try:
                self._inspect(step[0])
                with drawing(OF_STAND_INS):
                    made = step[0](*[self._variables[name] for name in takes])
                kept = _Kept(self._called)
                for value in made:
                    kept.template(value)
            except (NotTraceable, Exception) as error:
                del self._builder.equations[known[0] :], self._reads[known[2] :]
                self._builder.draws = known[1]
                after = _Kept(self._called)
                now = [after.template(value) for value in self._variables.values()]
                if before.outputs != after.outputs or not _alike(held, now):
                    raise  # it has changed a dict before it failed
                return i, str(error)
            self._variables.update(zip(gives, made, strict=True))
            self._steps.append(step)
        return len(statements), ""

    def _parted(self, inputs: Callable[..., Any], at: int, why: str) -> Parts | None:
        whole, captured = self._whole, Captured(tuple(self._reads))
        left = whole.statements[at:]
        if not left or not _quickly_watched(captured):
            return None
        rest = inlined(left)
        needed = set().union(*[reads(statement, whole.local) for statement in rest])
        unknown = needed - set(self._variables)
        if unknown - set().union(*[writes(statement, whole.local) for statement in rest]):
            return None  # in a function of its own it would be a global name
        names = tuple(sorted(needed & set(self._variables)))
        kept = _Kept(self._called)
        variables = tuple(kept.template(self._variables[name]) for name in names)
        function = whole.part(rest, list(names), None)
        graph = self._builder.finish(kept.outputs, Structure(tuple, (), (), len(kept.outputs)))
        return Parts(
            graph, inputs, tuple(whole.arguments()), tuple(self._steps), names, variables, function,
            self._builder.draws, captured, self._told(at, why),
        )  # fmt: skip


def _alike(first: Sequence[Template], second: Sequence[Template]) -> bool:
    return len(first) == len(second) and all(map(_same, first, second))


def _same(first: Template, second: Template) -> bool:
    if isinstance(first, Made) and isinstance(second, Made):
        return first.kind is second.kind and first.keys == second.keys and _alike(first.items, second.items)
    if isinstance(first, Same) and isinstance(second, Same):
        return first.value is second.value
    return first == second


def _quickly_watched(captured: Captured) -> bool:
    digested = sum(place.nbytes for place, name, _ in captured.reads if name is CONTENT)
    return digested <= _DIGESTED and len(captured.reads) <= 8 * _WATCHED


_cache: weakref.WeakKeyDictionary[Any, dict[Any, Parts | None]] = weakref.WeakKeyDictionary()


def in_parts(function: Callable[..., Any], structure: Structure, specs: Sequence[LeafSpec]) -> Parts | None:
    """`parts`, remembered per function and kind of element while what its beginning reads stays the same."""
    known = remembered(_cache, function)
    if known is None:
        return parts(function, structure, specs)
    key = (structure, tuple(specs))
    found = known.get(key)
    if key not in known or (found is not None and not found.captured.unchanged()):
        found = known[key] = parts(function, structure, specs)
    return found
