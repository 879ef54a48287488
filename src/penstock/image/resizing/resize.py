"""Resizing of images with tf.image's half-pixel centres: stretched, padded with zeros, or in parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.block.spec import LeafSpec, TensorSpec
from penstock.errors import InvalidArgumentError
from penstock.image import rules
from penstock.image.checks import check_choice, check_image, numbers
from penstock.image.resizing.sampling import resize_bilinear, resize_nearest
from penstock.image.resizing.spans import resize_spans
from penstock.image.rules import image_op
from penstock.trace.lift import of_nature, tensor


class ResizeMethod:
    """Names of the methods of `resize`, as in tf.image.

    Example:
        >>> import penstock as ps
        >>> ps.image.ResizeMethod.BILINEAR
        'bilinear'
    """

    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"
    BICUBIC = "bicubic"
    AREA = "area"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    GAUSSIAN = "gaussian"
    MITCHELLCUBIC = "mitchellcubic"


ResizeMethod.__module__ = "penstock.image.resizing"  # the keys of caches use this name


METHODS = ("bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic")


def resize_shape(
    in_shape: Sequence[int | None], size: tuple[int, int], *, preserve_aspect_ratio: bool = False
) -> tuple[int | None, ...]:
    """Return the shape of `resize`'s result for `in_shape`. None is an unknown dimension.

    >>> resize_shape((None, None, 3), (224, 160))
    (224, 160, 3)
    >>> resize_shape((100, 200, 3), (50, 50), preserve_aspect_ratio=True)
    (25, 50, 3)
    """
    *batch, in_height, in_width, channels = in_shape
    if not preserve_aspect_ratio:
        return (*batch, *size, channels)
    if in_height is None or in_width is None:
        return (*batch, None, None, channels)
    if not in_height or not in_width:
        return tuple(in_shape)
    # TensorFlow also uses float32 and rounds halves to even.
    rows, columns = np.float32(in_height), np.float32(in_width)
    scale = min(np.float32(size[0]) / rows, np.float32(size[1]) / columns)
    return (*batch, max(int(np.rint(scale * rows)), 1), max(int(np.rint(scale * columns)), 1), channels)


@of_nature(rules.COSTLY)
@image_op(rules.resized(resize_shape), fresh=True)
def resize(
    images: npt.NDArray[Any],
    size: Sequence[int],
    method: str = ResizeMethod.BILINEAR,
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
) -> npt.NDArray[Any]:
    """Resize an image (H, W, C), or each image of a batch (N, H, W, C), as tf.image.resize does.

    Pixel centres lie at halves, and results are float32 in the range of the input, also where the size stays the same;
    cubic and Lanczos filters overshoot it by some percent at edges. "nearest" copies pixels and keeps the dtype. Runs
    without the GIL. Equal inputs give equal bits, whatever their layout and the batch they come in.

    | method | made of |
    |---|---|
    | "bilinear" | the 2 × 2 pixels around |
    | "bicubic" | the 4 × 4 pixels around, by Keys' cubic |
    | "area" | the pixels covered, by the share that is; `antialias` changes nothing |
    | "lanczos3", "lanczos5" | a sinc window of radius 3 or 5 |
    | "gaussian" | a Gaussian of radius 1.5 and standard deviation 0.5 |
    | "mitchellcubic" | Mitchell and Netravali's cubic of radius 2, which blurs a little |

    Args:
        images: Any number type; all but uint8 are taken as float32.
        size: (height, width) of the result, in pixels.
        method: One of `ResizeMethod`.
        preserve_aspect_ratio: Shrink one of the two sizes so that nothing is stretched.
        antialias: Widen the filter when shrinking, so that every pixel of the input counts; for photographs that become
            smaller. Without effect on "nearest" and "area".

    Returns:
        An image or batch of the given size: float32, or the dtype of the image with the method "nearest".

    Raises:
        InvalidArgumentError: If the rank, the size or the method is invalid, or if the image has no pixels.
        InvalidTypeError: If the images have no numbers.

    Example:
        >>> resize(np.array([[[0], [100]]], np.uint8), (1, 4)).ravel().tolist()
        [0.0, 25.0, 75.0, 100.0]
        >>> resize(np.array([[[0], [100]]], np.uint8), (1, 4), method="nearest").ravel().tolist()
        [0, 0, 100, 100]
        >>> resize(np.array([[[0], [100], [50]]], np.uint8), (1, 1), method="area").ravel().tolist()
        [50.0]
    """
    array = check_image("resize", images)
    height, width = check_resize(size, method)
    shape = resize_shape(array.shape, (height, width), preserve_aspect_ratio=preserve_aspect_ratio)
    if 0 in array.shape[-3:]:
        message = f"resize: an image needs at least one pixel and one channel, got shape {array.shape}."
        raise InvalidArgumentError(message)
    height, width = shape[-3] or 0, shape[-2] or 0
    batch = array if array.ndim == 4 else array[None]
    if method == ResizeMethod.NEAREST_NEIGHBOR:
        result = resize_nearest(batch, height, width)
    else:
        pixels = batch if batch.dtype in (np.uint8, np.float32) else batch.astype(np.float32)
        if method == ResizeMethod.BILINEAR and not antialias:
            result = resize_bilinear(pixels, height, width)
        else:
            result = resize_spans(pixels, height, width, method, antialias=antialias)
    return result if array.ndim == 4 else result[0]


def check_resize(size: Sequence[int], method: str, op: str = "resize") -> tuple[int, int]:
    """Return `size` as (height, width), after checks of `size` and `method`.

    Raises:
        InvalidArgumentError: either is not supported.
    """
    check_choice(op, "method", method, METHODS)
    values = numbers(size)
    if values.shape != (2,) or values.dtype.kind not in "iu" or (values < 1).any():
        raise InvalidArgumentError(f"{op}: size must be (height, width), two integers of at least 1; got {size!r}.")
    return int(values[0]), int(values[1])


def _padded(spec: LeafSpec, *, target_height: Any, target_width: Any, method: str, antialias: bool) -> TensorSpec:
    known = tensor(spec)
    shape = (*known.shape[:-3], int(target_height), int(target_width), known.shape[-1])
    return TensorSpec(shape, known.dtype if method == ResizeMethod.NEAREST_NEIGHBOR else np.float32)


@of_nature(rules.COSTLY)
@image_op(_padded, fresh=True)
def resize_with_pad(
    image: npt.NDArray[Any],
    target_height: int,
    target_width: int,
    method: str = ResizeMethod.BILINEAR,
    antialias: bool = False,
) -> npt.NDArray[Any]:
    """Resize an image (H, W, C), or each image of a batch, without distortion, and pad it with zeros to a given size.

    The result equals that of tf.image.resize_with_pad. Both sides are divided by the larger of the two ratios, in
    float32, and rounded down. If the number of rows or columns to fill is odd, the larger half is below or on the
    right. A side has at least one pixel, whereas TensorFlow raises an error. The result is float32; with "nearest" it
    has the dtype of the image.

    Args:
        image: Any number type.
        target_height: Rows of the result, at least 1.
        target_width: Columns of the result, at least 1.
        method: One of `ResizeMethod`.
        antialias: As in `resize`.

    Returns:
        An image or batch of the given size: float32, or the dtype of the image with the method "nearest".

    Raises:
        InvalidArgumentError: If the rank, the size or the method is invalid, or if the image has no pixels.
        InvalidTypeError: If the image is not an array of numbers.

    Example:
        >>> resize_with_pad(np.full((2, 4, 1), 9, np.uint8), 4, 4)[..., 0].tolist()
        [[0.0, 0.0, 0.0, 0.0], [9.0, 9.0, 9.0, 9.0], [9.0, 9.0, 9.0, 9.0], [0.0, 0.0, 0.0, 0.0]]
    """
    array = check_image("resize_with_pad", image)
    target = check_resize((target_height, target_width), method, "resize_with_pad")
    if 0 in array.shape[-3:]:
        message = f"resize_with_pad: an image needs at least one pixel and one channel, got shape {array.shape}."
        raise InvalidArgumentError(message)
    size, before = fitted(array.shape[-3], array.shape[-2], target)
    resized = resize(array, size, method, antialias=antialias)
    padded = np.zeros((*array.shape[:-3], *target, array.shape[-1]), resized.dtype)
    padded[..., before[0] : before[0] + size[0], before[1] : before[1] + size[1], :] = resized
    return padded


def fitted(height: int, width: int, target: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the size of an image fitted into `target`, and the number of zero rows and columns before it.

    >>> fitted(100, 200, (50, 50))
    ((25, 50), (12, 0))
    """
    sides, wanted = np.array([height, width], np.float32), np.array(target, np.float32)
    exact = sides / (sides / wanted).max()
    size = np.maximum(np.floor(exact).astype(np.int64), 1)
    before = np.clip(np.floor((wanted - exact) / np.float32(2)).astype(np.int64), 0, np.array(target) - size)
    return (int(size[0]), int(size[1])), (int(before[0]), int(before[1]))


