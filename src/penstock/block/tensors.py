"""SparseTensor and RaggedTensor: values of an element that a plain array cannot hold.

Both must not be changed, and hold numpy arrays only. Byte strings are object arrays of `bytes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NoReturn

import numpy as np

from penstock.errors import InvalidArgumentError, InvalidTypeError


def _dtype_of(values: np.ndarray) -> Any:
    return bytes if values.dtype == object else values.dtype


def _nbytes_of(values: np.ndarray) -> int:
    if values.dtype != object:
        return int(values.nbytes)
    return sum(map(len, values.reshape(-1).tolist()))


def _filler(values: np.ndarray, default_value: Any) -> Any:
    if default_value is not None:
        return default_value
    return b"" if values.dtype == object else values.dtype.type(0)


def _filled(shape: tuple[int, ...], values: np.ndarray, default_value: Any) -> np.ndarray:
    found = np.empty(shape, values.dtype)
    found.fill(_filler(values, default_value))
    return found


class _NoArray:
    """Values that numpy must not convert: their rows may have different lengths."""

    __slots__ = ()

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        message = f"A {type(self).__name__} is no array."
        raise InvalidTypeError(message, hint="Write x.to_dense() (in code for TensorFlow x.to_tensor()), or x.values.")


@dataclass(frozen=True, slots=True, eq=False)
class SparseTensor(_NoArray):
    """Values at given positions of an array that is empty elsewhere, such as the result of `VarLenFeature`.

    Args:
        indices: int64 array of shape (values, rank).
        values: One value for each row of `indices`.
        dense_shape: Shape of the array, int64 of shape (rank,).

    Raises:
        InvalidArgumentError: If the arguments do not fit each other.

    Example:
        >>> SparseTensor(np.array([[0, 0], [1, 2]]), np.array([7, 8]), np.array([2, 3])).to_dense().tolist()
        [[7, 0, 0], [0, 0, 8]]
    """

    __penstock_leaf__: ClassVar[bool] = True

    indices: np.ndarray
    values: np.ndarray
    dense_shape: np.ndarray

    def __post_init__(self) -> None:
        indices, values = np.asarray(self.indices, np.int64), np.asarray(self.values)
        dense_shape = np.asarray(self.dense_shape, np.int64)
        if dense_shape.ndim != 1 or values.ndim != 1 or indices.shape != (len(values), len(dense_shape)):
            raise InvalidArgumentError(
                f"A sparse tensor needs indices of shape (values, rank), got indices {indices.shape}, "
                f"values {values.shape} and dense_shape {dense_shape.shape}."
            )
        object.__setattr__(self, "indices", indices)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "dense_shape", dense_shape)

    def with_arrays(self, change: Callable[[np.ndarray], np.ndarray]) -> SparseTensor:
        """Return the tensor with `change` applied to each of its arrays. `change` keeps shape and dtype."""
        found = object.__new__(type(self))  # skips the checks, which the arrays have passed already
        object.__setattr__(found, "indices", change(self.indices))
        object.__setattr__(found, "values", change(self.values))
        object.__setattr__(found, "dense_shape", change(self.dense_shape))
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.dense_shape.tolist())

    @property
    def dtype(self) -> Any:
        """The numpy dtype of the values, or `bytes`."""
        return _dtype_of(self.values)

    @property
    def nbytes(self) -> int:
        return int(self.indices.nbytes + self.dense_shape.nbytes) + _nbytes_of(self.values)

    @classmethod
    def stack(cls, rows: Sequence[SparseTensor]) -> SparseTensor:
        """Join rows of one rank along a new outer dimension. Each extent is that of the largest row.

        >>> row = SparseTensor(np.array([[1]]), np.array([5]), np.array([2]))
        >>> SparseTensor.stack([row, row]).to_list()
        [[0, 5], [0, 5]]
        """
        ranks = {len(row.dense_shape) for row in rows}
        if len(ranks) != 1:
            raise InvalidArgumentError(f"SparseTensor.stack needs rows of one rank, got ranks {sorted(ranks)}.")
        outer = np.repeat(np.arange(len(rows)), [len(row.values) for row in rows])
        indices = np.column_stack([outer, np.concatenate([row.indices for row in rows])])
        shape = np.max([row.dense_shape for row in rows], axis=0)
        return cls(indices, np.concatenate([row.values for row in rows]), np.concatenate([[len(rows)], shape]))

    def __len__(self) -> int:
        return int(self.dense_shape[0])

    def __iter__(self) -> Iterator[SparseTensor]:
        """Yield the slices along the first axis. The values may be in any order."""
        order = np.argsort(self.indices[:, 0], kind="stable")
        indices, values = self.indices[order], self.values[order]
        ends = np.searchsorted(indices[:, 0], np.arange(len(self) + 1)).tolist()
        for start, stop in pairwise(ends):
            yield SparseTensor(indices[start:stop, 1:], values[start:stop], self.dense_shape[1:])

    def to_dense(self, default_value: Any = None) -> np.ndarray:
        """Return the dense array, with `default_value` (else 0 or b"") where no value is given."""
        dense = _filled(self.shape, self.values, default_value)
        if len(self.values):
            dense[tuple(self.indices.T)] = self.values
        return dense

    def to_list(self) -> Any:
        """Return `to_dense()` as nested lists."""
        return self.to_dense().tolist()

    def equals(self, other: object) -> bool:
        """Return True if `other` is a sparse tensor of the same dtype, shape, positions and values."""
        return (
            isinstance(other, SparseTensor)
            and self.dtype == other.dtype
            and np.array_equal(self.dense_shape, other.dense_shape)
            and np.array_equal(self.indices, other.indices)
            and np.array_equal(self.values, other.values, equal_nan=self.values.dtype.kind == "f")
        )


@dataclass(frozen=True, slots=True, eq=False)
class RaggedTensor(_NoArray):
    """Rows of different lengths: row `i` is `values[row_splits[i]:row_splits[i + 1]]`.

    Args:
        values: Array of the values of all rows along its first axis, or a RaggedTensor for further ragged dimensions.
        row_splits: int32 or int64 vector. It starts at 0, never decreases and ends at `len(values)`.

    Raises:
        InvalidArgumentError: If the splits do not fit the values.

    Example:
        >>> RaggedTensor(np.array([3, 1, 4]), np.array([0, 2, 2, 3])).to_list()
        [[3, 1], [], [4]]
    """

    __penstock_leaf__: ClassVar[bool] = True

    values: np.ndarray | RaggedTensor
    row_splits: np.ndarray

    def __post_init__(self) -> None:
        values = self.values if isinstance(self.values, RaggedTensor) else np.asarray(self.values)
        splits = np.asarray(self.row_splits)
        if splits.dtype != np.int32:
            splits = splits.astype(np.int64, copy=False)
        if splits.ndim != 1 or not len(splits) or splits[0] != 0 or (splits[1:] < splits[:-1]).any():
            raise InvalidArgumentError("row_splits must be a vector that starts at 0 and never falls.")
        if splits[-1] != len(values):
            message = f"row_splits must end at the number of values: the last is {splits[-1]}, there are {len(values)}."
            raise InvalidArgumentError(message)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "row_splits", splits)

    def with_arrays(self, change: Callable[[np.ndarray], np.ndarray]) -> RaggedTensor:
        """Return the tensor with `change` applied to each of its arrays. `change` keeps shape and dtype."""
        values = self.values
        found = object.__new__(type(self))  # skips the checks, which the arrays have passed already
        changed = values.with_arrays(change) if isinstance(values, RaggedTensor) else change(values)
        object.__setattr__(found, "values", changed)
        object.__setattr__(found, "row_splits", change(self.row_splits))
        return found

    @classmethod
    def from_row_lengths(cls, values: Any, row_lengths: Any) -> RaggedTensor:
        """Build a tensor of rows with the given lengths, which must add up to the number of values.

        >>> RaggedTensor.from_row_lengths(np.array([1, 2, 3]), [2, 0, 1]).to_list()
        [[1, 2], [], [3]]
        """
        lengths = np.asarray(row_lengths)
        if lengths.dtype != np.int32:
            lengths = lengths.astype(np.int64)
        splits = np.zeros(len(lengths) + 1, lengths.dtype)
        np.cumsum(lengths, out=splits[1:])
        return cls(values, splits)

    @classmethod
    def stack(cls, rows: Sequence[np.ndarray | RaggedTensor], row_splits_dtype: Any = np.int64) -> RaggedTensor:
        """Join rows of one kind and rank along a new outer dimension.

        >>> RaggedTensor.stack([np.array([1, 2]), np.array([3])]).to_list()
        [[1, 2], [3]]
        """
        if not rows:
            raise InvalidArgumentError("RaggedTensor.stack needs at least one row.")
        return cls.from_row_lengths(_joined(rows), np.array([len(row) for row in rows], row_splits_dtype))

    def __len__(self) -> int:
        return len(self.row_splits) - 1

    def __getitem__(self, row: int) -> np.ndarray | RaggedTensor:
        """Return row `row` as a view."""
        if not -len(self) <= row < len(self):
            raise IndexError(f"Row {row} of a ragged tensor with {len(self)} rows.")
        row %= len(self)
        return _part(self.values, int(self.row_splits[row]), int(self.row_splits[row + 1]))

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The number of rows, None for every ragged dimension, then the dimensions of the values."""
        return (len(self), None, *self.values.shape[1:])

    @property
    def dtype(self) -> Any:
        """The numpy dtype of the values, or `bytes`."""
        return _dtype_of(self.flat_values)

    @property
    def nbytes(self) -> int:
        inner = self.values.nbytes if isinstance(self.values, RaggedTensor) else _nbytes_of(self.values)
        return int(self.row_splits.nbytes) + inner

    @property
    def flat_values(self) -> np.ndarray:
        """The innermost values of all rows."""
        return self.values.flat_values if isinstance(self.values, RaggedTensor) else self.values

    @property
    def ragged_rank(self) -> int:
        """The number of ragged dimensions."""
        return 1 + (self.values.ragged_rank if isinstance(self.values, RaggedTensor) else 0)

    @property
    def row_lengths(self) -> np.ndarray:
        return np.diff(self.row_splits)

    def to_list(self) -> list[Any]:
        """Return nested lists."""
        inner = self.values.to_list() if isinstance(self.values, RaggedTensor) else self.values.tolist()
        return [inner[a:b] for a, b in pairwise(self.row_splits.tolist())]

    def to_dense(self, default_value: Any = None) -> np.ndarray:
        """Return one array with every row padded with `default_value` (else 0 or b"") to the longest row."""
        inner = self.values.to_dense(default_value) if isinstance(self.values, RaggedTensor) else self.values
        lengths = self.row_lengths
        width = int(lengths.max()) if len(lengths) else 0
        dense = _filled((len(self), width, *inner.shape[1:]), inner, default_value)
        dense[np.arange(width) < lengths[:, None]] = inner
        return dense

    def equals(self, other: object) -> bool:
        """Return True if `other` is a ragged tensor of the same dtype, rows and values."""
        if not isinstance(other, RaggedTensor) or not np.array_equal(self.row_splits, other.row_splits):
            return False
        if isinstance(self.values, RaggedTensor) or isinstance(other.values, RaggedTensor):
            return isinstance(self.values, RaggedTensor) and self.values.equals(other.values)
        mine, theirs = self.values, other.values
        return mine.dtype == theirs.dtype and np.array_equal(mine, theirs, equal_nan=mine.dtype.kind == "f")


def _part(values: np.ndarray | RaggedTensor, start: int, stop: int) -> np.ndarray | RaggedTensor:
    if not isinstance(values, RaggedTensor):
        return values[start:stop]
    splits = values.row_splits[start : stop + 1]
    return RaggedTensor(_part(values.values, int(splits[0]), int(splits[-1])), splits - splits[0])


def _joined(rows: Sequence[np.ndarray | RaggedTensor]) -> np.ndarray | RaggedTensor:
    ragged = [row for row in rows if isinstance(row, RaggedTensor)]
    plain = [row for row in rows if not isinstance(row, RaggedTensor)]
    if ragged and plain:
        raise InvalidArgumentError("RaggedTensor.stack needs rows of one kind, got ragged tensors and arrays.")
    if plain:
        return np.concatenate(plain)
    values = _joined([row.values for row in ragged])
    return RaggedTensor.from_row_lengths(values, np.concatenate([row.row_lengths for row in ragged]))
