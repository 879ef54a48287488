"""Access: the elements of a plan by index, a Block at a time, on any worker."""

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
from penstock.physical.transform import BlockTransform, Outcome
from penstock.plan.inputs import Scan
from penstock.plan.node import INFINITE_CARDINALITY, Node, short_location
from penstock.plan.ops import FlatMap, Interleave
from penstock.plan.storing import Cache, DiskCache
from penstock.trace.graph import Allocate


class Access(ABC):
    """The elements of one epoch of a plan, each computed without those before it. Thread-safe."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of elements, including failed ones, or INFINITE_CARDINALITY.

        Raise the error of a file that cannot be counted.
        """

    @abstractmethod
    def rows(self, numbers: np.ndarray) -> Stretch:
        """Return the elements with these int64 indices (at least one), in this order.

        A failed element keeps its position.

        Indices are in [0, size) and may repeat.
        """


class FunctionAccess(Access):
    """An Access whose `size` and `rows` are functions."""

    def __init__(self, size: Callable[[], int], rows: Callable[[np.ndarray], Stretch]) -> None:
        self._size = size
        self._rows = rows

    @property
    def size(self) -> int:
        return self._size()

    def rows(self, numbers: np.ndarray) -> Stretch:
        return self._rows(numbers)


Opener = Callable[[Any, Lowering], Access]
Check = Callable[[Any], str | None]
_OPENERS: dict[type[Node], tuple[Opener, Check]] = {}


def _no_reason(node: Node) -> None:
    return None


def accessible(kind: type[Node], unless: Check = _no_reason) -> Callable[[Opener], Opener]:
    """Register the access to a node type's elements by index; `unless` returns the reason if a node has none."""

    def add(opener: Opener) -> Opener:
        _OPENERS[kind] = (opener, unless)
        return opener

    return add


def _how(kind: type[Node]) -> tuple[Opener, Check] | None:
    """Return the registered opener and check of a node type. The first call imports all of them."""
    if kind not in _OPENERS:
        importlib.import_module("penstock.physical.accesses")
    return _OPENERS.get(kind)


def obstacle(plan: Node, *, fill: bool = True, opens: bool = False) -> tuple[Node, str] | None:
    """Return the step that prevents access by index, with the reason, or None. It is the one nearest to the source.

    Steps before a cache never prevent it, because an iteration can fill the cache; with `fill=False`, they do. Whether
    the data sets of a `flat_map` have an index is known only after they are created. With `opens=True`, this is
    assumed. Nothing is read.
    """
    found = None
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if not (fill and isinstance(node, (Cache, DiskCache)) and node.cardinality != INFINITE_CARDINALITY):
            waiting += reversed(node.inputs)
        how = _how(type(node))
        if how is None or (isinstance(node, FlatMap) and not opens):
            reason: str | None = "yields its elements only in order"
        else:
            reason = how[1](node)
        found = found if reason is None else (node, reason)
    return found


def require_access(plan: Node, purpose: str, hint: str) -> None:
    """Raise UnimplementedError for a plan without access by index, and name the step that prevents it."""
    found = obstacle(plan, opens=True)
    if found is None:
        return
    node, reason = found
    where = short_location(node.where)
    step = f"{node.label} ({where})" if where else node.label
    message = f"{purpose} needs elements with an index, but {step} {reason}."
    if isinstance(node, Scan):
        hint = node.source.index_hint
    elif isinstance(node, Interleave):
        hint = "Files that are read one after another have an index: leave out interleave or num_parallel_reads."
    raise UnimplementedError(message, hint=hint)


def access(plan: Node, lowering: Lowering) -> Access:
    """Return access to the elements of a plan, in the epoch that `lowering` describes.

    The plan must have no `obstacle`.

    The caller's thread computes the elements.
    """
    how = _how(type(plan))
    assert how is not None
    return how[0](plan, lowering)


def stretch_of(pieces: Sequence[Block | Exception]) -> Stretch:
    """Join Blocks and errors to one stretch."""
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


def all_failed(error: Exception, count: int) -> Stretch:
    """Return `count` positions that have failed for the same reason."""
    return Stretch(None, tuple((place, error) for place in range(count)))


def by_part(which: np.ndarray, rows_of: Callable[[int, np.ndarray], Stretch]) -> Stretch:
    """Return elements from several parts: position i is in part `which[i]`.

    `rows_of(number of the part, positions in it)` returns the elements of one part.
    """
    parts = []
    for number in np.unique(which).tolist():
        places = np.flatnonzero(which == number)
        parts.append((places, rows_of(number, places)))
    return parts[0][1] if len(parts) == 1 else scattered(parts)


def scattered(parts: Sequence[tuple[np.ndarray, Stretch]]) -> Stretch:
    """Join stretches: position i of each goes to the position that its array contains."""
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


class FetchTransform(BlockTransform):
    """Transform from indices to the elements of a plan, in the epoch that `lowering` describes.

    All elements have one kind. Each element is the same as if it were read alone: no element affects its neighbours in
    a Block.
    """

    one_to_one = True

    def __init__(self, plan: Node, lowering: Lowering) -> None:
        self.label = plan.label
        self.where = plan.where
        self._arguments = plan, lowering.beside()
        self._elements = access(*self._arguments)

    @property
    def size(self) -> int:
        """Number of elements."""
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
            return failure(error)  # the error replaces the element, or several elements of different kinds

    def __reduce__(self) -> tuple[Any, ...]:
        return FetchTransform, self._arguments
