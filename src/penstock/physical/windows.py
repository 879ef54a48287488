"""Windows over a Block as data sets, and what a function makes of many of them at once.

The function of `window(30, shift=1).flat_map(lambda w: w.batch(30))` makes the same plan for every window. A data set,
its steps and their states for each cost ten times what copying its elements does. Where nobody could tell, the function
is called once with a data set that has no elements; what it plans says which elements of a window come where, and a
Block of windows is copied by these numbers. Steps behind that run as those of small inner data sets: `whole_inputs`.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from operator import is_
from types import FunctionType
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.column import ListColumn
from penstock.block.structure import LEAF, Structure, nest
from penstock.errors import InvalidArgumentError
from penstock.options import Options
from penstock.physical.lower import StageObserver
from penstock.physical.stages.batch import stack_block
from penstock.physical.whole_inputs import Steps, is_plain
from penstock.plan import ops
from penstock.plan.inputs import Scan, Zip
from penstock.plan.node import Node
from penstock.plan.visible import Plans
from penstock.sources.arrays import BlockSource
from penstock.sources.source import Position, Reader, Source

_NBYTES = 1 << 20  # of the elements of windows that are copied at once
Gather = Callable[[Sequence["WindowColumn"], int], Block]

_LOOKED_AT = 64  # windows, until the function is called once more; a reader ahead of its consumer makes as many
_FORMS = 64  # sizes and kinds of windows of which is kept what the function makes of them


class WindowColumn(ListColumn):
    """Windows over one component, each of the elements `rows[i]` of `whole`; data sets when the `items` are asked for.

    They share the elements of the Block, whose arrays nobody can write to.
    """

    __slots__ = ("dataset", "rows", "whole")

    def __init__(self, whole: Block, rows: np.ndarray, dataset: Callable[[Block], Any]) -> None:
        self.whole = whole
        self.rows = rows
        self.dataset = dataset

    def __getattr__(self, name: str) -> Any:
        if name != "items":
            raise AttributeError(name)
        self.items = [self.dataset(self._window(rows)) for rows in self.rows]
        return self.items

    def _window(self, rows: np.ndarray) -> Block:
        first, behind = int(rows[0]), int(rows[-1]) + 1
        if behind - first == len(rows):
            return self.whole.slice(first, behind)
        return self.whole.take(rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        return 64 * len(self.rows)

    def slice(self, start: int, stop: int) -> WindowColumn:
        return WindowColumn(self.whole, self.rows[start:stop], self.dataset)

    def take(self, rows: np.ndarray) -> WindowColumn:
        return WindowColumn(self.whole, self.rows[rows], self.dataset)


def _as_list(column: WindowColumn) -> tuple[Any, ...]:
    return ListColumn, (column.items,)


copyreg.pickle(WindowColumn, _as_list)


def are_windows(block: Block) -> bool:
    """Whether the elements are windows of like places in all their components."""
    first = block.columns[0] if block.columns else None
    if not isinstance(first, WindowColumn):
        return False
    for column in block.columns:
        if not isinstance(column, WindowColumn) or column.rows.shape != first.rows.shape:
            return False
    return True


@dataclass(frozen=True, eq=False)
class _Blind(Source):
    """In place of a window's elements: how many there are, and of which kind. Who asks for one is `seen` to."""

    component: int
    size: int
    kind: Any
    seen: list[int]

    @property
    def label(self) -> str:
        return "window"

    @property
    def spec(self) -> Any:
        return self.kind

    @property
    def cardinality(self) -> int:
        return self.size

    def open(self, position: Position | None = None) -> Reader:
        self.seen.append(self.component)
        message = "The elements of this window are not there yet."
        raise InvalidArgumentError(message)


@dataclass(frozen=True, slots=True)
class _Placed:
    """Elements that a plan makes of a window: for each leaf its component, and the places in the window.

    The first axis of the places counts the elements; further ones are those of batches.
    """

    structure: Structure
    leaves: tuple[tuple[int, np.ndarray], ...]

    def with_places(self, places: Callable[[np.ndarray], np.ndarray]) -> _Placed:
        return _Placed(self.structure, tuple((component, places(found)) for component, found in self.leaves))

    def is_like(self, other: _Placed) -> bool:
        if self.structure != other.structure or len(self.leaves) != len(other.leaves):
            return False
        both = zip(self.leaves, other.leaves, strict=True)
        return all(one == two and np.array_equal(first, second) for (one, first), (two, second) in both)

    @property
    def count(self) -> int:
        return len(self.leaves[0][1])


