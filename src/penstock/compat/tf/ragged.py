"""`tf.ragged`: arrays whose rows differ in length."""

from __future__ import annotations

from typing import Any

import penstock as ps
from penstock.compat.teaching import missing_in
from penstock.compat.values import whole


def constant(pylist: Any, dtype: Any = None) -> Any:
    """Rows of differing length as a RaggedTensor."""
    flat = whole([item for row in pylist for item in row], dtype)
    return ps.RaggedTensor.from_row_lengths(flat, [len(row) for row in pylist])


def stack(values: Any, axis: int = 0) -> Any:
    """Arrays that differ in their first extent, as the rows of a RaggedTensor."""
    return ps.RaggedTensor.stack([whole(value) for value in values])


__getattr__ = missing_in("tf.ragged", globals())
