"""Projective transforms of images by eight numbers. Straight lines stay straight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.block.spec import LeafSpec, TensorSpec
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.image import rules
from penstock.image.checks import check_choice, check_fills, check_image, check_sizes, numbers
from penstock.image.geometry import transform_reference as reference
from penstock.image.geometry.moves import moves_into, ready
from penstock.image.rules import image_op
from penstock.trace.graph import NotTraceable
from penstock.trace.lift import of_nature, tensor

__all__ = ["transform"]

INTERPOLATIONS = ("nearest", "bilinear")
FILL_MODES = ("constant", "reflect", "wrap", "nearest")  # the index is the number in the kernels

LONGEST = 1 << 24  # above this size, float32 does not distinguish neighbouring pixels


def transformed(spec: LeafSpec, *, output_shape: Any = None, **_: Any) -> TensorSpec:
    """Return the spec of `transform`'s result, for rules."""
    known = tensor(spec)
    if output_shape is None:
        return known
    height, width = check_sizes("transform", "output_shape", output_shape, 2, "height and width", 1)
    return TensorSpec((*known.shape[:-3], height, width, known.shape[-1]), known.dtype)


def one_for_each(name: str, rank: int = 0) -> Callable[..., TensorSpec]:
    """Return the rule of an operation whose argument `name` may be one value of this rank for each image.

    The rule refuses to trace several values for one image. A call with a real image raises the error.
    """

    def rule(spec: LeafSpec, **params: Any) -> TensorSpec:
        leading = np.shape(params[name])[: np.ndim(params[name]) - rank]
        if len(tensor(spec).shape) == 3 and leading not in ((), (1,)):
            raise NotTraceable("an image transformed by the numbers of several")
        return transformed(spec, **params)

    return rule


@of_nature(rules.COSTLY)
@image_op(one_for_each("transforms", 1))
def transform(
    images: npt.NDArray[Any],
    transforms: npt.ArrayLike,
    interpolation: str = "nearest",
    fill_mode: str = "constant",
    output_shape: Sequence[int] | None = None,
    fill_value: npt.ArrayLike = 0.0,
) -> npt.NDArray[Any]:
    """Apply a projective transformation to an image (H, W, C), or to each image of a batch (N, H, W, C).

    Eight numbers a map the pixel (x, y) of the result to the point `((a0 x + a1 y + a2) / k, (a3 x + a4 y + a5) / k)`
    of the image, where `k = a6 x + a7 y + 1`; x counts columns and y rows, from 0. It is TensorFlow's
    ImageProjectiveTransformV3, with the same bits. The function releases the GIL for uint8 and float32, a batch in one
    call.

    Args:
        images: Integers or floats.
        transforms: (8,), or for a batch (N, 8).
        interpolation: "nearest", or "bilinear": a mean of the four pixels around the point, cut off for integers.
        fill_mode: Beyond the edge comes the "constant" `fill_value`, the image mirrored ("reflect"), the image again
            ("wrap"), or the "nearest" pixel.
        output_shape: (height, width) of the result; that of the image by default.
        fill_value: A number that fits the dtype, or one for each channel.

    Returns:
        Images of the same dtype.

    Raises:
        InvalidArgumentError: If the rank or an argument is invalid, or if a number is not finite.
        InvalidTypeError: If the values are not integers or floats.

    Example:
        >>> row = np.array([[[1], [2], [3]]], np.uint8)
        >>> to_the_left = [1, 0, 1, 0, 1, 0, 0, 0]
        >>> [transform(row, to_the_left, fill_mode=mode).ravel().tolist() for mode in ("constant", "reflect", "wrap")]
        [[2, 3, 0], [2, 3, 3], [2, 3, 1]]
    """
    array = _checked_images("transform", images)
    count = len(array) if array.ndim == 4 else 1
    rows = numbers(transforms)
    if rows.dtype.kind not in "iuf" or rows.shape not in ((8,), (1, 8), (count, 8)):
        wanted = "8 numbers" if array.ndim == 3 else f"8 numbers or an array of shape ({count}, 8)"
        message = f"transform: transforms must be {wanted} for images of shape {array.shape}, got {transforms!r}."
        raise InvalidArgumentError(message)
    size = None
    if output_shape is not None:
        size = check_sizes("transform", "output_shape", output_shape, 2, "height and width", 1)
    return transform_checked("transform", array, rows, PixelSampling(interpolation, fill_mode, fill_value), size)