def _placed(plan: Node) -> _Placed | None:
    """Which elements of a window a plan gives; None where it does anything else, or batches of several sizes."""
    if type(plan) is Scan:
        source = plan.source
        return _Placed(LEAF, ((source.component, np.arange(source.size)),)) if type(source) is _Blind else None
    if type(plan) is Zip:
        parts = [_placed(part) for part in plan.parts]
        known = [part for part in parts if part is not None]
        if not known or len(known) < len(parts):
            return None
        count = min(part.count for part in known)
        leaves = [(component, places[:count]) for part in known for component, places in part.leaves]
        return _Placed(nest(plan.structure, [part.structure for part in known]), tuple(leaves))
    if type(plan) not in (ops.Batch, ops.Take, ops.Skip, ops.Shard):
        return None
    below = _placed(plan.inputs[0])
    if below is None:
        return None
    if isinstance(plan, ops.Batch):
        return None if plan.num_parallel_calls is not None else _batched(below, plan)
    if isinstance(plan, ops.Shard):
        shard = slice(plan.index, None, plan.num_shards)
    elif isinstance(plan, ops.Take):
        shard = slice(None, None if plan.count < 0 else plan.count)
    else:
        assert isinstance(plan, ops.Skip)
        shard = slice(below.count if plan.count < 0 else plan.count, None)
    return below.with_places(lambda places: places[shard])


def _batched(below: _Placed, batch: ops.Batch) -> _Placed | None:
    full, rest = divmod(below.count, batch.batch_size)
    if rest and not batch.drop_remainder:
        return None if full else below.with_places(lambda places: places[None])
    size = batch.batch_size
    return below.with_places(lambda places: places[: full * size].reshape(full, size, *places.shape[1:]))


