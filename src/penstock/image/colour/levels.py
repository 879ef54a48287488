"""Functions that change each value by itself, or by statistics of the image.

The module has gamma, invert, posterize and similar functions. It also shifts and scales by given numbers, or by an
image's own mean and deviation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.image import rules
from penstock.image.colour import pixels, run
from penstock.image.colour.arguments import check_kind, check_number, check_numbers, on_batch
from penstock.image.dtypes import convert_image_dtype
from penstock.image.rules import as_float32, image_op
from penstock.trace.lift import of_nature

__all__ = ["adjust_gamma", "autocontrast", "equalize", "invert", "normalize", "per_image_standardization", "posterize"]
__all__ += ["solarize"]


@image_op()
def adjust_gamma(image: npt.NDArray[Any], gamma: float = 1, gain: float = 1) -> npt.NDArray[Any]:
    """Compute `gain * image ** gamma`, as tf.image.adjust_gamma does.

    Integers are computed in float32 from 0 to 1, are truncated and clipped to the limits of their dtype; a float below
    0 has a power only if `gamma` is whole, and is NaN otherwise. The result has the dtype of the image. A `gamma` above
    1 makes the image darker, one below 1 brighter (https://en.wikipedia.org/wiki/Gamma_correction). The function
    releases the GIL; uint8 equals TensorFlow's levels, float32 differs from it in the last bits of the power.

    Args:
        image: Integers or floats.
        gamma: At least 0.
        gain: Any finite number.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the image has another rank, if `gamma` is negative, or if a number is not finite.
        InvalidTypeError: If the values are not integers or floats.

    Example:
        >>> adjust_gamma(np.array([[[0], [128], [255]]], np.uint8), 2).ravel().tolist()
        [0, 64, 255]
    """
    array = check_numbers("adjust_gamma", image)
    power, factor = check_number("adjust_gamma", "gamma", gamma, 0), check_number("adjust_gamma", "gain", gain)
    if array.dtype == np.uint8:
        table = pixels.power_table(power, factor)
        return on_batch(lambda images: run.look_up(images, table), array)
    made = pixels.powers(np.asarray(convert_image_dtype(array, np.float32)), power, factor)
    return convert_image_dtype(made, array.dtype, saturate=True)


@image_op()
def invert(image: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Invert an image (H, W, C) or a batch (N, H, W, C): `255 - x` for uint8, `1 - x` for float32.

    As torchvision's invert, which is PIL's ImageOps.invert.

    Args:
        image: uint8 or float32.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the image has another rank.
        InvalidTypeError: If the image has another dtype.

    Example:
        >>> invert(np.array([[[0], [100]]], np.uint8)).ravel().tolist()
        [255, 155]
    """
    array = check_kind("invert", image, floats=True)
    return np.bitwise_not(array) if array.dtype == np.uint8 else np.float32(1) - array


@image_op()
def posterize(image: npt.NDArray[np.uint8], bits: int) -> npt.NDArray[np.uint8]:
    """Keep the highest `bits` bits of each value of a uint8 image (H, W, C) or batch (N, H, W, C).

    As torchvision's posterize, which is PIL's ImageOps.posterize.

    Args:
        image: uint8.
        bits: From 0 (black) to 8 (unchanged).

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the image has another rank, or if `bits` is out of range.
        InvalidTypeError: If the image has another dtype.

    Example:
        >>> posterize(np.array([[[100], [255]]], np.uint8), 2).ravel().tolist()
        [64, 192]
    """
    array = check_kind("posterize", image, floats=False)
    kept = check_number("posterize", "bits", bits, 0, 8)
    if kept != int(kept):
        raise InvalidArgumentError(f"posterize: bits must be an integer from 0 to 8, got {bits!r}.")
    return array & np.uint8(256 - (1 << (8 - int(kept))))


@image_op()
def solarize(image: npt.NDArray[Any], threshold: float = 128) -> npt.NDArray[Any]:
    """Invert the values of an image (H, W, C) or a batch (N, H, W, C) that are at least `threshold`.

    As torchvision's solarize, which is PIL's ImageOps.solarize.

    Args:
        image: uint8 or float32.
        threshold: From 0 to 256 for uint8 (256 changes nothing), from 0 to 1 for float32.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the image has another rank, or if the threshold is out of range.
        InvalidTypeError: If the image has another dtype.

    Example:
        >>> solarize(np.array([[[100], [200]]], np.uint8), 128).ravel().tolist()
        [100, 55]
    """
    array = check_kind("solarize", image, floats=True)
    if array.dtype == np.uint8:
        first = int(np.ceil(check_number("solarize", "threshold", threshold, 0, 256)))
        levels = np.arange(256, dtype=np.uint8)
        table = np.where(np.arange(256) >= first, 255 - levels, levels)
        return on_batch(lambda images: run.look_up(images, table), array)
    least = np.float32(check_number("solarize", "threshold", threshold, 0, 1))
    return np.where(array >= least, np.float32(1) - array, array)


@of_nature(rules.COSTLY)
@image_op()
def autocontrast(image: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Stretch the values of each channel of an image or batch to the range from 0 to 255.

    `(x - lowest) * (255 / (highest - lowest))` in float32, truncated, as torchvision's autocontrast; PIL's
    ImageOps.autocontrast may differ by one level. The function releases the GIL.

    Args:
        image: uint8, (H, W, C) or (N, H, W, C).

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the image has another rank.
        InvalidTypeError: If the image has another dtype.

    Example:
        >>> autocontrast(np.array([[[10], [20], [30]]], np.uint8)).ravel().tolist()
        [0, 127, 255]
    """
    array = check_kind("autocontrast", image, floats=False)
    return on_batch(lambda images: _by_counts(images, pixels.stretching), array)


@of_nature(rules.COSTLY)
@image_op()
def equalize(image: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Change the levels of each channel of each image so that they are about equally frequent.

    As torchvision's equalize, which is PIL's ImageOps.equalize. The function releases the GIL.

    Args:
        image: uint8, (H, W, C) or (N, H, W, C).

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the image has another rank.
        InvalidTypeError: If the image has another dtype.

    Example:
        >>> equalize(np.arange(256, dtype=np.uint8).repeat(4).reshape(32, 32, 1) // 2)[-1, -1].tolist()
        [255]
    """
    array = check_kind("equalize", image, floats=False)
    return on_batch(lambda images: _by_counts(images, pixels.equalising), array)


def _by_counts(images: npt.NDArray[np.uint8], tables_of: Any) -> npt.NDArray[np.uint8]:
    return run.look_up(images, tables_of(run.count(images)))


@image_op(as_float32)
def per_image_standardization(image: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Scale each image to mean 0 and variance 1, as tf.image.per_image_standardization does.

    `(x - mean) / max(stddev, 1 / sqrt(number of values))`, in float32, so that an image of one colour becomes 0. Sums
    are exact for uint8 and float64 otherwise; TensorFlow's are float32, which shows in the sixth digit. Runs without
    the GIL; equal inputs give equal bits on every machine.

    Args:
        image: Integers or floats, (H, W, C) or (N, H, W, C).

    Returns:
        A float32 image or batch of the same shape.

    Raises:
        InvalidArgumentError: If the image has another rank or no pixels.
        InvalidTypeError: If the values are not integers or floats.

    Example:
        >>> per_image_standardization(np.array([[[1], [3]]], np.uint8)).ravel().tolist()
        [-1.0, 1.0]
    """
    array = check_numbers("per_image_standardization", image)
    if 0 in array.shape[-3:]:
        message = f"per_image_standardization: an image needs at least one value, got shape {array.shape}."
        raise InvalidArgumentError(message)
    return on_batch(run.standardise, array)


@image_op(as_float32)
def normalize(image: npt.NDArray[Any], mean: Any, std: Any) -> npt.NDArray[np.float32]:
    """Compute `(image - mean) / std` for each channel in float32, as torchvision's normalize does.

    Nothing is scaled first: for uint8, `mean` and `std` are levels (those of ImageNet times 255). The function releases
    the GIL; equal inputs give equal bits on every machine, those of numpy's float32 subtraction and division.

    Args:
        image: Integers or floats, (H, W, C) or (N, H, W, C).
        mean: A number for each channel, or one for all.
        std: A number for each channel, or one for all; none of them 0.

    Returns:
        A float32 image or batch of the same shape.

    Raises:
        InvalidArgumentError: If the image has another rank, if a `std` is 0, or if the numbers do not fit the channels.
        InvalidTypeError: If the values are not integers or floats.

    Example:
        >>> normalize(np.array([[[10, 20, 30]]], np.uint8), [10, 10, 10], [5, 5, 10]).ravel().tolist()
        [0.0, 2.0, 2.0]
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
        raise InvalidArgumentError(f"normalize: {name} must be finite, got {value!r:.60}.")
    return np.broadcast_to(found, (channels,))
