"""Access by index: sources, and steps with one input that keep elements separate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.block.numbers import Numbers
from penstock.errors import Context, annotate
from penstock.permutation import permutation
from penstock.physical.access import (
    Access,
    FunctionAccess,
    access,
    accessible,
    all_failed,
    by_part,
    scattered,
    stretch_of,
)
from penstock.physical.lower import Lowering, transform_of
from penstock.physical.stages.cardinality import other_cardinality
from penstock.physical.stages.combine import paired
from penstock.physical.stages.located import located
from penstock.physical.stretch import Stretch
from penstock.physical.transform import run_all
from penstock.plan import fused, ops
from penstock.plan.indexing import GlobalShuffle, Split, WithProvenance, with_provenance
from penstock.plan.inputs import Scan
from penstock.plan.node import INFINITE_CARDINALITY, limit
from penstock.plan.stateful import AssertCardinality
from penstock.sources.source import IndexedSource


def _no_index(node: Scan) -> str | None:
    return None if isinstance(node.source, IndexedSource) else "has no index"


@accessible(Scan, unless=_no_index)
def _scan(node: Scan, lowering: Lowering) -> Access:
    source, context = node.source, Context(node.label, node.where)
    assert isinstance(source, IndexedSource)

    def size() -> int:
        try:
            return source.count()
        except Exception as error:
            annotate(error, context)
            raise

    def rows(numbers: np.ndarray) -> Stretch:
        pieces: list[Block | Exception] = []
        at = 0
        for piece in source.pieces_at(numbers):
            if isinstance(piece, Exception):
                annotate(piece, replace(context, element=int(numbers[at])))
                at += 1
            else:
                at += piece.size
                if lowering.provenance:
                    piece = located(piece, source, numbers[at - piece.size : at])
            pieces.append(piece)
        return stretch_of(pieces)

    return FunctionAccess(size, rows)


def changed(elements: Access, change: Callable[[Block, np.ndarray], Stretch]) -> Access:
    """Return elements changed one for one by `change(block, numbers)`, a Block at a time."""

    def rows(numbers: np.ndarray) -> Stretch:
        found = elements.rows(numbers)
        if found.block is None:
            return found
        if not found.failures:
            return change(found.block, numbers)
        failed = np.array([place for place, _ in found.failures])
        left = np.delete(np.arange(found.size), failed)
        errors = Stretch(None, tuple((i, error) for i, (_, error) in enumerate(found.failures)))
        return scattered([(left, change(found.block, numbers[left])), (failed, errors)])

    return FunctionAccess(lambda: elements.size, rows)


def mapped(elements: Access, steps: Sequence[ops.Map], lowering: Lowering) -> Access:
    """Return the elements after maps.

    Earlier reads do not affect the expected kind: in each call, the first result sets it.
    """
    transforms = [transform_of(step, lowering.options) for step in steps]
    for transform in transforms:
        transform.apart = True

    def change(block: Block, numbers: np.ndarray) -> Stretch:
        return run_all(transforms, block, Numbers(numbers, lowering.epoch))

    return changed(elements, change)


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
        return Stretch(paired(DenseColumn(node.start + numbers), block))

    return changed(access(node.input, lowering), change)


@accessible(WithProvenance)
def _with_provenance(node: WithProvenance, lowering: Lowering) -> Access:
    below = access(node.input, replace(lowering, provenance=True))
    return changed(below, lambda block, numbers: Stretch(with_provenance(block)))


def _selected(elements: Access, size: Callable[[int], int], number: Callable[[np.ndarray], np.ndarray]) -> Access:
    """Return the elements under other indices: `number(n)` returns the indices in `elements`."""
    return FunctionAccess(lambda: size(elements.size), lambda numbers: elements.rows(number(numbers)))


@accessible(ops.Take)
def _take(node: ops.Take, lowering: Lowering) -> Access:
    below = access(node.input, lowering)
    if node.count < 0:
        return below
    return _selected(below, lambda size: limit(size, node.count), lambda numbers: numbers)


@accessible(ops.Skip)
def _skip(node: ops.Skip, lowering: Lowering) -> Access:
    def size_of(size: int) -> int:
        if node.count < 0:
            return 0
        return size if size == INFINITE_CARDINALITY else max(size - node.count, 0)

    return _selected(access(node.input, lowering), size_of, lambda numbers: numbers + node.count)


@accessible(ops.Shard)
def _shard(node: ops.Shard, lowering: Lowering) -> Access:
    def size_of(size: int) -> int:
        return size if size == INFINITE_CARDINALITY else max(-(-(size - node.index) // node.num_shards), 0)

    return _selected(access(node.input, lowering), size_of, lambda numbers: node.index + numbers * node.num_shards)


@accessible(GlobalShuffle)
def _global_shuffle(node: GlobalShuffle, lowering: Lowering) -> Access:
    key, below = lowering.order_key(node), access(node.input, lowering)
    return _selected(below, lambda size: size, lambda numbers: permutation(key, below.size).at(numbers))


@accessible(Split)
def _split(node: Split, lowering: Lowering) -> Access:
    chosen = np.frombuffer(node.numbers, np.int64)
    return _selected(access(node.input, lowering), lambda size: len(chosen), lambda numbers: chosen[numbers])


@accessible(AssertCardinality)
def _assert_cardinality(node: AssertCardinality, lowering: Lowering) -> Access:
    """Return elements whose number was declared. If there are more or fewer, the last position is an error."""
    elements, declared = access(node.input, lowering), node.expected_cardinality

    def right() -> int:
        """Return the number of elements before the error."""
        finite = [size for size in (elements.size, declared) if size != INFINITE_CARDINALITY]
        return min(finite) if finite else INFINITE_CARDINALITY

    def rows(numbers: np.ndarray) -> Stretch:
        count = right()
        if elements.size == declared or int(numbers.max()) < count:
            return elements.rows(numbers)
        found = None if count == declared else count
        error = other_cardinality(declared, found, node.file, Context(node.label, node.where))
        return by_part(
            numbers >= count,
            lambda behind, places: all_failed(error, len(places)) if behind else elements.rows(numbers[places]),
        )

    return FunctionAccess(lambda: right() + (elements.size != declared), rows)


@accessible(ops.Prefetch)
def _prefetch(node: ops.Prefetch, lowering: Lowering) -> Access:
    return access(node.input, lowering)
