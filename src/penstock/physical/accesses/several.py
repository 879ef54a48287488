"""By number: several streams beside or behind each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from penstock.block.block import Block
from penstock.block.structure import Structure, nest
from penstock.keys import fold
from penstock.physical.access import Access, access, accessible, scattered
from penstock.physical.lower import Lowering
from penstock.physical.stretch import Stretch
from penstock.plan import ops
from penstock.plan.combine import Concatenate, Zip
from penstock.plan.node import INFINITE_CARDINALITY

_MOST_TURNS = 64  # of a repetition, kept open


class _Zipped(Access):
    """One element of each part. Where several fail, the error is that of the first part that did."""

    def __init__(self, parts: tuple[Access, ...], structure: Structure) -> None:
        self._parts = parts
        self._structure = structure

    @property
    def size(self) -> int:
        finite = [part.size for part in self._parts if part.size != INFINITE_CARDINALITY]
        return min(finite) if finite else INFINITE_CARDINALITY

    def rows(self, numbers: np.ndarray) -> Stretch:
        found = [part.rows(numbers) for part in self._parts]
        errors = {place: error for part in reversed(found) for place, error in part.failures}
        failures = tuple(sorted(errors.items(), key=lambda failed: failed[0]))
        if len(failures) == len(numbers):
            return Stretch(None, failures)
        kept = np.delete(np.arange(len(numbers)), [place for place, _ in failures])
        return Stretch(self._joined([_at(part, kept) for part in found]), failures)

    def _joined(self, blocks: list[Block]) -> Block:
        structure = nest(self._structure, [block.structure for block in blocks])
        origin = next((block.origin for block in blocks if block.origin is not None), None)
        return Block(structure, [column for block in blocks for column in block.columns], blocks[0].size, origin)


def _at(stretch: Stretch, places: np.ndarray) -> Block:
    """The elements at positions where none failed."""
    assert stretch.block is not None
    if len(places) == stretch.size:
        return stretch.block
    failed = np.array([place for place, _ in stretch.failures], np.int64)
    return stretch.block.take(places - np.searchsorted(failed, places))


@accessible(Zip)
def _zip(node: Zip, lowering: Lowering) -> Access:
    return _Zipped(tuple(access(part, lowering) for part in node.parts), node.structure)


class _Sequence(Access):
    """Streams one behind the other: number of stream and number in it follow from `split`."""

    def __init__(
        self,
        size: Callable[[], int],
        split: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
        stream: Callable[[int], Access],
    ) -> None:
        self._size = size
        self._split = split
        self._stream = stream

    @property
    def size(self) -> int:
        return self._size()

    def rows(self, numbers: np.ndarray) -> Stretch:
        which, inner = self._split(numbers)
        parts = []
        for index in np.unique(which).tolist():
            places = np.flatnonzero(which == index)
            parts.append((places, self._stream(index).rows(inner[places])))
        return parts[0][1] if len(parts) == 1 else scattered(parts)


@accessible(Concatenate)
def _concatenate(node: Concatenate, lowering: Lowering) -> Access:
    first, second = (access(part, lowering) for part in node.parts)

    def size() -> int:
        sizes = [first.size, second.size]
        return INFINITE_CARDINALITY if INFINITE_CARDINALITY in sizes else sum(sizes)

    def split(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if first.size == INFINITE_CARDINALITY:
            return np.zeros_like(numbers), numbers
        behind = (numbers >= first.size).astype(np.int64)
        return behind, numbers - first.size * behind

    return _Sequence(size, split, lambda index: second if index else first)


@accessible(ops.Repeat)
def _repeat(node: ops.Repeat, lowering: Lowering) -> Access:
    turns: dict[int, Access] = {}

    def turn(index: int) -> Access:
        found = turns.get(index)
        if found is None:
            if len(turns) >= _MOST_TURNS:
                turns.clear()
            epoch = _epoch(node.count, lowering.epoch, index)
            found = turns[index] = access(node.input, replace(lowering, epoch=epoch))
        return found

    one = turn(0)

    def size() -> int:
        if node.count == 0 or one.size == 0:
            return 0
        return INFINITE_CARDINALITY if node.count < 0 or one.size == INFINITE_CARDINALITY else one.size * node.count

    def split(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if one.size == INFINITE_CARDINALITY:
            return np.zeros_like(numbers), numbers
        return np.divmod(numbers, one.size)

    return _Sequence(size, split, turn)


def _epoch(count: int, epoch: int, index: int) -> int:
    """The epoch that turn number `index` of a repeat runs in; as in `builders.core`."""
    if count > 0:
        return epoch * count + index
    return fold(epoch, index) if epoch else index
