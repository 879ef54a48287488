"""Filling: an incomplete batch that several workers fill, each with a `BatchPiece`."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

import numpy as np

from penstock.block.arena import ARENA
from penstock.block.block import Block, concat_blocks
from penstock.block.column import Column, DenseColumn, concat
from penstock.block.indexed_column import IndexedColumn
from penstock.block.numbers import Numbers
from penstock.block.origin import concat_origins
from penstock.block.same_kind import Kinds
from penstock.block.structure import Structure
from penstock.errors import Context, PenstockError, annotate
from penstock.frames import let_go
from penstock.physical.executor import BatchTask
from penstock.physical.kernels.run import gather
from penstock.physical.stages.batch import stack_block, stack_column
from penstock.physical.stretch import Stretch, failure, joined_kinds
from penstock.physical.transform import Transforms
from penstock.trace.graph import Allocate


class BatchPiece:
    """Some rows of a batch, which one task computes."""

    __slots__ = ("block", "filling", "numbers", "row")

    def __init__(self, filling: Filling, block: Block | None, numbers: Numbers, row: int) -> None:
        self.filling = filling
        self.block = block
        self.numbers = numbers
        self.row = row

    def allocate(self, leaf: int) -> Allocate:
        assert self.block is not None
        rows = self.block.size

        def place(shape: tuple[int, ...], dtype: Any) -> np.ndarray | None:
            return self.filling.place(leaf, self.row, rows, shape, np.dtype(dtype))

        return place

    def put(self, made: Stretch) -> None:
        self.filling.kinds[self.row] = made.kinds
        if made.failures:
            place, error = made.failures[0]
            self.filling.fail(self.row + place, error)
        elif made.block is not None:
            self.filling.put(self.row, made.block)


class Filling:
    """An incomplete batch. Thread-safe. The batch is complete when all its pieces are, in any order."""

    def __init__(self, spec: BatchTask, first: int, transforms: Transforms = ()) -> None:
        self._spec = spec
        kept = None if any(transform.decided is None for transform in transforms) else 0
        # empty unless the batch may have to be computed again
        self.parts: deque[tuple[Block, Numbers] | Stretch] = deque(maxlen=kept)
        self.kinds: dict[int, Kinds] = {}  # of each piece, by its first row
        self._first = first
        self._lock = threading.Lock()
        self._arrays: dict[int, np.ndarray] = {}
        self._elsewhere: set[int] = set()  # components with some rows outside the memory of the batch
        self._pieces: list[tuple[int, Block]] = []
        self._errors: list[tuple[int, Exception]] = []
        self._begun = self._finished = 0  # pieces: the thread that pulls counts those begun, under no lock
        self.planned = 0
        self.closed = False

    def plan(self, block: Block, numbers: Numbers) -> BatchPiece:
        piece = BatchPiece(self, block, numbers, self.planned)
        self.planned += block.size
        self._begun += 1
        self.parts.append((block, numbers))
        return piece

    def plan_failure(self, error: Exception) -> BatchPiece:
        """Add a row that failed upstream."""
        annotate(error, Context(self._spec.label, self._spec.where, self.number))
        self.fail(self.planned, error)
        self.planned += 1
        self._begun += 1
        self.parts.append(failure(error))
        return BatchPiece(self, None, Numbers(None), self.planned)

    def close(self) -> BatchPiece:
        """Mark the batch as closed, because the input has ended."""
        self._begun += 1
        self.closed = True
        return BatchPiece(self, None, Numbers(None), self.planned)

    @property
    def number(self) -> int:
        """The number of the batch."""
        return self._first // self._spec.size

    def fail(self, row: int, error: Exception) -> None:
        with self._lock:
            self._errors.append((row, error))

    def place(self, leaf: int, row: int, rows: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
        """Return the memory of the batch for some rows, or None if the batch has another shape or dtype."""
        if dtype.hasobject:
            return None
        with self._lock:
            array = self._arrays.get(leaf)
            if array is None:
                array = self._arrays[leaf] = ARENA.empty((self._spec.size, *shape), dtype)
        if array.shape[1:] != shape or array.dtype != dtype:
            return None
        return array[row : row + rows]

    def put(self, row: int, block: Block) -> None:
        """Write the rows of a task into the memory of the batch, unless they are there already."""
        columns = [self._written(leaf, row, column) for leaf, column in enumerate(block.columns)]
        written = Block(block.structure, columns, block.size, block.origin)
        with self._lock:
            self._pieces.append((row, written))
            self._elsewhere.update(leaf for leaf, column in enumerate(block.columns) if columns[leaf] is column)

    def _written(self, leaf: int, row: int, column: Column) -> Column:
        if isinstance(column, IndexedColumn):
            place = self.place(leaf, row, len(column), column.whole.shape[1:], column.whole.dtype)
            if place is None:
                return column
            gather(column.whole, column.rows, place)
            return DenseColumn(place)
        values: Any
        if isinstance(column, DenseColumn):
            values, shape, dtype = column.array, column.array.shape[1:], column.array.dtype
        else:
            values = getattr(column, "items", None)
            first = values[0] if values else None
            if not isinstance(first, np.ndarray) or any(item.shape != first.shape for item in values):
                return column
            shape, dtype = first.shape, first.dtype
        place = self.place(leaf, row, len(column), shape, dtype)
        if place is None:
            return column
        if isinstance(values, list):
            for i, item in enumerate(values):
                place[i] = item
        elif not _is_same(values, place):
            place[...] = values
        return DenseColumn(place)

    def finish_piece(self) -> Stretch | None:
        """Return the batch after the last piece, else None. A batch with a failed row is a failure."""
        with self._lock:
            self._finished += 1
            if self._finished < self._begun or not self.closed:
                return None
        kinds = joined_kinds([found for _, found in sorted(self.kinds.items())])
        if self._errors:
            return failure(self._first_error(), kinds)
        if not self._pieces or (self.planned < self._spec.size and self._spec.drop_remainder):
            return Stretch(None)
        try:
            return Stretch(self._assembled(), kinds=kinds)
        except PenstockError as error:
            annotate(error, Context(self._spec.label, self._spec.where, self.number))
            return failure(error, kinds)

    def _first_error(self) -> Exception:
        """Return the error of the first failed row. The batch drops it, because its traceback refers to the batch."""
        errors, self._errors = sorted(self._errors, key=lambda found: found[0]), []
        for _, other in errors[1:]:
            let_go(other)
        return errors[0][1]

    def _assembled(self) -> Block:
        blocks = [block for _, block in sorted(self._pieces, key=lambda piece: piece[0])]
        first = blocks[0]
        if any(block.structure != first.structure for block in blocks):
            return stack_block(concat_blocks(blocks))
        try:
            columns = [self._leaf(leaf, blocks, first.structure) for leaf in range(len(first.columns))]
        except PenstockError:
            return stack_block(concat_blocks(blocks))  # raises the error again, with the file and offset of the element
        origin = concat_origins([block.origin for block in blocks])
        return Block(first.structure, columns, 1, None if origin is None else origin.batched(len(origin)))

    def _leaf(self, leaf: int, blocks: list[Block], structure: Structure) -> Column:
        array = self._arrays.get(leaf)
        if array is not None and leaf not in self._elsewhere:
            return DenseColumn(array[: self.planned][None])
        return stack_column(concat([block.columns[leaf] for block in blocks]), structure.paths()[leaf])


def _is_same(values: np.ndarray, place: np.ndarray) -> bool:
    """Return True if each value is already at its own place."""
    return np.may_share_memory(values, place) and values.__array_interface__ == place.__array_interface__
