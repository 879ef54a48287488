"""Parts: the beginning of a function as a graph, and the rest of it as a function.

A function with an unknown operation is called for every element. The operations before it can run on whole Blocks,
because they have no side effects: no code can observe when or how often they run. The rest becomes a function of the
variables that it reads. It is called per element, in order, and continues where the beginning ends.
"""

from __future__ import annotations

import ast
import functools
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from penstock.block.spec import LeafSpec
from penstock.block.structure import Structure
from penstock.functions.captured import MISSING, SIZE, Captured
from penstock.functions.memory import notes_of
from penstock.functions.ownership import is_plain_object
from penstock.functions.uses import closure
from penstock.trace.arithmetic import ASTYPE, TRIED_ASTYPE, UFUNCS, WHERE
from penstock.trace.drawing import OF_STAND_INS, drawing
from penstock.trace.ends import Ends, things_of
from penstock.trace.fields import Fields, apart, leaves_in
from penstock.trace.graph import Const, Equation, Graph, GraphBuilder, NotTraceable, Operand, Ref
from penstock.trace.purity import inspected, why_not_movable
from penstock.trace.statements import Cut, PutOff, cut, inlined, reads, returns, text_of, writes
from penstock.trace.templates import Template, Templates, alike, leaves, rows_of
from penstock.trace.traced import traced, why_not_made
from penstock.trace.tracer import Tracer

_SPARED = 2  # a cut must save at least so many leaves per element
_SPARED_LOOKING = 6  # likewise, if each call first compares the places that the beginning read
_MADE_UP = 16_000  # building so many leaves takes as long as finding those that are not needed
_WIDE = 4  # fewest leaves of an element, of which some may not be needed
_CHEAP = (*UFUNCS.values(), ASTYPE, TRIED_ASTYPE, WHERE)  # numpy is as fast for single elements

Step = tuple[FunctionType, list[str], list[str]]  # a function, the variables that it reads, and those that it sets


REMEDY = "Functions of numpy or penstock in its place may run by Block; AUTOTUNE runs calls in parallel."


