"""Vectoriser: runs a traced function on whole Blocks, having checked the first element both ways."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from penstock.block.apart import apart
from penstock.block.block import Block, Builder
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn
from penstock.block.spec import LeafSpec, TensorSpec
from penstock.trace.drawing import UNNUMBERED, Draws, drawing
from penstock.trace.graph import Allocate, Const, Graph
from penstock.trace.traced import Traced, traced


class Vectoriser:
    """Decides once per kind of element that comes; `verdict` says what and why. Thread-safe."""

    def __init__(self, function: Callable[..., Any], *, approximate: bool = False) -> None:
        self._function = function
        self._approximate = approximate
        self._lock = threading.Lock()
        self._decided: dict[Any, tuple[_Ready | None, Traced]] = {}
        self.verdict = "decided at the first element"
        self.by_block = False  # whether it has run elements so

    def run(self, block: Block, allocate: Callable[[int], Allocate] | None, draws: Draws = UNNUMBERED) -> Block | None:
        """The function's results, or None where it has to be called per element (also to raise its own error)."""
        specs = tuple(_any_extent(column) for column in block.columns)
        ready = self._ready(block, specs, draws)
        if ready is None:
            return None
        try:
            made = ready.run(block, allocate, draws)
        except MemoryError:
            raise
        except Exception as error:
            self.by_block = False
            self.verdict = f"by Block: {ready.graph.describe()}; a Block ran per element after {type(error).__name__}"
            return None
        self.by_block = True
        return made

    def _ready(self, block: Block, specs: tuple[LeafSpec, ...], draws: Draws) -> _Ready | None:
        key = (block.structure, specs)
        known = self._decided.get(key)
        if known is None or not known[1].holds():
            with self._lock:
                found = traced(self._function, block.structure, specs)
                known = self._decided[key] = self._decide(block, found, draws), found
        return known[0]

    def _decide(self, block: Block, found: Traced, draws: Draws) -> _Ready | None:
        if found.graph is None:
            self.verdict = f"per element: {found.reason}"
            return None
        ready = _Ready.of(optimised(found.graph))
        first = block.slice(0, 1)
        plain = self._plain(first, draws)
        try:
            fast = ready.run(first, None, draws)
        except Exception as error:
            if plain is not None:
                self.verdict = f"per element: as a Block it raised {type(error).__name__}"
                return None
        else:
            if plain is None or not _equal(fast, plain):
                self.verdict = "per element: as a Block its result was another"
                return None
        if self._approximate:
            ready = _Ready.of(optimised(found.graph, approximate=True))
        self.verdict = f"by Block: {ready.graph.describe()}"
        return ready

    def _plain(self, first: Block, draws: Draws) -> Block | None:
        """The first element's result as the function is written, or None where that raises."""
        element = first.elements()[0]
        builder = Builder()
        try:
            with drawing(draws) as now:
                now.begin(0)
                builder.add(self._function(*element) if first.structure.unpacks else self._function(element))
            return builder.build()
        except Exception:  # the run per element, which follows, raises it again in its place
            return None


@dataclass(frozen=True, slots=True)
class _Ready:
    """A graph to run, and the pairs of its outputs that may share memory."""

    graph: Graph
    sharing: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, graph: Graph) -> _Ready:
        return cls(graph, graph.sharing())

    def run(self, block: Block, allocate: Callable[[int], Allocate] | None, draws: Draws) -> Block:
        columns = self.graph.run(block.columns, block.size, allocate, draws.of(block.size))
        made = [_column(column, block.size) for column in columns]
        return block.with_columns(self.graph.structure, apart(made, self.sharing))


def _column(value: Column | Const, rows: int) -> Column:
    if not isinstance(value, Const):
        return value
    if isinstance(value.value, bytes):
        zeros = np.zeros(rows, np.int64)
        return BytesColumn((np.frombuffer(value.value, np.uint8),), zeros, zeros + len(value.value))
    return DenseColumn(np.full(rows, value.value))


def _any_extent(column: Column) -> LeafSpec:
    """The column's dtype and rank; extents count as unknown where they may differ in the next Block."""
    if isinstance(column, ListColumn) and isinstance(column.items[0], np.ndarray):
        first = column.items[0]
        return TensorSpec((None,) * first.ndim, first.dtype)
    return column.spec()


def optimised(graph: Graph, *, approximate: bool = False) -> Graph:
    """The graph with neighbouring primitives fused, where it holds any that can be; of images also approximately."""
    if any(equation.primitive.name.startswith("image.") for equation in graph.equations):
        from penstock.image.fuse import fuse

        return fuse(graph, approximate=approximate)
    return replace(graph)


def _equal(fast: Block, plain: Block) -> bool:
    """Same structure, dtypes, shapes and bits (NaN equals NaN)."""
    if not fast.structure.same_as(plain.structure):
        return False
    for a, b in zip(fast.columns, plain.columns, strict=True):
        left, right = a.values()[0], b.values()[0]
        if type(left) is not type(right) and not (isinstance(left, np.generic) and isinstance(right, np.generic)):
            return False
        if isinstance(left, (np.ndarray, np.generic)):
            if left.dtype != right.dtype or left.shape != right.shape:
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


def _same_value(left: Any, right: Any) -> bool:
    """Equality of byte strings, and of sparse and ragged tensors, whose arrays are compared."""
    equals = getattr(left, "equals", None)
    return bool(equals(right)) if equals is not None else bool(left == right)