@dataclass(slots=True)
class _Form:
    """What comes of each window of one size and kind: the elements at these places, and further steps with them."""

    placed: _Placed
    row: list[Node]  # the further steps, the consumer's side first
    options: Options
    meter: StageObserver | None
    _steps: Steps | None = None
    _gather: Gather | None = None

    def made(self, block: Block, most: int) -> tuple[Block | None, list[int]] | None:
        """What comes of the first windows of a Block, as many as give about so many elements; and how much of each.

        None where they are to run by themselves.
        """
        placed = self.placed
        columns = [column for column in block.columns if isinstance(column, WindowColumn)]
        if not all(is_plain(column.whole) for column in columns):
            return None
        each = sum(_nbytes(columns[component].whole) * places.size for component, places in placed.leaves)
        count = max(min(block.size, -(-most // placed.count), _NBYTES // max(each, 1)), 1)
        if self._gather is None:
            self._look(self._gathered(columns, 1))
        if self._gather is None or (self._steps is not None and self._steps.rests()):
            return None
        count = count if self._steps is None else min(count, self._steps.inputs)
        found, counts = self._gather(columns, count), [placed.count] * count
        return (found, counts) if self._steps is None else self._steps.run(found, counts, [self._own] * count)

    def is_like(self, other: _Form) -> bool:
        """Whether another one says the same of windows of this size and kind."""
        return (
            self.placed.is_like(other.placed)
            and len(self.row) == len(other.row)
            and all(map(_are_alike, self.row, other.row))
        )

    @property
    def _own(self) -> tuple[Any, ...]:
        return tuple(() for step in self.row if not isinstance(step, ops.Batch))

    def _look(self, first: Block) -> None:
        """Find what runs; where somebody measures it, and there are further steps, each is to have its own figures."""
        plan: Node = Scan(source=BlockSource(first, "windows at once"))
        if self.row:
            for step in reversed(self.row):
                plan = step.with_inputs((plan,))
            functions = [_function(step) for step in self.row if not isinstance(step, ops.Batch)]
            self._steps = None if self.meter is not None else Steps.of(plan, self.options, functions)
            self._gather = None if self._steps is None else self._gathered
        else:
            self._gather = self._gathered if self.meter is None else self.meter.step(plan, 0, self._gathered)

    def _gathered(self, windows: Sequence[WindowColumn], count: int) -> Block:
        leaves = [_gathered(windows[component], places, count) for component, places in self.placed.leaves]
        columns = [column for leaf in leaves for column in leaf.columns]
        return Block(self.placed.structure, columns, count * self.placed.count, leaves[0].origin)


def _are_alike(step: Node, other: Node) -> bool:
    """Whether two steps do the same: their functions are one, or of one code that has captured the very same."""
    if type(step) is not type(other) or step.where != other.where:
        return False
    first, second = (dict(vars(one)) for one in (step, other))
    for found in (first, second):
        for name in [name for name in found if name.startswith("_") or name == "input"]:
            del found[name]
    if isinstance(step, ops.Batch):
        return first == second
    name = "function" if isinstance(step, ops.Map) else "predicate"
    return _are_one(first.pop(name), second.pop(name)) and first == second


def _are_one(function: Any, other: Any) -> bool:
    if function is other:
        return True
    if not (type(function) is type(other) is FunctionType and function.__code__ is other.__code__):
        return False
    return function.__globals__ is other.__globals__ and all(map(is_, _captured(function), _captured(other)))


def _captured(function: FunctionType) -> list[Any]:
    named = function.__kwdefaults__ or {}
    found = [*(function.__defaults__ or ()), *(named[name] for name in sorted(named))]
    return [*found, *(cell.cell_contents for cell in function.__closure__ or ())]


def _function(step: Node) -> Callable[..., Any]:
    assert isinstance(step, (ops.Map, ops.Filter))
    return step.function if isinstance(step, ops.Map) else step.predicate


def _nbytes(block: Block) -> int:
    return block.nbytes // max(block.size, 1) + 8


def _gathered(windows: WindowColumn, places: np.ndarray, count: int) -> Block:
    """The elements at these places of each of the first windows."""
    rows = windows.rows[:count].take(places.reshape(-1), axis=1).reshape(-1)
    found = windows.whole.take(rows)
    for size in reversed(places.shape[1:]):
        found = stack_block(found, size)
    return found


def _form(plan: Node, options: Options, meter: StageObserver | None) -> _Form | None:
    row: list[Node] = []
    while (placed := _placed(plan)) is None:
        if not isinstance(plan, (ops.Map, ops.Filter, ops.Batch)):
            return None
        row.append(plan)
        plan = plan.input
    return _Form(placed, row, options, meter) if all(places.size for _, places in placed.leaves) else None


@dataclass(slots=True)
class WindowPlans:
    """What the function of one step makes of windows, in one pass. For one thread at a time."""

    function: Callable[..., Any]
    opened: Callable[[Any], Node]
    dataset: Callable[[Node], Any]
    options: Options
    meter: StageObserver | None = None
    _plans: Plans | None = None
    _forms: dict[Hashable, _Form | None] = field(default_factory=dict)
    _since: int = 0  # windows, that the function was looked at

    def made(self, block: Block, most: int) -> tuple[Block | None, list[int]] | None:
        """What comes of the first of these windows, about so many elements, and how much of each.

        None where each of them is to be given to the function.
        """
        plans = self._plans
        if plans is None or not plans.unchanged():
            plans = self._plans = Plans(self.function)
            self._forms.clear()
        if plans.why_not is not None:
            return None
        columns = [column for column in block.columns if isinstance(column, WindowColumn)]
        kinds = tuple(column.whole.columns[0].spec() for column in columns)
        key = block.structure, columns[0].rows.shape[1], kinds
        known = self._forms.get(key)
        if key not in self._forms or self._since >= _LOOKED_AT:
            known = self._looked_at(key, known)
        found = None if known is None else known.made(block, most)
        self._since += 0 if found is None else len(found[1])
        return found

    def _looked_at(self, key: Any, known: _Form | None) -> _Form | None:
        """What comes of windows as the function plans now: what it reads may have changed unseen."""
        self._since = 0
        found = self._found(*key)
        if found is not None and known is not None and known.is_like(found):
            return known
        if len(self._forms) >= _FORMS:
            self._forms.clear()
        self._forms[key] = found
        return found

    def _found(self, structure: Structure, size: int, kinds: Sequence[Any]) -> _Form | None:
        seen: list[int] = []
        blind = [self.dataset(Scan(source=_Blind(component, size, kind, seen))) for component, kind in enumerate(kinds)]
        try:
            plan = self.opened(structure.build(blind))
        except Exception:  # whatever it is, the first window says so
            return None
        return None if seen else _form(plan, self.options, self.meter)
