"""TokenLengths and TokenPadder: what the two stages of `batch_by_tokens` do with elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn
from penstock.block.structure import Structure
from penstock.errors import Context, InvalidArgumentError, PenstockError, annotate, as_failure
from penstock.physical.key_function import KeyFunction
from penstock.physical.left_out import LeftOut
from penstock.physical.stacking import rank_of, ranks_of
from penstock.physical.stages.padded import pad_block
from penstock.physical.stretch import Stretch, failure
from penstock.physical.token_budget import TokenBudget
from penstock.plan.packing import BatchByTokens, open_spec
from penstock.plan.padding import Padding

Lengths = Callable[[Block, int], tuple[np.ndarray, dict[int, Exception]]]


class TokenLengths:
    """The elements of a Block that go into batches, their lengths as they count, and the errors of the others."""

    def __init__(self, node: BatchByTokens, budget: TokenBudget, *, vectorise: bool) -> None:
        self._node = node
        self._budget = budget
        self._left_out = LeftOut(node.label)
        self._function: Lengths = self._longest
        if node.length_func is not None:
            self._function = KeyFunction(node.length_func, "length_func", node.label, node.where, vectorise=vectorise)

    def __call__(self, block: Block, first: int) -> tuple[np.ndarray, np.ndarray, dict[int, Exception]]:
        """(rows, their lengths, errors by row); the Block's elements are number `first` and on."""
        found, errors = self._function(block, first)
        for row in np.flatnonzero(found < 0).tolist():
            message = f"length_func must return a length, got {found[row]}."
            errors[row] = self._failed(InvalidArgumentError(message), block, row, first)
        lengths = self._budget.rounded(found)
        keep = np.ones(block.size, bool)
        keep[list(errors)] = False
        if self._node.too_long != "alone":
            for row in np.flatnonzero(keep & self._budget.too_long(lengths)).tolist():
                keep[row] = False
                if self._node.too_long == "drop":
                    self._left_out.count += 1
                else:
                    errors[row] = self._too_long(block, row, first, int(found[row]), int(lengths[row]))
        rows = np.flatnonzero(keep)
        return rows, lengths[rows], errors

    def _longest(self, block: Block, first: int) -> tuple[np.ndarray, dict[int, Exception]]:
        """The first extent of each element's longest component."""
        if None in ranks_of(block):
            found = [self._longest(block.slice(row, row + 1), first + row) for row in range(block.size)]
            failed = {row: error for row, (_, errors) in enumerate(found) for error in errors.values()}
            return np.concatenate([lengths for lengths, _ in found]), failed
        try:
            self._node.check_lengths([column.slice(0, 1).spec() for column in block.columns])
            extents = [_extents(column) for column in block.columns]
        except PenstockError as error:
            kind, message, hint = type(error), error.message, error.hint
            errors = {row: self._failed(kind(message, hint=hint), block, row, first) for row in range(block.size)}
            return np.zeros(block.size, np.int64), errors
        return np.max([found for found in extents if found is not None], axis=0), {}

    def _too_long(self, block: Block, row: int, first: int, length: int, rounded: int) -> Exception:
        counts = "" if length == rounded else f", which counts as {rounded}"
        message = f"An element has length {length}{counts}, a batch holds max_tokens={self._node.max_tokens}."
        hint = "Give a larger max_tokens, or say too_long='alone' or 'drop'."
        return self._failed(InvalidArgumentError(message, hint=hint), block, row, first)

    def _failed(self, error: Exception, block: Block, row: int, first: int) -> Exception:
        file, offset = (None, None) if block.origin is None else block.origin.at(row)
        return as_failure(error, Context(self._node.label, self._node.where, first + row, file, offset))

    @property
    def left_out(self) -> int:
        return self._left_out.count

    @left_out.setter
    def left_out(self, count: int) -> None:
        self._left_out.count = count

    def tell(self, of: int) -> None:
        """Say in the log how many of the elements were left out."""
        self._left_out.tell(of)


def _extents(column: Column) -> np.ndarray | None:
    """The first extents of the elements, if they are arrays."""
    if not rank_of(column):
        return None
    if isinstance(column, ListColumn):
        return np.fromiter(map(len, column.items), np.int64, len(column))
    assert isinstance(column, (DenseColumn, BytesColumn))
    array = column.array if isinstance(column, DenseColumn) else column.starts
    return np.full(len(column), array.shape[1], np.int64)


class TokenPadder:
    """A Block as one padded batch, open extents rounded up to a multiple."""

    def __init__(self, node: BatchByTokens) -> None:
        self._node = node
        self._structure: Structure | None = None
        self._paddings: list[Padding] = []

    def __call__(self, block: Block) -> Stretch:
        """The batch, or the failure it is."""
        try:
            return Stretch(self._padded(block))
        except Exception as raised:
            if isinstance(raised, PenstockError):
                annotate(raised, Context(stage=self._node.label, where=self._node.where))
            return failure(raised)

    def _padded(self, block: Block) -> Block:
        if block.structure != self._structure:  # dict keys may change their order
            specs = [open_spec(column.slice(0, 1).spec()) for column in block.columns]
            self._paddings = self._node.paddings(block.structure, specs)
            self._structure = block.structure
        multiple = self._node.multiple_of
        shapes = [padding.shape for padding in self._paddings]
        if multiple > 1:
            shapes = [_rounded(column, shape, multiple) for column, shape in zip(block.columns, shapes, strict=True)]
        return pad_block(block, shapes, [padding.value for padding in self._paddings])


def _rounded(column: Column, shape: tuple[int | None, ...], multiple: int) -> tuple[int | None, ...]:
    """The shape with its open first extent as a multiple; further ones are no lengths."""
    if not shape or shape[0] is not None:
        return shape
    extents = _extents(column)
    assert extents is not None
    return (-(-int(extents.max()) // multiple) * multiple, *shape[1:])
