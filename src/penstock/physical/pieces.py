"""Pieces: the sequences of a Block as runs of flat arrays, no longer than a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.block.block import Block
from penstock.block.column import Column, DenseColumn, ListColumn
from penstock.physical.stacking import common_rank


@dataclass(frozen=True, slots=True)
class Pieces:
    """Piece i is of element `elements[i]`: in feature f `sizes[i, f]` values of `flat[f]` from `offsets[i, f]` on."""

    flat: tuple[np.ndarray, ...]
    elements: np.ndarray
    sizes: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, block: Block) -> Pieces:
        """Each element as one piece; its components are 1-D arrays."""
        found = [_joined(column) for column in block.columns]
        sizes = np.column_stack([sizes for _, sizes in found])
        offsets = np.cumsum(sizes, axis=0) - sizes
        return cls(tuple(flat for flat, _ in found), np.arange(block.size), sizes, offsets)

    def __len__(self) -> int:
        return len(self.elements)

    def chosen(self, keep: np.ndarray) -> Pieces:
        """The pieces at these positions, or where this mask is true."""
        return Pieces(self.flat, self.elements[keep], self.sizes[keep], self.offsets[keep])

    def too_long(self, lengths: np.ndarray) -> np.ndarray:
        """Which pieces have more values than a row, in any feature."""
        found: np.ndarray = np.any(self.sizes > lengths, axis=1)
        return found

    def truncated(self, lengths: np.ndarray) -> Pieces:
        """The beginnings that fit a row."""
        return Pieces(self.flat, self.elements, np.minimum(self.sizes, lengths), self.offsets)

    def split(self, lengths: np.ndarray) -> Pieces:
        """Longer ones as several: each feature cut into rows, piece k holding the k-th of each."""
        counts = np.maximum(-(-self.sizes // lengths), 1).max(axis=1)
        whole = self.chosen(np.repeat(np.arange(len(self)), counts))
        number = np.arange(len(whole)) - np.repeat(np.cumsum(counts) - counts, counts)
        before = np.minimum(number[:, None] * lengths, whole.sizes)
        return Pieces(whole.flat, whole.elements, np.minimum(whole.sizes - before, lengths), whole.offsets + before)


def _joined(column: Column) -> tuple[np.ndarray, np.ndarray]:
    """The values of 1-D arrays one behind the other, and the arrays' sizes."""
    if isinstance(column, DenseColumn):
        count, size = column.array.shape
        return column.array.reshape(-1), np.full(count, size, np.int64)
    assert isinstance(column, ListColumn)
    return np.concatenate(column.items), np.fromiter(map(len, column.items), np.int64, len(column))


def fits_rows(block: Block, dtypes: Sequence[np.dtype]) -> bool:
    """Whether every component is a column of 1-D arrays of these dtypes."""
    for column, dtype in zip(block.columns, dtypes, strict=True):
        spec = column.slice(0, 1).spec() if common_rank(column) == 1 else None
        if getattr(spec, "dtype", None) != dtype or len(getattr(spec, "shape", ())) != 1:
            return False
    return True
