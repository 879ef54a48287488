"""Access: the elements of a plan by their numbers, a Block at a time, on any worker."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.block.numbers import Numbers
from penstock.block.same_kind import SameKind
from penstock.errors import InvalidTypeError, UnimplementedError
from penstock.physical.lower import Lowering
from penstock.physical.stretch import Stretch, elements_of, failure
from penstock.physical.transform import Outcome, Transform
from penstock.plan.inputs import Scan
from penstock.plan.node import INFINITE_CARDINALITY, Node, short_location
from penstock.plan.ops import FlatMap, Interleave
from penstock.plan.storing import Cache, DiskCache
from penstock.trace.graph import Allocate


class Access(ABC):
    """The elements of a pass over a plan, each without those before it. Thread-safe."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of elements, those that fail among them, or INFINITE_CARDINALITY.

        Raises what is wrong with a file that cannot be counted.
        """

    @abstractmethod
    def rows(self, numbers: np.ndarray) -> Stretch:
        """The elements with these int64 numbers, at least one, in that order: a position for each, also if it fails.

        Numbers are in [0, size) and may repeat.
        """


Opener = Callable[[Any, Lowering], Access]
Check = Callable[[Any], str | None]
_OPENERS: dict[type[Node], tuple[Opener, Check]] = {}


def _no_reason(node: Node) -> None:
    return None


def accessible(kind: type[Node], unless: Check = _no_reason) -> Callable[[Opener], Opener]:
    """Say how the elements of a node type are had by number; `unless` gives the reason where they are not."""

    def add(opener: Opener) -> Opener:
        _OPENERS[kind] = (opener, unless)
        return opener

    return add


def _how(kind: type[Node]) -> tuple[Opener, Check] | None:
    """What was said of a node type; those who say it come with the first question."""
    if kind not in _OPENERS:
        importlib.import_module("penstock.physical.accesses")
    return _OPENERS.get(kind)


def obstacle(plan: Node, *, fill: bool = True, opens: bool = False) -> tuple[Node, str] | None:
    """The step that keeps a plan from being read by number, the nearest to the source, and why; None if there is none.

    What is below a cache is in nobody's way, as that can be filled by a pass; it is without `fill`. Whether the data
    sets have numbers that a flat_map makes is known when they are there: with `opens` it is taken for granted. Reads
    nothing.
    """
    found = None
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if not (fill and isinstance(node, (Cache, DiskCache)) and node.cardinality != INFINITE_CARDINALITY):
            waiting += reversed(node.inputs)
        how = _how(type(node))
        if how is None or (isinstance(node, FlatMap) and not opens):
            reason: str | None = "gives its elements one after the other only"
        else:
            reason = how[1](node)
        found = found if reason is None else (node, reason)
    return found


def require_access(plan: Node, purpose: str, hint: str) -> None:
    """Raise UnimplementedError for a plan that cannot be read by number, and name the step that is in the way."""
    found = obstacle(plan, opens=True)
    if found is None:
        return
    node, reason = found
    where = short_location(node.where)
    step = f"{node.label} ({where})" if where else node.label
    message = f"{purpose} finds elements by their number, and {step} {reason}."
    if isinstance(node, Scan):
        hint = node.source.index_hint
    elif isinstance(node, Interleave):
        hint = "Files that are read in their order have numbers: leave out interleave, or num_parallel_reads."
    raise UnimplementedError(message, hint=hint)


def access(plan: Node, lowering: Lowering) -> Access:
    """The elements of a plan, in the pass that `lowering` describes; there must be no `obstacle`.

    They are made by whoever asks, in the thread that asks.
    """
    how = _how(type(plan))
    assert how is not None
    return how[0](plan, lowering)


def stretch_of(pieces: Sequence[Block | Exception]) -> Stretch:
    """Elements and failures, one behind the other."""
    failures: list[tuple[int, Exception]] = []
    parts: list[Stretch] = []
    at = 0
    for piece in pieces:
        if isinstance(piece, Block):
            parts.append(Stretch(piece))
            at += piece.size
        else:
            failures.append((at, piece))
            at += 1
    return Stretch(elements_of(parts), tuple(failures))


def scattered(parts: Sequence[tuple[np.ndarray, Stretch]]) -> Stretch:
    """Stretches put together so that position i of each comes to the place that its array names."""
    failures: list[tuple[int, Exception]] = []
    places: list[np.ndarray] = []
    for where, stretch in parts:
        failures += [(int(where[i]), error) for i, error in stretch.failures]
        if stretch.block is not None:
            places.append(np.delete(where, [i for i, _ in stretch.failures]))
    failures.sort(key=lambda failed: failed[0])
    block = elements_of([stretch for _, stretch in parts])
    if block is None:
        return Stretch(None, tuple(failures))
    found = np.concatenate(places)
    if (np.diff(found) < 0).any():
        block = block.take(np.argsort(found, kind="stable"))
    return Stretch(block, tuple(failures))


class Fetch(Transform):
    """The elements of a plan with the numbers that come, in the pass that `lowering` describes.

    All are of one kind, and each is what it is when it is read alone: no element decides for its neighbours in a Block.
    """

    one_to_one = True

    def __init__(self, plan: Node, lowering: Lowering) -> None:
        self.label = plan.label
        self.where = plan.where
        self._arguments = plan, lowering.beside()
        self._elements = access(*self._arguments)

    @property
    def size(self) -> int:
        """How many elements there are."""
        return self._elements.size

    def run(self, block: Block, numbers: Numbers, allocate: Callable[[int], Allocate] | None = None) -> Outcome:
        (column,) = block.columns
        assert isinstance(column, DenseColumn)
        same, made = self._same_kind(), self._rows(column.array)
        mixed = any(isinstance(error, InvalidTypeError) for _, error in made.failures)
        if mixed or made.size < block.size or not (made.block is None or same.admits(made.block)):
            same = self._same_kind()
            parts = [made] if block.size == 1 else [self._rows(column.array[i : i + 1]) for i in range(block.size)]
            made = stretch_of([same.checked(piece) for part in parts for piece in part.pieces()])
        if not made.failures:
            return Outcome(made.block, kind=same.expected)
        rows = np.delete(np.arange(block.size), [row for row, _ in made.failures])
        return Outcome(made.block, rows, made.failures, same.expected)

    def _same_kind(self) -> SameKind:
        same = SameKind("The element", any_rank=self._arguments[0].any_rank)
        same.expected = self.decided
        return same

    def _rows(self, numbers: np.ndarray) -> Stretch:
        try:
            return self._elements.rows(numbers)
        except Exception as error:
            return failure(error)  # in the place of the element, or of elements that are of several kinds

    def __reduce__(self) -> tuple[Any, ...]:
        return Fetch, self._arguments
