"""Vectoriser: runs a traced function on whole Blocks, after comparing the first elements with the original function."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from penstock.block.arena import ARENA
from penstock.block.block import Block, BlockBuilder
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn
from penstock.block.copying import copy_into
from penstock.block.fixed import without_aliasing
from penstock.block.spec import LeafSpec, TensorSpec
from penstock.block.structure import Structure, components
from penstock.forked import new_lock
from penstock.functions.memory import notes_of
from penstock.trace.arithmetic import VIEWS
from penstock.trace.drawing import UNNUMBERED, Draws, drawing
from penstock.trace.graph import Allocate, Const, Graph, Ref
from penstock.trace.lift import families
from penstock.trace.pieces import is_of_each_value, run_in_pieces
from penstock.trace.traced import Traced, traced

ELEMENTS = 8  # elements that are compared: spread over one Block, or over several small ones
SECONDS = 0.02  # seconds for the original calls; two elements always run


@dataclass(slots=True)
class PartTrial:
    """The check of a part of a function, stored for all iterations: the first elements run both ways."""

    checked: int = 0
    spent: float = 0.0
    failed: bool = False

    @property
    def over(self) -> bool:
        return self.failed or self.checked >= ELEMENTS or (self.checked >= 2 and self.spent >= SECONDS)


Key = TypeVar("Key")
Value = TypeVar("Value")


class PerObject(Generic[Key, Value]):
    """A value for each object. It is computed once, and stored as long as the object exists. Thread-safe."""

    def __init__(self, make: Callable[[Key], Value]) -> None:
        self._make = make
        self._lock = new_lock()
        self._values: WeakKeyDictionary[Key, Value] = WeakKeyDictionary()

    def __call__(self, key: Key) -> Value:
        with self._lock:
            if key not in self._values:
                self._values[key] = self._make(key)
            return self._values[key]


@dataclass(frozen=True, slots=True)
class Ready:
    """A graph to run, with the pairs of its outputs that may share memory, and the outputs that are views.

    A view uses no offered memory.
    """

    graph: Graph
    sharing: tuple[tuple[int, int], ...]
    views: tuple[bool, ...]
    of_each_value: bool

    @classmethod
    def of(cls, graph: Graph) -> Ready:
        views = tuple(is_view(graph, k) for k in range(len(graph.outputs)))
        return cls(graph, graph.sharing(), views, is_of_each_value(graph))

    def run(self, block: Block, allocate: Callable[[int], Allocate] | None, draws: Draws) -> Block:
        made = run_in_pieces(self.graph, block.columns, allocate) if self.of_each_value else None
        if made is None:
            made = self.graph.run(block.columns, block.size, allocate, draws.of(block.size))
        for k, column in enumerate(made):
            view = self.views[k]
            if view or type(column) is not DenseColumn or not column.array.flags.c_contiguous:
                offered = None if allocate is None else allocate(k)
                made[k] = in_one_piece(column_of_output(column, block.size), offered, view=view)
        if self.sharing:
            made = without_aliasing(made, self.sharing)
        return block.with_columns(self.graph.structure, made)


def is_view(graph: Graph, output: int) -> bool:
    """Return True if an output is a view, which uses no offered memory."""
    ref = graph.outputs[output]
    return isinstance(ref, Ref) and ref.equation >= 0 and graph.equations[ref.equation].primitive in VIEWS


@dataclass(slots=True)
class EquivalenceCheck:
    """The check of a pure function's graph, stored for all iterations."""

    ready: Ready
    checked: int = 0
    spent: float = 0.0
    failed: str = ""  # the reason not to run on Blocks

    @property
    def over(self) -> bool:
        """True if enough elements were compared."""
        return bool(self.failed) or self.checked >= ELEMENTS or (self.checked >= 2 and self.spent >= SECONDS)

    def go_on(self, function: Callable[..., Any], block: Block, draws: Draws) -> None:
        """Compare elements spread over this Block, the last one first."""
        self.failed = self.failed or self._why_not(function, block, draws)

    def _why_not(self, function: Callable[..., Any], block: Block, draws: Draws) -> str:
        rows = _rows(block.size)
        unpacks = block.structure.unpacks
        plain, done = self._plain(function, block.take(rows).elements(), rows, draws, unpacks=unpacks)
        rows = rows[:done]
        try:
            fast = self.ready.run(block.take(rows), None, Draws(draws.key, draws.numbers.take(rows)))
        except Exception as error:
            return "" if plain is None else f"as a Block it raised {type(error).__name__}"
        return "as a Block its result was another" if plain is None or not equal_blocks(fast, plain) else ""

    def _plain(
        self, function: Callable[..., Any], elements: list[Any], rows: np.ndarray, draws: Draws, *, unpacks: bool
    ) -> tuple[Block | None, int]:
        """Return the results for as many of these elements as time allows, or None if one raises; and their number."""
        builder = BlockBuilder()
        done, began = 0, time.perf_counter()
        try:
            with drawing(draws) as now:
                for row, element in zip(rows.tolist(), elements, strict=True):
                    done += 1
                    now.begin(row)
                    builder.add(components(function(*element) if unpacks else function(element)))
                    if done >= 2 and time.perf_counter() - began >= SECONDS:
                        break
            return builder.build(), done
        except Exception:  # the following run per element raises it again in its place
            return None, done
        finally:
            self.checked += done
            self.spent += time.perf_counter() - began


