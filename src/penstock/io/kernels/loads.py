"""load64, bits32: several bytes of an array at once; the caller has checked that they are there."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.native.kernel import inlined

U = np.uint64


@inlined
def load64(buffer: Any, at: Any) -> Any:
    """Eight bytes, little-endian; the caller has checked the bounds. LLVM makes one load of it."""
    i = U(at)
    return (
        U(buffer[i])
        | U(buffer[i + U(1)]) << U(8)
        | U(buffer[i + U(2)]) << U(16)
        | U(buffer[i + U(3)]) << U(24)
        | U(buffer[i + U(4)]) << U(32)
        | U(buffer[i + U(5)]) << U(40)
        | U(buffer[i + U(6)]) << U(48)
        | U(buffer[i + U(7)]) << U(56)
    )


@inlined
def bits32(buffer: Any, at: Any) -> Any:
    """Four bytes, little-endian, as `load64`."""
    i = U(at)
    return np.uint32(
        U(buffer[i]) | U(buffer[i + U(1)]) << U(8) | U(buffer[i + U(2)]) << U(16) | U(buffer[i + U(3)]) << U(24)
    )
