"""Operations on batches, used for one image too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import InvalidArgumentError
from penstock.image.colour.arguments import check_number

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Array = npt.NDArray[Any]


def on_batch(operation: Callable[[Array], Array], image: Array) -> Array:
    """`operation`, which takes (N, H, W, C), of that or of one image (H, W, C).

    >>> on_batch(lambda images: images + len(images), np.zeros((1, 1, 1))).ravel().tolist()
    [1.0]
    """
    return operation(image) if image.ndim == 4 else operation(image[None])[0]


def per_image(
    op: str, name: str, value: Any, image: Array, low: float = -np.inf, high: float = np.inf
) -> npt.NDArray[np.float32]:
    """`value` for each image: one number for all, or for a batch (N, H, W, C) an array of N numbers.

    >>> per_image("adjust_brightness", "delta", 0.5, np.zeros((2, 1, 1, 3))).tolist()
    [0.5, 0.5]

    Raises:
        InvalidArgumentError: not finite, outside `low` to `high`, or not as many as there are images.
        InvalidTypeError: no numbers.
    """
    count = len(image) if image.ndim == 4 else 1
    if np.ndim(value) == 0:
        return np.full(count, check_number(op, name, value, low, high), np.float32)
    numbers = [check_number(op, name, number, low, high) for number in value]
    if image.ndim == 3 or len(numbers) != count:
        message = (
            f"{op}: {name} must be a number, or one for each image of a batch, got {len(numbers)} for {image.shape}."
        )
        raise InvalidArgumentError(message)
    return np.array(numbers, np.float32)
