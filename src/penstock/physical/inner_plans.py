"""InnerPlans: facts about one inner data set are reused for all data sets of the same form.

The function of an interleave creates one plan per input, such as `TFRecordDataset(name).map(parse)`: the same steps
with the same parameters and functions, over another file. The first plan is analysed: how it is rewritten, whether its
functions have side effects, and how they run on Blocks. The others run like it, with their own source and functions
with other captured values. Small inputs are read together: see `inner_inputs`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn
from penstock.functions.captured import are_same
from penstock.functions.memory import notes_of, own_of
from penstock.options import Options
from penstock.physical.input_maps import NO_MAPS, Maps
from penstock.physical.lower import Lowering, lower, opener, transforms_of
from penstock.physical.stage import Stage
from penstock.physical.transform import FunctionTransform
from penstock.plan import counted, ops
from penstock.plan.fused import FusedMap
from penstock.plan.inputs import Scan
from penstock.plan.node import UNKNOWN_CARDINALITY, Node, parameter_names, tree
from penstock.plan.windows import is_pure
from penstock.sources.arrays import ArraysSource, BlockSource, RangeSource
from penstock.sources.files import FilesSource
from penstock.sources.source import Source

_MOST = 64  # number of stored forms
_TRIES = 16  # number of plans in a row without a common form, after which plans are no longer compared
_LARGE = 1 << 20  # bytes of a captured array that a form would keep alive

# Steps that depend only on their parameters and on the facts in `_source_key`. A shuffle needs the number of elements,
# which some files do not provide.
_KINDS = {
    ops.Map, ops.Filter, ops.Batch, ops.Take, ops.Skip, ops.Shard, ops.Repeat, ops.Enumerate, ops.Prefetch, ops.Shuffle,
    counted.Unbatch,
}  # fmt: skip
_OF_FUNCTIONS = {ops.Map: "function", ops.Filter: "predicate"}

Functions = tuple[Callable[..., Any], ...]
Cuts = Sequence[ops.Take | ops.Skip]


class PlanKey(NamedTuple):
    """The common part of plans of one form, `form`, and the parts that differ."""

    form: Hashable
    scan: Scan
    functions: Functions
    held: list[Any]  # objects whose addresses are in `form`


@dataclass(eq=False)
class PlanForm:
    """The analysis of the first plan of its form: `plan` is how it runs, over its source and functions."""

    plan: Node
    scan: Scan
    functions: Functions
    _options: Options
    _held: Any  # objects whose addresses are in the key
    _transforms: dict[int, list[FunctionTransform]] = field(default_factory=dict)

    @cached_property
    def small(self) -> tuple[Cuts, list[FunctionTransform]] | None:
        """The cuts of the source and the maps after them, or None if plans of this form need stages."""
        if self.plan.any_rank:
            return None
        cuts: list[ops.Take | ops.Skip] = []
        maps: list[FunctionTransform] = []
        node = self.plan
        while node is not self.scan:
            steps = node.steps if isinstance(node, FusedMap) else (node,)
            if isinstance(node, (ops.Take, ops.Skip)) and node.count >= 0:
                cuts.insert(0, node)
            elif not cuts and all(isinstance(step, ops.Map) and is_pure(step) for step in steps):
                maps[:0] = self.transforms(node, steps)
            else:
                return None
            (node,) = node.inputs
        return cuts, maps

    def maps_of(self, maps: list[FunctionTransform], functions: Functions) -> Maps:
        """Return the maps of a plan with these functions."""
        others = self.filled(self.scan, functions).functions
        return Maps(maps, [others.get(id(each.function)) for each in maps])

    def filled(self, scan: Scan, functions: Functions) -> Filled:
        """Return the form with the parts of another plan."""
        others = {
            id(first): function
            for first, function in zip(self.functions, functions, strict=True)
            if not are_same(first, function)
        }
        return Filled(self, scan, others)

    def transforms(self, node: Node, steps: tuple[Any, ...]) -> list[FunctionTransform]:
        """Return the transforms of a step of `plan`. They are templates and are never run."""
        found = self._transforms.get(id(node))
        if found is None:
            found = self._transforms[id(node)] = transforms_of(node, steps, self._options, alike=True)
        return found


@dataclass(frozen=True, eq=False, slots=True)
class Filled:
    """A form with another source, and with other functions by the address of the original function."""

    form: PlanForm
    scan: Scan
    functions: Mapping[int, Callable[..., Any]]

    def of(self, node: Node) -> Node:
        """Return the node for this plan."""
        return self.scan if node is self.form.scan else node

    def transforms(self, node: Node, steps: tuple[Any, ...]) -> list[FunctionTransform]:
        """Return transforms of a step for this plan only. They share the decisions about equal functions."""
        others = self.functions
        return [made.again(others.get(id(made.function))) for made in self.form.transforms(node, steps)]


class InnerPlans:
    """The forms of the plans that one step creates in one iteration. Used by one thread at a time."""

    def __init__(self, optimise: Callable[[Node], Node], options: Options) -> None:
        self._optimise = optimise
        self._options = options
        self._forms: dict[Hashable, PlanForm | None] = {}
        self._tries = _TRIES

    def key(self, plan: Node) -> PlanKey | None:
        """Return the key of a plan, or None if the plan shares nothing with others."""
        return _key(plan) if self._tries else None

    def form(self, plan: Node, key: PlanKey) -> PlanForm | None:
        """Return the form of a plan if all plans of this form run alike and are small, or None."""
        if key.form not in self._forms and key.scan.source.small() is None:
            return None
        return self._shared(plan, key)

    def rewritten(self, plan: Node, key: PlanKey | None) -> tuple[Node, Filled | None]:
        """Return the rewritten plan, or the plan of its form with the parts of this plan."""
        form = None if key is None else self._shared(plan, key)
        if key is None or form is None:
            return self._optimise(plan), None
        return form.plan, form.filled(key.scan, key.functions)

    def _shared(self, plan: Node, key: PlanKey) -> PlanForm | None:
        """Return the form of a plan, or None if it has none, or if too many plans had different forms."""
        found = self._forms.get(key.form)
        if found is not None:
            self._tries = _TRIES
        elif key.form not in self._forms:
            self._tries -= 1
            if self._tries <= 0:
                self._forms.clear()  # the forms keep plans alive that are no longer used
            elif len(self._forms) < _MOST:
                found = self._forms[key.form] = self._found(plan, key)
        return found

    def _found(self, plan: Node, key: PlanKey) -> PlanForm | None:
        """Return the form of a plan, or None if rewriting changes the source, too."""
        plan, scan = _without_elements(plan, key.scan)
        rewritten = node = self._optimise(plan)
        while node is not scan:
            if len(node.inputs) != 1:
                return None
            (node,) = node.inputs
        return PlanForm(rewritten, scan, key.functions, self._options, (plan, key.held))


class InnerDataset(NamedTuple):
    """An inner data set as the function of its step created it, not open yet."""

    plan: Node
    key: PlanKey | None


class Little(NamedTuple):
    """A small inner data set: its source, all its data and the bytes of it, the cuts, and the maps."""

    source: Source
    part: Any
    nbytes: int
    seconds: float  # seconds to read it
    cuts: Cuts
    maps: Maps

    def goes_with(self, other: Little) -> bool:
        """Return True if both may be read together."""
        return type(self.source) is type(other.source) and self.cuts is other.cuts


def inside(function: Any) -> str | None:
    """Return the steps of the first data set that a function created in this process, as a string."""
    return (notes_of(function) or {}).get("inside")


class Opening:
    """Opens the inputs of one step in one iteration. Used by one thread at a time."""

    def __init__(self, node: ops.FlatMap | ops.Interleave, lowering: Lowering) -> None:
        options = lowering.options
        self._lowering = lowering
        self._open = opener(node)
        self._unseen = None if inside(node.function) else notes_of(node.function)
        self._plans = InnerPlans(lambda plan: lowering.optimise(plan, options), options)
        watched = lowering.provenance or lowering.meter is not None or options.element_timeout is not None
        self._together = not (watched or lowering.memory.is_tight)

    def make(self, element: Any) -> InnerDataset:
        """Return the data set that the function creates from an element. Exceptions of the function are raised."""
        plan = self._open(element)
        if self._unseen is not None:
            self._unseen["inside"] = tree(plan)
            self._unseen = None
        return InnerDataset(plan, None if type(plan) is Scan else self._plans.key(plan))

    def stage(self, made: InnerDataset, number: int) -> Stage:
        """Return the stage of a data set that was created from element `number`."""
        plan, filled = made.plan, None
        if type(plan) is not Scan:  # a single Scan cannot be rewritten
            plan, filled = self._plans.rewritten(plan, made.key)
        return lower(plan, self._lowering.inside(made.plan, number, filled))

    def small(self, made: InnerDataset) -> Little | None:
        """Return the data of its source if it is small and may be read together with others, or None."""
        if not self._together:
            return None
        plan, key = made.plan, made.key
        if type(plan) is Scan:
            return _little(plan.source, (), NO_MAPS)
        form = None if key is None else self._plans.form(plan, key)
        found = None if form is None else form.small
        if key is None or form is None or found is None:
            return None
        little = _little(key.scan.source, found[0], form.maps_of(found[1], key.functions))
        if little is None or (isinstance(little.part, Block) and not _is_plain(little.part)):
            return None
        return little


def _little(source: Source, cuts: Cuts, maps: Maps) -> Little | None:
    began = time.perf_counter()
    part = source.small()
    return None if part is None else Little(source, *part, time.perf_counter() - began, cuts, maps)


def together(inputs: Sequence[Little]) -> tuple[Block | None, list[int]] | None:
    """Return the elements of compatible inputs, one input after another, and their lengths, before their maps."""
    sources, parts = [little.source for little in inputs], [little.part for little in inputs]
    found: tuple[Block | None, list[int]] | None = type(sources[0]).together(sources, parts)
    if found is None or found[0] is None or not inputs[0].cuts:
        return found
    block, counts = found[0], np.array(found[1])
    first = np.cumsum(counts) - counts
    for cut in inputs[0].cuts:
        some = np.minimum(counts, cut.count)
        first, counts = (first, some) if isinstance(cut, ops.Take) else (first + some, counts - some)
    rows = np.arange(counts.sum()) + (first - np.cumsum(counts) + counts).repeat(counts)
    return block.take(rows) if len(rows) else None, counts.tolist()


def _is_plain(block: Block) -> bool:
    """Return True if elements have the memory layout of a copy: in other layouts, functions may round differently."""
    for column in block.columns:
        if type(column) is DenseColumn:
            array = column.array
            if not (array.dtype.isnative and array.dtype.kind in "biufcmM" and array.flags.c_contiguous):
                return False
        elif type(column) is not BytesColumn:
            return False
    return True


def _without_elements(plan: Node, scan: Scan) -> tuple[Node, Scan]:
    """Return the same steps over the first element at most: a form outlives the plan it was found with."""
    source = scan.source
    if isinstance(source, ArraysSource):
        source = replace(source, columns=tuple(map(_first, source.columns)), size=min(source.size, 1))
    elif isinstance(source, BlockSource):
        block = source.block
        source = replace(source, block=Block(block.structure, list(map(_first, block.columns)), min(block.size, 1)))
    else:
        return plan, scan
    steps = []
    while plan is not scan:
        steps.append(plan)
        (plan,) = plan.inputs
    plan = scan = Scan(source=source, where=scan.where)
    for step in reversed(steps):
        plan = step.with_inputs((plan,))
    return plan, scan


def _first(column: Column) -> Column:
    """Return a copy of the first element, if there is one."""
    if isinstance(column, DenseColumn):
        return DenseColumn(column.array[:1].copy())
    assert isinstance(column, BytesColumn)
    return column.slice(0, 1).apart()


def _key(plan: Node) -> PlanKey | None:
    """Return the key of a plan, or None if it has steps or sources of other kinds."""
    parts: list[Any] = []
    functions: list[Callable[..., Any]] = []
    held: list[Any] = []
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
                found = _function_key(value)
                if found is None:
                    return None
                value = found[0]
                held.append(found[1])
            parts.append(value)
        parts.append(facts["where"])
        if "executor" in facts:
            parts.append(facts["executor"])
        shuffles = shuffles or kind is ops.Shuffle
        plan = facts["input"]
    source = _source_key(plan.source)
    if source is None or (shuffles and plan.source.cardinality != UNKNOWN_CARDINALITY):
        return None
    if len(functions) > 1:  # records which of the functions are identical
        addresses = [id(function) for function in functions]
        parts += map(addresses.index, addresses)
    return PlanKey((*parts, plan.where, source), plan, tuple(functions), held)


def _source_key(source: Source) -> Hashable | None:
    """Return all facts about a source that rewriting and running may use, or None if there may be more."""
    kind = type(source)
    if type(source) is RangeSource:
        return kind, source.dtype
    if type(source) is ArraysSource:
        columns = [_column_key(column) for column in source.columns]
        return None if None in columns else (kind, source.structure, *columns)
    if type(source) is BlockSource:
        columns = [_column_key(column) for column in source.block.columns]
        return None if None in columns else (kind, source.block.structure, *columns)
    if isinstance(source, FilesSource) and kind.__module__.startswith("penstock.") and not source.holds_spec:
        return kind, bool(source.files)
    return None


def _column_key(column: Column) -> Hashable | None:
    if type(column) is DenseColumn:
        return column.array.shape[1:], column.array.dtype
    return column.starts.shape[1:] if type(column) is BytesColumn else None


def _is_large(array: np.ndarray) -> bool:
    """Return True if an array keeps much memory alive: a view keeps the whole array."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.nbytes > _LARGE


# -- functions


def _function_key(function: Callable[..., Any]) -> tuple[Hashable, Any] | None:
    """Return a key that is equal for equal functions, and the objects whose addresses it contains.

    `own_of` reads the captured values of a function. Whether it can be traced, whether it uses random numbers, and its
    cost do not depend on these values. Return None if a captured array is large.
    """
    if type(function) is MethodType:
        return (id(function.__func__), id(function.__self__)), function
    own = own_of(function)
    if own is None:
        return id(function), function
    if any(_is_large(array) for weak in own.opaque if isinstance(array := weak(), np.ndarray)):
        return None
    name = function.__name__ if type(function) is FunctionType else None
    return (name, *own.kinds), own
