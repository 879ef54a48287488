"""Ends: the lines of a function after those that cannot be traced, as a graph of their own.

    image = flip(image)                      →   before: flip, resize, / 255: all that does not need the middle
    label = int(label)                       →   middle: int(label), called for each element in order
    return resize(image) / 255.0, label      →   after:  computed from the values of the middle, and the result

The variables that the middle sets, and their kinds, are known after one call of the middle. A function is therefore cut
after the last statement that seems impossible to trace, and cut again further down if that was too early.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numpy as np

from penstock.block.spec import TensorSpec
from penstock.block.structure import NONE, Structure, components, flatten
from penstock.forked import new_lock
from penstock.functions.captured import Captured
from penstock.functions.uses import uses
from penstock.trace.arithmetic import ASTYPE, EXACT, VIEWS, WHERE, memory_of
from penstock.trace.drawing import OF_STAND_INS, drawing
from penstock.trace.fields import leaves_in
from penstock.trace.graph import Const, Equation, Graph, GraphBuilder, Halves, NotTraceable, Ref
from penstock.trace.lift import families
from penstock.trace.statements import Cut, reads, returns, writes
from penstock.trace.templates import Template
from penstock.trace.traced import output_of
from penstock.trace.tracer import Tracer, refused

MARK = ".end"  # the middle returns this first if it reaches its end
_ENOUGH, _FEW = 8, 4  # after _ENOUGH elements, 1 in _FEW may differ in kind from the others
_LAYOUT = (".shape=", ".strides=", ".dtype=")  # attributes that a function can change in a read-only array
_PASSED_ON = (bool, int, float, complex, str, bytes, np.generic)  # immutable types


@dataclass(frozen=True, slots=True)
class VariableKind:
    """The kind of a variable that the middle sets: an array or number that the end can compute with."""

    type: type
    dtype: np.dtype
    shape: tuple[int, ...]

    def admits(self, value: Any, *, any_layout: bool) -> bool:
        """Return True if a value is of this kind. Arrays must be contiguous, except with `any_layout`."""
        if type(value) is not self.type:
            return False
        array: Any = value
        if array.dtype != self.dtype or array.shape != self.shape:
            return False
        return bool(any_layout or not self.shape or array.flags.c_contiguous)


def kind_of_value(value: Any) -> VariableKind | None:
    """Return the kind of a value, or None for a value that can only be passed on."""
    if isinstance(value, np.generic):
        plain = value.dtype.kind in "biuf"
    else:
        plain = type(value) is np.ndarray and value.ndim > 0 and value.dtype.kind in "biuf"
        plain = plain and value.size > 0
    return VariableKind(type(value), value.dtype, value.shape) if plain and value.dtype.isnative else None


def may_be_passed_on(value: Any) -> bool:
    return isinstance(value, _PASSED_ON)


@dataclass(frozen=True, slots=True, eq=False)
class EndSplit:
    """A function that is cut at statement `at`. `end(*needs)` returns the result.

    `middle(mark, *takes)` returns (mark, *gives), or the result if the function returns in the middle.
    """

    at: int
    middle: FunctionType
    takes: tuple[str, ...]
    gives: tuple[str, ...]
    end: FunctionType
    needs: tuple[str, ...]
    pure: bool  # True if the middle has no side effects


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Ended:
    """A function whose end runs on whole Blocks. `results` has the source of each leaf: a graph and its output."""

    split: EndSplit
    before: Graph
    arguments: tuple[Template, ...]  # arguments of the middle, from the outputs of `before`
    kinds: tuple[VariableKind | None, ...]  # kinds of its results; None: only passed on
    after: Graph
    crossing: tuple[int, ...]  # outputs of `before` that `after` takes before the results of the middle
    results: tuple[tuple[str, Any], ...]
    structure: Structure
    drawn: int  # number of keys that the middle uses
    captured: Captured
    shown: frozenset[int]  # outputs of `before` that the middle gets
    copied: frozenset[int]  # outputs that are results, and are copied before other code reads them
    any_layout: bool  # True if `after` gives equal results for arrays that are not contiguous


_refused = refused("it reads a value that is only passed on")


class _Passed:
    """A value that the end may pass on but not read. If it `stays`, the end may not pass it on either."""

    __slots__ = ("name", "stays")

    def __init__(self, name: str, *, stays: bool) -> None:
        self.name = name
        self.stays = stays

    __eq__ = __ne__ = __hash__ = __bool__ = __str__ = __repr__ = __format__ = __array__ = _refused
    __array_ufunc__ = __array_function__ = _refused


@dataclass(slots=True)
class Ends:
    """The search for the end of a function: the present cut and its outcome. `tracing` has run to statement `at`."""

    tracing: Any
    at: int
    split: EndSplit | None = None
    ended: Ended | None = None
    calls: int = 0
    unlike: int = 0  # number of these calls that gave other kinds
    lock: Any = field(default_factory=new_lock)

    def count(self, calls: int, unlike: int) -> None:
        """Count elements that differ in kind from the others. If they are frequent, cut the function further down."""
        with self.lock:
            self.calls += calls
            self.unlike += unlike
            if self.calls >= _ENOUGH and self.unlike * _FEW > self.calls and self.split is not None:
                start = self._behind(self.split.at)
                self.calls = self.unlike = 0
                self.ended, self.split = None, None if start is None else self._split(start)

    @classmethod
    def of(cls, tracing: Any, at: int) -> Ends | None:
        """Return the search for an end, or None if no end could be faster."""
        found = cls(tracing, at)
        start = found._first()
        found.split = None if start is None else found._split(start)
        return None if found.split is None else found

    def decide(self, split: EndSplit, given: Sequence[Any], drawn: int) -> None:
        """Trace the end, given the results of the middle for an element. If that fails, cut further down or give up."""
        with self.lock:
            if split is not self.split or self.ended is not None:
                return  # another thread was faster
            try:
                found = self._traced(split, given, drawn)
            except (NotTraceable, Exception):
                self.split = None
                return
            if isinstance(found, Ended):
                self.ended = found
            else:
                self.split = None if found is None else self._split(found)

    def _first(self) -> int | None:
        """Return the position after the last statement that certainly cannot be traced, or None."""
        whole: Cut = self.tracing.whole
        statements, last = whole.statements, len(whole.statements) - 1
        if last <= self.at or not isinstance(statements[last], ast.Return):
            return None
        start = last
        while start > self.at + 1 and self._plain(statements[start - 1]):
            start -= 1
        return start

    def _plain(self, statement: ast.stmt) -> bool:
        whole: Cut = self.tracing.whole
        if returns(statement):
            return False
        step = whole.straight([statement], sorted(reads(statement, whole.local)), [])
        return self.tracing.inspected(step)[0] is None

    def _split(self, start: int) -> EndSplit | None:
        whole: Cut = self.tracing.whole
        before: Mapping[str, Any] = self.tracing.variables
        middle, end = list(whole.statements[self.at : start]), list(whole.statements[start:])
        later = set().union(*[reads(statement, whole.local) for statement in end])
        read = set().union(*[reads(statement, whole.local) for statement in middle])
        written = set().union(*[writes(statement, whole.local) for statement in middle])
        changed = self.tracing.changed(read)
        gives = (written | changed) & later
        bound = before.keys() | _bound(middle)
        takes = (read | gives) & before.keys()
        needs = later & (before.keys() | gives)
        made = set().union(*[writes(statement, whole.local) for statement in end])
        if gives - bound or read - before.keys() - written or later - needs - made:
            return None
        if self.tracing.things(takes) & self.tracing.things(needs - gives):
            return None  # the end would read old content of arrays that the middle may change
        names, given, needed = tuple(sorted(takes)), tuple(sorted(gives)), tuple(sorted(needs))
        function = whole.part(middle, [MARK, *names], [MARK, *given])
        if any(use.spelled in _LAYOUT for use in uses(function)):
            return None  # the end would get the arrays of the element in their old layout
        pure = self.tracing.why_not_movable(function) is None
        return EndSplit(start, function, names, given, whole.part(end, list(needed), None), needed, pure)

    def _traced(self, split: EndSplit, given: Sequence[Any], drawn: int) -> Ended | int | None:
        """Return the traced end, or a later position to cut at, or None if no end can be traced."""
        tracing = self.tracing
        builder: GraphBuilder = tracing.builder
        kinds = tuple(kind_of_value(value) for value in given)
        known = builder.inputs, len(builder.equations), builder.draws
        specs = [TensorSpec(kind.shape, kind.dtype) for kind in kinds if kind is not None]
        try:
            builder.inputs = (*builder.inputs, *specs)
            builder.draws += drawn
            variables = copied_stand_ins(tracing.variables)
            at = len(known[0])
            for name, kind, value in zip(split.gives, kinds, given, strict=True):
                variables[name] = _Passed(name, stays=not may_be_passed_on(value))
                if kind is not None:
                    variables[name] = Tracer(builder, Ref(-1, at), builder.inputs[at])
                    at += 1
            end = tracing.whole.straight(list(tracing.whole.statements[split.at :]), list(split.needs), None)
            why, seen = tracing.inspected(end)
            captured = Captured((*tracing.reads, *seen))
            if why or not captured.quickly_watched:
                return None
            result = self._run(split, variables)
            if not isinstance(result, tuple):
                return result
            ended = self._ended(split, kinds, result[0], len(known[0]), drawn, captured)
            whole = all(
                kind is None or kind.admits(value, any_layout=False) for kind, value in zip(kinds, given, strict=True)
            )
            return ended if ended is None or whole or ended.any_layout else self._behind(split.at)
        finally:
            builder.inputs, builder.draws = known[0], known[2]
            del builder.equations[known[1] :]

    def _run(self, split: EndSplit, variables: dict[str, Any]) -> tuple[Any] | int | None:
        """Return the end's result for tracers in a tuple, or the position after a statement that cannot be traced."""
        whole: Cut = self.tracing.whole
        *statements, last = whole.statements[split.at :]
        builder: GraphBuilder = self.tracing.builder
        for i, statement in enumerate([*statements, last]):
            takes = sorted((reads(statement, whole.local) | writes(statement, whole.local)) & variables.keys())
            passed = [one for name in takes for one in leaves_in(variables[name]) if type(one) is _Passed]
            gives = None if statement is last else sorted(writes(statement, whole.local))
            known = len(builder.equations), builder.draws
            if _compares_identity(statement):
                return self._behind(split.at + i)
            if passed and (any(one.stays for one in passed) or not _only_stores(statement, whole.function)):
                return self._behind(split.at + i)
            try:
                step = whole.straight([statement], takes, gives)
                with drawing(OF_STAND_INS):
                    made = step(*[variables[name] for name in takes])
            except (NotTraceable, Exception):
                builder.draws = known[1]
                return self._behind(split.at + i)
            if gives is None:
                return (made,)
            variables.update(zip(gives, made, strict=True))
        return None

    def _behind(self, at: int) -> int | None:
        """Return the next position to cut at, or None."""
        return at + 1 if at + 1 < len(self.tracing.whole.statements) else None

    def _ended(
        self, split: EndSplit, kinds: Any, result: Any, elements: int, drawn: int, captured: Captured
    ) -> Ended | None:
        builder: GraphBuilder = self.tracing.builder
        if type(result) is list:
            return None
        leaves, structure = flatten(components(result))
        if structure == NONE:
            return None
        arguments, outputs = self.tracing.templates([self.tracing.variables[name] for name in split.takes])
        shown = len(outputs)  # further outputs follow
        halves = Halves(builder, elements, outputs)
        results: list[tuple[str, Any]] = []
        names = [name for name, kind in zip(split.gives, kinds, strict=True) if kind is not None]
        for leaf in leaves:
            operand = None if type(leaf) is _Passed else output_of(leaf)
            if type(leaf) is _Passed:
                results.append(("passed", split.gives.index(leaf.name)))
            elif isinstance(operand, Const):
                results.append(("constant", operand))
            elif not isinstance(operand, Ref):
                return None
            elif operand.equation in halves.late:
                results.append(("after", halves.result(operand)))
            elif halves.is_late(operand):
                results.append(("given", split.gives.index(names[operand.index - elements])))
            else:
                results.append(("before", halves.place(operand)))
        before = halves.before()
        gains = self.tracing.gains(elements - len(before.used(range(shown))), pure=split.pure)
        if not gains or all(source in ("passed", "given", "constant") for source, _ in results):
            return None  # the graphs compute nothing, or too little to gain
        return Ended(
            split,
            before,
            arguments,
            kinds,
            halves.after(),
            tuple(halves.crossing),
            tuple(results),
            structure,
            drawn,
            captured,
            frozenset(range(shown)),
            frozenset(range(shown, len(outputs))).difference(halves.crossing),
            not any(sees_layout(builder.equations[i]) for i in halves.late),
        )


