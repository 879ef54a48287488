"""`tf.sparse`: tensors of which only the values that are not zero are held."""

from __future__ import annotations

from typing import Any

import numpy as np

import penstock as ps
from penstock.compat.op import op
from penstock.compat.teaching import missing_in
from penstock.compat.values import whole


@op("sparse.to_dense")
def to_dense(sp_input: Any, default_value: Any = None, validate_indices: bool = True) -> Any:
    return sp_input.to_dense() if default_value is None else sp_input.to_dense(default_value)


@op("sparse.from_dense")
def from_dense(tensor: Any) -> Any:
    array = whole(tensor)
    at = np.argwhere(array != (b"" if array.dtype.hasobject else 0))
    return ps.SparseTensor(at, array[tuple(at.T)], np.asarray(array.shape, np.int64))


__getattr__ = missing_in("tf.sparse", globals())
