"""Rotate images by an angle drawn uniformly."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import InvalidArgumentError
from penstock.image import rules
from penstock.image.checks import check_image, numbers
from penstock.image.drawn import Keys, stateless_key, uniforms
from penstock.image.geometry.affine import rotated
from penstock.trace.drawing import element_key
from penstock.trace.random_op import random_op

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


def some_angle(key: Keys, shape: Sequence[int], *, max_angle: float, **how: Any) -> dict[str, Any]:
    """An angle for an image of this shape, or one for each image of a batch."""
    return _some_angle("random_rotate", key, shape, max_angle, how)


def _some_angle(op: str, key: Keys, shape: Sequence[int], max_angle: Any, how: dict[str, Any]) -> dict[str, Any]:
    most = numbers(max_angle)
    if most.ndim or most.dtype.kind not in "iuf" or not 0 <= most < np.inf:
        message = f"{op}: max_angle must be a number of radians of at least 0, got {max_angle!r}."
        raise InvalidArgumentError(message)
    angles = uniforms(key, 1 if len(shape) == 3 else shape[0], -float(most), float(most))
    return {"angles": angles[..., 0] if len(shape) == 3 else angles, **how}


@random_op(
    "image.random_rotate",
    lambda spec, **_: rules.same_shape(spec),
    sample=some_angle,
    becomes=partial(rotated, "random_rotate"),
    batches=lambda rank: rank == 3,
)
def random_rotate(
    image: npt.NDArray[Any],
    max_angle: float,
    interpolation: str = "nearest",
    fill_mode: str = "constant",
    fill_value: npt.ArrayLike = 0.0,
    seed: int | None = None,
) -> npt.NDArray[Any]:
    """`rotate` by an angle drawn uniformly from [-max_angle, max_angle); each image of a batch (N, H, W, C) by its own.

    In a data set it follows from its seed, the epoch and the element's number, see `element_key`.

    >>> image = np.array([[[1], [2]], [[3], [4]]], np.uint8)
    >>> random_rotate(image, np.pi, seed=3)[:, :, 0].tolist()
    [[4, 3], [2, 1]]

    Args:
        image: integers or floats.
        max_angle: in radians, at least 0.
        interpolation: as in `rotate`.
        fill_mode: as in `rotate`.
        fill_value: as in `rotate`.
        seed: any integer; equal seeds choose alike for the same element.

    Raises:
        InvalidArgumentError: ranks, angles or choices that are not supported.
        InvalidTypeError: images that are neither integers nor floats.
    """
    array = check_image("random_rotate", image)
    how = {"interpolation": interpolation, "fill_mode": fill_mode, "fill_value": fill_value}
    return rotated("random_rotate", array, **some_angle(element_key(seed), array.shape, max_angle=max_angle, **how))


def stateless_random_rotate(
    image: npt.NDArray[Any],
    max_angle: float,
    seed: Any,
    interpolation: str = "nearest",
    fill_mode: str = "constant",
    fill_value: npt.ArrayLike = 0.0,
) -> npt.NDArray[Any]:
    """`random_rotate` that follows from `seed` alone, an integer or a pair of integers.

    >>> image = np.ones((32, 32, 3), np.uint8)
    >>> np.array_equal(stateless_random_rotate(image, 1.0, 7), stateless_random_rotate(image, 1.0, 7))
    True

    Raises:
        InvalidArgumentError: ranks, angles, choices or a seed that are not supported.
        InvalidTypeError: images that are neither integers nor floats.
    """
    op = "stateless_random_rotate"
    array = check_image(op, image)
    how = {"interpolation": interpolation, "fill_mode": fill_mode, "fill_value": fill_value}
    return rotated(op, array, **_some_angle(op, stateless_key(op, seed), array.shape, max_angle, how))
