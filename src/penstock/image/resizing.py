"""Resize images: tf.image's half-pixel centres."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import InvalidArgumentError
from penstock.image import rules
from penstock.image.checks import check_choice, check_image, numbers
from penstock.image.kernels.bilinear import resize_bilinear_into
from penstock.image.kernels.nearest import resize_nearest
from penstock.image.kernels.spans_resize import resize_spans_into
from penstock.trace.lift import traceable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


class ResizeMethod:
    """Names of the ways to resize, as in tf.image.ResizeMethod."""

    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"
    BICUBIC = "bicubic"
    AREA = "area"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    GAUSSIAN = "gaussian"
    MITCHELLCUBIC = "mitchellcubic"


METHODS = ("bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic")


def resize_shape(
    in_shape: Sequence[int | None], size: tuple[int, int], *, preserve_aspect_ratio: bool = False
) -> tuple[int | None, ...]:
    """The shape that `resize` gives for `in_shape`; None is a dimension not known yet.

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
    # In float32 and rounding halves to even, as TensorFlow does it.
    rows, columns = np.float32(in_height), np.float32(in_width)
    scale = min(np.float32(size[0]) / rows, np.float32(size[1]) / columns)
    return (*batch, max(int(np.rint(scale * rows)), 1), max(int(np.rint(scale * columns)), 1), channels)


@traceable("image.resize", rules.resized(resize_shape), batches=lambda rank: rank == 3)
def resize(
    images: npt.NDArray[Any],
    size: Sequence[int],
    method: str = ResizeMethod.BILINEAR,
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
) -> npt.NDArray[Any]:
    """Resize an image (H, W, C) or each of a batch (N, H, W, C), as tf.image.resize does.

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

    >>> resize(np.array([[[0], [100]]], np.uint8), (1, 4)).ravel().tolist()
    [0.0, 25.0, 75.0, 100.0]
    >>> resize(np.array([[[0], [100]]], np.uint8), (1, 4), method="nearest").ravel().tolist()
    [0, 0, 100, 100]
    >>> resize(np.array([[[0], [100], [50]]], np.uint8), (1, 1), method="area").ravel().tolist()
    [50.0]

    Args:
        images: any number type; all but uint8 are taken as float32.
        size: (height, width) of the result, in pixels.
        method: one of `ResizeMethod`.
        preserve_aspect_ratio: shrink one of the two sizes so that nothing is stretched.
        antialias: widen the filter when shrinking, so that every pixel of the input counts; for photographs that
            become smaller. Without effect on "nearest" and "area".

    Raises:
        InvalidArgumentError: a rank, size or method that is not supported, or an image without pixels.
        InvalidTypeError: the images are not numbers.
    """
    array = check_image("resize", images)
    height, width = check_resize(size, method)
    shape = resize_shape(array.shape, (height, width), preserve_aspect_ratio=preserve_aspect_ratio)
    if 0 in array.shape[-3:]:
        message = f"resize: an image needs at least one pixel and one channel, got shape {array.shape}."
        raise InvalidArgumentError(message)
    height, width = shape[-3] or 0, shape[-2] or 0
    if method == ResizeMethod.NEAREST_NEIGHBOR:
        batch = array if array.ndim == 4 else array[None]
        result = resize_nearest(batch, height, width)
        return result if array.ndim == 4 else result[0]
    pixels = array if array.dtype in (np.uint8, np.float32) else array.astype(np.float32)
    resized = np.empty((*array.shape[:-3], height, width, array.shape[-1]), np.float32)
    if method == ResizeMethod.BILINEAR and not antialias:
        resize_bilinear_into(pixels, resized)
    else:
        resize_spans_into(pixels, resized, method, antialias=antialias)
    return resized


def check_resize(size: Sequence[int], method: str, op: str = "resize") -> tuple[int, int]:
    """`size` as (height, width), after checking it and `method`.

    Raises:
        InvalidArgumentError: either is not supported.
    """
    check_choice(op, "method", method, METHODS)
    values = numbers(size)
    if values.shape != (2,) or values.dtype.kind not in "iu" or (values < 1).any():
        message = f"{op}: size must be (height, width), two integers of at least 1; got {size!r}."
        raise InvalidArgumentError(message)
    return int(values[0]), int(values[1])
