"""Reading of the chunks of a PNG: the header, the data for decoding, and the position of damage."""

from __future__ import annotations

import zlib
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.errors import DataLossError
from penstock.image.checks import check_format, refuse_absurd_size

SIGNATURE = b"\x89PNG\r\n\x1a\n"
GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6  # IHDR's colour types
SAMPLES = {GREY: 1, RGB: 3, PALETTE: 1, GREY_ALPHA: 2, RGBA: 4}
DEPTHS = {GREY: (1, 2, 4, 8, 16), RGB: (8, 16), PALETTE: (1, 2, 4, 8), GREY_ALPHA: (8, 16), RGBA: (8, 16)}
MAX_INFLATION = 1032  # bytes out per byte in: zlib's limit
SRGB_GAMMA = 45455


class PngHeader(NamedTuple):
    """The content of IHDR."""

    height: int
    width: int
    depth: int
    colour: int
    interlaced: bool


class PngFile(NamedTuple):
    """The data that decoding a file needs.

    `packed` is the zlib stream of the pixels. `palette` (256, 3) is black for unused indices. `transparent` is the
    alpha of the palette's first colours, or the one transparent colour, or None. `gamma` is 100000 times the exponent
    of the encoding, or 0. `significant` is the number of significant bits of a sample, or 0.
    """

    header: PngHeader
    packed: bytes
    palette: npt.NDArray[np.uint8] | None
    transparent: bytes | None
    gamma: int
    significant: int


def read_png(data: bytes) -> PngFile:
    """Check each chunk, as libpng does, and return the data for decoding.

    Damaged, misplaced or repeated chunks are ignored if the image does not need them.

    >>> from penstock.image import encode_png
    >>> read_png(encode_png(np.zeros((2, 3, 1), np.uint8))).gamma
    0

    Raises:
        DataLossError: a chunk is cut short, its checksum does not match, or one that must be there is missing.
        InvalidArgumentError: not a PNG, or of an absurd size.
    """
    check_format("decode_png", "PNG", data)
    chunks = _chunks(data)
    header = _header(chunks)
    refuse_absurd_size("decode_png", header.height, header.width, SAMPLES[header.colour])
    packed, before = _packed(chunks)
    palette = _palette(header, before)
    _refuse_small(header, len(packed))
    return PngFile(header, packed, palette, _transparent(header, before), _gamma(before), _significant(header, before))


class PngChunk(NamedTuple):
    kind: bytes
    payload: memoryview
    at: int


def _chunks(data: bytes) -> list[PngChunk]:
    """Return all chunks up to IEND with a valid checksum. A critical chunk with a wrong one raises an error."""
    view = memoryview(data)
    found: list[PngChunk] = []
    at = len(SIGNATURE)
    kind = b""
    while kind != b"IEND":
        length = int.from_bytes(view[at : at + 4], "big")
        stop = at + 12 + length
        if stop > len(data):
            message = f"PNG cut short: it ends after {len(data)} bytes, inside the chunk that starts at byte {at}."
            raise DataLossError(message)
        kind = bytes(view[at + 4 : at + 8])
        right = zlib.crc32(view[at + 4 : stop - 4]) == int.from_bytes(view[stop - 4 : stop], "big")
        if not right and kind[:1].isupper():
            raise DataLossError(f"PNG damaged: the checksum of chunk {kind!r} at byte {at} does not match.")
        if not (kind.isalpha() and kind.isascii()):
            raise DataLossError(f"PNG damaged: a chunk must begin at byte {at}, but {kind!r} is no name of one.")
        if right:
            found.append(PngChunk(kind, view[at + 8 : stop - 4], at))
        at = stop
    return found


def _header(chunks: list[PngChunk]) -> PngHeader:
    if chunks and chunks[0].kind == b"IHDR" and len(chunks[0].payload) == 13:
        payload = chunks[0].payload
        width, height = int.from_bytes(payload[:4], "big"), int.from_bytes(payload[4:8], "big")
        depth, colour, compression, filters, interlacing = payload[8:]
        sound = width and height and depth in DEPTHS.get(colour, ()) and not compression and not filters
        if sound and interlacing < 2:
            return PngHeader(height, width, depth, colour, bool(interlacing))
    raise DataLossError("PNG damaged: it has no usable header (IHDR), which must come first.")


