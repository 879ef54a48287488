"""The fields of any message: span, what has a length; skip, over what is unknown."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import helper
from penstock.compiled.uncounted import uncounted
from penstock.io.kernels.example.varint import varint

U = np.uint64


@uncounted
@helper
def span(buffer: Any, at: Any, stop: Any) -> Any:
    """(start, end) of the bytes that a length announces, or (0, -1)."""
    size, at = varint(buffer, at, stop)
    if at < 0 or size > U(stop - at):
        return 0, -1
    return at, at + np.int64(size)


@uncounted
@helper
def skip(buffer: Any, at: Any, stop: Any, tag: Any) -> Any:
    """The position after an unknown field, or -1."""
    kind = tag & U(7)
    if tag < U(8) or tag > U(0xFFFFFFFF):
        return -1
    if kind == U(0):
        return varint(buffer, at, stop)[1]
    if kind == U(2):
        return span(buffer, at, stop)[1]
    if kind == U(1):
        return at + 8 if stop - at >= 8 else -1
    if kind == U(5):
        return at + 4 if stop - at >= 4 else -1
    return -1
