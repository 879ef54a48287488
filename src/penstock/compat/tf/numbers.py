"""`tf.saturate_cast`."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compat.dtypes import as_dtype
from penstock.compat.op import op
from penstock.compat.values import whole


@op("saturate_cast")
def saturate_cast(value: Any, dtype: Any) -> Any:
    """Cast a value, and replace values out of range by the nearest possible value."""
    array, wanted = whole(value), as_dtype(dtype).dtype
    if wanted.kind in "iu":
        limits = np.iinfo(wanted)
        if array.dtype.kind == "f":
            array = np.nan_to_num(np.trunc(array.astype(np.float64)), nan=0.0)
        return np.clip(array, max(limits.min, -(2**53)), min(limits.max, 2**53)).astype(wanted)[()]
    return array.astype(wanted)[()]
