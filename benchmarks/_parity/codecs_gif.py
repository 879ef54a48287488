"""GIF files of all kinds, valid and damaged, written byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray


class _Bits:
    """Writer of codes with growing width, the first code in the lowest bits."""

    def __init__(self) -> None:
        self.number, self.count, self.out = 0, 0, bytearray()

    def put(self, code: int, width: int) -> None:
        self.number |= code << self.count
        self.count += width
        while self.count >= 8:
            self.out.append(self.number & 255)
            self.number >>= 8
            self.count -= 8

    def done(self) -> bytes:
        return bytes(self.out) + (bytes([self.number & 255]) if self.count else b"")


def lzw(indices: Sequence[int], smallest: int, *, clear_first: bool = True, clear_when_full: bool = True) -> bytes:
    """Compress with GIF's LZW. Without `clear_when_full`, a full table does not change any more."""
    bits, clear = _Bits(), 1 << smallest
    width, table = smallest + 1, {(i,): i for i in range(clear)}
    following = clear + 2
    if clear_first:
        bits.put(clear, width)
    prefix: tuple[int, ...] = ()
    for index in indices:
        longer = (*prefix, index)
        if longer in table:
            prefix = longer
            continue
        bits.put(table[prefix], width)
        if following < 4096:
            table[longer] = following
            following += 1
            if following > 1 << width and width < 12:
                width += 1
        elif clear_when_full:
            bits.put(clear, width)
            width, table, following = smallest + 1, {(i,): i for i in range(clear)}, clear + 2
        prefix = (index,)
    bits.put(table[prefix], width)
    bits.put(clear + 1, width)
    return bits.done()


def blocks(data: bytes, size: int = 255) -> bytes:
    return b"".join(bytes([len(data[i : i + size])]) + data[i : i + size] for i in range(0, len(data), size)) + b"\0"


def colours(count: int, seed: int = 3) -> bytes:
    return np.random.default_rng(seed).integers(0, 256, (count, 3)).astype(np.uint8).tobytes()


