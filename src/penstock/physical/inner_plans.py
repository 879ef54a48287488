"""InnerPlans: what was found of one inner data set serves for all that are like it.

The function of an interleave makes a plan for each of its inputs, `TFRecordDataset(name).map(parse)`: the same steps,
with the same parameters and functions, over another file. How such a plan is rewritten, whether somebody sees what its
functions do, and how these run by Block is found of the first. The others run as it does, with what is their own in its
place: their source, and functions that close over another value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from operator import is_
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from penstock.block.column import BytesColumn, Column, DenseColumn
from penstock.options import Options
from penstock.physical.lower import transform_of
from penstock.physical.transform import FunctionTransform
from penstock.plan import counted, ops
from penstock.plan.inputs import Scan
from penstock.plan.node import UNKNOWN_CARDINALITY, Node, parameter_names
from penstock.plan.visible import acts
from penstock.sources.arrays import ArraysSource, RangeSource
from penstock.sources.files import FilesSource
from penstock.sources.source import Source

_MOST = 64  # forms that are kept
_TRIES = 16  # plans in a row of which none was like another, until no further one is looked at
_LARGE = 1 << 20  # bytes of a source, or of an array that a function closes over, which a form would keep

# Steps that follow from their parameters, and from what of their source is in `_source_key`. A shuffle asks how many
# elements there are, which some files do not tell.
_KINDS = {
    ops.Map, ops.Filter, ops.Batch, ops.Take, ops.Skip, ops.Shard, ops.Repeat, ops.Enumerate, ops.Prefetch, ops.Shuffle,
    counted.Unbatch,
}  # fmt: skip
_CONSTANTS = frozenset({bool, int, float, complex, str, bytes, type(None)})
_OF_FUNCTIONS = {ops.Map: "function", ops.Filter: "predicate"}

Functions = tuple[Callable[..., Any], ...]


@dataclass(eq=False, slots=True)
class Form:
    """What was found of the first plan of its form: how it runs, `plan`, over the source and functions that it had."""

    plan: Node
    scan: Scan
    functions: Functions
    _held: Any  # of which the key has the addresses
    _acts: dict[int, bool]  # of the nodes of `plan`
    _transforms: dict[int, list[FunctionTransform]] = field(default_factory=dict)

    def filled(self, scan: Scan, functions: Functions) -> Filled:
        """For a plan like it."""
        others = {
            id(first): function
            for first, function in zip(self.functions, functions, strict=True)
            if not _are_same(first, function)
        }
        return Filled(self, scan, others)

    def acts(self, node: Node) -> bool:
        """As `visible.acts`."""
        found = self._acts.get(id(node))
        return acts(node) if found is None else found

    def transforms(self, node: Node, steps: tuple[Any, ...], options: Options) -> list[FunctionTransform]:
        """The transforms of a step of `plan`, which nobody runs."""
        found = self._transforms.get(id(node))
        if found is None:
            found = self._transforms[id(node)] = [transform_of(step, options) for step in steps]
        return found


@dataclass(frozen=True, eq=False, slots=True)
class Filled:
    """A form with a source, and functions in the place of those that it was found with, by their addresses."""

    form: Form
    scan: Scan
    functions: Mapping[int, Callable[..., Any]]

    def of(self, node: Node) -> Node:
        """The node that stands there."""
        return self.scan if node is self.form.scan else node

    def acts(self, node: Node) -> bool:
        return self.form.acts(node)

    def transforms(self, node: Node, steps: tuple[Any, ...], options: Options) -> list[FunctionTransform]:
        """Transforms of a step for this plan alone; they share what was decided about functions that are the same."""
        others = self.functions
        return [made.again(others.get(id(made.function))) for made in self.form.transforms(node, steps, options)]


class InnerPlans:
    """The forms of the plans that one step makes in one pass. For one thread at a time."""

    def __init__(self, optimise: Callable[[Node], Node]) -> None:
        self._optimise = optimise
        self._forms: dict[Hashable, Form | None] = {}
        self._tries = _TRIES

    def rewritten(self, plan: Node) -> tuple[Node, Filled | None]:
        """The rewritten plan; or that of its form, and what fills it for this one."""
        found = _key(plan) if self._tries else None
        if found is None:
            return self._optimise(plan), None
        key, scan, functions = found
        form = self._forms.get(key, self)
        if isinstance(form, Form):
            self._tries = _TRIES
            return form.plan, form.filled(scan, functions)
        rewritten = self._optimise(plan)
        if form is None:  # what it becomes depends on more than its form
            return rewritten, None
        self._tries -= 1
        if not self._tries:
            self._forms.clear()  # what they hold belongs to plans that are gone
            return rewritten, None
        if len(self._forms) >= _MOST:
            return rewritten, None
        form = self._forms[key] = _form(rewritten, plan, scan, functions)
        return rewritten, None if form is None else form.filled(scan, functions)


def _form(rewritten: Node, plan: Node, scan: Scan, functions: Functions) -> Form | None:
    """None where more than the steps was rewritten: the source is another."""
    node = rewritten
    while node is not scan:
        if len(node.inputs) != 1:
            return None
        (node,) = node.inputs
    held = plan, [_values(function) for function in functions]
    return Form(rewritten, scan, functions, held, {id(node): acts(node) for node in rewritten.walk()})


def _key(plan: Node) -> tuple[Hashable, Scan, Functions] | None:
    """What plans of one form have in common, and what is a plan's own; None for steps and sources of other kinds."""
    parts: list[Any] = []
    functions: list[Callable[..., Any]] = []
    shuffles = False
    while type(plan) is not Scan:
        kind = type(plan)
        if kind not in _KINDS:
            return None
        facts = vars(plan)
        own = _OF_FUNCTIONS.get(kind)
        parts.append(kind)
        for name in parameter_names(kind):
            value = facts[name]
            if name == own:
                functions.append(value)
                value = _function_key(value)
                if value is None:
                    return None
            parts.append(value)
        parts.append(facts["where"])
        if "executor" in facts:
            parts.append(facts["executor"])
        shuffles = shuffles or kind is ops.Shuffle
        plan = facts["input"]
    source = _source_key(plan.source)
    if source is None or (shuffles and plan.source.cardinality != UNKNOWN_CARDINALITY):
        return None
    if len(functions) > 1:  # which of them are one
        addresses = [id(function) for function in functions]
        parts += map(addresses.index, addresses)
    return (*parts, plan.where, source), plan, tuple(functions)


