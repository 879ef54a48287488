"""load64, bits32: read several bytes of an array at once. The caller checks the bounds."""

from __future__ import annotations

import numpy as np

from penstock.native.kernel import inlined

U = np.uint64


@inlined
def load64(buffer, at):
    """Return eight bytes, little-endian. The caller checks the bounds. LLVM compiles it to one load."""
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
def bits32(buffer, at):
    """Return four bytes, little-endian, like `load64`."""
    i = U(at)
    return np.uint32(
        U(buffer[i]) | U(buffer[i + U(1)]) << U(8) | U(buffer[i + U(2)]) << U(16) | U(buffer[i + U(3)]) << U(24)
    )
