"""RaggedTensorSpec: what is known about a ragged tensor before it is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.block.spec import Shape, as_dtype, dtype_name
from penstock.errors import InvalidTypeError


@dataclass(frozen=True, slots=True)
class RaggedTensorSpec:
    """Shape and dtype of a RaggedTensor, or of rows that become one; `None` stands for a dimension that differs.

    >>> RaggedTensorSpec((None,), np.int64)
    RaggedTensorSpec(shape=(None,), dtype=int64, row_splits_dtype=int64)

    Raises InvalidTypeError for another `row_splits_dtype` than int32 and int64.
    """

    __penstock_leaf__ = True

    shape: Shape
    dtype: Any
    row_splits_dtype: np.dtype

    def __init__(self, shape: Sequence[int | None], dtype: Any = np.float32, row_splits_dtype: Any = np.int64) -> None:
        splits = as_dtype(row_splits_dtype)
        if splits not in (np.dtype(np.int32), np.dtype(np.int64)):
            message = f"row_splits_dtype must be int32 or int64, got {dtype_name(splits)}."
            raise InvalidTypeError(message)
        object.__setattr__(self, "shape", tuple(None if d is None else int(d) for d in shape))
        object.__setattr__(self, "dtype", as_dtype(dtype))
        object.__setattr__(self, "row_splits_dtype", splits)

    def __repr__(self) -> str:
        names = f"dtype={dtype_name(self.dtype)}, row_splits_dtype={dtype_name(self.row_splits_dtype)}"
        return f"RaggedTensorSpec(shape={self.shape}, {names})"
