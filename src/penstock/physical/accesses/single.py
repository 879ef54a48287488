"""Access by index: sources, and steps with one input that keep elements separate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.block.numbers import Numbers
from penstock.block.structure import LEAF, Structure, nest
from penstock.errors import Context, annotate
from penstock.keys import fold
from penstock.permutation import permutation
from penstock.physical.access import Access, access, accessible, scattered, stretch_of
from penstock.physical.lower import Lowering, transform_of
from penstock.physical.stages.cardinality import other_cardinality
from penstock.physical.stages.located import located
from penstock.physical.stretch import Stretch
from penstock.physical.transform import run_all
from penstock.plan import fused, ops
from penstock.plan.indexing import GlobalShuffle, Split, WithProvenance, with_provenance
from penstock.plan.inputs import Scan
from penstock.plan.node import INFINITE_CARDINALITY
from penstock.plan.stateful import AssertCardinality
from penstock.sources.source import IndexedSource

_PAIR = Structure(tuple, (), (LEAF, LEAF), 2)


class _RowsAccess(Access):
    """The rows of a source."""

    def __init__(self, source: IndexedSource, context: Context, *, provenance: bool) -> None:
        self._source = source
        self._context = context
        self._provenance = provenance

    @property
    def size(self) -> int:
        try:
            return self._source.count()
        except Exception as error:
            annotate(error, self._context)
            raise

    def rows(self, numbers: np.ndarray) -> Stretch:
        pieces: list[Block | Exception] = []
        at = 0
        for piece in self._source.pieces_at(numbers):
            if isinstance(piece, Exception):
                annotate(piece, replace(self._context, element=int(numbers[at])))
                at += 1
            else:
                at += piece.size
                if self._provenance:
                    piece = located(piece, self._source, numbers[at - piece.size : at])
            pieces.append(piece)
        return stretch_of(pieces)


def _no_index(node: Scan) -> str | None:
    return None if isinstance(node.source, IndexedSource) else "has no index"


@accessible(Scan, unless=_no_index)
def _scan(node: Scan, lowering: Lowering) -> Access:
    assert isinstance(node.source, IndexedSource)
    return _RowsAccess(node.source, Context(node.label, node.where), provenance=lowering.provenance)


class ChangedAccess(Access):
    """The elements of another Access, changed one for one by `change(block, numbers)`, a Block at a time."""

    def __init__(self, elements: Access, change: Callable[[Block, np.ndarray], Stretch]) -> None:
        self._elements = elements
        self._change = change

    @property
    def size(self) -> int:
        return self._elements.size

    def rows(self, numbers: np.ndarray) -> Stretch:
        found = self._elements.rows(numbers)
        if found.block is None:
            return found
        if not found.failures:
            return self._change(found.block, numbers)
        failed = np.array([place for place, _ in found.failures])
        left = np.delete(np.arange(found.size), failed)
        errors = Stretch(None, tuple((i, error) for i, (_, error) in enumerate(found.failures)))
        return scattered([(left, self._change(found.block, numbers[left])), (failed, errors)])


def mapped(elements: Access, steps: Sequence[ops.Map], lowering: Lowering) -> Access:
    """Return the elements after maps.

    Earlier reads do not affect the expected kind: in each call, the first result sets it.
    """
    transforms = [transform_of(step, lowering.options) for step in steps]
    for transform in transforms:
        transform.apart = True

    def change(block: Block, numbers: np.ndarray) -> Stretch:
        return run_all(transforms, block, Numbers(numbers, lowering.epoch))

    return ChangedAccess(elements, change)


@accessible(ops.Map)
def _map(node: ops.Map, lowering: Lowering) -> Access:
    return mapped(access(node.input, lowering), [node], lowering)


def _filters(node: fused.FusedMap) -> str | None:
    kept = all(isinstance(step, ops.Map) for step in node.steps)
    return None if kept else "drops elements by their values"


@accessible(fused.FusedMap, unless=_filters)
def _fused(node: fused.FusedMap, lowering: Lowering) -> Access:
    steps = [step for step in node.steps if isinstance(step, ops.Map)]
    return mapped(access(node.input, lowering), steps, lowering)


@accessible(ops.Enumerate)
def _enumerate(node: ops.Enumerate, lowering: Lowering) -> Access:
    def change(block: Block, numbers: np.ndarray) -> Stretch:
        columns = [DenseColumn(node.start + numbers), *block.columns]
        return Stretch(block.with_columns(nest(_PAIR, [LEAF, block.structure]), columns))

    return ChangedAccess(access(node.input, lowering), change)


@accessible(WithProvenance)
def _with_provenance(node: WithProvenance, lowering: Lowering) -> Access:
    below = access(node.input, replace(lowering, provenance=True))
    return ChangedAccess(below, lambda block, numbers: Stretch(with_provenance(block)))


class _SelectAccess(Access):
    """Elements of another Access under other indices: `number(n)` returns the indices there."""

    def __init__(
        self, elements: Access, size: Callable[[int], int], number: Callable[[np.ndarray], np.ndarray]
    ) -> None:
        self._elements = elements
        self._size = size
        self._number = number

    @property
    def size(self) -> int:
        return self._size(self._elements.size)

    def rows(self, numbers: np.ndarray) -> Stretch:
        return self._elements.rows(self._number(numbers))


@accessible(ops.Take)
def _take(node: ops.Take, lowering: Lowering) -> Access:
    below = access(node.input, lowering)
    if node.count < 0:
        return below
    return _SelectAccess(
        below,
        lambda size: node.count if size == INFINITE_CARDINALITY else min(size, node.count),
        lambda numbers: numbers,
    )


@accessible(ops.Skip)
def _skip(node: ops.Skip, lowering: Lowering) -> Access:
    def size_of(size: int) -> int:
        if node.count < 0:
            return 0
        return size if size == INFINITE_CARDINALITY else max(size - node.count, 0)

    return _SelectAccess(access(node.input, lowering), size_of, lambda numbers: numbers + node.count)


@accessible(ops.Shard)
def _shard(node: ops.Shard, lowering: Lowering) -> Access:
    def size_of(size: int) -> int:
        return size if size == INFINITE_CARDINALITY else max(-(-(size - node.index) // node.num_shards), 0)

    return _SelectAccess(access(node.input, lowering), size_of, lambda numbers: node.index + numbers * node.num_shards)


@accessible(GlobalShuffle)
def _global_shuffle(node: GlobalShuffle, lowering: Lowering) -> Access:
    key = fold(lowering.options.seed, node.salt) if node.seed is None else fold(node.seed, 0)
    if node.reshuffle_each_iteration:
        key = fold(key, lowering.epoch)
    below = access(node.input, lowering)
    return _SelectAccess(below, lambda size: size, lambda numbers: permutation(key, below.size).at(numbers))


@accessible(Split)
def _split(node: Split, lowering: Lowering) -> Access:
    chosen = np.frombuffer(node.numbers, np.int64)
    return _SelectAccess(access(node.input, lowering), lambda size: len(chosen), lambda numbers: chosen[numbers])


class _CountedAccess(Access):
    """Elements whose number was declared. If there are more or fewer, the last position is an error."""

    def __init__(self, elements: Access, node: AssertCardinality) -> None:
        self._elements = elements
        self._node = node

    def _right(self) -> int:
        """Return the number of elements before the error."""
        sizes = self._elements.size, self._node.expected_cardinality
        finite = [size for size in sizes if size != INFINITE_CARDINALITY]
        return min(finite) if finite else INFINITE_CARDINALITY

    @property
    def size(self) -> int:
        return self._right() + (self._elements.size != self._node.expected_cardinality)

    def rows(self, numbers: np.ndarray) -> Stretch:
        right, node = self._right(), self._node
        if self._elements.size == node.expected_cardinality or int(numbers.max()) < right:
            return self._elements.rows(numbers)
        found = None if right == node.expected_cardinality else right
        error = other_cardinality(node.expected_cardinality, found, node.file, Context(node.label, node.where))
        inside, behind = np.flatnonzero(numbers < right), np.flatnonzero(numbers >= right)
        parts = [(behind, Stretch(None, tuple((place, error) for place in range(len(behind)))))]
        if len(inside):
            parts.append((inside, self._elements.rows(numbers[inside])))
        return scattered(parts)


@accessible(AssertCardinality)
def _assert_cardinality(node: AssertCardinality, lowering: Lowering) -> Access:
    return _CountedAccess(access(node.input, lowering), node)


@accessible(ops.Prefetch)
def _prefetch(node: ops.Prefetch, lowering: Lowering) -> Access:
    return access(node.input, lowering)
