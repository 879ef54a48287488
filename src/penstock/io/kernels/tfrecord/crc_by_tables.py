"""crc_by_tables: CRC-32C on any processor, eight bytes at a time (slicing-by-8, Kounavis and Berry 2005)."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import helper
from penstock.compiled.uncounted import uncounted
from penstock.io.kernels.loads import load64
from penstock.io.kernels.tfrecord.tables import AFTER

U = np.uint64


@uncounted
@helper
def crc_by_tables(buffer: Any, start: Any, stop: Any) -> Any:
    """CRC-32C of buffer[start:stop]; the caller has checked the bounds."""
    crc = U(0xFFFFFFFF)
    at = start
    while stop - at >= U(8):
        word = load64(buffer, at) ^ crc
        crc = (
            AFTER[7, word & U(255)]
            ^ AFTER[6, (word >> U(8)) & U(255)]
            ^ AFTER[5, (word >> U(16)) & U(255)]
            ^ AFTER[4, (word >> U(24)) & U(255)]
            ^ AFTER[3, (word >> U(32)) & U(255)]
            ^ AFTER[2, (word >> U(40)) & U(255)]
            ^ AFTER[1, (word >> U(48)) & U(255)]
            ^ AFTER[0, word >> U(56)]
        )
        at += U(8)
    while at < stop:
        crc = AFTER[0, (crc ^ U(buffer[at])) & U(255)] ^ (crc >> U(8))
        at += U(1)
    return crc ^ U(0xFFFFFFFF)
