"""`tf.dtypes`: the dtypes, and functions that change them."""

from __future__ import annotations

from typing import Any

from penstock.compat.dtypes import DType, as_dtype
from penstock.compat.tf.arrays import cast, saturate_cast

__all__ = ["DType", "as_dtype", "cast", "saturate_cast"]


def __getattr__(name: str) -> Any:
    from penstock.compat.dtypes import DTYPES
    from penstock.compat.teaching import unknown

    if name in DTYPES:
        return DTYPES[name]
    raise unknown("tf.dtypes", name, {}, [*DTYPES, *__all__])
