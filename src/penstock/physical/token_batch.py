"""Shared parts of the stages of `batch_by_tokens`: lengths, limits of a batch, and the count of dropped elements."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np

from penstock.block.block import Block
from penstock.errors import Context, InvalidArgumentError, PenstockError, annotate, as_failure
from penstock.physical.key_function import KeyFunction
from penstock.physical.stacking import extents_of, ranks_of
from penstock.physical.stages.padded import Padder
from penstock.physical.stretch import Stretch, failure
from penstock.plan.packing import BatchByTokens


class TokenBudget:
    """Puts neighbours into one batch while it costs no more than `max_tokens`.

    The cost of a batch is its number of elements times the largest length ("padded"), or the sum of the lengths
    ("sum"). Lengths count as at least 1, and are rounded up to a multiple. `cut` takes rounded lengths (see `rounded`).
    """

    def __init__(self, node: BatchByTokens) -> None:
        self._max_tokens = node.max_tokens
        self._padded = node.cost == "padded"
        self._most = node.max_elements or node.max_tokens
        self._multiple = node.multiple_of
        self.count = 0  # elements in the current batch
        self._load = 0  # its largest length, or the sum of its lengths

    def rounded(self, lengths: np.ndarray) -> np.ndarray:
        """Return the lengths as they count."""
        found: np.ndarray = -(-np.maximum(lengths, 1) // self._multiple) * self._multiple
        return found

    def too_long(self, lengths: np.ndarray) -> np.ndarray:
        """Return True for elements that cost too much alone."""
        found: np.ndarray = lengths > self._max_tokens
        return found

    def cut(self, lengths: Sequence[int]) -> list[tuple[int, int]]:
        """Return (element, end) for each completed batch: the element that completes it, and the end of the batch.

        A batch is complete when no further element can fit, or the next one does not fit.
        """
        most, budget, padded = self._most, self._max_tokens, self._padded
        count, load = self.count, self._load
        found = []
        for i, length in enumerate(lengths):
            grown = (length if length > load else load) if padded else load + length
            cost = (count + 1) * grown if padded else grown
            if count and cost > budget:
                found.append((i, i))
                count, grown = 0, length
            count += 1
            load = grown
            least = (count + 1) * load if padded else load + 1
            if count == most or least > budget:
                found.append((i, i + 1))
                count = load = 0
        self.count, self._load = count, load
        return found

    def clear(self) -> None:
        """Begin with an empty batch."""
        self.count = self._load = 0


_LOG = logging.getLogger("penstock.physical")


class LeftOut:
    """A count over one iteration, which is logged at its end."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._told = False
        self.count = 0

    def tell(self, of: int) -> None:
        if self.count and not self._told:
            self._told = True
            _LOG.warning("%s: dropped %s of %s elements, which are too long", self._label, self.count, of)


Lengths = Callable[[Block, int], tuple[np.ndarray, dict[int, Exception]]]


class TokenLengths:
    """Computes the elements of a Block that go into batches, their lengths, and the errors of the others."""

    def __init__(self, node: BatchByTokens, budget: TokenBudget, *, vectorise: bool) -> None:
        self._node = node
        self._budget = budget
        self.left_out = LeftOut(node.label)
        self._function: Lengths = self._longest
        if node.length_func is not None:
            self._function = KeyFunction(node.length_func, "length_func", node, vectorise=vectorise)

    def __call__(self, block: Block, first: int) -> tuple[np.ndarray, np.ndarray, dict[int, Exception]]:
        """Return (rows, their lengths, errors by row). The Block's elements have the numbers `first` and following."""
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
                    self.left_out.count += 1
                else:
                    errors[row] = self._too_long(block, row, first, int(found[row]), int(lengths[row]))
        rows = np.flatnonzero(keep)
        return rows, lengths[rows], errors

    def _longest(self, block: Block, first: int) -> tuple[np.ndarray, dict[int, Exception]]:
        """Return the first extent of each element's longest component."""
        if None in ranks_of(block):
            found = [self._longest(block.slice(row, row + 1), first + row) for row in range(block.size)]
            failed = {row: error for row, (_, errors) in enumerate(found) for error in errors.values()}
            return np.concatenate([lengths for lengths, _ in found]), failed
        try:
            self._node.check_lengths([column.slice(0, 1).spec() for column in block.columns])
            extents = [extents_of(column) for column in block.columns]
        except PenstockError as error:
            kind, message, hint = type(error), error.message, error.hint
            errors = {row: self._failed(kind(message, hint=hint), block, row, first) for row in range(block.size)}
            return np.zeros(block.size, np.int64), errors
        return np.max([found for found in extents if found is not None], axis=0), {}

    def _too_long(self, block: Block, row: int, first: int, length: int, rounded: int) -> Exception:
        counts = "" if length == rounded else f", which counts as {rounded}"
        message = f"An element has length {length}{counts}, a batch holds max_tokens={self._node.max_tokens}."
        hint = "Use a larger max_tokens, or pass too_long='alone' or 'drop'."
        return self._failed(InvalidArgumentError(message, hint=hint), block, row, first)

    def _failed(self, error: Exception, block: Block, row: int, first: int) -> Exception:
        return as_failure(error, Context(self._node.label, self._node.where, first + row, *block.origin_at(row)))


class TokenPadder:
    """Pads a Block to one batch, with open extents rounded up to a multiple."""

    def __init__(self, node: BatchByTokens) -> None:
        self._node = node
        self._padder = Padder(node.paddings, node.multiple_of)

    def __call__(self, block: Block) -> Stretch:
        """Return the batch, or its failure."""
        try:
            return Stretch(self._padder(block, block.size))
        except Exception as raised:
            if isinstance(raised, PenstockError):
                annotate(raised, Context(stage=self._node.label, where=self._node.where))
            return failure(raised)
