"""Decode PNG (through OpenCV) after checking every chunk, so that damage is named with its place in the file."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock.errors import DataLossError, InvalidArgumentError
from penstock.image import rules
from penstock.image.backends import opencv
from penstock.image.channels import with_channels
from penstock.image.checks import check_choice, check_contents, refuse_absurd_size
from penstock.image.formats import format_of
from penstock.trace.lift import traceable

if TYPE_CHECKING:
    import numpy.typing as npt

SIGNATURE = b"\x89PNG\r\n\x1a\n"
GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6  # IHDR's colour types
SAMPLES = {GREY: 1, RGB: 3, PALETTE: 1, GREY_ALPHA: 2, RGBA: 4}
MAX_INFLATION = 1032  # bytes out per byte in: zlib's limit


class PngHeader(NamedTuple):
    """What the chunks before the pixels say; `transparent` is the payload of tRNS or None."""

    height: int
    width: int
    depth: int
    colour: int
    transparent: bytes | None


@traceable("image.decode_png", rules.decoded)
def decode_png(contents: bytes, channels: int = 0, dtype: npt.DTypeLike = np.uint8) -> npt.NDArray[Any]:
    """Decode one PNG into (height, width, channels), as tf.io.decode_png does.

    A palette becomes RGB, or RGBA if it has transparency. 16-bit files read as uint8 keep the upper byte, 8-bit files
    read as uint16 repeat theirs. Colour becomes grey by ITU-R BT.601 weights. Ancillary chunks (gamma, profiles,
    rotation) are not applied.

    >>> from penstock.image import encode_png
    >>> decode_png(encode_png(np.full((2, 3, 1), 7, np.uint8)), channels=3)[0, 0].tolist()
    [7, 7, 7]

    Args:
        contents: the bytes of the file.
        channels: 1 grey, 3 RGB, 4 RGBA, 0 what the file has (2 for grey with transparency).
        dtype: uint8 or uint16.

    Raises:
        DataLossError: the file is cut short or a checksum does not match.
        InvalidArgumentError: not a PNG, an absurd size, or an argument out of range.
        MissingDependencyError: OpenCV is not installed.
    """
    data = bytes(check_contents("decode_png", contents))
    dtype = np.dtype(dtype)
    check_choice("decode_png", "channels", channels, (0, 1, 3, 4))
    check_choice("decode_png", "dtype", dtype, (np.dtype(np.uint8), np.dtype(np.uint16)))
    header = read_png_header(data)
    cv2 = opencv()
    image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    if image is None:
        message = f"PNG damaged: its {len(data)} bytes do not unpack to {header.width} x {header.height} pixels."
        raise DataLossError(message)
    image = _as_in_file(image.reshape(header.height, header.width, -1), header, with_alpha=channels == 4)
    image = with_channels(image, channels)  # at the file's own depth, as libpng does: grey is rounded there
    if image.dtype == np.uint16 and dtype == np.uint8:
        return (image >> 8).astype(np.uint8)
    if image.dtype == np.uint8 and dtype == np.uint16:
        return image.astype(np.uint16) * np.uint16(257)
    return image


def _as_in_file(image: npt.NDArray[Any], header: PngHeader, *, with_alpha: bool) -> npt.NDArray[Any]:
    """OpenCV's BGR(A) as the file's own channels; transparency by a key colour only where alpha is asked for."""
    if header.colour == GREY_ALPHA:
        return image[..., 2:]  # OpenCV repeats grey three times
    if header.colour == GREY:
        if not (with_alpha and header.transparent):
            return image
        key = int.from_bytes(header.transparent[:2], "big") * (
            255 // ((1 << header.depth) - 1) if header.depth < 8 else 1
        )
        top = np.iinfo(image.dtype).max
        return np.concatenate([image, np.where(image == key, 0, top).astype(image.dtype)], axis=-1)
    image = image[..., [2, 1, 0, 3][: image.shape[-1]]]
    return image[..., :3] if header.colour == RGB and not with_alpha else image


def read_png_header(data: bytes) -> PngHeader:
    """Check each chunk's length and checksum and return what the header says.

    >>> from penstock.image import encode_png
    >>> read_png_header(encode_png(np.zeros((2, 3, 1), np.uint8))).width
    3

    Raises:
        DataLossError: a chunk is cut short, its checksum does not match, or one that must be there is missing.
        InvalidArgumentError: not a PNG, or of an absurd size.
    """
    if not data.startswith(SIGNATURE):
        kind = format_of(data)
        message = f"decode_png: these {len(data)} bytes are not a PNG" + (f" but {kind}." if kind else ".")
        raise InvalidArgumentError(message, hint="Use decode_image, which finds out the format." if kind else None)
    view = memoryview(data)
    ihdr = transparent = None
    packed = 0
    chunk = b""
    at = len(SIGNATURE)
    while chunk != b"IEND":
        length = int.from_bytes(view[at : at + 4], "big")
        stop = at + 12 + length
        if at + 12 > len(data) or stop > len(data):
            message = f"PNG cut short: it ends after {len(data)} bytes, inside the chunk that starts at byte {at}."
            raise DataLossError(message)
        chunk = bytes(view[at + 4 : at + 8])
        critical = chunk[:1].isupper()  # libpng, too, passes over damaged texts and the like
        if critical and zlib.crc32(view[at + 4 : stop - 4]) != int.from_bytes(view[stop - 4 : stop], "big"):
            message = f"PNG damaged: the checksum of chunk {chunk!r} at byte {at} does not match."
            raise DataLossError(message)
        payload = view[at + 8 : stop - 4]
        if chunk == b"IHDR" and length == 13:
            ihdr = bytes(payload)
        elif chunk == b"tRNS":
            transparent = bytes(payload)
        elif chunk == b"IDAT":
            packed += length
        at = stop
    if ihdr is None or not packed or ihdr[9] not in SAMPLES or ihdr[8] not in (1, 2, 4, 8, 16):
        message = "PNG damaged: it has no usable header (IHDR) or no pixels (IDAT)."
        raise DataLossError(message)
    width, height = int.from_bytes(ihdr[:4], "big"), int.from_bytes(ihdr[4:8], "big")
    depth, colour = ihdr[8], ihdr[9]
    refuse_absurd_size("decode_png", height, width, SAMPLES[colour])
    if height * width * SAMPLES[colour] * depth // 8 > MAX_INFLATION * packed:
        message = f"PNG cut short: its header says {width} x {height} pixels, which {packed} packed bytes cannot hold."
        raise DataLossError(message)
    return PngHeader(height, width, depth, colour, transparent)
