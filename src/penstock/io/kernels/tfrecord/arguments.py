"""BUFFER, INTS: the arrays that the kernels of this package take, as numba names them."""

from __future__ import annotations

from typing import Any

import numba

types: Any = numba.types

BUFFER = types.Array(types.uint8, 1, "C", readonly=True)
INTS = types.Array(types.int64, 1, "C")
