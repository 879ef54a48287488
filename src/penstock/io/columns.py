"""ParsedColumn: one feature of a whole block of records, in the layout the compiled parser writes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.io.assemble import as_vector, sparse_row
from penstock.io.features import FixedLenSequenceFeature, RaggedFeature, VarLenFeature
from penstock.io.values import BYTES


@dataclass(slots=True, eq=False)  # frozen ones take longer to make, and there are many
class DenseValues:
    """A `FixedLenFeature` of numbers: `array` is int64 or float32 of shape (rows, *shape)."""

    array: np.ndarray

    def __len__(self) -> int:
        return len(self.array)

    def batched(self) -> np.ndarray:
        """What `parse_example` gives."""
        return self.array

    def singles(self) -> list[Any]:
        """What `parse_single_example` gives for each record."""
        return list(self.array)


@dataclass(frozen=True, slots=True, eq=False)
class BytesValues:
    """Byte strings in place: string i is `buffers[which[i]][starts[i] : starts[i] + lengths[i]]`.

    `starts`, `lengths` and `which` have shape (rows, *shape); `which` is None while there is one buffer, the records'
    own. A second one holds the default value.
    """

    buffers: tuple[np.ndarray, ...]
    starts: np.ndarray
    lengths: np.ndarray
    which: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.starts)

    def batched(self) -> np.ndarray:
        """What `parse_example` gives: an object array of `bytes`."""
        views = [buffer.data for buffer in self.buffers]
        flat = self.starts.reshape(-1)
        stops = (flat + self.lengths.reshape(-1)).tolist()
        which = [0] * len(stops) if self.which is None else self.which.reshape(-1).tolist()
        found = [bytes(views[w][a:b]) for w, a, b in zip(which, flat.tolist(), stops, strict=True)]
        return as_vector(found, BYTES).reshape(self.starts.shape)

    def singles(self) -> list[Any]:
        """What `parse_single_example` gives for each record."""
        strings = self.batched()
        return strings.tolist() if strings.ndim == 1 else list(strings)


@dataclass(frozen=True, slots=True, eq=False)
class FlatValues:
    """A feature of any length: row i has the values from `row_splits[i]` to `row_splits[i + 1]`.

    `values` is an int64 or float32 vector, or BytesValues; `row_splits` is int64 (rows + 1,).
    """

    feature: VarLenFeature | RaggedFeature | FixedLenSequenceFeature
    values: np.ndarray | BytesValues
    row_splits: np.ndarray

    def __len__(self) -> int:
        return len(self.row_splits) - 1

    def vector(self) -> np.ndarray:
        """All values, byte strings as `bytes`."""
        return self.values.batched() if isinstance(self.values, BytesValues) else self.values

    def batched(self) -> np.ndarray | SparseTensor | RaggedTensor:
        """What `parse_example` gives."""
        feature, vector = self.feature, self.vector()
        if isinstance(feature, RaggedFeature):
            return RaggedTensor(vector, self.row_splits.astype(feature.row_splits_dtype))
        lengths = np.diff(self.row_splits)
        if isinstance(feature, FixedLenSequenceFeature):
            steps = vector.reshape(-1, *feature.shape)
            splits = self.row_splits // (len(vector) // len(steps)) if len(steps) else self.row_splits
            return RaggedTensor(steps, splits).to_dense(feature.default_value)
        rows = np.repeat(np.arange(len(lengths)), lengths)
        places = np.arange(len(vector)) - np.repeat(self.row_splits[:-1], lengths)
        shape = np.array([len(lengths), lengths.max(initial=0)])
        return SparseTensor(np.stack([rows, places], axis=1), vector, shape)

    def singles(self) -> list[Any]:
        """What `parse_single_example` gives for each record."""
        vector = self.vector()
        rows = [vector[a:b] for a, b in pairwise(self.row_splits.tolist())]
        if isinstance(self.feature, RaggedFeature):
            return rows
        if isinstance(self.feature, FixedLenSequenceFeature):
            return [row.reshape(-1, *self.feature.shape) for row in rows]
        return [sparse_row(row) for row in rows]


@dataclass(frozen=True, slots=True, eq=False)
class PartitionedValues:
    """A `RaggedFeature` with partitions: one array or RaggedTensor per record, and an empty one of their kind."""

    feature: RaggedFeature
    rows: list[np.ndarray | RaggedTensor]
    empty: np.ndarray | RaggedTensor

    def __len__(self) -> int:
        return len(self.rows)

    def batched(self) -> RaggedTensor:
        """What `parse_example` gives."""
        if self.rows:
            return RaggedTensor.stack(self.rows, self.feature.row_splits_dtype)
        return RaggedTensor(self.empty, np.zeros(1, self.feature.row_splits_dtype))

    def singles(self) -> list[Any]:
        """What `parse_single_example` gives for each record."""
        return list(self.rows)


ParsedColumn = DenseValues | BytesValues | FlatValues | PartitionedValues
