"""The constants of deflate (RFC 1951) and of PNG's checksum, as tables for the compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np

# Entries of the decoding tables, uint32: bits 0-5 the bits to drop from the stream, with those of the extra number;
# bits 6-9 the length of the code itself; bits 16-30 the byte, or the base of a length or distance; and marks.
LITERAL = 1 << 31
ODD = 1 << 15  # no match: a longer code (with none of the next), the end of the block, or a code that must not be
END = 1 << 14
BAD = 1 << 13


def _entries() -> tuple[Any, Any, Any]:
    """What each symbol of the three alphabets puts into its table, the length of its code apart."""
    literals = np.full(288, ODD | BAD, np.uint32)
    literals[:256] = LITERAL | np.arange(256) << 16
    literals[256] = ODD | END
    base = 3
    for symbol in range(257, 285):
        extra = max(0, (symbol - 261) // 4)
        literals[symbol] = base << 16 | extra
        base += 1 << extra
    literals[285] = 258 << 16
    distances = np.full(32, ODD | BAD, np.uint32)
    base = 1
    for symbol in range(30):
        extra = max(0, symbol // 2 - 1)
        distances[symbol] = base << 16 | extra
        base += 1 << extra
    return literals, distances, np.arange(19, dtype=np.uint32) << np.uint32(16)


def _reversed_bytes() -> Any:
    return np.array([int(f"{value:08b}"[::-1], 2) for value in range(256)], np.int64)


def _crc_tables() -> Any:
    """Slicing by eight: table k advances a byte by k more bytes of zeros."""
    tables = np.zeros((8, 256), np.uint32)
    for value in range(256):
        crc = value
        for _ in range(8):
            crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
        tables[0, value] = crc
    for k in range(1, 8):
        tables[k] = tables[k - 1] >> np.uint32(8) ^ tables[0][tables[k - 1] & np.uint32(255)]
    return tables


LITERALS, DISTANCES, LENGTHS = _entries()
REVERSED = _reversed_bytes()
CRC = _crc_tables()
ORDER = np.array([16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15], np.int64)
