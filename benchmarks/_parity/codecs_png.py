"""PNG files of all kinds, valid and damaged, written byte by byte."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

SIGNATURE = b"\x89PNG\r\n\x1a\n"
SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
KINDS = [(0, 1), (0, 2), (0, 4), (0, 8), (0, 16), (2, 8), (2, 16), (3, 1), (3, 2), (3, 4), (3, 8)]
KINDS += [(4, 8), (4, 16), (6, 8), (6, 16)]
GAMMAS = (0, 1, 20000, 45455, 97000, 100000, 220000, 1000000, 1 << 31)
PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def chunk(kind: bytes, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload)) + kind + payload + struct.pack(">I", zlib.crc32(kind + payload))


def header(width: int, height: int, depth: int, colour: int, interlaced: int = 0) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced))


def file_of(*chunks: bytes) -> bytes:
    return SIGNATURE + b"".join(chunks) + chunk(b"IEND")


def samples(height: int, width: int, depth: int, colour: int, seed: int) -> NDArray[np.int64]:
    """Return smooth and noisy values of shape (height, width, samples), each below `1 << depth`."""
    rng = np.random.default_rng(seed)
    top = (1 << depth) - 1
    y, x = np.mgrid[:height, :width]
    smooth = (y * 31 + x * 17)[..., None] * (top + 1) // 256 + np.arange(SAMPLES[colour]) * top // 5
    return (smooth + rng.integers(0, max(top // 6, 2), (height, width, SAMPLES[colour]))) & top


def packed(values: NDArray[np.int64], depth: int) -> NDArray[np.uint8]:
    """Return rows of bytes with the leftmost sample in the highest bits."""
    rows = values.reshape(len(values), -1)
    if depth == 16:
        return rows.astype(">u2").view(np.uint8).reshape(len(rows), -1)
    bits = (rows[..., None] >> np.arange(depth - 1, -1, -1)) & 1
    return np.packbits(bits.astype(np.uint8).reshape(len(rows), -1), axis=1)


def filtered(rows: NDArray[np.uint8], step: int, first: int = 0) -> bytes:
    """Apply filter (first + y) % 5 to each row y."""
    out = b""
    above = np.zeros(rows.shape[1], np.int64)
    for y, row in enumerate(rows.astype(np.int64)):
        left = np.concatenate([np.zeros(step, np.int64), row])[: len(row)]
        corner = np.concatenate([np.zeros(step, np.int64), above])[: len(row)]
        estimate = left + above - corner
        to_left, to_above, to_corner = abs(estimate - left), abs(estimate - above), abs(estimate - corner)
        paeth = np.where(
            (to_left <= to_above) & (to_left <= to_corner), left, np.where(to_above <= to_corner, above, corner)
        )
        kind = (first + y) % 5
        guess = (0 * row, left, above, (left + above) // 2, paeth)[kind]
        out += bytes([kind]) + ((row - guess) & 255).astype(np.uint8).tobytes()
        above = row
    return out


def scanlines(values: NDArray[np.int64], depth: int, interlaced: int) -> bytes:
    step = max(1, values.shape[2] * depth // 8)
    if not interlaced:
        return filtered(packed(values, depth), step)
    out = b""
    for number, (x, y, dx, dy) in enumerate(PASSES):
        part = values[y::dy, x::dx]
        if part.size:
            out += filtered(packed(part, depth), step, number)
    return out


def palette(depth: int) -> bytes:
    colours = np.random.default_rng(depth).integers(0, 256, (1 << depth, 3))
    return chunk(b"PLTE", colours.astype(np.uint8).tobytes())


def transparency(depth: int, colour: int, values: NDArray[np.int64]) -> bytes:
    """Build a tRNS chunk that makes the first pixel's value transparent, or half of a palette partly transparent."""
    if colour == 3:
        return chunk(b"tRNS", bytes(range(0, 200, 100 * 2 // (1 << depth) or 1))[: max(1, (1 << depth) // 2)])
    return chunk(b"tRNS", b"".join(struct.pack(">H", int(value)) for value in values[0, 0]))


def png_file(
    colour: int, depth: int, *, height: int = 7, width: int = 13, interlaced: int = 0, keyed: bool = False
) -> bytes:
    values = samples(height, width, depth, colour, colour * 16 + depth)
    chunks = [header(width, height, depth, colour, interlaced)]
    if colour == 3:
        chunks.append(palette(depth))
    if keyed:
        chunks.append(transparency(depth, colour, values))
    return file_of(*chunks, chunk(b"IDAT", zlib.compress(scanlines(values, depth, interlaced), 9)))


def sound() -> Iterator[tuple[str, bytes]]:
    """Yield each colour type, depth, interlacing and transparency."""
    for (colour, depth), interlaced, keyed in product(KINDS, (0, 1), (False, True)):
        if keyed and colour in (4, 6):
            continue
        name = f"png colour {colour} depth {depth}{' interlaced' * interlaced}{' tRNS' * keyed}"
        yield name, png_file(colour, depth, interlaced=interlaced, keyed=keyed)
    for height, width in ((1, 1), (1, 9), (9, 1), (2, 3), (5, 5), (8, 8), (17, 16)):
        yield f"png interlaced {height}x{width}", png_file(2, 8, height=height, width=width, interlaced=1)
        yield f"png interlaced {height}x{width} grey 2", png_file(0, 2, height=height, width=width, interlaced=1)


def odd() -> Iterator[tuple[str, bytes]]:
    """Yield files with parts that writers leave out, add, or write wrongly."""
    values = samples(7, 13, 8, 2, 5)
    raw = scanlines(values, 8, 0)
    stream = zlib.compress(raw, 9)
    head, pixels = header(13, 7, 8, 2), chunk(b"IDAT", stream)
    whole = file_of(head, pixels)

    def flipped(at: int, data: bytes = whole) -> bytes:
        return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]

    yield "png several IDAT", file_of(head, *(chunk(b"IDAT", stream[i : i + 50]) for i in range(0, len(stream), 50)))
    yield "png empty IDAT", file_of(head, chunk(b"IDAT"), chunk(b"IDAT", stream[:9]), chunk(b"IDAT", stream[9:]))
    yield "png stored", file_of(head, chunk(b"IDAT", zlib.compress(raw, 0)))
    fixed = zlib.compressobj(9, zlib.DEFLATED, 15, 9, zlib.Z_FIXED)
    yield "png fixed codes", file_of(head, chunk(b"IDAT", fixed.compress(raw) + fixed.flush()))
    small = zlib.compressobj(9, zlib.DEFLATED, 9)
    yield "png window of 512", file_of(head, chunk(b"IDAT", small.compress(raw) + small.flush()))
    flushed = zlib.compressobj(6)
    parts = b"".join(flushed.compress(raw[i : i + 40]) + flushed.flush(zlib.Z_FULL_FLUSH) for i in range(0, 273, 40))
    yield "png flushed", file_of(head, chunk(b"IDAT", parts + flushed.compress(raw[280:]) + flushed.flush()))
    yield (
        "png IDAT apart",
        file_of(head, chunk(b"IDAT", stream[:90]), chunk(b"tEXt", b"a\0b"), chunk(b"IDAT", stream[90:])),
    )
    notes = [chunk(b"gAMA", struct.pack(">I", 100000)), chunk(b"sRGB", b"\0"), chunk(b"pHYs", bytes(9))]
    notes += [
        chunk(b"tEXt", b"Title\0x"),
        chunk(b"bKGD", bytes(6)),
        chunk(b"eXIf", b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"),
    ]
    yield "png notes", file_of(head, *notes, pixels, chunk(b"tIME", b"\x07\xe8\x01\x01\0\0\0"))
    yield "png gamma 45455", file_of(head, chunk(b"gAMA", struct.pack(">I", 20000)), pixels)
    yield "png suggested palette", file_of(head, palette(4), pixels)
    yield "png bytes after the end", whole + b"appended"
    yield "png data after the stream", file_of(head, chunk(b"IDAT", stream + b"extra bytes"))
    yield "png more rows than asked", file_of(header(13, 5, 8, 2), pixels)
    yield "png fewer rows than asked", file_of(header(13, 8, 8, 2), pixels)
    yield "png without IEND", whole[:-12]
    yield "png IEND cut", whole[:-5]
    yield "png cut in half", whole[: len(whole) // 2]
    yield "png wrong IEND checksum", flipped(len(whole) - 1)
    yield "png wrong IDAT checksum", flipped(len(whole) - 13)
    yield "png wrong IHDR checksum", flipped(32)
    yield "png wrong Adler", file_of(head, chunk(b"IDAT", stream[:-1] + bytes([stream[-1] ^ 1])))
    yield "png without Adler", file_of(head, chunk(b"IDAT", stream[:-4]))
    yield "png wrong text checksum", file_of(head, chunk(b"tEXt", b"a\0b")[:-1] + b"!", pixels)
    yield "png damaged stream", file_of(head, chunk(b"IDAT", flipped(60, stream)))
    yield "png filter 5", file_of(head, chunk(b"IDAT", zlib.compress(b"\5" + raw[1:])))
    yield "png no zlib", file_of(head, chunk(b"IDAT", b"plain bytes that are no zlib stream"))
    yield "png preset dictionary", file_of(head, chunk(b"IDAT", b"\x78\x20" + stream[2:]))
    yield "png without IHDR", file_of(pixels)
    yield "png without IDAT", file_of(head)
    yield "png two IHDR", file_of(head, head, pixels)
    yield "png long IHDR", file_of(chunk(b"IHDR", head[8:21] + b"\0"), pixels)
    yield "png unknown critical", file_of(head, chunk(b"CODE", b"x"), pixels)
    yield "png unknown ancillary", file_of(head, chunk(b"coDe", b"x"), pixels)
    yield "png CgBI", file_of(chunk(b"CgBI", bytes(4)), head, pixels)
    yield "png no size", file_of(header(0, 0, 8, 2), pixels)
    yield "png colour 5", file_of(header(13, 7, 8, 5), pixels)
    yield "png colour 2 depth 4", file_of(header(13, 7, 4, 2), pixels)
    yield "png interlaced 2", file_of(header(13, 7, 8, 2, 2), pixels)
    bomb = chunk(b"IDAT", zlib.compress(bytes(9)))
    yield "png claims 60000x60000", file_of(header(60000, 60000, 8, 2), bomb)
    yield "png claims 13000x13000", file_of(header(13000, 13000, 8, 2), bomb)
    yield "png claims 1000x1000", file_of(header(1000, 1000, 8, 2), bomb)
    yield "png wrong line ends", whole.replace(b"\r\n", b"\n")


def keyed() -> Iterator[tuple[str, bytes]]:
    """Yield unusual palettes and transparency."""
    short = chunk(b"PLTE", bytes(range(9)))
    indices = chunk(b"IDAT", zlib.compress(b"\0" + bytes([0, 2, 3, 255])))
    head = header(4, 1, 8, 3)
    yield "png index beyond the palette", file_of(head, short, indices)
    yield "png index beyond the palette tRNS", file_of(head, short, chunk(b"tRNS", b"\7"), indices)
    inside = chunk(b"IDAT", zlib.compress(b"\0" + bytes([0, 2, 1, 0])))
    yield "png without palette", file_of(head, inside)
    yield "png palette of 8 bytes", file_of(head, chunk(b"PLTE", bytes(8)), inside)
    yield "png palette of none", file_of(head, chunk(b"PLTE"), inside)
    yield "png palette after IDAT", file_of(head, inside, short)
    yield "png two palettes", file_of(head, short, chunk(b"PLTE", bytes(9)), inside)
    yield "png wrong palette checksum", file_of(head, short[:-1] + b"!", inside)
    yield "png palette too long", file_of(header(8, 1, 1, 3), short, chunk(b"IDAT", zlib.compress(b"\0\x55")))
    yield "png palette for grey", file_of(header(4, 1, 8, 0), short, inside)
    yield "png tRNS before the palette", file_of(head, chunk(b"tRNS", b"\7"), short, inside)
    yield "png tRNS after IDAT", file_of(head, short, inside, chunk(b"tRNS", b"\7"))
    yield "png tRNS too long", file_of(head, short, chunk(b"tRNS", bytes(4)), inside)
    yield "png tRNS empty", file_of(head, short, chunk(b"tRNS"), inside)
    yield "png wrong tRNS checksum", file_of(head, short, chunk(b"tRNS", b"\7")[:-1] + b"!", inside)
    yield "png two tRNS", file_of(head, short, chunk(b"tRNS", b"\7"), chunk(b"tRNS", b"\1\2\3"), inside)
    grey = header(4, 1, 8, 0)
    yield "png grey tRNS of 1 byte", file_of(grey, chunk(b"tRNS", b"\2"), inside)
    yield "png grey tRNS above depth", file_of(grey, chunk(b"tRNS", b"\1\2"), inside)
    deep = chunk(b"IDAT", zlib.compress(b"\0" + bytes([1, 2, 1, 3, 9, 2, 0, 2])))
    yield "png grey 16 tRNS near", file_of(header(4, 1, 16, 0), chunk(b"tRNS", b"\1\2"), deep)
    yield "png tRNS with alpha", file_of(header(2, 1, 8, 4), chunk(b"tRNS", b"\0\0"), inside)
    colour = chunk(b"IDAT", zlib.compress(b"\0" + bytes([1, 2, 3, 1, 2, 4])))
    yield "png colour tRNS of 5 bytes", file_of(header(2, 1, 8, 2), chunk(b"tRNS", bytes(5)), colour)


def animated() -> Iterator[tuple[str, bytes]]:
    """Yield animated PNGs. Decoders without support for the format return the default image."""
    values = samples(7, 13, 8, 2, 5)
    first = chunk(b"IDAT", zlib.compress(scanlines(values, 8, 0), 9))
    second = chunk(b"fdAT", struct.pack(">I", 2) + zlib.compress(scanlines(255 - values, 8, 0), 9))
    play = chunk(b"acTL", struct.pack(">II", 2, 0))
    controls = [chunk(b"fcTL", struct.pack(">IIIIIHHBB", k, 13, 7, 0, 0, 1, 10, 0, 0)) for k in (0, 1)]
    head = header(13, 7, 8, 2)
    yield "png animated", file_of(head, play, controls[0], first, controls[1], second)
    yield "png animated, default apart", file_of(head, play, first, controls[0], second)


def bright() -> Iterator[tuple[str, bytes]]:
    """Yield files with a gamma, which changes the conversion of colour to grey through linear light."""
    srgb, gamma = chunk(b"sRGB", b"\0"), {value: chunk(b"gAMA", struct.pack(">I", value)) for value in GAMMAS}
    known = {f"gamma {value}": (found,) for value, found in gamma.items()}
    known |= {"sRGB": (srgb,), "sRGB and gamma": (srgb, gamma[20000]), "gamma and sRGB": (gamma[20000], srgb)}
    known |= {"two gammas": (gamma[20000], gamma[45455]), "wrong gamma checksum": (gamma[20000][:-1] + b"!",)}
    known |= {"short gamma": (chunk(b"gAMA", b"\0\0\1"),), "long sRGB": (chunk(b"sRGB", b"\0\0"),)}
    known |= {"unknown sRGB": (chunk(b"sRGB", b"\7"),), "sBIT": (chunk(b"sBIT", b"\5\5\5"), gamma[45455])}
    primaries = struct.pack(">8I", 31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000)
    known |= {"cHRM": (chunk(b"cHRM", primaries),), "cICP": (chunk(b"cICP", b"\1\x0d\0\1"),)}
    for depth, (name, chunks) in product((8, 16), known.items()):
        values = samples(7, 13, depth, 2, 5)
        values[0] = values[0, :, :1]
        pixels = chunk(b"IDAT", zlib.compress(scanlines(values, depth, 0), 9))
        yield f"png {name}, depth {depth}", file_of(header(13, 7, depth, 2), *chunks, pixels)
    rest = chunk(b"IDAT", zlib.compress(b"\0" + bytes([0, 2, 1, 0])))
    yield "png gamma, palette", file_of(header(4, 1, 8, 3), gamma[45455], chunk(b"PLTE", bytes(range(0, 90, 10))), rest)
    late = (chunk(b"PLTE", bytes(range(0, 90, 10))), gamma[45455])
    yield "png gamma after the palette", file_of(header(4, 1, 8, 3), *late, rest)
    yield "png gamma after IDAT", file_of(header(4, 1, 8, 3), late[0], rest, late[1])


def files() -> Iterator[tuple[str, bytes]]:
    for kind in (sound, odd, keyed, bright, animated):
        yield from kind()
