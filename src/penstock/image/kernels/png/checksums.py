"""The checksums of PNG's chunks and of what deflate unpacks, compiled."""

from __future__ import annotations

from typing import Any

from penstock.compiled.kernel import helper
from penstock.image.kernels.png.deflate_tables import CRC
from penstock.image.kernels.png.memory import U, W, load_word


@helper
def crc32(data: Any, start: int, stop: int) -> Any:
    crc = W(0xFFFFFFFF)
    at = start
    while at + 8 <= stop:
        word = load_word(data, at) ^ U(crc)
        crc = (
            CRC[7, word & U(255)]
            ^ CRC[6, word >> U(8) & U(255)]
            ^ CRC[5, word >> U(16) & U(255)]
            ^ CRC[4, word >> U(24) & U(255)]
            ^ CRC[3, word >> U(32) & U(255)]
            ^ CRC[2, word >> U(40) & U(255)]
            ^ CRC[1, word >> U(48) & U(255)]
            ^ CRC[0, word >> U(56)]
        )
        at += 8
    while at < stop:
        crc = W(CRC[0, (U(crc) ^ U(data[U(at)])) & U(255)] ^ W(crc >> W(8)))
        at += 1
    return W(crc ^ W(0xFFFFFFFF))


@helper
def adler32(data: Any, size: int) -> Any:
    one, two = U(1), U(0)
    at = 0
    while at < size:
        count = min(size - at, 4096)  # the weighted sum of so many bytes fits 32 bits
        plain, weighted = W(0), W(0)
        for i in range(count):
            value = W(data[U(at + i)])
            plain = W(plain + value)
            weighted = W(weighted + W(W(count - i) * value))
        two = (two + U(count) * one + U(weighted)) % U(65521)
        one = (one + U(plain)) % U(65521)
        at += count
    return two << U(16) | one
