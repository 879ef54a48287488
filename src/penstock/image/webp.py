"""decode_webp: still and moving WebP, read by OpenCV (libwebp)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import DataLossError, InvalidArgumentError
from penstock.image import rules
from penstock.image.backends import opencv
from penstock.image.channels import with_channels
from penstock.image.checks import check_choice, check_contents, format_of, refuse_absurd_size
from penstock.trace.lift import traceable
from penstock.trace.nature import of_nature

if TYPE_CHECKING:
    import numpy.typing as npt

ANIMATION = 0x02  # a flag of VP8X
SHORTEST = 32  # bytes without which OpenCV does not begin


@of_nature(rules.DECODER)
@traceable("image.decode_webp", rules.decoded_frames)
def decode_webp(contents: bytes, channels: int = 0) -> npt.NDArray[np.uint8]:
    """Decode a WebP into (frames, height, width, channels) uint8, as tf.image.decode_webp does.

    A still picture is one frame. Animations have four channels, as have pictures with transparency.

    >>> import cv2
    >>> decode_webp(cv2.imencode(".webp", np.zeros((4, 6, 3), np.uint8))[1]).shape
    (1, 4, 6, 3)

    Args:
        contents: the bytes of the file.
        channels: 1 grey, 3 RGB, 4 RGBA, 0 what the file has.

    Raises:
        DataLossError: the file is cut short or damaged.
        InvalidArgumentError: not a WebP, an absurd size, or an argument out of range.
        MissingDependencyError: OpenCV is not installed.
    """
    data = bytes(check_contents("decode_webp", contents))
    check_choice("decode_webp", "channels", channels, (0, 1, 3, 4))
    if format_of(data) != "WebP":
        kind = format_of(data)
        message = f"decode_webp: these {len(data)} bytes are not a WebP" + (f" but {kind}." if kind else ".")
        raise InvalidArgumentError(message, hint="Use decode_image, which finds out the format." if kind else None)
    return with_channels(webp_frames("decode_webp", data), channels)


def webp_frames(op: str, data: bytes) -> npt.NDArray[np.uint8]:
    """The frames of `data`, (frames, height, width, 3 or 4).

    Raises:
        DataLossError: the file is cut short or damaged.
        InvalidArgumentError: an absurd size.
    """
    height, width, frames = _claimed(data)
    refuse_absurd_size(op, height * max(frames, 1), width, 4 if frames else 3)
    cv2 = opencv()
    packed = np.frombuffer(data.ljust(SHORTEST, b"\0"), np.uint8)
    try:
        found = _moving(cv2, packed) if frames else [cv2.imdecode(packed, cv2.IMREAD_UNCHANGED)]
    except cv2.error as error:
        message = f"WebP damaged: OpenCV reports {error.err!r} in {len(data)} bytes."
        raise DataLossError(message) from None
    if not found or any(frame is None or frame.shape[:2] != (height, width) for frame in found):
        message = f"WebP cut short or damaged: its {len(data)} bytes cannot be decoded."
        raise DataLossError(message)
    batch: npt.NDArray[np.uint8] = np.stack(found)
    return with_channels(batch[..., [2, 1, 0, 3][: batch.shape[-1]]], 4 if frames else 0)


def _moving(cv2: Any, packed: npt.NDArray[np.uint8]) -> list[npt.NDArray[np.uint8]]:
    whole, animation = cv2.imdecodeanimation(packed)
    return list(animation.frames) if whole else []


def _claimed(data: bytes) -> tuple[int, int, int]:
    """Height and width as the first chunk says, and how many frames an animation has, 0 for a still picture."""

    def number(at: int, size: int) -> int:
        return int.from_bytes(data[at : at + size], "little")

    if 8 + number(4, 4) > len(data):
        message = f"WebP cut short: it has {len(data)} bytes of the {8 + number(4, 4)} that its header says."
        raise DataLossError(message)
    kind = data[12:16]
    if kind == b"VP8X" and len(data) >= 30:
        frames = _frames(data) if data[20] & ANIMATION else 0
        return number(27, 3) + 1, number(24, 3) + 1, frames
    if kind == b"VP8L" and len(data) >= 25:
        packed = number(21, 4)
        return (packed >> 14 & 0x3FFF) + 1, (packed & 0x3FFF) + 1, 0
    if kind == b"VP8 " and len(data) >= 30:
        return number(28, 2) & 0x3FFF, number(26, 2) & 0x3FFF, 0
    message = f"WebP cut short or damaged: its {len(data)} bytes begin with no header of a picture."
    raise DataLossError(message)


def _frames(data: bytes) -> int:
    """How many frames follow; at least 1."""
    frames, at = 0, 12
    while at + 8 <= len(data):
        frames += data[at : at + 4] == b"ANMF"
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        at += 8 + size + size % 2
    return max(frames, 1)
