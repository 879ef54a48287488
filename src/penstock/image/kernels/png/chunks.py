"""The chunks of a PNG checked and gathered, compiled."""

from __future__ import annotations

from typing import Any

from penstock.compiled.kernel import helper
from penstock.image.kernels.png.checksums import crc32
from penstock.image.kernels.png.memory import S, U


@helper
def number(data: Any, at: int) -> Any:
    return S(data[U(at)]) << 24 | S(data[U(at + 1)]) << 16 | S(data[U(at + 2)]) << 8 | S(data[U(at + 3)])


@helper
def gather(data: Any, start: int, stop: int, height: int, width: int, packed: Any, colours: Any, found: Any) -> bool:
    """Check the chunks of the file `data[start:stop]`; `packed` gets the pixels' stream, `colours` the palette.

    `found` gets: bytes in `packed`, colour type, whether there is transparency, whether there is a gamma. False for
    what is damaged or not taken: other sizes, depths other than 8, interlacing, critical chunks of no meaning here.
    """
    if stop - start < 57 or number(data, start) != 0x89504E47 or number(data, start + 4) != 0x0D0A1A0A:
        return False
    at = start + 8
    if number(data, at) != 13 or number(data, at + 4) != 0x49484452:  # IHDR
        return False
    colour = S(data[at + 17])
    if (
        number(data, at + 8) != width
        or number(data, at + 12) != height
        or data[at + 16] != 8
        or data[at + 18] != 0
        or data[at + 19] != 0
        or data[at + 20] != 0
        or not (colour == 0 or colour == 2 or colour == 3 or colour == 4 or colour == 6)
        or crc32(data, at + 4, at + 21) != number(data, at + 21)
    ):
        return False
    at += 25
    size, entries = 0, 0
    transparent, gamma, ended = False, False, False
    while True:
        if at + 12 > stop:
            return False
        length = number(data, at)
        after = at + 12 + length
        if after > stop:
            return False
        kind = number(data, at + 4)
        for i in range(4, 8):
            lower = data[at + i] | 32
            if lower < 97 or lower > 122:
                return False
        critical = data[at + 4] < 97
        known = kind == 0x74524E53  # tRNS
        if (critical or known) and crc32(data, at + 4, after - 4) != number(data, after - 4):
            return False
        if kind == 0x49444154:  # IDAT
            if ended:
                return False
            for i in range(length):
                packed[U(size + i)] = data[U(at + 8 + i)]
            size += length
        else:
            ended = size > 0
            if kind == 0x49454E44:  # IEND
                if length:
                    return False
                break
            if kind == 0x504C5445:  # PLTE
                if entries or ended or transparent or length == 0 or length > 768 or length % 3 or colour in (0, 4):
                    return False
                entries = length // 3
                for i in range(256):
                    for c in range(3):
                        colours[i, c] = data[at + 8 + 3 * i + c] if i < entries else 0
                    colours[i, 3] = 255
            elif critical:
                return False
            elif known:
                if transparent or ended or length == 0 or (colour == 3 and length > entries) or colour in (4, 6):
                    return False
                transparent = True
                if colour == 3:
                    for i in range(length):
                        colours[i, 3] = data[at + 8 + i]
            elif kind == 0x67414D41 or kind == 0x73524742:  # gAMA, sRGB
                gamma = True
        at = after
    found[0], found[1], found[2], found[3] = size, colour, transparent, gamma
    return size > 0 and (colour != 3 or entries > 0)