def _source_key(source: Source) -> Hashable | None:
    """All of a source that rewriting and running steps over it may ask; None where that may be more."""
    kind = type(source)
    if kind is RangeSource:
        return kind, source.dtype  # type: ignore[attr-defined]
    if kind is ArraysSource:
        columns = [_column_key(column) for column in source.columns]  # type: ignore[attr-defined]
        return None if None in columns else (kind, source.structure, *columns)  # type: ignore[attr-defined]
    if isinstance(source, FilesSource) and kind.__module__.startswith("penstock.") and not source.holds_spec:
        return kind, bool(source.files)
    return None


def _column_key(column: Column) -> Hashable | None:
    if type(column) is DenseColumn:
        return None if _is_large(column.array) else (column.array.shape[1:], column.array.dtype)
    if column.nbytes > _LARGE:
        return None
    return column.starts.shape[1:] if type(column) is BytesColumn else None


def _is_large(array: np.ndarray) -> bool:
    """Whether it keeps much memory: a view keeps all that it is a part of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.nbytes > _LARGE


# -- functions


def _values(function: Callable[..., Any]) -> list[Any]:
    """What a function closes over, and its defaults."""
    if not isinstance(function, FunctionType):
        return [function]
    given = [cell.cell_contents for cell in function.__closure__ or ()]
    return [*given, *(function.__defaults__ or ())]


def _function_key(function: Callable[..., Any]) -> Hashable | None:
    """Equal for functions of one code that close over the same objects, and numbers and texts of the same types.

    Whether they may be traced, whether they draw and what they cost does not depend on what these numbers are. None for
    one that closes over a large array: it would be kept.
    """
    if type(function) is MethodType:
        return id(function.__func__), id(function.__self__)
    if type(function) is not FunctionType or function.__kwdefaults__ is not None or vars(function):
        return id(function)
    try:
        given = _values(function)
    except ValueError:  # a cell is empty
        return id(function)
    if any(isinstance(value, np.ndarray) and _is_large(value) for value in given):
        return None
    kinds = [type(value) if _is_constant(value) else id(value) for value in given]
    return (id(function.__code__), id(function.__globals__), function.__name__, len(kinds), *kinds)


def _is_constant(value: Any) -> bool:
    return type(value) in _CONSTANTS or isinstance(value, np.generic)


def _are_same(first: Any, second: Any) -> bool:
    """Whether two functions of one key do the same now and later: they differ in nothing but the object."""
    if first is second or type(first) is MethodType:
        return True
    if first.__defaults__ is not None or second.__defaults__ is not None:
        return False
    cells, others = first.__closure__, second.__closure__
    return cells is others or all(map(is_, cells, others))
