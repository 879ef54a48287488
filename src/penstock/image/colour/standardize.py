"""Shift and scale images: by their own mean and deviation, or by given ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.image.colour import run
from penstock.image.colour.arguments import check_numbers, on_batch
from penstock.image.rules import as_float32
from penstock.trace.lift import traceable

if TYPE_CHECKING:
    import numpy.typing as npt


@traceable("image.per_image_standardization", as_float32, batches=lambda rank: rank == 3)
def per_image_standardization(image: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Each image with mean 0 and variance 1 over all its values, as tf.image.per_image_standardization does.

    `(x - mean) / max(stddev, 1 / sqrt(number of values))`, in float32, so that an image of one colour becomes 0. Sums
    are exact for uint8 and float64 otherwise; TensorFlow's are float32, which shows in the sixth digit. Runs without
    the GIL; equal inputs give equal bits on every machine.

    >>> per_image_standardization(np.array([[[1], [3]]], np.uint8)).ravel().tolist()
    [-1.0, 1.0]

    Args:
        image: integers or floats, (H, W, C) or (N, H, W, C).

    Raises:
        InvalidArgumentError: another rank, or an image without pixels.
        InvalidTypeError: other values.
    """
    array = check_numbers("per_image_standardization", image)
    if 0 in array.shape[-3:]:
        message = f"per_image_standardization: an image needs at least one value, got shape {array.shape}."
        raise InvalidArgumentError(message)
    return on_batch(run.standardise, array)


@traceable("image.normalize", as_float32, batches=lambda rank: rank == 3)
def normalize(image: npt.NDArray[Any], mean: Any, std: Any) -> npt.NDArray[np.float32]:
    """`(image - mean) / std` for each channel, in float32, as torchvision's normalize.

    Nothing is scaled first: for uint8, `mean` and `std` are levels (those of ImageNet times 255). Runs without the GIL;
    equal inputs give equal bits on every machine, those of numpy's float32 subtraction and division.

    >>> normalize(np.array([[[10, 20, 30]]], np.uint8), [10, 10, 10], [5, 5, 10]).ravel().tolist()
    [0.0, 2.0, 2.0]

    Args:
        image: integers or floats, (H, W, C) or (N, H, W, C).
        mean: a number for each channel, or one for all.
        std: a number for each channel, or one for all; none of them 0.

    Raises:
        InvalidArgumentError: another rank, a `std` of 0, or another number of numbers.
        InvalidTypeError: other values.
    """
    array = check_numbers("normalize", image)
    means, stds = (_per_channel(name, value, array) for name, value in (("mean", mean), ("std", std)))
    if (stds == 0).any():
        message = f"normalize: std must not be 0, got {std!r:.60}."
        raise InvalidArgumentError(message, hint="A channel that never varies needs a std of 1.")
    return run.normalise(array, means, stds)


def _per_channel(name: str, value: Any, image: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    channels = image.shape[-1]
    try:
        numbers = np.asarray(value)
        if numbers.dtype.kind not in "biuf":
            raise TypeError
    except (TypeError, ValueError):
        message = f"normalize: {name} must be numbers, one for each channel or one for all; got {value!r:.60}."
        raise InvalidTypeError(message) from None
    if numbers.shape not in ((), (1,), (channels,)):
        message = f"normalize: {name} must have a number for each of {channels} channels, or one; got {value!r:.60}."
        raise InvalidArgumentError(message)
    with np.errstate(over="ignore"):
        found = numbers.astype(np.float32)
    if not np.isfinite(found).all():
        message = f"normalize: {name} must be finite, got {value!r:.60}."
        raise InvalidArgumentError(message)
    return np.broadcast_to(found, (channels,))