Floats = npt.NDArray[np.float32]


OP = "crop_and_resize"


@of_nature(rules.COSTLY)
def crop_and_resize(
    image: npt.NDArray[Any],
    boxes: npt.ArrayLike,
    box_indices: npt.ArrayLike,
    crop_size: Sequence[int],
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
) -> Floats:
    """Crop boxes of a batch of images and resize them to one size, as tf.image.crop_and_resize does.

    A box reaches from the centre of one pixel to that of another: (0, 0, 1, 1) is all of an image, and its corners are
    the result's corners. It may reach outside, and from the right to the left, which mirrors.

    Args:
        image: (N, H, W, C) of any number type.
        boxes: (B, 4) of y1, x1, y2 and x2 as shares of the height and the width.
        box_indices: (B,) which image each box is of.
        crop_size: (height, width) of the result, in pixels.
        method: "bilinear" or "nearest".
        extrapolation_value: Value outside of the image.

    Returns:
        (B, height, width, C) float32.

    Raises:
        InvalidArgumentError: If a shape, an index, the size or the method is invalid, or if a box is not finite.
        InvalidTypeError: If the image has no numbers.

    Example:
        >>> image = np.arange(9, dtype=np.float32).reshape(1, 3, 3, 1)
        >>> crop_and_resize(image, [[0, 0, 0.5, 0.5], [1, 1, 0, 0]], [0, 0], (2, 2))[..., 0].tolist()
        [[[0.0, 1.0], [3.0, 4.0]], [[8.0, 6.0], [2.0, 0.0]]]
    """
    batch = check_image(OP, image, (4,))
    places, indices, (height, width) = _checked(batch, boxes, box_indices, crop_size)
    check_choice(OP, "method", method, ("bilinear", "nearest"))
    out = np.full((len(places), height, width, batch.shape[3]), extrapolation_value, np.float32)
    for number, (y1, x1, y2, x2) in enumerate(places):
        y, x = _positions(y1, y2, batch.shape[1], height), _positions(x1, x2, batch.shape[2], width)
        rows, columns = np.flatnonzero(_inside(y, batch.shape[1])), np.flatnonzero(_inside(x, batch.shape[2]))
        taken = _nearest if method == "nearest" else _mixed
        out[number, rows[:, None], columns] = taken(batch[indices[number]], y[rows], x[columns])
    return out


