"""Decode an image of any known format, which its first bytes identify.

BMP needs no image package; WebP needs OpenCV.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.block.column import BytesColumn, Column, column_of
from penstock.errors import DataLossError, InvalidArgumentError
from penstock.forked import new_lock
from penstock.image import rules
from penstock.image.channels import with_channels
from penstock.image.checks import check_choice, check_contents, check_format, format_of, refuse_absurd_size
from penstock.image.dtypes import convert_image_dtype
from penstock.image.gif import gif_frames
from penstock.image.jpeg.decode import decode_jpeg, jpeg_block
from penstock.image.png.decode import decode_png, png_block
from penstock.opencv import opencv
from penstock.trace.graph import Allocate
from penstock.trace.lift import of_nature, traceable

HEADER = 54  # bytes of the file's header and the shortest supported image header
NONE, MASKS = 0, 3  # compression; masks define the bits of each colour
USUAL_MASKS = b"\x00\x00\xff\x00\x00\xff\x00\x00\xff\x00\x00\x00"  # red, green, blue in the order without masks


@of_nature(rules.DECODER)
@traceable("image.decode_bmp", rules.decoded)
def decode_bmp(contents: bytes, channels: int = 0) -> npt.NDArray[np.uint8]:
    r"""Decode a BMP, as tf.io.decode_bmp does.

    Files of 8 bits per pixel give their values as they are stored, without a look at the palette; 24 bits are RGB, 32
    RGBA. Bytes after the pixels are passed over.

    Args:
        contents: The bytes of the file.
        channels: 1 grey, 3 RGB, 4 RGBA, 0 what the file has.

    Returns:
        uint8 array of shape (height, width, channels).

    Raises:
        DataLossError: If the file is truncated or damaged.
        InvalidArgumentError: If the file is not a BMP, is compressed or has another depth, if its size is implausible,
            or if an argument is out of range.

    Example:
        >>> row = b"\x03\x02\x01\x00"  # blue, green, red, and a byte that fills up to four
        >>> sizes = [58, 0, 54, 40, 1, 1, 1 | 24 << 16, 0, 0, 0, 0, 0, 0]
        >>> decode_bmp(b"BM" + b"".join(size.to_bytes(4, "little") for size in sizes) + row).tolist()
        [[[1, 2, 3]]]
    """
    data = check_contents("decode_bmp", contents)
    check_choice("decode_bmp", "channels", channels, (0, 1, 3, 4))
    check_format("decode_bmp", "BMP", data)
    if len(data) < HEADER:
        raise DataLossError(f"BMP cut short: it ends after {len(data)} bytes, inside its header.")
    height, width, depth = _described(data)
    down = height < 0
    height = abs(height)
    stored = depth // 8
    refuse_absurd_size("decode_bmp", height, width, stored)
    stride = (width * stored + 3) // 4 * 4
    start = _number(data, 10, 4)
    if start < HEADER:
        raise DataLossError(f"BMP damaged: its pixels begin at byte {start}, inside its header.")
    if start + height * stride > len(data):
        message = f"BMP cut short: {width} x {height} pixels from byte {start} on do not fit into {len(data)} bytes."
        raise DataLossError(message)
    rows = np.frombuffer(data, np.uint8, height * stride, start).reshape(height, stride)
    image = rows[:, : width * stored].reshape(height, width, stored)[:: 1 if down else -1]
    if stored > 1:
        image = image[..., [2, 1, 0, 3][:stored]]
    return with_channels(image, channels)


def _described(data: bytes | memoryview) -> tuple[int, int, int]:
    """Return the height (negative for top-down order), the width, and the bits per pixel."""
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


ANIMATION = 0x02  # a flag of VP8X
SHORTEST = 32  # bytes; OpenCV refuses shorter data


@of_nature(rules.DECODER)
@traceable("image.decode_webp", rules.decoded_frames)
def decode_webp(contents: bytes, channels: int = 0) -> npt.NDArray[np.uint8]:
    """Decode all frames of a WebP, as tf.image.decode_webp does.

    A still image is one frame. Animations have four channels, as have images with transparency.

    Args:
        contents: The bytes of the file.
        channels: 1 grey, 3 RGB, 4 RGBA, 0 what the file has.

    Returns:
        uint8 array of shape (frames, height, width, channels).

    Raises:
        DataLossError: If the file is truncated or damaged.
        InvalidArgumentError: If the file is not a WebP, if its size is implausible, or if an argument is out of range.
        MissingDependencyError: If OpenCV is not installed.

    Example:
        >>> import cv2
        >>> decode_webp(cv2.imencode(".webp", np.zeros((4, 6, 3), np.uint8))[1]).shape
        (1, 4, 6, 3)
    """
    data = bytes(check_contents("decode_webp", contents))
    check_choice("decode_webp", "channels", channels, (0, 1, 3, 4))
    check_format("decode_webp", "WebP", data)
    return with_channels(webp_frames("decode_webp", data), channels)


def webp_frames(op: str, data: bytes) -> npt.NDArray[np.uint8]:
    """Return the frames of `data`, (frames, height, width, 3 or 4).

    Raises:
        DataLossError: If the file is truncated or damaged.
        InvalidArgumentError: an absurd size.
    """
    height, width, frames = _claimed(data)
    refuse_absurd_size(op, height * max(frames, 1), width, 4 if frames else 3)
    cv2 = opencv()
    packed = np.frombuffer(data.ljust(SHORTEST, b"\0"), np.uint8)
    try:
        found = _moving(cv2, packed) if frames else [cv2.imdecode(packed, cv2.IMREAD_UNCHANGED)]
    except cv2.error as error:
        raise DataLossError(f"WebP damaged: OpenCV reports {error.err!r} in {len(data)} bytes.") from None
    if not found or any(frame is None or frame.shape[:2] != (height, width) for frame in found):
        raise DataLossError(f"WebP cut short or damaged: its {len(data)} bytes cannot be decoded.")
    batch: npt.NDArray[np.uint8] = np.stack(found)
    return with_channels(batch[..., [2, 1, 0, 3][: batch.shape[-1]]], 4 if frames else 0)


_lock = new_lock()
_levels: list[int] = []  # levels of OpenCV's log, which all threads share, as each call found them


def _moving(cv2: Any, packed: npt.NDArray[np.uint8]) -> list[npt.NDArray[np.uint8]]:
    log = cv2.utils.logging
    with _lock:
        _levels.append(log.setLogLevel(log.LOG_LEVEL_SILENT))  # OpenCV prints an error for damaged data
    try:
        whole, animation = cv2.imdecodeanimation(packed)
    finally:
        with _lock:
            log.setLogLevel(_levels.pop())
    return list(animation.frames) if whole else []


def _claimed(data: bytes) -> tuple[int, int, int]:
    """Return height and width from the first chunk, and the number of frames of an animation, 0 for a still image."""

    def number(at: int, size: int) -> int:
        return int.from_bytes(data[at : at + size], "little")

    if 8 + number(4, 4) > len(data):
        raise DataLossError(f"WebP cut short: it has {len(data)} bytes of the {8 + number(4, 4)} that its header says.")
    kind = data[12:16]
    if kind == b"VP8X" and len(data) >= 30:
        frames = _frames(data) if data[20] & ANIMATION else 0
        return number(27, 3) + 1, number(24, 3) + 1, frames
    if kind == b"VP8L" and len(data) >= 25:
        packed = number(21, 4)
        return (packed >> 14 & 0x3FFF) + 1, (packed & 0x3FFF) + 1, 0
    if kind == b"VP8 " and len(data) >= 30:
        return number(28, 2) & 0x3FFF, number(26, 2) & 0x3FFF, 0
    raise DataLossError(f"WebP cut short or damaged: its {len(data)} bytes do not begin with the header of an image.")


def _frames(data: bytes) -> int:
    """Return the number of frames, at least 1."""
    frames, at = 0, 12
    while at + 8 <= len(data):
        frames += data[at : at + 4] == b"ANMF"
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        at += 8 + size + size % 2
    return max(frames, 1)


_JPEG = {name: value.default for name, value in signature(decode_jpeg).parameters.items() if name != "contents"}
DTYPES = (np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.float32))


def _block(column: Any, params: Mapping[str, Any], rows: int, allocate: Allocate | None) -> Sequence[Column] | None:
    """Decode the files of a Block, with one call for all JPEGs and one for all PNGs."""
    if not isinstance(column, BytesColumn) or column.starts.ndim != 1:
        return None
    kinds = np.array([format_of(file) for file in column.views()])
    if params["expand_animations"] and np.isin(kinds, ("GIF", "WebP")).any():
        message = "A GIF or WebP has one more axis than other images: its frames."  # they are decoded one by one
        raise InvalidArgumentError(message)
    if np.dtype(params["dtype"]) != np.uint8:
        return None
    found: list[Column] = []
    places: list[npt.NDArray[np.intp]] = []
    for kind in np.unique(kinds):
        here = np.flatnonzero(kinds == kind)
        files = column if len(here) == rows else column.take(here)
        found.append(_of_kind(str(kind), files, params, allocate if len(here) == rows else None))
        places.append(here)
    if len(found) == 1:
        return found
    values = [value for part in found for value in part.values()]
    return [column_of([values[i] for i in np.argsort(np.concatenate(places), kind="stable")])]


def _of_kind(kind: str, files: BytesColumn, params: Mapping[str, Any], allocate: Allocate | None) -> Column:
    """Decode files of one format, at once if the format supports it."""
    channels = params["channels"] or 0
    whole: Sequence[Column] | None = None
    if kind == "JPEG" and channels in (0, 1, 3):
        whole = jpeg_block(files, {**_JPEG, "channels": channels}, len(files), allocate)
    elif kind == "PNG" and channels in (0, 1, 3, 4):
        whole = png_block(files, {"channels": channels, "dtype": np.uint8}, len(files), allocate)
    return column_of([decode_image(bytes(file), **params) for file in files.views()]) if whole is None else whole[0]


@of_nature(rules.DECODER)
@traceable(
    "image.decode_image",
    rules.decoded_any,
    block=_block,
    presumes=lambda params: params["expand_animations"],
    fresh=True,
)
def decode_image(
    contents: bytes,
    channels: int | None = None,
    dtype: npt.DTypeLike = np.uint8,
    expand_animations: bool = True,
) -> npt.NDArray[Any]:
    """Decode a JPEG, PNG, GIF, BMP or WebP, as tf.io.decode_image does.

    The result is (height, width, channels); for a GIF or WebP, moving or not, (frames, height, width, channels) unless
    `expand_animations` is False, which takes the first frame. Otherwise the result is that of `decode_jpeg`,
    `decode_png`, `decode_gif`, `decode_bmp` and `decode_webp`.

    Args:
        contents: The bytes of the file.
        channels: 1, 3 or 4; None or 0 for what the file has. JPEG has no 4, GIF only 3.
        dtype: uint8, uint16 or float32; other than the file's, it is scaled as `convert_image_dtype` does.
        expand_animations: Keep all frames of a GIF or WebP.

    Returns:
        Array of shape (height, width, channels), or (frames, height, width, channels) for formats with frames.

    Raises:
        DataLossError: If the file is truncated or damaged.
        InvalidArgumentError: If the file has another format, if its size is implausible, or if an argument is out of
            range.
        MissingDependencyError: If the package that reads this format is not installed.

    Example:
        >>> from penstock.image import encode_png
        >>> decode_image(encode_png(np.full((2, 3, 3), 255, np.uint8)), dtype=np.float32).max()
        np.float32(1.0)
    """
    data = bytes(check_contents("decode_image", contents))
    channels = channels or 0
    dtype = np.dtype(dtype)
    check_choice("decode_image", "channels", channels, (0, 1, 3, 4))
    check_choice("decode_image", "dtype", dtype, DTYPES)
    return convert_image_dtype(_decoded(data, channels, dtype, expand_animations), dtype)


def _decoded(data: bytes, channels: int, dtype: np.dtype[Any], expand_animations: bool) -> npt.NDArray[Any]:
    kind = format_of(data)
    if kind == "JPEG":
        if channels == 4:
            raise InvalidArgumentError("decode_image: a JPEG has no transparency, channels must be 0, 1 or 3; got 4.")
        return decode_jpeg(data, channels)
    if kind == "PNG":
        return decode_png(data, channels, np.uint8 if dtype == np.uint8 else np.uint16)
    if kind == "BMP":
        return decode_bmp(data, channels)
    if kind not in ("GIF", "WebP"):
        message = f"decode_image: not a JPEG, PNG, GIF, BMP or WebP: the {len(data)} bytes start with {data[:8]!r}."
        raise InvalidArgumentError(message)
    if kind == "GIF" and channels not in (0, 3):
        raise InvalidArgumentError(f"decode_image: a GIF decodes to 3 channels, got channels={channels}.")
    if kind == "GIF":
        frames = gif_frames("decode_image", data, first_only=not expand_animations)
    else:
        frames = with_channels(webp_frames("decode_image", data), channels)
    return frames if expand_animations else frames[0]
