"""What bytes do to a CRC-32C: tables for eight bytes at a time, and for a checksum with bytes behind it."""

from __future__ import annotations

import numpy as np

U = np.uint64

LANE = 256  # bytes that `behind_lane` goes over


def _after() -> np.ndarray:
    """Row k, column b: what byte b does to the checksum k bytes later. uint64 (8, 256)."""
    rows = np.zeros((8, 256), np.uint64)
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        rows[0, byte] = crc
    for k in range(1, 8):
        rows[k] = rows[0][(rows[k - 1] & U(255)).astype(np.int64)] ^ (rows[k - 1] >> U(8))
    return rows


AFTER = _after()


def _behind(count: int) -> np.ndarray:
    """Row k, column b: what byte k of a checksum, being b, becomes when `count` zero bytes follow. uint64 (4, 256)."""
    rows = np.arange(256, dtype=np.uint64) << (U(8) * np.arange(4, dtype=np.uint64)[:, None])
    for _ in range(count):
        rows = AFTER[0][(rows & U(255)).astype(np.int64)] ^ (rows >> U(8))
    return rows


BEHIND_LANE = _behind(LANE)