def _packed(chunks: list[PngChunk]) -> tuple[bytes, list[PngChunk]]:
    """Return the stream of pixels, and the chunks before it."""
    places = [place for place, chunk in enumerate(chunks) if chunk.kind == b"IDAT"]
    for chunk in chunks[1:]:
        if chunk.kind[:1].isupper() and chunk.kind not in (b"IDAT", b"PLTE", b"IEND"):
            raise DataLossError(f"PNG damaged: the chunk {chunk.kind!r} at byte {chunk.at} is unknown or out of place.")
    if places and places[-1] - places[0] >= len(places):
        place = next(place for place in range(places[0], places[-1]) if chunks[place].kind != b"IDAT")
        message = f"PNG damaged: the chunk {chunks[place].kind!r} at byte {chunks[place].at} parts the pixels (IDAT)."
        raise DataLossError(message)
    packed = b"".join(chunks[place].payload for place in places)
    if not packed:
        raise DataLossError("PNG damaged: it has no pixels (IDAT).")
    return packed, chunks[: places[0]]


def _palette(header: PngHeader, chunks: list[PngChunk]) -> npt.NDArray[np.uint8] | None:
    """Return the colours of the palette, with black for other indices, or None if the file needs none."""
    found = [chunk.payload for chunk in chunks if chunk.kind == b"PLTE"]
    if len(found) > 1:
        raise DataLossError("PNG damaged: it has more than one palette (PLTE).")
    if header.colour != PALETTE:
        return None
    if not found or not found[0] or len(found[0]) % 3 or len(found[0]) > 768:
        message = f"PNG damaged: its palette (PLTE) {f'has {len(found[0])} bytes' if found else 'is missing'}."
        raise DataLossError(message)
    colours = np.frombuffer(found[0], np.uint8).reshape(-1, 3)[: 1 << header.depth]
    palette = np.zeros((256, 3), np.uint8)
    palette[: len(colours)] = colours
    return palette


def _refuse_small(header: PngHeader, packed: int) -> None:
    """Refuse more pixels than the stream can contain, before memory is allocated for them."""
    height, width = header.height, header.width
    if height * (width * SAMPLES[header.colour] * header.depth // 8) > MAX_INFLATION * packed:
        message = f"PNG cut short: its header says {width} x {height} pixels, which {packed} packed bytes cannot hold."
        raise DataLossError(message)


def _transparent(header: PngHeader, chunks: list[PngChunk]) -> bytes | None:
    """Return the first tRNS chunk with valid position and length."""
    colours = 0
    for chunk in chunks:
        if chunk.kind == b"PLTE":
            colours = min(len(chunk.payload) // 3, 1 << header.depth)
        elif chunk.kind == b"tRNS":
            length = len(chunk.payload)
            wanted = {GREY: (2,), RGB: (6,), PALETTE: range(1, colours + 1)}.get(header.colour, ())
            if length in wanted:
                return bytes(chunk.payload)
    return None


def _gamma(chunks: list[PngChunk]) -> int:
    """Return the exponent of sRGB or gAMA."""
    gamma = 0
    for chunk in chunks:
        if chunk.kind == b"PLTE":
            break
        if chunk.kind == b"sRGB" and len(chunk.payload) == 1 and chunk.payload[0] < 4:
            return SRGB_GAMMA
        if chunk.kind == b"gAMA" and len(chunk.payload) == 4 and not gamma:
            gamma = int.from_bytes(chunk.payload, "big")
    return gamma


def _significant(header: PngHeader, chunks: list[PngChunk]) -> int:
    """Return the maximum of significant bits in sBIT."""
    for chunk in chunks:
        if chunk.kind == b"sBIT" and len(chunk.payload) == SAMPLES[header.colour]:
            return max(chunk.payload[:3])
    return 0
