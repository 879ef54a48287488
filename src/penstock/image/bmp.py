"""decode_bmp: uncompressed Windows bitmaps, read without a package of images."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.errors import DataLossError, InvalidArgumentError
from penstock.image import rules
from penstock.image.channels import with_channels
from penstock.image.checks import check_choice, check_contents, format_of, refuse_absurd_size
from penstock.trace.lift import traceable
from penstock.trace.nature import of_nature

if TYPE_CHECKING:
    import numpy.typing as npt

HEADER = 54  # bytes of the file's header and the shortest description of a picture that is taken
NONE, MASKS = 0, 3  # compression; masks say which bits are which colour
USUAL_MASKS = b"\x00\x00\xff\x00\x00\xff\x00\x00\xff\x00\x00\x00"  # red, green, blue as without masks


@of_nature(rules.DECODER)
@traceable("image.decode_bmp", rules.decoded)
def decode_bmp(contents: bytes, channels: int = 0) -> npt.NDArray[np.uint8]:
    r"""Decode one BMP into (height, width, channels) uint8, as tf.io.decode_bmp does.

    Files of 8 bits per pixel give their values as they are stored, without a look at the palette; 24 bits are RGB, 32
    RGBA. Bytes after the pixels are passed over.

    >>> row = b"\x03\x02\x01\x00"  # blue, green, red, and a byte that fills up to four
    >>> sizes = [58, 0, 54, 40, 1, 1, 1 | 24 << 16, 0, 0, 0, 0, 0, 0]
    >>> decode_bmp(b"BM" + b"".join(size.to_bytes(4, "little") for size in sizes) + row).tolist()
    [[[1, 2, 3]]]

    Args:
        contents: the bytes of the file.
        channels: 1 grey, 3 RGB, 4 RGBA, 0 what the file has.

    Raises:
        DataLossError: the file is cut short or damaged.
        InvalidArgumentError: not a BMP, packed or of another depth, an absurd size, or an argument out of range.
    """
    data = check_contents("decode_bmp", contents)
    check_choice("decode_bmp", "channels", channels, (0, 1, 3, 4))
    if bytes(data[:2]) != b"BM":
        kind = format_of(data)
        message = f"decode_bmp: these {len(data)} bytes are not a BMP" + (f" but {kind}." if kind else ".")
        raise InvalidArgumentError(message, hint="Use decode_image, which finds out the format." if kind else None)
    if len(data) < HEADER:
        message = f"BMP cut short: it ends after {len(data)} bytes, inside its header."
        raise DataLossError(message)
    height, width, depth = _described(data)
    down = height < 0
    height = abs(height)
    stored = depth // 8
    refuse_absurd_size("decode_bmp", height, width, stored)
    stride = (width * stored + 3) // 4 * 4
    start = _number(data, 10, 4)
    if start < HEADER:
        message = f"BMP damaged: its pixels begin at byte {start}, inside its header."
        raise DataLossError(message)
    if start + height * stride > len(data):
        message = f"BMP cut short: {width} x {height} pixels from byte {start} on do not fit into {len(data)} bytes."
        raise DataLossError(message)
    rows = np.frombuffer(data, np.uint8, height * stride, start).reshape(height, stride)
    image = rows[:, : width * stored].reshape(height, width, stored)[:: 1 if down else -1]
    if stored > 1:
        image = image[..., [2, 1, 0, 3][:stored]]
    return with_channels(image, channels)


def _described(data: bytes | memoryview) -> tuple[int, int, int]:
    """Height, negative from the top down, width, and bits per pixel."""
    kind, compression = _number(data, 14, 4), _number(data, 30, 4)
    width, height, depth = _number(data, 18, 4, signed=True), _number(data, 22, 4, signed=True), _number(data, 28, 2)
    if kind < 40:
        message = f"decode_bmp takes headers of 40 bytes and more, this file's has {kind}."
        raise InvalidArgumentError(message, hint="OS/2 wrote such files; convert it to PNG.")
    usual = compression == NONE or (compression == MASKS and depth == 32 and bytes(data[54:66]) == USUAL_MASKS)
    if depth not in (8, 24, 32) or not usual:
        how = "" if compression == NONE else f", compression {compression}"
        message = f"decode_bmp takes plain files of 8, 24 or 32 bits per pixel, this one has {depth}{how}."
        raise InvalidArgumentError(message, hint="Convert it to PNG.")
    if width <= 0 or height == 0:
        message = f"decode_bmp: the header claims {width} x {height} pixels."
        raise InvalidArgumentError(message, hint="The header is damaged.")
    return height, width, depth


def _number(data: bytes | memoryview, at: int, size: int, *, signed: bool = False) -> int:
    return int.from_bytes(data[at : at + size], "little", signed=signed)