@functools.lru_cache(64)
def _rows(size: int) -> np.ndarray:
    """Return the read-only rows of a Block that are compared, the last one first."""
    return np.linspace(size - 1, 0, min(ELEMENTS, size)).astype(np.int64)


def check_of(found: Traced, ready: Ready) -> EquivalenceCheck:
    """Return the check of a traced function: one for all iterations, and for all equal functions."""
    check: EquivalenceCheck = found.notes.setdefault("check", EquivalenceCheck(ready))
    return check


def why_not_equal(found: Traced) -> str:
    """Return the reason why an existing graph is not run; empty if none is known so far."""
    check: EquivalenceCheck | None = found.notes.get("check")
    return "" if check is None else check.failed


def in_one_piece(column: Column, allocate: Allocate | None, *, view: bool = True) -> Column:
    """Return a column whose rows have the memory layout of a copy of each row.

    A view is copied into the offered memory.
    """
    if isinstance(column, ListColumn):
        return ListColumn([_copied(item, view=view) for item in column.items])
    if not isinstance(column, DenseColumn):
        return column
    keeps = 0 if column.array.base is None else getattr(column.array.base, "nbytes", 0)
    if column.array.flags.c_contiguous and (not view or keeps <= 2 * column.array.nbytes):
        return column  # otherwise a view of less than half of an array would keep the whole array alive
    array = column.array
    place = None if allocate is None else allocate(array.shape[1:], array.dtype)
    if place is None:
        place = ARENA.empty(array.shape, array.dtype)
    copy_into(place, array)
    return DenseColumn(place)


def _copied(item: Any, *, view: bool) -> Any:
    return item.copy() if isinstance(item, np.ndarray) and (view or not item.flags.c_contiguous) else item


def column_of_output(value: Column | Const, rows: int) -> Column:
    """Return an output of a graph for all rows. The output may be a constant."""
    if not isinstance(value, Const):
        return value
    if isinstance(value.value, bytes):
        zeros = np.zeros(rows, np.int64)
        return BytesColumn((np.frombuffer(value.value, np.uint8),), zeros, zeros + len(value.value))
    return DenseColumn(np.full(rows, value.value))


def equal_blocks(fast: Block, plain: Block) -> bool:
    """Return True if structure, dtypes, shapes, layout and bits are equal (NaN equals NaN)."""
    if not fast.structure.same_as(plain.structure):
        return False
    columns = zip(fast.columns, plain.columns, strict=True)
    pairs = (pair for a, b in columns for pair in zip(a.values(), b.values(), strict=True))
    for left, right in pairs:
        if type(left) is not type(right) and not (isinstance(left, np.generic) and isinstance(right, np.generic)):
            return False
        if isinstance(left, (np.ndarray, np.generic)):
            if left.dtype != right.dtype or left.shape != right.shape or steps(left) != steps(right):
                return False
            if left.dtype == object:
                if left.tolist() != right.tolist():
                    return False
            elif left.tobytes() != right.tobytes() and not np.array_equal(
                left, right, equal_nan=left.dtype.kind in "fc"
            ):
                return False
        elif not _same_value(left, right):
            return False
    return True


def steps(array: Any) -> list[int]:
    """Return the strides of axes with several elements. The order in which sums are added depends on them."""
    return [step for step, extent in zip(array.strides, array.shape, strict=True) if extent > 1]


def same_in_all(fast: Any, plain: Any) -> bool:
    """Return True if two values are equal in everything observable: bits, layout, writability."""
    if type(fast) is not type(plain):
        return False
    if isinstance(plain, np.ndarray):
        return (
            fast.dtype == plain.dtype
            and fast.shape == plain.shape
            and fast.flags.writeable == plain.flags.writeable
            and steps(fast) == steps(plain)
            and (fast.tolist() == plain.tolist() if plain.dtype == object else fast.tobytes() == plain.tobytes())
        )
    if isinstance(plain, np.generic):
        return bool(fast.dtype == plain.dtype and fast.tobytes() == plain.tobytes())
    if isinstance(plain, (tuple, list)):
        return len(fast) == len(plain) and all(map(same_in_all, fast, plain))
    if isinstance(plain, dict):
        return [*fast] == [*plain] and all(map(same_in_all, fast.values(), plain.values()))
    return bool(fast == plain)


