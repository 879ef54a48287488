"""Vectoriser: runs a traced function on whole Blocks, having checked the first elements both ways."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.column import Column, DenseColumn, ListColumn
from penstock.block.spec import LeafSpec, TensorSpec
from penstock.block.structure import Structure
from penstock.forked import new_lock
from penstock.physical.equivalence import EquivalenceCheck, Ready, check_of
from penstock.trace.drawing import UNNUMBERED, Draws
from penstock.trace.graph import Allocate, Graph
from penstock.trace.nature import families
from penstock.trace.traced import Traced, traced


class Vectoriser:
    """Decides once per kind of element that comes; `verdict` says what and why. Thread-safe."""

    def __init__(self, function: Callable[..., Any], *, approximate: bool = False) -> None:
        self._function = function
        self._approximate = approximate
        self._lock = new_lock()
        self._decided: dict[tuple[Structure, tuple[Hashable, ...]], _Decision] = {}
        self._latest: tuple[Structure | None, tuple[Hashable, ...], _Decision | None] = None, (), None
        self.verdict = "decided at the first element"
        self.by_block = False  # whether it has run elements so
        self.presumes = False  # whether elements that are not as usual may give another kind of result

    def run(self, block: Block, allocate: Callable[[int], Allocate] | None, draws: Draws = UNNUMBERED) -> Block | None:
        """The function's results, or None where it has to be called per element (also to raise its own error)."""
        ready = self._ready(block, draws)
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

    def _ready(self, block: Block, draws: Draws) -> Ready | None:
        structure, kinds = block.structure, tuple(map(kind_of, block.columns))
        latest, same, known = self._latest
        if latest is not structure or same != kinds:  # which is quicker than to look a large nest up
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
                known = self._decided[key] = self._begun(traced(self._function, block.structure, specs))
            if known.check is not None:
                self._try(known, known.check, block, draws)
        return known

    def _begun(self, found: Traced) -> _Decision:
        if found.graph is None:
            self.verdict = f"per element: {found.reason}"
            return _Decision(found, None, None)
        self.presumes = self.presumes or found.graph.presumes
        copied = range(len(found.graph.outputs))
        exact = Ready.of(optimised(found.graph, copied=copied))
        ready = Ready.of(optimised(found.graph, approximate=True, copied=copied)) if self._approximate else exact
        self.verdict = f"by Block: {ready.graph.describe()}"
        return self._judged(_Decision(found, ready, check_of(found, exact)))

    def _try(self, decision: _Decision, check: EquivalenceCheck, block: Block, draws: Draws) -> None:
        if not check.over:  # in another pass, meanwhile
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
    """About one kind of element: what runs it by Block, if anything does, and the check, while it is not over."""

    found: Traced
    ready: Ready | None
    check: EquivalenceCheck | None


def kind_of(column: Column) -> Hashable:
    """What `any_extent` follows from, and quicker to compare."""
    return (column.array.shape[1:], column.array.dtype) if type(column) is DenseColumn else any_extent(column)


def any_extent(column: Column) -> LeafSpec:
    """The column's dtype and rank; extents count as unknown where they may differ in the next Block."""
    if isinstance(column, ListColumn) and isinstance(column.items[0], np.ndarray):
        first = column.items[0]
        if any(getattr(item, "ndim", 0) != first.ndim for item in column.items):
            return TensorSpec(None, first.dtype)
        return TensorSpec((None,) * first.ndim, first.dtype)
    return column.spec()


def optimised(graph: Graph, *, approximate: bool = False, copied: Collection[int] = ()) -> Graph:
    """The graph with neighbouring primitives fused, where their family knows how; also approximately, if asked to.

    Outputs that are `copied` into one piece before anybody sees them need not be laid out as those of single calls.
    """
    for family in families(equation.primitive for equation in graph.equations):
        graph = family.fused(graph, approximate=approximate, copied=copied)
    return replace(graph)
