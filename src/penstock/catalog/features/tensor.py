"""Tensor and Scalar: numbers of a fixed shape."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from penstock.catalog.features.feature import Feature, shape_json
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.io import FixedLenFeature

# For each kind of dtype the kinds of values that it takes without a change of meaning.
_TAKES = {"b": "b", "i": "biu", "u": "biu", "f": "biuf"}


class Tensor(Feature):
    """An array of a fixed `shape`; booleans and integers are stored as int64, floats as float32.

    >>> box = Tensor(shape=(4,), dtype=np.float32)
    >>> box.encode_example([0, 0, 1, 0.5], "box").tolist()
    [0.0, 0.0, 1.0, 0.5]
    """

    tfds_class = "tensorflow_datasets.core.features.tensor_feature.Tensor"

    def __init__(self, *, shape: tuple[int, ...], dtype: DTypeLike) -> None:
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)
        if self.dtype.kind not in _TAKES or self.dtype.itemsize > 8:
            message = f"dtype must be a boolean, an integer or a float of at most 64 bits, got {self.dtype}."
            raise InvalidTypeError(message, hint="For strings and bytes use features.Text().")
        if any(not isinstance(size, int) or size < 0 for size in self.shape):
            message = f"shape must be made of sizes of 0 or more, got {self.shape}."
            raise InvalidArgumentError(message, hint="A Tensor has the same shape in every example.")

    def encode_example(self, value: Any, name: str) -> Any:
        array = np.asarray(value)
        if array.shape != self.shape:
            message = f"feature {name!r} must have shape {self.shape}, got {array.shape}."
            raise InvalidArgumentError(message, hint="Change the value, or the shape in _info().")
        if array.dtype.kind not in _TAKES[self.dtype.kind]:
            message = f"feature {name!r} must be of dtype {self.dtype}, got {array.dtype}."
            raise InvalidTypeError(message, hint="Convert the value in _generate_examples(), or change _info().")
        converted = array.astype(self.dtype)
        if self.dtype.kind in "iu" and not np.array_equal(converted, array):
            message = f"feature {name!r} holds values that {self.dtype} cannot hold."
            raise InvalidArgumentError(message, hint="Choose a wider dtype in _info().")
        if self.dtype == np.uint64:
            return converted.view(np.int64)  # records know int64 only: the same bits
        return converted.astype(np.float32 if self.dtype.kind == "f" else np.int64)

    def serialized_spec(self) -> FixedLenFeature:
        return FixedLenFeature(self.shape, np.float32 if self.dtype.kind == "f" else np.int64)

    def decode_example(self, stored: Any) -> Any:
        array = np.asarray(stored)
        return (array.view(np.uint64) if self.dtype == np.uint64 else array.astype(self.dtype))[()]

    def to_json(self) -> dict[str, Any]:
        return {"tensor": {"shape": shape_json(self.shape), "dtype": self.dtype.name, "encoding": "none"}}


class Scalar(Tensor):
    """A single number.

    >>> Scalar(dtype=np.int64).encode_example(3, "count").item()
    3
    """

    tfds_class = "tensorflow_datasets.core.features.scalar.Scalar"

    def __init__(self, *, dtype: DTypeLike) -> None:
        super().__init__(shape=(), dtype=dtype)
