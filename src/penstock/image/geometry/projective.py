"""Projective transforms of images by eight numbers. Straight lines stay straight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.block.spec import LeafSpec, TensorSpec
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.image import rules
from penstock.image.checks import check_choice, check_fills, check_image, check_sizes, numbers
from penstock.image.geometry import transform_reference as reference
from penstock.image.kernels import by_kind
from penstock.native.library import Kernels
from penstock.trace.graph import NotTraceable
from penstock.trace.lift import of_nature, tensor, traceable

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


def _rule(spec: LeafSpec, *, transforms: Any, **params: Any) -> TensorSpec:
    refuse_one_for_each(spec, np.shape(transforms)[:-1])
    return transformed(spec, **params)


def refuse_one_for_each(spec: LeafSpec, leading: Sequence[int]) -> None:
    """Refuse to trace several numbers for one image. A call with a real image raises the error.

    Raises:
        NotTraceable: there are several.
    """
    if len(tensor(spec).shape) == 3 and tuple(leading) not in ((), (1,)):
        message = "an image transformed by the numbers of several"
        raise NotTraceable(message)


@of_nature(rules.COSTLY)
@traceable("image.transform", _rule, batches=lambda rank: rank == 3)
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
    return transform_checked("transform", array, rows, interpolation, fill_mode, size, fill_value)


def _checked_images(op: str, images: Any) -> npt.NDArray[Any]:
    array = check_image(op, images)
    if array.dtype.kind == "b":
        message = f"{op} takes integers and floats, got bool."
        raise InvalidTypeError(message, hint="Cast a mask to uint8 first.")
    return array


def transform_checked(
    op: str,
    images: npt.NDArray[Any],
    transforms: npt.NDArray[Any],
    interpolation: str,
    fill_mode: str,
    size: Sequence[int] | None,
    fill_value: npt.ArrayLike,
) -> npt.NDArray[Any]:
    """Apply `transform` under the name `op`.

    There is one row of numbers for all images, or one for each (checked before).
    """
    array = _checked_images(op, images)
    how = check_transform(op, array.shape, array.dtype, transforms, interpolation, fill_mode, size, fill_value)
    height, width = array.shape[-3:-1] if size is None else size
    result = transform_batch(array if array.ndim == 4 else array[None], *how, height, width)
    return result if array.ndim == 4 else result[0]


class ProjectiveTransform(NamedTuple):
    """A transform for the kernels: rows of eight numbers, the interpolation, the mode and value outside.

    `fill` is a number, or one for each channel.
    """

    rows: npt.NDArray[np.float32]
    mode: int
    bilinear: bool
    fill: Any


def check_transform(
    op: str,
    shape: Sequence[int],
    dtype: np.dtype[Any],
    transforms: npt.NDArray[Any],
    interpolation: str,
    fill_mode: str,
    size: Sequence[int] | None,
    fill_value: npt.ArrayLike,
) -> ProjectiveTransform:
    """Return the transform of images of this shape and dtype to `size`.

    >>> row = np.array([1, 0, 0, 0, 1, 0, 0, 0])
    >>> check_transform("transform", (2, 2, 1), np.dtype(np.uint8), row, "nearest", "Reflect", None, 0)[1:]
    (1, False, np.uint8(0))

    Raises:
        InvalidArgumentError: sides or choices that are not supported, or numbers that are not finite.
    """
    interpolation, fill_mode = (name.lower() if isinstance(name, str) else name for name in (interpolation, fill_mode))
    check_choice(op, "interpolation", interpolation, INTERPOLATIONS)
    check_choice(op, "fill_mode", fill_mode, FILL_MODES)
    fill = check_fills(op, "fill_value", fill_value, dtype, shape[-1])
    height, width = shape[-3:-1] if size is None else size
    if 0 in shape[-3:-1] or max(*shape[-3:-1], height, width) >= LONGEST:
        message = f"{op}: sides must have 1 to 2**24 - 1 pixels, got shape {tuple(shape)}, to be {height} x {width}."
        raise InvalidArgumentError(message)
    with np.errstate(over="ignore"):
        rows = transforms.astype(np.float32).reshape(-1, 8)
    if not np.isfinite(rows).all():
        message = f"{op}: the numbers of a transform must be finite in float32, got {transforms.tolist()!r:.200}."
        raise InvalidArgumentError(message)
    return ProjectiveTransform(rows, FILL_MODES.index(fill_mode), interpolation == "bilinear", fill)


_NATIVE = Kernels("penstock.image.geometry.moves_native")


def transform_batch(
    images: npt.NDArray[Any],
    transforms: npt.NDArray[np.float32],
    mode: int,
    bilinear: bool,
    fill: Any,
    out_height: int,
    out_width: int,
) -> npt.NDArray[Any]:
    """Compute `reference.transform` with equal bits, in one call without the GIL for uint8 and float32.

    >>> row = np.array([[[[1], [2], [3]]]], np.uint8)
    >>> right = np.array([[1, 0, -1, 0, 1, 0, 0, 0]], np.float32)
    >>> transform_batch(row, right, reference.NEAREST, False, np.uint8(0), 1, 3).ravel().tolist()
    [1, 1, 2]
    """
    native = _NATIVE.loaded() if images.dtype in (np.uint8, np.float32) else None
    count, _, _, channels = images.shape
    result = np.empty((count, out_height, out_width, channels), images.dtype)
    if native is None or not result.size:
        result[...] = reference.transform(images, transforms, mode, bilinear, fill, out_height, out_width)
        return result
    nothing, nowhere = np.empty((0, channels), np.float32), np.empty((0, 0), np.int64)
    status = native.moves(
        *by_kind(np.require(images, requirements=["C", "A"]).reshape(-1)),
        *images.shape,
        *(nowhere, nowhere, 0.0),
        *(np.ascontiguousarray(transforms), mode, bilinear, np.full(channels, fill, images.dtype).astype(np.float32)),
        *(out_height, out_width),
        *(nowhere.reshape(-1), nothing, np.empty((count, 0, 4), np.int64), nothing),
        *by_kind(result.reshape(-1)),
    )
    if status != 0:
        message = f"transform: the kernel refused images of shape {images.shape} for a result of shape {result.shape}."
        raise InvalidArgumentError(message)
    return result
