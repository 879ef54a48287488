"""Rotation, translation and shear of images: transforms with numbers from an angle, a distance or a level."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.errors import InvalidArgumentError
from penstock.image import rules
from penstock.image.checks import check_image, numbers
from penstock.image.drawn import Keys, stateless_key, uniforms
from penstock.image.geometry.projective import PixelSampling, one_for_each, transform_checked
from penstock.image.rules import image_op, random_image_op
from penstock.trace.drawing import element_key
from penstock.trace.lift import of_nature

__all__ = ["random_rotate", "rotate", "shear_x", "shear_y", "stateless_random_rotate", "translate"]


@of_nature(rules.COSTLY)
@image_op(one_for_each("angles"))
def rotate(
    images: npt.NDArray[Any],
    angles: npt.ArrayLike,
    interpolation: str = "nearest",
    fill_mode: str = "constant",
    fill_value: npt.ArrayLike = 0.0,
) -> npt.NDArray[Any]:
    """Rotate an image (H, W, C), or each image of a batch (N, H, W, C), counter-clockwise about its centre.

    The size stays: what leaves it is lost. It is the rotate of TensorFlow Addons and of Keras's RandomRotation. Sine
    and cosine are those of the float32 angle, rounded to float32; TensorFlow's may differ in their last bit, which
    moves a point by less than 1e-7 of the image's size.

    Args:
        images: Integers or floats.
        angles: In radians; for a batch one for all, or one for each, (N,).
        interpolation: "nearest", or "bilinear": a mean of the four pixels around the point, cut off for integers.
        fill_mode: Beyond the edge comes the "constant" `fill_value`, the image mirrored ("reflect"), the image again
            ("wrap"), or the "nearest" pixel.
        fill_value: A number that fits the dtype, or one for each channel.

    Returns:
        Images of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the rank or an argument is invalid, or if an angle is not finite.
        InvalidTypeError: If the values are not integers or floats.

    Example:
        >>> image = np.array([[[1], [2]], [[3], [4]]], np.uint8)
        >>> rotate(image, np.pi / 2)[:, :, 0].tolist()
        [[2, 4], [1, 3]]
    """
    return rotated("rotate", images, angles, interpolation=interpolation, fill_mode=fill_mode, fill_value=fill_value)


def rotated(op: str, images: Any, angles: Any, **sampling: Any) -> npt.NDArray[Any]:
    """Apply `rotate` under the name `op`."""
    array = check_image(op, images)
    rows = rotations(angles, array.shape, op)
    return transform_checked(op, array, rows, PixelSampling(**sampling))


def rotations(angles: npt.ArrayLike, shape: Sequence[int], op: str = "rotate") -> npt.NDArray[np.float32]:
    """Return the numbers of rotations of images of this shape about their centre, one row for each angle, (N, 8).

    The operations are float32, in the order of TensorFlow Addons.

    >>> rotations(0.0, (3, 3, 1)).tolist()
    [[1.0, -0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]]

    Raises:
        InvalidArgumentError: not one angle for all images, or one for each.
    """
    exact = _each(op, "angles", angles, shape)[:, 0].astype(np.float64)
    height, width = shape[-3:-1]
    with np.errstate(invalid="ignore"):
        cosine, sine = np.cos(exact).astype(np.float32), np.sin(exact).astype(np.float32)
    right, bottom = np.float32(width - 1), np.float32(height - 1)
    rows = np.zeros((len(exact), 8), np.float32)
    rows[:, 0], rows[:, 1] = cosine, -sine
    rows[:, 2] = (right - (cosine * right - sine * bottom)) / np.float32(2)
    rows[:, 3], rows[:, 4] = sine, cosine
    rows[:, 5] = (bottom - (sine * right + cosine * bottom)) / np.float32(2)
    return rows


@image_op(one_for_each("translations", 1))
def translate(
    images: npt.NDArray[Any],
    translations: npt.ArrayLike,
    interpolation: str = "nearest",
    fill_mode: str = "constant",
    fill_value: npt.ArrayLike = 0.0,
) -> npt.NDArray[Any]:
    """Move an image (H, W, C), or each image of a batch (N, H, W, C), to the right and down, as TensorFlow Addons does.

    Args:
        images: Integers or floats.
        translations: (columns to the right, rows down) in pixels, fractions too; for a batch one pair for all, or one
            for each, (N, 2).
        interpolation: As in `rotate`.
        fill_mode: As in `rotate`.
        fill_value: As in `rotate`.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the rank or an argument is invalid, or if a translation is not finite.
        InvalidTypeError: If the values are not integers or floats.

    Example:
        >>> translate(np.array([[[1], [2], [3]]], np.uint8), [1, 0], fill_value=9).ravel().tolist()
        [9, 1, 2]
    """
    array = check_image("translate", images)
    ways = _each("translate", "translations", translations, array.shape, 2)
    rows = np.tile(np.array([1, 0, 0, 0, 1, 0, 0, 0], np.float32), (len(ways), 1))
    rows[:, 2], rows[:, 5] = -ways[:, 0], -ways[:, 1]
    return transform_checked("translate", array, rows, PixelSampling(interpolation, fill_mode, fill_value))


@image_op(one_for_each("level"))
def shear_x(
    images: npt.NDArray[Any],
    level: npt.ArrayLike,
    interpolation: str = "nearest",
    fill_mode: str = "constant",
    fill_value: npt.ArrayLike = 0.0,
) -> npt.NDArray[Any]:
    """Shear an image (H, W, C), or each image of a batch (N, H, W, C): row y moves `level * y` columns to the left.

    Args:
        images: Integers or floats.
        level: Columns per row, also negative; for a batch one for all, or one for each, (N,).
        interpolation: As in `rotate`.
        fill_mode: As in `rotate`.
        fill_value: As in `rotate`.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the rank or an argument is invalid, or if a level is not finite.
        InvalidTypeError: If the values are not integers or floats.

    Example:
        >>> shear_x(np.array([[[1], [2]], [[3], [4]]], np.uint8), 1.0)[:, :, 0].tolist()
        [[1, 2], [4, 0]]
    """
    return _shear("shear_x", 1, images, level, PixelSampling(interpolation, fill_mode, fill_value))


@image_op(one_for_each("level"))
def shear_y(
    images: npt.NDArray[Any],
    level: npt.ArrayLike,
    interpolation: str = "nearest",
    fill_mode: str = "constant",
    fill_value: npt.ArrayLike = 0.0,
) -> npt.NDArray[Any]:
    """Shear an image (H, W, C), or each image of a batch (N, H, W, C): column x moves `level * x` rows up.

    Args:
        images: Integers or floats.
        level: Rows per column, also negative; for a batch one for all, or one for each, (N,).
        interpolation: As in `rotate`.
        fill_mode: As in `rotate`.
        fill_value: As in `rotate`.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the rank or an argument is invalid, or if a level is not finite.
        InvalidTypeError: If the values are not integers or floats.

    Example:
        >>> shear_y(np.array([[[1], [2]], [[3], [4]]], np.uint8), 1.0)[:, :, 0].tolist()
        [[1, 4], [3, 0]]
    """
    return _shear("shear_y", 3, images, level, PixelSampling(interpolation, fill_mode, fill_value))


def _shear(op: str, place: int, images: Any, level: Any, sampling: PixelSampling) -> npt.NDArray[Any]:
    array = check_image(op, images)
    levels = _each(op, "level", level, array.shape)
    rows = np.tile(np.array([1, 0, 0, 0, 1, 0, 0, 0], np.float32), (len(levels), 1))
    rows[:, place] = levels[:, 0]
    return transform_checked(op, array, rows, sampling)


def _each(op: str, name: str, values: Any, shape: Sequence[int], width: int = 1) -> npt.NDArray[np.float32]:
    """Return `values` as float32: `width` numbers for all images of this shape, (1, width), or for each, (N, width)."""
    found = numbers(values)
    count = shape[0] if len(shape) == 4 else 1
    one: tuple[int, ...] = () if width == 1 else (width,)
    if found.dtype.kind in "iuf" and found.shape in (one, (1, *one), (count, *one)):
        with np.errstate(over="ignore"):
            return found.astype(np.float32).reshape(-1, width)
    wanted = "a number" if width == 1 else f"{width} numbers"
    if len(shape) == 4:
        wanted += f", or an array of shape {(count, *one)}"
    raise InvalidArgumentError(f"{op}: {name} must be {wanted} for images of shape {tuple(shape)}, got {values!r}.")


def some_angle(op: str, key: Keys, shape: Sequence[int], *, max_angle: float, **how: Any) -> dict[str, Any]:
    """Return a random angle for an image of this shape, or one for each image of a batch."""
    most = numbers(max_angle)
    if most.ndim or most.dtype.kind not in "iuf" or not 0 <= most < np.inf:
        raise InvalidArgumentError(f"{op}: max_angle must be a number of radians of at least 0, got {max_angle!r}.")
    angles = uniforms(key, 1 if len(shape) == 3 else shape[0], -float(most), float(most))
    return {"angles": angles[..., 0] if len(shape) == 3 else angles, **how}


@of_nature(rules.COSTLY)
@random_image_op(sample=partial(some_angle, "random_rotate"), becomes=partial(rotated, "random_rotate"))
def random_rotate(
    image: npt.NDArray[Any],
    max_angle: float,
    interpolation: str = "nearest",
    fill_mode: str = "constant",
    fill_value: npt.ArrayLike = 0.0,
    seed: int | None = None,
) -> npt.NDArray[Any]:
    """Call `rotate` with a random angle, uniform in [-max_angle, max_angle), another one for each image of a batch.

    In a data set the result depends on its seed, the epoch and the element's number, see `element_key`.

    Args:
        image: Integers or floats.
        max_angle: In radians, at least 0.
        interpolation: As in `rotate`.
        fill_mode: As in `rotate`.
        fill_value: As in `rotate`.
        seed: An integer. Equal seeds give equal results for the same element.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the rank or an argument is invalid.
        InvalidTypeError: If the values are not integers or floats.

    Example:
        >>> image = np.array([[[1], [2]], [[3], [4]]], np.uint8)
        >>> random_rotate(image, np.pi, seed=3)[:, :, 0].tolist()
        [[4, 3], [2, 1]]
    """
    op = "random_rotate"
    array = check_image(op, image)
    how = {"interpolation": interpolation, "fill_mode": fill_mode, "fill_value": fill_value}
    return rotated(op, array, **some_angle(op, element_key(seed), array.shape, max_angle=max_angle, **how))


@of_nature(rules.COSTLY)
def stateless_random_rotate(
    image: npt.NDArray[Any],
    max_angle: float,
    seed: Any,
    interpolation: str = "nearest",
    fill_mode: str = "constant",
    fill_value: npt.ArrayLike = 0.0,
) -> npt.NDArray[Any]:
    """Do the same as `random_rotate`, with random numbers that depend on `seed` only.

    Args:
        image: Integers or floats.
        max_angle: In radians, at least 0.
        seed: An integer or a pair of integers. The result depends on the seed and the arguments only.
        interpolation: As in `rotate`.
        fill_mode: As in `rotate`.
        fill_value: As in `rotate`.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the rank or an argument is invalid.
        InvalidTypeError: If the values are not integers or floats.

    Example:
        >>> image = np.ones((32, 32, 3), np.uint8)
        >>> np.array_equal(stateless_random_rotate(image, 1.0, 7), stateless_random_rotate(image, 1.0, 7))
        True
    """
    op = "stateless_random_rotate"
    array = check_image(op, image)
    how = {"interpolation": interpolation, "fill_mode": fill_mode, "fill_value": fill_value}
    return rotated(op, array, **some_angle(op, stateless_key(op, seed), array.shape, max_angle=max_angle, **how))
