"""decode_jpeg and decode_and_crop_jpeg, for one file and for a Block, with TensorFlow's defaults bit for bit."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.block.arena import ARENA
from penstock.block.column import BytesColumn, Column, DenseColumn
from penstock.block.spec import LeafSpec, TensorSpec
from penstock.errors import Context, DataLossError, InvalidArgumentError, annotate
from penstock.image import rules
from penstock.image.checks import check_contents
from penstock.image.jpeg.block import JpegBlock
from penstock.image.jpeg.damage import intact_rows
from penstock.image.jpeg.libjpeg import check_decode_jpeg, decode_into
from penstock.image.jpeg.places import cropped
from penstock.trace.graph import Allocate, NotTraceable
from penstock.trace.lift import byte_string, of_nature, traceable

if TYPE_CHECKING:
    import numpy.typing as npt


def jpeg_block(column: Any, params: Mapping[str, Any], rows: int, allocate: Allocate | None) -> Sequence[Column] | None:
    """Return the images as one array, or None if they differ in size or the kernels do not support the parameters.

    Raises:
        PenstockError: what `decode_jpeg` says of the first file that cannot be decoded.
    """
    plain = params["ratio"] == 1 and not params["try_recover_truncated"] and params["acceptable_fraction"] == 1
    if not plain or params["channels"] not in (0, 1, 3) or rows == 0:
        return None
    if not isinstance(column, BytesColumn) or column.starts.ndim != 1:
        return None
    block = JpegBlock.within(column.buffers, column.starts, column.lengths, column.which)
    settings = {"fancy_upscaling": params["fancy_upscaling"], "dct_method": params["dct_method"]}
    shapes = block.shapes()
    if not block.taken(**settings).all() or (shapes != shapes[0]).any():
        return None
    height, width, stored = shapes[0].tolist()
    shape = (height, width, params["channels"] or stored)
    place = None if allocate is None else allocate(shape, np.uint8)
    out = ARENA.empty((rows, *shape), np.uint8) if place is None else place
    for row, error in sorted(block.decode(out, **settings).items()):
        annotate(error, Context(element=row))
        raise error
    return [DenseColumn(out)]


@of_nature(rules.DECODER)
@traceable("image.decode_jpeg", rules.decoded, block=jpeg_block, fresh=True)
def decode_jpeg(
    contents: bytes,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1.0,
    dct_method: str = "",
) -> npt.NDArray[np.uint8]:
    """Decode a JPEG, as tf.io.decode_jpeg does.

    The default is TensorFlow's: the fast integer DCT with smooth upsampling of colour. CMYK becomes RGB. An EXIF
    rotation is not applied. A progressive file that lacks scans is smoothed, by a few levels otherwise than there. A
    file whose colour is sampled in a rare way (none of 4:4:4, 4:2:2, 4:2:0, 4:4:0, 4:1:1) has the accurate DCT and
    interpolated colour, whatever is asked for. The function releases the GIL; in `Dataset.map` a Block of images of one
    size at a time.

    Args:
        contents: The bytes of the file.
        channels: 3 for RGB, 1 for grey, 0 for what the file has.
        ratio: Decode to 1/1, 1/2, 1/4 or 1/8 of the size (rounded up), which costs less than decoding all.
        fancy_upscaling: Interpolate colour between its coarser samples; without, they are repeated.
        try_recover_truncated: Fill in what is missing at the end of a cut file, which gives grey. Where in a row of
            units the file ends, TensorFlow makes up other pixels.
        acceptable_fraction: Accept a cut file if this share of its rows is whole; the missing rows are black.
        dct_method: "" or "INTEGER_FAST", or "INTEGER_ACCURATE" (as most other libraries decode).

    Returns:
        uint8 array of shape (height, width, channels).

    Raises:
        DataLossError: If the file is truncated, or damaged outside of its rows. Damaged rows of a file with an end
            marker are filled as by libjpeg and TensorFlow.
        InvalidArgumentError: If the file is not a JPEG, if its size is implausible, or if an argument is out of range.
        MissingDependencyError: If simplejpeg is not installed.

    Example:
        >>> from penstock.image import encode_jpeg
        >>> decode_jpeg(encode_jpeg(np.full((4, 6, 3), 200, np.uint8)), channels=1).shape
        (4, 6, 1)
    """
    data = check_contents("decode_jpeg", contents)
    check_decode_jpeg(channels, ratio, dct_method)
    settings = {"fastdct": dct_method != "INTEGER_ACCURATE", "fastupsample": not fancy_upscaling}
    try:
        return decode_into(data, None, channels, ratio, **settings, cut=try_recover_truncated)
    except DataLossError:
        if try_recover_truncated or acceptable_fraction >= 1:
            raise
    return _whole_rows(bytes(data), channels, ratio, settings, acceptable_fraction)


def _whole_rows(
    contents: bytes, channels: int, ratio: int, settings: dict[str, bool], acceptable_fraction: float
) -> npt.NDArray[np.uint8]:
    def filled_in(contents: bytes) -> npt.NDArray[np.uint8]:
        return decode_into(contents, None, channels, ratio, **settings, cut=True)

    image = filled_in(contents)
    rows = intact_rows(contents, filled_in)
    if rows < acceptable_fraction * len(image):
        message = (
            f"JPEG cut short: {rows} of {len(image)} rows are whole, "
            f"acceptable_fraction={acceptable_fraction} asks for {acceptable_fraction * len(image):g}."
        )
        raise DataLossError(message)
    image[rows:] = 0
    return image


def _rule(spec: LeafSpec, *, crop_window: Any, channels: int, **_: Any) -> TensorSpec:
    byte_string(spec)
    try:
        height, width = (operator.index(extent) for extent in list(crop_window)[2:])
    except (TypeError, ValueError):
        message = "decode_and_crop_jpeg with a window that differs between elements"
        raise NotTraceable(message) from None
    return TensorSpec((height, width, channels or None), np.uint8)


@of_nature(rules.DECODER)
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
    """Decode a rectangle of a JPEG, as tf.io.decode_and_crop_jpeg does.

    Equal to `decode_jpeg(...)[y : y + height, x : x + width]`; rows outside of the window are not turned into pixels,
    which saves a part of the time. TensorFlow interpolates colour in the first and last column as if the image ended
    there, and may differ in them by a few levels.

    Args:
        contents: The bytes of the file.
        crop_window: Y, x, height and width, in pixels of the decoded image, that is after `ratio`.
        channels: As in `decode_jpeg`, like all that follow.
        ratio: Decode to 1/1, 1/2, 1/4 or 1/8 of the size.
        fancy_upscaling: Interpolate colour between its coarser samples.
        try_recover_truncated: Fill what is missing at the end of a cut file.
        acceptable_fraction: Accept a cut file if this share of its rows is whole.
        dct_method: "" or "INTEGER_FAST", or "INTEGER_ACCURATE".

    Returns:
        uint8 array of shape (crop_height, crop_width, channels).

    Raises:
        DataLossError: If the file is truncated or damaged, also outside of the window.
        InvalidArgumentError: If the file is not a JPEG, if the window is empty or not inside the image, or if an
            argument is out of range.

    Example:
        >>> from penstock.image import encode_jpeg
        >>> decode_and_crop_jpeg(encode_jpeg(np.zeros((40, 60, 3), np.uint8)), [10, 20, 5, 6]).shape
        (5, 6, 3)
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
    """Return the part, computing only its rows, or None if `decode_jpeg` must report an error."""
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
