"""Decode an image of any known format, found out from its first bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import DataLossError, InvalidArgumentError
from penstock.image import rules
from penstock.image.backends import opencv
from penstock.image.channels import with_channels
from penstock.image.checks import check_choice, check_contents, refuse_absurd_size
from penstock.image.dtypes import convert_image_dtype
from penstock.image.formats import format_of
from penstock.image.jpeg import decode_jpeg
from penstock.image.png import decode_png
from penstock.trace.lift import traceable

if TYPE_CHECKING:
    import numpy.typing as npt

DTYPES = (np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.float32))


@traceable("image.decode_image", rules.decoded_any)
def decode_image(
    contents: bytes,
    channels: int | None = None,
    dtype: npt.DTypeLike = np.uint8,
    expand_animations: bool = True,
) -> npt.NDArray[Any]:
    """Decode a JPEG, PNG, GIF, BMP or WebP, as tf.io.decode_image does.

    The result is (height, width, channels); for a GIF (frames, height, width, 3) unless `expand_animations` is False,
    which takes the first frame. GIF, BMP and WebP are read by OpenCV, the others by `decode_jpeg` and `decode_png`.

    >>> from penstock.image import encode_png
    >>> decode_image(encode_png(np.full((2, 3, 3), 255, np.uint8)), dtype=np.float32).max()
    np.float32(1.0)

    Args:
        contents: the bytes of the file.
        channels: 1, 3 or 4; None or 0 for what the file has. JPEG has no 4, GIF only 3.
        dtype: uint8, uint16 or float32; other than the file's, it is scaled as `convert_image_dtype` does.
        expand_animations: keep all frames of a GIF.

    Raises:
        DataLossError: the file is cut short or damaged.
        InvalidArgumentError: not one of these formats, an absurd size, or an argument out of range.
        MissingDependencyError: the package that reads this format is not installed.
    """
    data = bytes(check_contents("decode_image", contents))
    channels = channels or 0
    dtype = np.dtype(dtype)
    check_choice("decode_image", "channels", channels, (0, 1, 3, 4))
    check_choice("decode_image", "dtype", dtype, DTYPES)
    image: npt.NDArray[Any] = convert_image_dtype(_decoded(data, channels, dtype, expand_animations), dtype)
    return image


def _decoded(data: bytes, channels: int, dtype: np.dtype[Any], expand_animations: bool) -> npt.NDArray[Any]:
    kind = format_of(data)
    if kind == "JPEG":
        if channels == 4:
            message = "decode_image: a JPEG has no transparency, channels must be 0, 1 or 3; got 4."
            raise InvalidArgumentError(message)
        return decode_jpeg(data, channels)
    if kind == "PNG":
        return decode_png(data, channels, np.uint8 if dtype == np.uint8 else np.uint16)
    if not kind:
        message = f"decode_image: not a JPEG, PNG, GIF, BMP or WebP: the {len(data)} bytes start with {data[:8]!r}."
        raise InvalidArgumentError(message)
    if kind == "GIF" and channels not in (0, 3):
        message = f"decode_image: a GIF decodes to 3 channels, got channels={channels}."
        raise InvalidArgumentError(message)
    frames = _by_opencv(data, kind)
    return frames if kind == "GIF" and expand_animations else with_channels(frames[0], channels)


def _by_opencv(data: bytes, kind: str) -> npt.NDArray[np.uint8]:
    """The frames of a GIF, or the one of another format, as RGB, RGBA or grey."""
    refuse_absurd_size("decode_image", *_claimed_size(data, kind), 3)
    cv2 = opencv()
    packed = np.frombuffer(data, np.uint8)
    try:
        if kind == "GIF":
            whole, frames = cv2.imdecodemulti(packed, cv2.IMREAD_COLOR)
            frames = list(frames) if whole else []
        else:
            image = cv2.imdecode(packed, cv2.IMREAD_UNCHANGED)
            frames = [] if image is None else [image.reshape(*image.shape[:2], -1)]
    except cv2.error as error:
        message = f"{kind} damaged: OpenCV reports {error.err!r} in {len(data)} bytes."
        raise DataLossError(message) from None
    if not frames:
        message = f"{kind} cut short or damaged: its {len(data)} bytes cannot be decoded."
        raise DataLossError(message)
    batch: npt.NDArray[np.uint8] = np.stack(frames)
    return np.ascontiguousarray(batch[..., [2, 1, 0, 3][: batch.shape[-1]]]) if batch.shape[-1] > 1 else batch


def _claimed_size(data: bytes, kind: str) -> tuple[int, int]:
    """Height and width as the header says; 0 where OpenCV's own limits are tight enough."""

    def number(at: int, size: int) -> int:
        return int.from_bytes(data[at : at + size], "little")

    if kind == "GIF":
        return number(8, 2), number(6, 2)
    if kind == "BMP" and number(14, 4) >= 40:
        height = number(22, 4)
        return min(height, (1 << 32) - height), number(18, 4)  # a negative height turns the picture over
    if kind == "WebP" and data[12:16] == b"VP8X":
        return number(27, 3) + 1, number(24, 3) + 1
    return 0, 0