def _checked_images(op: str, images: Any) -> npt.NDArray[Any]:
    array = check_image(op, images)
    if array.dtype.kind == "b":
        raise InvalidTypeError(f"{op} takes integers and floats, got bool.", hint="Cast a mask to uint8 first.")
    return array


class PixelSampling(NamedTuple):
    """The arguments of `transform` of these names: the values between pixels and outside of the image."""

    interpolation: str
    fill_mode: str
    fill_value: npt.ArrayLike


def transform_checked(
    op: str,
    images: npt.NDArray[Any],
    transforms: npt.NDArray[Any],
    sampling: PixelSampling,
    size: tuple[int, ...] | None = None,
) -> npt.NDArray[Any]:
    """Apply `transform` under the name `op`.

    There is one row of numbers for all images, or one for each (checked before).
    """
    array = _checked_images(op, images)
    size = size or array.shape[-3:-1]
    how = check_transform(op, array.shape, array.dtype, transforms, sampling, size)
    result = transform_batch(array if array.ndim == 4 else array[None], how, size)
    return result if array.ndim == 4 else result[0]


def check_transform(
    op: str,
    shape: Sequence[int],
    dtype: np.dtype[Any],
    transforms: npt.NDArray[Any],
    sampling: PixelSampling,
    size: tuple[int, ...],
) -> reference.ProjectiveTransform:
    """Return the transform of images of this shape and dtype to `size`.

    Raises InvalidArgumentError for sides or choices that are not supported, and for numbers that are not finite.

    >>> row = np.array([1, 0, 0, 0, 1, 0, 0, 0])
    >>> sampling = PixelSampling("nearest", "Reflect", 0)
    >>> check_transform("transform", (2, 2, 1), np.dtype(np.uint8), row, sampling, (2, 2))[1:]
    (1, False, np.uint8(0))
    """
    interpolation, fill_mode = (name.lower() if isinstance(name, str) else name for name in sampling[:2])
    check_choice(op, "interpolation", interpolation, INTERPOLATIONS)
    check_choice(op, "fill_mode", fill_mode, FILL_MODES)
    fill = check_fills(op, "fill_value", sampling.fill_value, dtype, shape[-1])
    if 0 in shape[-3:-1] or max(*shape[-3:-1], *size) >= LONGEST:
        message = f"{op}: sides must have 1 to 2**24 - 1 pixels, got shape {tuple(shape)}, to be {size[0]} x {size[1]}."
        raise InvalidArgumentError(message)
    with np.errstate(over="ignore"):
        rows = transforms.astype(np.float32).reshape(-1, 8)
    if not np.isfinite(rows).all():
        message = f"{op}: the numbers of a transform must be finite in float32, got {transforms.tolist()!r:.200}."
        raise InvalidArgumentError(message)
    return reference.ProjectiveTransform(rows, FILL_MODES.index(fill_mode), interpolation == "bilinear", fill)


def transform_batch(
    images: npt.NDArray[Any], how: reference.ProjectiveTransform, size: tuple[int, ...]
) -> npt.NDArray[Any]:
    """Compute `reference.transform` with equal bits, in one call without the GIL for uint8 and float32.

    >>> row = np.array([[[[1], [2], [3]]]], np.uint8)
    >>> right = np.array([[1, 0, -1, 0, 1, 0, 0, 0]], np.float32)
    >>> how = reference.ProjectiveTransform(right, reference.NEAREST, False, np.uint8(0))
    >>> transform_batch(row, how, (1, 3)).ravel().tolist()
    [1, 1, 2]
    """
    if not ready() or images.dtype not in (np.uint8, np.float32) or not len(images):
        return reference.transform(images, how, size)
    result = np.empty((len(images), *size, images.shape[3]), images.dtype)
    if result.size:
        moves_into(images, result, None, how)
    return result
