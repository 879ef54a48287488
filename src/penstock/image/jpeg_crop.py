"""decode_and_crop_jpeg: a part of a picture."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.block.spec import LeafSpec, TensorSpec
from penstock.errors import InvalidArgumentError
from penstock.image.checks import check_contents
from penstock.image.jpeg import check_decode_jpeg, decode_jpeg
from penstock.image.jpeg_arguments import cropped
from penstock.image.jpeg_block import JpegBlock
from penstock.trace.graph import NotTraceable
from penstock.trace.lift import byte_string, traceable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


def _rule(spec: LeafSpec, *, crop_window: Any, channels: int, **_: Any) -> TensorSpec:
    byte_string(spec)
    try:
        height, width = (operator.index(extent) for extent in list(crop_window)[2:])
    except (TypeError, ValueError):
        message = "decode_and_crop_jpeg with a window that differs between elements"
        raise NotTraceable(message) from None
    return TensorSpec((height, width, channels or None), np.uint8)


@traceable("image.decode_and_crop_jpeg", _rule)
def decode_and_crop_jpeg(
    contents: bytes,
    crop_window: Sequence[int],
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1.0,
    dct_method: str = "",
) -> npt.NDArray[np.uint8]:
    """Decode a part of one JPEG into (crop_height, crop_width, channels) uint8, as tf.io.decode_and_crop_jpeg does.

    Equal to `decode_jpeg(...)[y : y + height, x : x + width]`; rows outside of the window are not turned into pixels,
    which saves a part of the time. TensorFlow interpolates colour in the first and last column as if the picture ended
    there, and may differ in them by a few levels.

    >>> from penstock.image import encode_jpeg
    >>> decode_and_crop_jpeg(encode_jpeg(np.zeros((40, 60, 3), np.uint8)), [10, 20, 5, 6]).shape
    (5, 6, 3)

    Args:
        contents: the bytes of the file.
        crop_window: y, x, height and width, in pixels of the decoded picture, that is after `ratio`.
        channels: as in `decode_jpeg`, like all that follow.
        ratio: decode to 1/1, 1/2, 1/4 or 1/8 of the size.
        fancy_upscaling: interpolate colour between its coarser samples.
        try_recover_truncated: fill what is missing at the end of a cut file.
        acceptable_fraction: accept a cut file if this share of its rows is whole.
        dct_method: "" or "INTEGER_FAST", or "INTEGER_ACCURATE".

    Raises:
        DataLossError: the file is cut short or damaged, be it outside of the window.
        InvalidArgumentError: not a JPEG, a window that is empty or not inside, or an argument out of range.
    """
    window = _window(crop_window)
    check_decode_jpeg(channels, ratio, dct_method)
    if ratio == 1 and not try_recover_truncated and acceptable_fraction == 1:
        part = _by_kernel(contents, window, channels, fancy_upscaling=fancy_upscaling, dct_method=dct_method)
        if part is not None:
            return part
    recovery: dict[str, Any] = {
        "try_recover_truncated": try_recover_truncated,
        "acceptable_fraction": acceptable_fraction,
    }
    image = decode_jpeg(contents, channels, ratio, fancy_upscaling, dct_method=dct_method, **recovery)
    return np.ascontiguousarray(cropped("decode_and_crop_jpeg", image, window))


def _by_kernel(
    contents: bytes, window: npt.NDArray[np.int64], channels: int, **settings: Any
) -> npt.NDArray[np.uint8] | None:
    """The part, whose rows alone become pixels; None where `decode_jpeg` is to say what is wrong."""
    block = JpegBlock([check_contents("decode_and_crop_jpeg", contents)])
    height, width, stored = block.shapes()[0].tolist()
    y, x, rows, columns = window.tolist()
    if stored not in (1, 3) or min(y, x) < 0 or min(rows, columns) < 1 or y + rows > height or x + columns > width:
        return None
    out = np.empty((1, rows, columns, channels or stored), np.uint8)
    return None if block.decode(out, windows=window[None], **settings) else out[0]


def _window(given: Any) -> npt.NDArray[np.int64]:
    try:
        numbers = [operator.index(number) for number in np.asarray(given).reshape(-1)]
    except TypeError:
        numbers = []
    if len(numbers) != 4:
        message = f"decode_and_crop_jpeg: crop_window must be 4 integers, y, x, height and width; got {given!r}."
        raise InvalidArgumentError(message)
    return np.array(numbers, np.int64)
