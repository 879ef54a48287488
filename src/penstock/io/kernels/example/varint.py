"""varint: an integer of 1 to 10 bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import helper, inlined
from penstock.compiled.uncounted import uncounted
from penstock.io.kernels.loads import load64

U = np.uint64
_CONTINUED, _PAYLOAD = 0x8080808080808080, 0x7F7F7F7F7F7F7F7F


@uncounted
@helper
def _long_varint(buffer: Any, at: Any, stop: Any) -> Any:
    """`varint` for more than one byte."""
    value = U(0)
    shift = U(0)
    last = min(stop, at + 10)
    while at < last:
        byte = U(buffer[U(at)])
        at += 1
        value |= (byte & U(127)) << shift
        if byte < U(128):
            return value, at
        shift += U(7)
    return U(0), -1


@uncounted
@helper
def varint(buffer: Any, at: Any, stop: Any) -> Any:
    """(value, next position), or (0, -1) where it does not end before `stop` or within 10 bytes.

    Most have one byte; apart from the loop for the others this is small enough for LLVM to inline.
    """
    if at < stop and buffer[U(at)] < 128:
        return U(buffer[U(at)]), at + 1
    return _long_varint(buffer, at, stop)


@uncounted
@inlined
def short_varint(buffer: Any, at: Any, size: Any) -> Any:
    """(True, value) of a varint of 1 to 8 bytes that is exactly `size` long; the caller has checked eight bytes."""
    shift = U(64) - (U(size) << U(3))
    word = load64(buffer, at) << shift  # its last byte is the highest, below it there are zeros
    continued = word & U(_CONTINUED)
    fits = continued == (U(_CONTINUED) >> U(8)) & (U(0xFFFFFFFFFFFFFFFF) << shift)
    word = (word >> shift) & U(_PAYLOAD)
    word = (word & U(0x007F007F007F007F)) | ((word & U(0x7F007F007F007F00)) >> U(1))
    word = (word & U(0x00003FFF00003FFF)) | ((word & U(0x3FFF00003FFF0000)) >> U(2))
    return fits, (word & U(0x0FFFFFFF)) | ((word & U(0x0FFFFFFF00000000)) >> U(4))