def _same_value(left: Any, right: Any) -> bool:
    """Return True if byte strings, or sparse or ragged tensors, are equal."""
    equals = getattr(left, "equals", None)
    return bool(equals(right)) if equals is not None else bool(left == right)


def what_came(function: Callable[..., Any]) -> tuple[Structure, tuple[LeafSpec, ...]] | None:
    """Return the kind of elements for which a function was last traced in this process, if no spec is known."""
    return (notes_of(function) or {}).get("came")


class Vectoriser:
    """Decides once per kind of element; `verdict` is the decision and its reason. Thread-safe."""

    def __init__(
        self, function: Callable[..., Any], trace: Callable[[Structure, Sequence[LeafSpec]], Traced] | None = None
    ) -> None:
        self._function = function
        self._trace = functools.partial(traced, function) if trace is None else trace
        self._lock = new_lock()
        self._decided: dict[tuple[Structure, tuple[Hashable, ...]], _Decision] = {}
        self._latest: tuple[Structure | None, tuple[Hashable, ...], _Decision | None] = None, (), None
        self.verdict = "decided at the first element"
        self.by_block = False  # True after it has run elements on Blocks
        self.ran = False  # True after the first Block, however it ran

    def run(self, block: Block, allocate: Callable[[int], Allocate] | None, draws: Draws = UNNUMBERED) -> Block | None:
        """Return the function's results, or None if it has to be called per element, such as to raise its own error."""
        ready = self._ready(block, draws)
        if ready is None:
            self.ran = True
            return None
        try:
            made = ready.run(block, allocate, draws)
        except MemoryError:
            raise
        except Exception as error:
            self.by_block, self.ran = False, True
            self.verdict = f"by Block: {ready.graph.describe()}; a Block ran per element after {type(error).__name__}"
            return None
        self.by_block = self.ran = True
        return made

    def _ready(self, block: Block, draws: Draws) -> Ready | None:
        structure, kinds = block.structure, tuple(map(kind_of, block.columns))
        latest, same, known = self._latest
        if latest is not structure or same != kinds:  # faster than to look up a large nest
            known = self._decided.get((structure, kinds))
        if known is None or not known.found.holds() or known.check is not None:
            known = self._decide(block, kinds, draws)
        if known is not self._latest[2]:
            self._latest = structure, kinds, known
        return known.ready

    def _decide(self, block: Block, kinds: tuple[Hashable, ...], draws: Draws) -> _Decision:
        key = block.structure, kinds
        with self._lock:
            known = self._decided.get(key)
            if known is None or not known.found.holds():
                specs = tuple(map(any_extent, block.columns))
                notes = notes_of(self._function)
                if notes is not None:
                    notes["came"] = block.structure, specs
                known = self._decided[key] = self._begun(self._trace(block.structure, specs))
            if known.check is not None:
                self._try(known, known.check, block, draws)
        return known

    def _begun(self, found: Traced) -> _Decision:
        if found.graph is None:
            self.verdict = f"per element: {found.reason}"
            return _Decision(found, None, None)
        copied = range(len(found.graph.outputs))
        ready = Ready.of(optimised(found.graph, copied=copied))
        self.verdict = f"by Block: {ready.graph.describe()}"
        return self._judged(_Decision(found, ready, check_of(found, ready)))

    def _try(self, decision: _Decision, check: EquivalenceCheck, block: Block, draws: Draws) -> None:
        if not check.over:  # another iteration may have finished it in the meantime
            check.go_on(self._function, block, draws)
        self._judged(decision)

    def _judged(self, decision: _Decision) -> _Decision:
        check = decision.check
        if check is not None and check.over:
            decision.check = None
            if check.failed:
                decision.ready = None
                self.verdict = f"per element: {check.failed}"
        return decision


@dataclass(slots=True)
class _Decision:
    """The decision for one kind of element: the graph to run on Blocks, if any, and the check until it is over."""

    found: Traced
    ready: Ready | None
    check: EquivalenceCheck | None


def kind_of(column: Column) -> Hashable:
    """Return a key with the facts of `any_extent`, which is faster to compare."""
    return (column.array.shape[1:], column.array.dtype) if type(column) is DenseColumn else any_extent(column)


def any_extent(column: Column) -> LeafSpec:
    """Return the column's dtype and rank. Extents that may differ in the next Block are None."""
    if isinstance(column, ListColumn) and isinstance(column.items[0], np.ndarray):
        first = column.items[0]
        if any(getattr(item, "ndim", 0) != first.ndim for item in column.items):
            return TensorSpec(None, first.dtype)
        return TensorSpec((None,) * first.ndim, first.dtype)
    return column.spec()


def optimised(graph: Graph, *, copied: Collection[int] = ()) -> Graph:
    """Return the graph with neighbouring primitives fused, where possible.

    Outputs that are `copied` before they are used need not have the layout of single calls.
    """
    for family in families(equation.primitive for equation in graph.equations):
        graph = family.fused(graph, copied=copied)
    return replace(graph)
