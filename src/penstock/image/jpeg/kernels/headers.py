"""read_headers: finds the files of a Block that the kernels support, and the positions of their parts.

The kernels support almost all photographs: 8 bit, Huffman coded, sequential, one scan; grey, or YCbCr with colour
sampled like luma, or half as often along the row or both axes. Other and odd files are `LEFT` to libjpeg, which decodes
them or reports the error.
"""

from __future__ import annotations

import numpy as np

from penstock.image.jpeg.kernels import (
    AC,
    ACROSS,
    COMPONENTS,
    DC,
    DOWN,
    FIELDS,
    HEIGHT,
    QUANT,
    RESTART,
    SCAN,
    TAKEN,
    WIDTH,
)
from penstock.image.jpeg.kernels.bits import byte
from penstock.native.kernel import helper, kernel

LARGEST_SIDE = 65500  # libjpeg's limit
MAX_VALUES = 1 << 29  # equal to the limit in penstock.image.checks
PIXELS_PER_BYTE = 512  # equal to the limit in jpeg/libjpeg.py

SOI, EOI, SOF0, SOF1, DHT, SOS, DQT, DRI, COM = 0xD8, 0xD9, 0xC0, 0xC1, 0xC4, 0xDA, 0xDB, 0xDD, 0xFE
APP0, APP14, APP15 = 0xE0, 0xEE, 0xEF
JFIF, ADOB, E = (int.from_bytes(word, "big") for word in (b"JFIF", b"Adob", b"e"))


@helper
def _two(address):
    return (byte(address) << 8) | byte(address + 1)


@helper
def _four(address):
    return (_two(address) << 16) | _two(address + 2)


@helper
def _read(start, size, header, memory):
    """Fill one row of the table. Return True if the kernels support the file."""
    if size < 4 or _two(start) != 0xFF00 | SOI:
        return False
    quant, huffman, names, chosen = memory  # DC tables, then AC tables
    for i in range(4):
        quant[i] = huffman[i] = huffman[4 + i] = 0
    for i in range(3):
        names[i] = chosen[i] = 0
    jfif = False
    transform = -1
    components = 0
    restart = 0
    at = 2
    while True:
        if at + 4 > size or byte(start + at) != 0xFF:
            return False
        kind = byte(start + at + 1)
        at += 2
        body = at + 2
        stop = at + _two(start + at)
        if stop > size or stop < body:
            return False
        if kind == DQT:
            while body < stop:
                which = byte(start + body)
                if which > 3 or body + 65 > stop:
                    return False
                quant[which] = body + 1
                body += 65
        elif kind == DHT:
            while body < stop:
                which = byte(start + body)
                if which & 0xEC or body + 17 > stop:
                    return False
                count = 0
                for i in range(16):
                    count += byte(start + body + 1 + i)
                if count > 256 or body + 17 + count > stop:
                    return False
                huffman[(which >> 4) * 4 + (which & 3)] = body + 1
                body += 17 + count
        elif kind in (SOF0, SOF1):
            if components or stop - body < 9 or byte(start + body) != 8:
                return False
            header[HEIGHT] = _two(start + body + 1)
            header[WIDTH] = _two(start + body + 3)
            components = byte(start + body + 5)
            if (components != 1 and components != 3) or stop - body != 6 + 3 * components:
                return False
            for i in range(components):
                names[i] = byte(start + body + 6 + 3 * i)
                sampling = byte(start + body + 7 + 3 * i)
                chosen[i] = byte(start + body + 8 + 3 * i)
                across, down = sampling >> 4, sampling & 15
                if chosen[i] > 3 or not (1 <= across <= 4 and 1 <= down <= 4):
                    return False
                if i == 0:
                    header[ACROSS] = across if components == 3 else 1
                    header[DOWN] = down if components == 3 else 1
                elif across != 1 or down != 1:
                    return False
        elif kind == DRI:
            if stop - body != 2:
                return False
            restart = _two(start + body)
        elif kind == APP0 and stop - body >= 14 and _four(start + body) == JFIF and byte(start + body + 4) == 0:
            if byte(start + body + 5) != 1:
                return False
            jfif = True
        elif kind == APP14 and stop - body >= 12 and _four(start + body) == ADOB and byte(start + body + 4) == E:
            transform = byte(start + body + 11)
        elif kind == SOS:
            break
        elif not (APP0 <= kind <= APP15 or kind == COM):
            return False
        at = stop
    if components == 0 or stop - body != 4 + 2 * components or byte(start + body) != components:
        return False
    for i in range(components):
        tables = byte(start + body + 2 + 2 * i)
        if byte(start + body + 1 + 2 * i) != names[i] or tables & 0xCC:
            return False
        header[QUANT + i] = quant[chosen[i]]
        header[DC + i] = huffman[tables >> 4]
        header[AC + i] = huffman[4 + (tables & 3)]
        if header[QUANT + i] == 0 or header[DC + i] == 0 or header[AC + i] == 0:
            return False
    if _two(start + stop - 3) != 63 or byte(start + stop - 1) != 0:
        return False
    header[COMPONENTS] = components
    header[SCAN] = stop
    header[RESTART] = restart
    if components == 3:
        plain = jfif or transform == 1 or (transform < 0 and names[0] == 1 and names[1] == 2 and names[2] == 3)
        if not plain or names[0] == names[1] or names[1] == names[2] or names[0] == names[2]:
            return False
        narrow = header[ACROSS] == 2 and header[WIDTH] <= 4  # not interpolated by libjpeg
        if header[ACROSS] > 2 or header[DOWN] > header[ACROSS] or narrow:
            return False
    height, width = header[HEIGHT], header[WIDTH]
    if not (1 <= height <= LARGEST_SIDE and 1 <= width <= LARGEST_SIDE):
        return False
    return height * width * components < MAX_VALUES and height * width <= PIXELS_PER_BYTE * size


@kernel("addresses: w i64[:], lengths: w i64[:], table: w i64[:, :]", holds_gil=True, makes_arrays=True)
def read_headers(addresses, lengths, table):
    """Fill row i of the int64 `table` (N, FIELDS) for the file of `lengths[i]` bytes at `addresses[i]`.

    It keeps the GIL, because 0.1 µs per file is less than acquiring the GIL again may cost.
    """
    memory = np.empty(4, np.int64), np.empty(8, np.int64), np.empty(3, np.int64), np.empty(3, np.int64)
    for i in range(table.shape[0]):
        header = table[i]
        for k in range(FIELDS):
            header[k] = 0
        header[TAKEN] = _read(addresses[i], lengths[i], header, memory)