def screen(width: int, height: int, table: bytes = b"", background: int = 0, version: bytes = b"GIF89a") -> bytes:
    flags = 0x80 | (len(table) // 3).bit_length() - 2 if table else 0
    return version + struct.pack("<HHBBB", width, height, flags, background, 0) + table


def control(transparent: int | None = None, disposal: int = 0) -> bytes:
    flags = disposal << 2 | (transparent is not None)
    return b"\x21\xf9\x04" + struct.pack("<BHB", flags, 10, transparent or 0) + b"\0"


def image(
    indices: NDArray[np.int64],
    smallest: int,
    *,
    at: tuple[int, int] = (0, 0),
    table: bytes = b"",
    interlaced: bool = False,
    data: bytes | None = None,
) -> bytes:
    height, width = indices.shape
    flags = (0x80 | (len(table) // 3).bit_length() - 2 if table else 0) | interlaced << 6
    if interlaced:
        indices = np.concatenate([indices[0::8], indices[4::8], indices[2::4], indices[1::2]])
    data = lzw(indices.ravel().tolist(), smallest) if data is None else data
    place = struct.pack("<HHHHB", at[1], at[0], width, height, flags)
    return b"," + place + table + bytes([smallest]) + blocks(data)


def indices(height: int, width: int, count: int, seed: int = 0) -> NDArray[np.int64]:
    y, x = np.mgrid[:height, :width]
    return (y * 3 + x + np.random.default_rng(seed).integers(0, 3, (height, width))) % count


def files() -> Iterator[tuple[str, bytes]]:
    table = colours(16)
    start = screen(9, 6, table)
    one, two = image(indices(6, 9, 16), 4), image(indices(6, 9, 16, 1), 4)
    whole = start + one + b";"
    yield "gif", whole
    yield "gif 87a", screen(9, 6, table, version=b"GIF87a") + one + b";"
    for bits in range(1, 9):
        frame = image(indices(6, 9, 1 << bits), max(bits, 2))
        yield f"gif of {1 << bits} colours", screen(9, 6, colours(1 << bits)) + frame + b";"
    yield "gif interlaced", start + image(indices(6, 9, 16), 4, interlaced=True) + b";"
    yield "gif interlaced 1 row", screen(9, 1, table) + image(indices(1, 9, 16), 4, interlaced=True) + b";"
    yield "gif local colours", start + image(indices(6, 9, 8), 3, table=colours(8, 9)) + b";"
    yield "gif local colours only", screen(9, 6) + image(indices(6, 9, 8), 3, table=colours(8, 9)) + b";"
    yield "gif no colours", screen(9, 6) + one + b";"
    big = indices(64, 64, 256, 7) ^ np.random.default_rng(4).integers(0, 256, (64, 64))
    yield "gif full table", screen(64, 64, colours(256)) + image(big, 8) + b";"
    kept = lzw(big.ravel().tolist(), 8, clear_when_full=False)
    yield "gif full table kept", screen(64, 64, colours(256)) + image(big, 8, data=kept) + b";"
    flat = np.zeros((60, 70), np.int64)
    yield "gif of one colour", screen(70, 60, table) + image(flat, 4) + b";"
    unclear = lzw(indices(6, 9, 16).ravel().tolist(), 4, clear_first=False)
    yield "gif without first clear", start + image(indices(6, 9, 16), 4, data=unclear) + b";"
    loop = b"\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0"
    yield "gif animated", start + loop + control() + one + b"\x21\xfe\x02hi\0" + control() + two + b";"
    part = image(indices(3, 4, 16, 2), 4, at=(2, 3))
    for disposal in range(4):
        played = control(disposal=disposal) + one + control(disposal=disposal) + part
        yield f"gif disposal {disposal}", start + played + control() + image(indices(2, 2, 16), 4) + b";"
    yield "gif first frame is a part", screen(9, 6, table, background=5) + part + one + b";"
    yield "gif transparent", screen(9, 6, table, background=5) + control(3) + one + control(4) + two + b";"
    yield "gif transparent part", start + one + control(3) + part + b";"
    outside = image(indices(4, 5, 16), 4, at=(4, 6))
    yield "gif frame beyond the edge", start + one + outside + b";"
    yield "gif first frame beyond the edge", start + outside + b";"
    yield "gif frame outside", start + one + image(indices(2, 2, 16), 4, at=(40, 40)) + b";"
    yield "gif larger first frame", screen(4, 3, table) + one + b";"
    yield "gif no screen size", screen(0, 0, table) + one + b";"
    yield "gif no frame", start + b";"
    yield "gif index beyond the colours", screen(9, 6, colours(8)) + one + b";"
    yield "gif index beyond, transparent", screen(9, 6, colours(8)) + control(9) + one + b";"
    yield "gif without trailer", whole[:-1]
    yield "gif cut in a frame", whole[: len(whole) - 20]
    yield "gif cut in the second frame", (start + one + two)[:-20]
    yield "gif cut before the second frame", (start + one + two)[: len(start + one) + 4]
    yield "gif cut in the colours", whole[:30]
    yield "gif bytes after the end", whole + b"appended"
    yield "gif unknown block", start + b"\x99\x01\x02" + one + b";"
    few = lzw(indices(3, 9, 16).ravel().tolist(), 4)
    yield "gif too few pixels", start + image(indices(6, 9, 16), 4, data=few) + b";"
    many = lzw(indices(12, 9, 16).ravel().tolist(), 4)
    yield "gif too many pixels", start + image(indices(6, 9, 16), 4, data=many) + b";"
    unended = lzw(indices(6, 9, 16).ravel().tolist(), 4)[:-1]
    yield "gif without end code", start + image(indices(6, 9, 16), 4, data=unended) + b";"
    yield "gif code beyond the table", start + image(indices(6, 9, 16), 4, data=b"\xf0\xff\xff\xff") + b";"
    yield "gif code size 12", start + b"," + struct.pack("<HHHHB", 0, 0, 9, 6, 0) + b"\x0c" + blocks(few) + b";"
    yield "gif claims 65535x65535", screen(65535, 65535, table) + one + b";"
    yield "gif frame claims 65535x65535", start + b"," + struct.pack("<HHHHB", 0, 0, 65535, 65535, 0) + one[10:] + b";"
    yield "gif many frames of 4000x4000", screen(4000, 4000, table) + part * 40 + b";"
    yield "gif empty frame", start + b"," + struct.pack("<HHHHB", 0, 0, 0, 0, 0) + one[10:] + b";"
