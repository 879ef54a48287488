"""Access by index: batches of neighbours, and slices of elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.block.block import Block
from penstock.block.column import ListColumn
from penstock.errors import Context, InvalidArgumentError, PenstockError, annotate
from penstock.physical.access import Access, access, accessible, all_failed, obstacle, scattered
from penstock.physical.accesses.single import mapped
from penstock.physical.lower import Lowering
from penstock.physical.stages.batch import first_extents, taken_apart
from penstock.physical.stages.padded import stack_of
from penstock.physical.stretch import Stretch, failure, join
from penstock.plan import batching, fused, ops
from penstock.plan.counted import Unbatch, rows_of
from penstock.plan.node import INFINITE_CARDINALITY, in_batches


class _GroupsAccess(Access):
    """Joins neighbours to batches. A group with a failed element is a failure."""

    def __init__(self, elements: Access, node: ops.BatchNode) -> None:
        self._elements = elements
        self._batch_size = node.batch_size
        self._drop_remainder = node.drop_remainder
        self._context = Context(stage=node.label, where=node.where)
        self._stack = stack_of(node)

    @property
    def size(self) -> int:
        return in_batches(self._elements.size, self._batch_size, drop_remainder=self._drop_remainder)

    def rows(self, numbers: np.ndarray) -> Stretch:
        size = self._batch_size
        wanted = (numbers[:, None] * size + np.arange(size)).reshape(-1)
        count = self._elements.size
        whole = count == INFINITE_CARDINALITY or int(numbers.max()) < count // size
        found = self._elements.rows(wanted if whole else wanted[wanted < count])
        if whole and not found.failures and found.block is not None:
            together = self._together(found.block)
            if together is not None:
                return together
        groups, at = [], 0
        for number in numbers.tolist():
            stop = at + (size if count == INFINITE_CARDINALITY else min(size, count - number * size))
            groups.append(self._group(number, found.slice(at, stop)))
            at = stop
        return join(groups)

    def _together(self, block: Block) -> Stretch | None:
        """Return all groups at once, or None if one of them fails. The caller then computes each group alone."""
        if any(isinstance(column, ListColumn) for column in block.columns):
            return None
        try:
            return Stretch(self._stack(block, self._batch_size))
        except PenstockError:
            return None

    def _group(self, number: int, part: Stretch) -> Stretch:
        try:
            if part.error is not None:
                raise part.error
            assert part.block is not None
            return Stretch(self._stack(part.block, part.block.size))
        except Exception as error:
            annotate(error, Context(self._context.stage, self._context.where, number))
            return failure(error)


@accessible(ops.Batch)
@accessible(batching.PaddedBatch)
@accessible(batching.RaggedBatch)
@accessible(batching.BatchOfSlices)
@accessible(batching.SparseBatch)
def _batch(node: ops.BatchNode, lowering: Lowering) -> Access:
    return _GroupsAccess(access(node.input, lowering), node)


@accessible(fused.MapAndBatch)
def _map_and_batch(node: fused.MapAndBatch, lowering: Lowering) -> Access:
    return _GroupsAccess(mapped(access(node.input, lowering), node.steps, lowering), node.batch)


@dataclass(eq=False)
class _SlicesAccess(Access):
    """The slices of elements.

    All elements but the last have `each` slices. Every slice of a failed element is a failure.
    """

    _elements: Access
    _each: int
    _total_of: Callable[[], int]
    _context: Context

    @cached_property
    def _total(self) -> int:
        return self._total_of()

    @property
    def size(self) -> int:
        return self._total

    def rows(self, numbers: np.ndarray) -> Stretch:
        which, inner = np.divmod(numbers, self._each)
        needed = np.unique(which)
        # elements read at once; they have at most as many slices as requested
        at_once = max(len(numbers) // self._each, 1)
        parts = []
        for begin in range(0, len(needed), at_once):
            some = needed[begin : begin + at_once]
            places = np.flatnonzero((which >= some[0]) & (which <= some[-1]))
            parts += self._of(some, places, which[places], inner[places])
        return parts[0][1] if len(parts) == 1 and len(parts[0][0]) == len(numbers) else scattered(parts)

    def _of(
        self, some: np.ndarray, places: np.ndarray, which: np.ndarray, inner: np.ndarray
    ) -> list[tuple[np.ndarray, Stretch]]:
        """Return slices as parts for `places`: slices `inner` of the elements `which`, which are all in `some`."""
        found = self._elements.rows(some)
        if not found.failures and found.block is not None:
            block = self._apart(found.block, some)
            if isinstance(block, Block):
                return [(places, Stretch(block.take(np.searchsorted(some, which) * self._each + inner)))]
        parts = []
        for at, number in enumerate(some.tolist()):
            mine = np.flatnonzero(which == number)
            one = found.slice(at, at + 1)
            slices = one.error if one.block is None else self._apart(one.block, some[at : at + 1])
            assert slices is not None
            if isinstance(slices, Block):
                parts.append((places[mine], Stretch(slices.take(inner[mine]))))
            else:
                parts.append((places[mine], all_failed(slices, len(mine))))
        return parts

    def _apart(self, block: Block, numbers: np.ndarray) -> Block | Exception:
        """Return all slices of elements, or the error that prevents it."""
        try:
            self._check(block, numbers)
            slices = taken_apart(block)
            assert slices is not None
            return slices
        except Exception as error:
            annotate(error, self._context)
            return failure(error).failures[0][1]

    def _check(self, block: Block, numbers: np.ndarray) -> None:
        for number, found in zip(numbers.tolist(), first_extents(block), strict=True):
            left = self._each if self._total == INFINITE_CARDINALITY else self._total - number * self._each
            wanted = min(self._each, left)
            if found != wanted:
                message = f"Element {number} has {found} slices along the first axis, its spec says {wanted}."
                hint = "The spec that a source or function was given must hold for all its elements."
                raise InvalidArgumentError(message, hint=hint)


def _counted(elements: Access, each: int) -> int:
    """Return the number of slices, where the last element may have fewer."""
    count = elements.size
    if count <= 0:
        return count
    last = elements.rows(np.array([count - 1])).block
    return (count - 1) * each + (each if last is None else first_extents(last)[0])


def _no_rows(node: Unbatch) -> str | None:
    rows = rows_of(node.input)
    return None if rows is not None and rows.each else "splits elements of unknown length"


@accessible(Unbatch, unless=_no_rows)
def _unbatch(node: Unbatch, lowering: Lowering) -> Access:
    rows = rows_of(node.input)
    assert rows is not None

    elements = access(node.input, lowering)

    def total() -> int:
        if obstacle(node.input, fill=False) is not None:  # a filled cache: only its elements determine the number
            return _counted(elements, rows.each)
        found = rows_of(node.input, lambda below: access(below, lowering).size)
        assert found is not None
        return found.total

    return _SlicesAccess(elements, rows.each, total, Context(node.label, node.where))
