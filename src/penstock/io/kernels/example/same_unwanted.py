"""same_unwanted: passing over a map entry that nobody asked for, by one seen before."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import inlined
from penstock.compiled.uncounted import uncounted
from penstock.io.kernels.example.addresses import bytes_at

U = np.uint64


@uncounted
@inlined
def same_unwanted(buffer: Any, at: Any, stop: Any, address: Any) -> Any:
    """Where the entry here ends, if it has the key of the one at `address`, which is spelled as usual; else -1."""
    size = np.int64(bytes_at(address, 4)[U(3)])
    if stop - at < size + 6:
        return -1
    end = at + 2 + np.int64(buffer[U(at + 1)])
    value = at + size + 6
    if end > stop or buffer[U(at)] != 0x0A or buffer[U(at + 1)] > 127 or value > end:
        return -1
    if buffer[U(value - 2)] != 0x12 or value + np.int64(buffer[U(value - 1)]) != end:
        return -1
    before = bytes_at(address, size + 4)
    for i in range(2, size + 4):
        if buffer[U(at + i)] != before[U(i)]:
            return -1
    return end