def _bound(statements: Sequence[ast.stmt]) -> set[str]:
    """Return the variables that certainly have a value after the statements."""
    found: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.Assign):
            nodes = [node for target in statement.targets for node in ast.walk(target)]
            found |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        elif isinstance(statement, ast.If):
            ways = [way for way in (statement.body, statement.orelse) if not (way and isinstance(way[-1], _LEAVING))]
            found |= set.intersection(*map(_bound, ways)) if ways else set()
        elif isinstance(statement, ast.With):
            found |= _bound(statement.body)
    return found


_LEAVING = ast.Return, ast.Raise


_PLAIN = frozenset((*EXACT, *VIEWS, ASTYPE, WHERE))


def sees_layout(equation: Equation) -> bool:
    """Return True if the result may depend on the memory layout of an array, as a sum does."""
    return equation.primitive not in _PLAIN and not families([equation.primitive])


def copied_stand_ins(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return copies of variables with copies of their tracers, because operations in place change a tracer."""
    known: dict[int, Any] = {}

    def copied(value: Any) -> Any:
        if id(value) in known:
            return known[id(value)]
        made = value
        if type(value) is Tracer:
            made = Tracer(value.builder, value.ref, value.spec)
        elif type(value) is dict:
            made = {key: copied(item) for key, item in value.items()}
        elif type(value) in (tuple, list):
            made = type(value)(map(copied, value))
        known[id(value)] = made
        return made

    return {name: copied(value) for name, value in variables.items()}


def things_of(equations: Sequence[Equation], variables: Mapping[str, Any], names: Collection[str]) -> set[Any]:
    """Return the values that can be overwritten through these variables. Inputs cannot be overwritten."""
    found: set[Any] = set()
    left = [variables[name] for name in names if name in variables]
    while left:
        value = left.pop()
        if type(value) is Tracer:
            rank = len(value.spec.shape) if isinstance(value.spec, TensorSpec) else 1
            memory = memory_of(equations, value.ref)
            if rank and memory.equation >= 0:
                found.add(memory)
        elif type(value) in (tuple, list, dict):
            if type(value) is not tuple:
                found.add(id(value))
            left.extend(value.values() if type(value) is dict else value)
    return found


_STORING = frozenset({"dict", "list", "tuple", "items", "keys", "values", "update", "copy", "get", "pop", "setdefault"})
_LOOKING = ast.Is, ast.IsNot, ast.Match


def _only_stores(statement: ast.stmt, function: FunctionType) -> bool:
    """Return True if a statement only stores values in nests and reads them. `_Passed` itself refuses other uses."""
    for node in ast.walk(statement):
        if isinstance(node, _LOOKING):
            return False
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name):
                own = called.id in function.__globals__ or called.id in function.__code__.co_freevars
                stores = called.id in _STORING and not own
            else:
                stores = isinstance(called, ast.Attribute) and called.attr in _STORING
            if not stores:
                return False
    return True


def _compares_identity(statement: ast.stmt) -> bool:
    """Return True if a statement compares two variables with `is`. Two tracers of one value are not identical."""
    compared = [node for node in ast.walk(statement) if isinstance(node, ast.Compare)]
    return any(
        isinstance(sign, (ast.Is, ast.IsNot)) and not isinstance(right, ast.Constant)
        for node in compared
        for sign, right in zip(node.ops, node.comparators, strict=True)
    )
