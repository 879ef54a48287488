"""Compiled PNG decoding for a Block: decompression, filters and conversion of channels, without the GIL.

The kernels skip unsupported and damaged files. The plain decoder then decodes them or reports the error. So the kernels
may be stricter, but never more lenient.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.image.png.kernels.filters import unfilter
from penstock.image.png.kernels.inflate import adler32, crc32, inflate
from penstock.image.png.kernels.memory import SLACK, B, S, U
from penstock.native.kernel import helper, kernel


@helper
def number(data, at):
    return S(data[U(at)]) << 24 | S(data[U(at + 1)]) << 16 | S(data[U(at + 2)]) << 8 | S(data[U(at + 3)])


@helper
def gather(data, start, stop, height, width, packed, colours, found):
    """Check the chunks of the file `data[start:stop]`. `packed` gets the pixels' stream, `colours` the palette.

    `found` gets: bytes in `packed`, colour type, a flag for transparency, a flag for gamma. The result is False for
    damaged and unsupported files: other sizes, depths other than 8, interlacing, unknown critical chunks.
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
    transparent, gamma, begun, ended = False, False, False, False
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
            begun = True
            for i in range(length):
                packed[U(size + i)] = data[U(at + 8 + i)]
            size += length
        else:
            ended = begun
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


__all__ = ["decode_block", "unfilter"]


@helper
def _grey(red, green, blue):
    total = S(red) * 9797 + S(green) * 19234 + S(blue) * 3737
    return B(total >> 15)


@helper
def _convert(flat, count, colour, colours, channels, out, to):
    """Convert `count` pixels of the file's colour type to `channels` channels."""
    samples = 1 if colour == 0 or colour == 3 else 2 if colour == 4 else 3 if colour == 2 else 4
    for i in range(count):
        at = i * samples
        alpha = B(255)
        red = flat[U(at)]
        green, blue = red, red
        if colour == 3:
            index = U(red)
            red, green, blue, alpha = colours[index, 0], colours[index, 1], colours[index, 2], colours[index, 3]
        elif colour == 4:
            alpha = flat[U(at + 1)]
        elif colour != 0:
            green, blue = flat[U(at + 1)], flat[U(at + 2)]
            if colour == 6:
                alpha = flat[U(at + 3)]
        place = to + i * channels
        if channels < 3:
            out[U(place)] = red if colour == 0 or colour == 4 else _grey(red, green, blue)
            if channels == 2:
                out[U(place + 1)] = alpha
        else:
            out[U(place)], out[U(place + 1)], out[U(place + 2)] = red, green, blue
            if channels == 4:
                out[U(place + 3)] = alpha


@kernel(
    "data: u8[:], starts: i64[:], lengths: i64[:], as_stored: bool, height: i64, width: i64, out: w u8[:], done: "
    "w u8[:]",
    makes_arrays=True,
)
def decode_block(data, starts, lengths, as_stored, height, width, out, done):
    """Decode the files `data[starts[i] : starts[i] + lengths[i]]` into the flat `out`. Set `done[i]` to 1 on success.

    `out` has one image of `height` x `width` per file, of `out.size // (rows * height * width)` channels. With
    `as_stored`, only files with this number of channels are decoded. Otherwise all are converted.
    """
    rows = starts.size
    for i in range(done.size):
        done[i] = 0
    if rows == 0 or lengths.size != rows or done.size != rows or height <= 0 or width <= 0:
        return
    if height > out.size // width or rows > out.size // (height * width):
        return
    pixels = height * width
    channels = out.size // (rows * pixels)
    if channels < 1 or channels > 4 or channels * rows * pixels != out.size:
        return
    longest = 0
    for i in range(rows):
        longest = max(longest, lengths[i])
    packed = np.empty(min(longest, data.size) + SLACK, np.uint8)
    raw = np.empty(height * (width * 4 + 1) + SLACK, np.uint8)
    flat = np.empty(pixels * 4, np.uint8)
    colours = np.empty((256, 4), np.uint8)
    found = np.empty(4, np.int64)
    first: Any = np.int64(0)  # a literal would compile `unfilter` a second time
    for i in range(rows):
        start, length = starts[i], lengths[i]
        if start < 0 or length < 0 or start > data.size or length > data.size - start:
            continue
        if not gather(data, start, start + length, height, width, packed, colours, found):
            continue
        packed_size, colour, transparent, gamma = found[0], found[1], found[2] != 0, found[3] != 0
        samples = 1 if colour == 0 or colour == 3 else 2 if colour == 4 else 3 if colour == 2 else 4
        own = (4 if transparent else 3) if colour == 3 else samples
        if as_stored and own != channels:
            continue
        if channels % 2 == 0 and transparent and colour != 3:
            continue  # one colour is transparent: left to the plain decoder
        if channels < 3 and gamma and colour in (2, 3, 6):
            continue  # conversion to grey in linear light: left to the plain decoder
        head = S(packed[0]) << 8 | S(packed[1])
        if packed_size < 8 or head % 31 or (head >> 8 & 15) != 8 or head >> 12 > 7 or head & 32:
            continue
        stride = width * samples
        size = height * (stride + 1)
        at = inflate(packed, 2, packed_size, raw, size)
        if at < 0 or at + 4 > packed_size or adler32(raw, size) != U(number(packed, at)):
            continue
        to = i * pixels * channels
        if colour != 3 and samples == channels:
            done[i] = unfilter(raw, height, stride, samples, out, to)
        elif unfilter(raw, height, stride, samples, flat, first):
            _convert(flat, pixels, colour, colours, channels, out, to)
            done[i] = 1