@dataclass(slots=True)
class Spent:
    """The number and the duration of the calls per element so far."""

    calls: int = 0
    seconds: float = 0.0

    def add(self, calls: int, seconds: float) -> None:
        self.calls += calls
        self.seconds += seconds


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Parts:
    """A function as a graph and a rest. `graph` computes the variables that the rest reads, `steps` do it per element.

    `gains` is True if this cut alone is worth it. `ends` is the search for a further cut of the rest.
    """

    graph: Graph
    inputs: Callable[..., Any]
    arguments: tuple[str, ...]
    steps: tuple[Step, ...]
    names: tuple[str, ...]
    variables: tuple[Template, ...]
    rest: FunctionType
    draws: int
    captured: Captured
    broken: str  # the lines that cannot be traced, with reasons
    gains: bool
    pure: bool  # True if the rest has no side effects
    ends: Ends | None
    unsteady: set[Any]  # the places that calls of the function have changed so far
    known: int  # their number when the function was cut
    is_straight: bool  # True if the original function runs when the rest raises
    spent: Spent = field(default_factory=lambda: Spent())

    def holds(self) -> bool:
        """Return True if the function would be cut again to these parts."""
        return self.known == len(self.unsteady) and self.captured.unchanged()

    def plainly(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the leaves that `graph` computes, computed by the function itself for one element."""
        variables = dict(zip(self.arguments, self.inputs(*arguments), strict=True))
        for function, takes, gives in self.steps:
            variables.update(zip(gives, function(*[variables[name] for name in takes]), strict=True))
        found: dict[int, Any] = {}
        for template, name in zip(self.variables, self.names, strict=True):
            leaves(template, variables[name], found)
        return [found[index] for index in range(len(found))]

    def described(self, optimised: Callable[..., Graph], *, may_end: bool) -> str:
        """Return the text for `explain`: the primitives of the graphs, the lines that run per element, their time."""
        ends = self.ends if may_end else None
        ended = None if ends is None else ends.ended
        graphs: list[tuple[Graph, Collection[int]]] = [(self.graph, ())]
        given: Collection[int] = range(len(self.graph.outputs))
        if ended is not None:
            graphs = [(ended.before, ended.copied), (ended.after, range(len(ended.after.outputs)))]
            given = ended.shown
        runs = [optimised(graph, copied=copied) for graph, copied in graphs if graph.equations]
        by_block = "; after it ".join(graph.describe() for graph in runs)
        few, leaves = len(graphs[0][0].used(given)), len(self.graph.inputs)
        alone = f" with {few} of {leaves} values of the element" if leaves - few >= _SPARED else ""
        each = f", {self.spent.seconds / self.spent.calls * 1e6:,.3g} µs each" if self.spent.calls else ""
        more = "" if ended is not None or ends is None or ends.split is None else ", and what follows from it"
        if not by_block:
            after = "The lines after it run by Block if they can be traced. " if more else ""
            return f"runs per element{alone}{each}: {self.broken}. {after}{REMEDY}"
        return f"runs by Block: {by_block}; called per element{alone}{each}: {self.broken}{more}"

    def rows(self, itself: Any, columns: Sequence[list[Any]], count: int) -> Iterator[tuple[Any, ...]]:
        """Yield the arguments of `rest` for each element, built from the outputs of the graph."""
        return rows_of(self.variables, itself, columns, count)


@dataclass(frozen=True, slots=True)
class _Called:
    """The function that a method, a partial or an object calls, and its arguments in addition to the element.

    Facts about an object are remembered while the object exists, and must not keep it in memory. The first argument is
    therefore a twin with the same attributes, and `itself` is a weak reference to the object.
    """

    function: FunctionType
    given: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)
    reads: tuple[tuple[Any, Any, Any], ...] = ()
    itself: weakref.ref[Any] | None = None


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
    if type(method) is not FunctionType:
        return None
    kind = type(function)
    if not kind.__weakrefoffset__ or hasattr(kind, "__del__"):  # freeing the twin would be observable
        return _Called(method, (function,), {}, watched)
    twin = object.__new__(kind)
    object.__setattr__(twin, "__dict__", vars(function))
    return _Called(method, (twin,), {}, watched, weakref.ref(function))


def parts(function: Any, structure: Structure, specs: Sequence[LeafSpec], unsteady: set[Any]) -> Parts | None:
    """Return a function as beginning and rest, or None if no beginning is worth it or can be found.

    Statements that read one of the `unsteady` places belong to the rest.
    """
    called = _called(function)
    if called is None or why_not_made(structure) or not (structure.size >= _WIDE or _calls_ours(called)):
        return None
    if traced(function, structure, specs).graph is not None:
        return None
    best: Parts | None = None
    for straight in (False, True):
        whole = cut(called.function, straight=straight)
        if whole is None or (best is not None and best.gains):
            break
        tracing = _Tracing(whole, called, structure, specs)
        tracing.unsteady = unsteady
        with suppress(NotTraceable, Exception):  # an error with tracers says nothing about real elements
            found = tracing.parts()
            if found is not None and (found.pure or not straight) and (found.gains or best is None):
                best = found
    return best


def broken_by(function: Callable[..., Any], structure: Structure, specs: Sequence[LeafSpec]) -> str:
    """Return the line and the expression at which tracing ends, with the reason; "" if they cannot be found.

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


def _calls_ours(called: _Called) -> bool:
    """Return True if a function may call a function of penstock, directly or in a helper."""
    function, given = called.function, called.given
    code = function.__code__
    held = (value for _, value in closure(function))
    values = chain(held, (function.__globals__.get(name) for name in code.co_names))
    if given or any(name.partition(".")[0] == "penstock" for name in code.co_names):  # the function may import penstock
        return True
    return any(
        isinstance(value, FunctionType) or (isinstance(value, ModuleType) and value.__name__.startswith("penstock"))
        for value in values
    )


def _nothing(value: Any) -> None:
    """Do nothing. Inspecting a partial of this function inspects the value."""


def _twin(function: FunctionType) -> FunctionType:
    """Return a function with the same code, globals, defaults and closure."""
    made = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


class _Tracing:
    """Traces a function's statements one after the other, up to the first that cannot be traced."""

    def __init__(self, whole: Cut, called: _Called, structure: Structure, specs: Sequence[LeafSpec]) -> None:
        # The result is remembered while the function exists. It refers to a twin, so that the function can be freed.
        self._function = weakref.ref(called.function)
        twin = _twin(called.function)
        self.whole = replace(whole, function=twin)
        self._called = replace(called, function=twin)
        self._structure = structure
        self.unsteady: set[Any] = set()
        self.builder = GraphBuilder(tuple(specs))
        self.variables: dict[str, Any] = {}
        self.reads: list[tuple[Any, Any, Any]] = []
        self._objects: dict[str, Any] = {}  # variables with one object of the user for all elements
        self._steps: list[Step] = []
        self.breaks: list[str] = []  # the lines that cannot be traced, with reasons

    def parts(self) -> Parts | None:
        inputs = self._inputs()
        at = self._run()
        ends = Ends.of(self, at)
        found = self._parted(inputs, at, ends)
        return None if found is None or not (found.gains or ends is not None) else found

    def gains(self, spared: int, *, pure: bool) -> bool:
        """Return True if running the equations so far on Blocks is worth it, or building `spared` fewer leaves is."""
        return not all(map(_is_cheap, self.builder.equations)) or spared >= (_SPARED if pure else _SPARED_LOOKING)

    def inspected(self, function: Callable[..., Any]) -> tuple[str | None, tuple[Any, ...]]:
        """Return why a part of the function must not be traced, or None; and the places outside that it reads."""
        why, seen = inspected(function, self._objects, self._held(function))
        if not self.unsteady.isdisjoint(seen.places()):
            why = why or "it reads a value that its calls change"
        ours = function, _nothing  # created here: no other code can change them
        return why, self._watched([read for read in seen.reads if not any(read[0] is one for one in ours)])

    def _held(self, function: Any) -> dict[str, Any]:
        """Return the arguments of a part that are not created for each element, but exist for all elements."""
        code: Any = getattr(function, "__code__", None)
        outside = self._outside()

        def is_held(value: Any) -> bool:
            if id(value) in outside:
                return True
            values = value.values() if type(value) is dict else value if type(value) in (tuple, list) else ()
            return any(map(is_held, values))

        names = () if code is None else code.co_varnames[: code.co_argcount]
        return {name: self.variables[name] for name in names if is_held(self.variables.get(name))}

    def _given(self) -> tuple[Any, ...]:
        """Return the arguments of the function in addition to the element."""
        return *self._called.given, *self._called.named.values()

    def _templates(self) -> Templates:
        twin = self._called.given[0] if self._called.itself is not None else None
        return Templates(self._given(), self._outside(), twin)

    def _outside(self) -> frozenset[int]:
        """Return the ids of the lists, dicts, arrays and objects that existed before the call."""
        given = self._given()
        found = (place for place, *_ in self.reads if type(place) in (list, dict, OrderedDict, np.ndarray))
        return frozenset(map(id, (*found, *(value for value in given if is_plain_object(value)))))

    def _watched(self, reads: Sequence[tuple[Any, Any, Any]]) -> tuple[tuple[Any, Any, Any], ...]:
        """Return the reads with the object itself in place of its twin."""
        itself = self._called.itself
        if itself is None:
            return tuple(reads)
        return tuple((itself if read[0] is self._called.given[0] else read[0], *read[1:]) for read in reads)

    def templates(self, values: Sequence[Any]) -> tuple[tuple[Template, ...], list[Operand]]:
        """Return variables as templates, and the outputs of the graph that the templates use."""
        kept = self._templates()
        return tuple(map(kept.template, values)), kept.outputs

    def things(self, names: Collection[str]) -> set[Any]:
        """Return the values that can be overwritten through these variables."""
        return things_of(self.builder.equations, self.variables, names)

    def changed(self, read: set[str]) -> set[str]:
        """Return the variables that may change when other code gets these, because they share memory."""
        open_ = self.things(read)
        return {name for name in self.variables if open_ and not open_.isdisjoint(self.things((name,)))}

    def broken(self) -> str:
        self._inputs()
        self._run()
        return "; ".join(self.breaks)

    def _inputs(self) -> Callable[..., Any]:
        """Set the arguments to their values. Return a function that does the same for an element."""
        whole, builder = self.whole, self.builder
        inputs = whole.bound()
        self._inspect(inputs)
        kinds = ("__code__", "__defaults__", "__kwdefaults__")
        self.reads.extend((self._function, kind, getattr(whole.function, kind)) for kind in kinds)
        self.reads.extend(self._called.reads)
        for value in self._given():
            if not is_plain_object(value):
                self._inspect(functools.partial(_nothing, value))
        names = whole.function.__code__.co_varnames
        given = zip(names, self._called.given, strict=False)
        self._objects = {name: value for name, value in given if is_plain_object(value)}
        element = self._structure.build([Tracer(builder, Ref(-1, i), spec) for i, spec in enumerate(builder.inputs)])
        behind = functools.partial(inputs, *self._called.given, **self._called.named)
        values = behind(*element) if self._structure.unpacks else behind(element)
        self.variables.update(zip(whole.arguments(), values, strict=True))
        return behind

    def _told(self, at: int, why: str) -> str:
        return f"{text_of(self.whole.statements, at)}: {why}"

    def _inspect(self, function: Callable[..., Any]) -> None:
        why, seen = self.inspected(function)
        if why:
            raise NotTraceable(why)
        self.reads.extend(seen)

    def _run(self) -> int:
        """Trace as many statements as possible, move them before the others, and return their number.

        A pure statement that cannot be traced (a branch, a conversion to int) is postponed. The statements that do not
        depend on it are traced first. No code can observe this order.
        """
        local = self.whole.local
        traced_, put_off = [], PutOff()
        for i, statement in enumerate(self.whole.statements):
            why = self._why_not_traced(i, put_off)
            if why is None:
                traced_.append(statement)
                continue
            if why:
                self.breaks.append(self._told(i, why))
            if returns(statement) or not self._may_be_put_off(statement):
                left = self.whole.statements[i:]
                break
            read = reads(statement, self.whole.local)
            put_off.add(statement, read, writes(statement, local), self.changed(read))
        else:
            left = ()
        found = apart([*put_off.statements, *left], self.whole.local, self.variables)
        self._load(found)
        traced_ += [load.statement for load in found.loads]
        local = self.whole.local.union(found.made)
        self.whole = replace(self.whole, statements=(*traced_, *found.statements), local=local)
        return len(traced_)

    def _load(self, found: Fields) -> None:
        """Assign the items of dicts that became separate variables."""
        for load in found.loads:
            step = self.whole.part([load.statement], [load.of], [load.to])
            self._steps.append((step, [load.of], [load.to]))
            self.variables[load.to] = self.variables[load.of][load.key]

    def _may_be_put_off(self, statement: ast.stmt) -> bool:
        local = self.whole.local
        names = sorted(reads(statement, local) | writes(statement, local))
        return self.why_not_movable(self.whole.part([statement], names, [])) is None

    def why_not_movable(self, function: Callable[..., Any]) -> str | None:
        """Return why other code can observe when a part of the function is called, or None."""
        return why_not_movable(function, self._objects, self._held(function))

    def _why_not_traced(self, i: int, put_off: PutOff) -> str | None:
        """Trace a statement. Return None, or the reason if that fails, or "" if it depends on a postponed statement."""
        statements, local = self.whole.statements, self.whole.local
        statement = statements[i]
        needs, makes = reads(statement, local), writes(statement, local)
        if returns(statement):
            whole = traced(self.whole.function, self._structure, self.builder.inputs)
            return "" if self.breaks else whole.reason
        if put_off.concerns(needs, makes) or not put_off.reads(makes) <= self.variables.keys():
            return ""
        if not needs - makes <= set(self.variables):  # a loop can read a variable that it sets itself
            return "it reads a variable that has no value yet"
        later = set().union(*[reads(other, local) for other in statements[i + 1 :]])
        gives = sorted(makes & later)
        takes = sorted(needs.union(gives).intersection(self.variables))
        step = self.whole.straight([statement], takes, gives), takes, gives
        known = len(self.builder.equations), self.builder.draws, len(self.reads)
        stood = [(tracer, tracer.ref) for tracer in leaves_in([*self.variables.values()]) if type(tracer) is Tracer]
        before = self._templates()
        held = [before.template(value) for value in self.variables.values()]
        try:
            imported = _imported(statement)
            if imported:
                self.reads.extend(imported)
            else:
                self._inspect(step[0])
            with drawing(OF_STAND_INS):
                made = step[0](*[self.variables[name] for name in takes])
            kept = self._templates()
            for value in made:
                kept.template(value)
            if put_off.statements and any(tracer.ref != ref for tracer, ref in stood):
                message = "it writes into an array"  # a postponed statement may read the array
                raise NotTraceable(message)
        except (NotTraceable, Exception) as error:
            del self.builder.equations[known[0] :], self.reads[known[2] :]
            self.builder.draws = known[1]
            for tracer, ref in stood:
                tracer.ref = ref
            after = self._templates()
            now = [after.template(value) for value in self.variables.values()]
            if before.outputs != after.outputs or not alike(held, now):
                raise  # the statement changed a dict before it failed
            both = traced(self.whole.function, self._structure, self.builder.inputs).reason, str(error)
            return both[not all(why.startswith("it branches") for why in both)]  # a single statement may not branch
        for name in sorted(put_off.reads(set(gives))):
            old = f"{name}.{len(self._steps)}"
            self._steps.append((self.whole.part([], [name], [name]), [name], [old]))
            self.variables[old] = self.variables[name]
            put_off.renamed(name, old)
            self.whole = replace(self.whole, local=self.whole.local | {old})
        self.variables.update(zip(gives, made, strict=True))
        self._objects = {**self._objects, **(dict(zip(gives, made, strict=True)) if imported else {})}
        self._steps.append(step)
        return None

    def _parted(self, inputs: Callable[..., Any], at: int, ends: Ends | None) -> Parts | None:
        whole, captured = self.whole, Captured(tuple(self.reads))
        left = whole.statements[at:]
        if not left or not captured.quickly_watched:
            return None
        rest = inlined(left)
        needed = set().union(*[reads(statement, whole.local) for statement in rest])
        unknown = needed - set(self.variables)
        if unknown - set().union(*[writes(statement, whole.local) for statement in rest]):
            return None  # in a separate function it would be a global
        names = tuple(sorted(needed & set(self.variables)))
        kept = self._templates()
        variables = tuple(kept.template(self.variables[name]) for name in names)
        function = whole.part(rest, list(names), None)
        graph = self.builder.finish(kept.outputs, Structure(tuple, (), (), len(kept.outputs)))
        pure = self.why_not_movable(function) is None
        spared = len(graph.inputs) - len(graph.used(range(len(graph.outputs))))
        gains = self.gains(spared, pure=pure)
        return Parts(
            graph, inputs, tuple(whole.arguments()), tuple(self._steps), names, variables, function,
            self.builder.draws, captured, "; ".join(self.breaks), gains, pure, ends,
            self.unsteady, len(self.unsteady), whole.is_straight,
        )  # fmt: skip


def _imported(statement: ast.stmt) -> list[tuple[Any, Any, Any]]:
    """Return the places that an import reads; none for another statement, or if a name does not exist yet."""
    found: list[tuple[Any, Any, Any]] = []
    if isinstance(statement, ast.Import):
        found = [(sys.modules, alias.name, sys.modules.get(alias.name)) for alias in statement.names]
    elif isinstance(statement, ast.ImportFrom) and statement.module in sys.modules and not statement.level:
        names = vars(sys.modules[statement.module])
        found = [(names, alias.name, names.get(alias.name)) for alias in statement.names]
    return found if all(value is not None for _, _, value in found) else []


def _is_cheap(equation: Equation) -> bool:
    """Return True if numpy is as fast for single elements. With a constant array of a few numbers it is slower."""
    few = any(isinstance(operand, Const) and np.ndim(operand.value) for operand in equation.operands)
    return equation.primitive.by_row or (equation.primitive in _CHEAP and not few)


def worth_asking(function: Callable[..., Any], structure: Structure, rows: int, *, gives_elements: bool) -> bool:
    """Return True if calling `in_parts` is worth it for a function that will be called for `rows` further elements.

    `in_parts` takes milliseconds. It is worth it at once for a function that returns elements and calls a function of
    penstock. For others, the only gain is that some leaves are not built. It is then worth it after enough elements.
    """
    called = _called(function)
    if called is None or (gives_elements and (structure.size < _WIDE or _calls_ours(called))):
        return True
    notes = notes_of(function)
    if notes is None:
        return True
    leaves: int = notes.get("leaves", 0) + rows * structure.size
    notes["leaves"] = leaves
    return leaves >= _MADE_UP


def in_parts(
    function: Callable[..., Any], structure: Structure, specs: Sequence[LeafSpec], before: Parts | None = None
) -> Parts | None:
    """Return the result of `parts`, remembered per function and kind of element until a value that it reads changes.

    `before` is the result that the caller got the last time.
    """
    notes = notes_of(function)
    notes = {} if notes is None else notes
    key = ("parts", structure, tuple(specs))
    found: Parts | None = notes.get(key, before)
    if key not in notes or (found is not None and not found.holds()):
        found = notes[key] = parts(function, structure, specs, set() if found is None else found.unsteady)
    return found