def _checked(
    batch: npt.NDArray[Any], boxes: Any, box_indices: Any, crop_size: Any
) -> tuple[Floats, npt.NDArray[np.int64], tuple[int, int]]:
    if 0 in batch.shape[1:3]:
        raise InvalidArgumentError(f"{OP}: an image needs at least one pixel, got shape {batch.shape}.")
    places, indices, size = numbers(boxes), numbers(box_indices), numbers(crop_size)
    if places.dtype.kind not in "iuf" or places.ndim != 2 or places.shape[1] != 4 or not np.isfinite(places).all():
        raise InvalidArgumentError(f"{OP}: boxes must be finite (B, 4) of y1, x1, y2 and x2; got {boxes!r:.80}.")
    if (indices.dtype.kind not in "iu" and indices.size) or indices.shape != places.shape[:1]:
        message = f"{OP}: box_indices must be {len(places)} integers, one for each box; got {box_indices!r:.80}."
        raise InvalidArgumentError(message)
    if indices.size and not (indices.min() >= 0 and indices.max() < len(batch)):
        message = f"{OP}: box_indices go from {indices.min()} to {indices.max()}, but there are {len(batch)} images."
        raise InvalidArgumentError(message)
    if size.shape != (2,) or size.dtype.kind not in "iu" or (size < 1).any():
        message = f"{OP}: crop_size must be (height, width), two integers of at least 1; got {crop_size!r}."
        raise InvalidArgumentError(message)
    return places.astype(np.float32), indices.astype(np.int64), (int(size[0]), int(size[1]))


def _positions(first: np.float32, last: np.float32, side: int, count: int) -> Floats:
    """Return the positions of the result's rows or columns along a side, in TensorFlow's order of operations."""
    far = np.float32(side - 1)
    if count == 1:
        middle = 0.5 * np.float64(first + last) * np.float64(far)
        return np.array([middle], np.float32)
    step = (last - first) * far / np.float32(count - 1)
    return first * far + np.arange(count, dtype=np.float32) * step


def _inside(places: Floats, side: int) -> npt.NDArray[np.bool_]:
    return (places >= 0) & (places <= side - 1)


def _nearest(image: npt.NDArray[Any], y: Floats, x: Floats) -> npt.NDArray[Any]:
    rows, columns = (np.floor(places.astype(np.float64) + 0.5).astype(np.int64) for places in (y, x))
    return image[rows[:, None], columns]


def _mixed(image: npt.NDArray[Any], y: Floats, x: Floats) -> Floats:
    (top, bottom), (left, right) = ((np.floor(p).astype(np.int64), np.ceil(p).astype(np.int64)) for p in (y, x))
    down, across = (y - top.astype(np.float32))[:, None, None], (x - left.astype(np.float32))[:, None]

    def along(rows: npt.NDArray[np.int64]) -> Floats:
        from_left = image[rows[:, None], left].astype(np.float32)
        return from_left + (image[rows[:, None], right].astype(np.float32) - from_left) * across

    above = along(top)
    return above + (along(bottom) - above) * down
