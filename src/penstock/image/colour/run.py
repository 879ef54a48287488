"""Each colour operation on arrays of any number type, with the compiled kernel if it is there, else the reference.

uint8 and float32 are processed directly. Other types are converted to float32 and back, with saturation, as in
tf.image.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.image.colour import means, pixels
from penstock.image.colour.pixels import in_strips
from penstock.image.dtypes import cast, convert_image_dtype
from penstock.native.library import Kernels

Array = npt.NDArray[Any]
Factors = npt.NDArray[np.float32]


_PIXELS = Kernels("penstock.image.colour.pixels_native")
_MEANS = Kernels("penstock.image.colour.means_native")


def brightness(images: Array, deltas: Factors) -> Array:
    """Apply `pixels.brightness` to each of (N, H, W, C), with a delta per image, (N,)."""
    return _by_factors(images, deltas, _PIXELS.loaded(), "brightness", in_strips(pixels.brightness))


def saturation(images: Array, factors: Factors) -> Array:
    """Apply `pixels.saturation` to each of (N, H, W, 3), with a factor per image, (N,)."""
    return _by_factors(images, factors, _PIXELS.loaded(), "saturation", in_strips(pixels.saturation))


def hue(images: Array, deltas: Factors) -> Array:
    """Apply `pixels.hue` to each of (N, H, W, 3), with a delta per image, (N,)."""
    return _by_factors(images, deltas, _PIXELS.loaded(), "hue", in_strips(pixels.hue))


def contrast(images: Array, factors: Factors) -> Array:
    """Apply `means.contrast` to each of (N, H, W, C), with a factor per image, (N,)."""
    return _by_factors(images, factors, _MEANS.loaded(), "contrast", means.contrast)


def _by_factors(
    images: Array,
    factors: Factors,
    native: ModuleType | None,
    kernel: str,
    reference: Callable[[Array, float], Array],
) -> Array:
    channels = images.shape[-1]

    def plain(values: Array) -> Array:
        made = [reference(image, float(factor)) for image, factor in zip(values, factors, strict=True)]
        return np.array(made, values.dtype).reshape(values.shape)

    def compiled(module: ModuleType, src: Array, dst: Array) -> None:
        getattr(module, kernel)(src, dst.size // len(images) // channels, channels, flat(factors), dst)

    return _through(images, native, compiled, plain)


def standardise(images: Array) -> npt.NDArray[np.float32]:
    """Apply `means.standardised` to (N, H, W, C)."""
    values = _narrow(images)
    native = _MEANS.loaded()
    if native is None or values.size == 0:
        return means.standardised(values)
    result = np.empty(values.shape, np.float32)
    native.standardise(flat(values), values[0].size, result.reshape(-1))
    return result


def normalise(image: Array, mean: npt.NDArray[np.float32], std: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Apply `means.normalised` to images of any shape. `mean` and `std` have an entry for each channel."""
    values = _narrow(image)
    native = _MEANS.loaded()
    if native is None or values.size == 0:
        return means.normalised(values, mean, std)
    result = np.empty(values.shape, np.float32)
    native.normalise(flat(values), flat(mean), flat(std), result.reshape(-1))
    return result


def to_hsv(image: Array) -> Array:
    """Apply `pixels.hsv_of` to floats of any shape."""
    return _space(image, "to_hsv", pixels.hsv_of)


def to_rgb(image: Array) -> Array:
    """Apply `pixels.rgb_of` to floats of any shape."""
    return _space(image, "to_rgb", pixels.rgb_of)


def _space(image: Array, kernel: str, reference: Callable[[Array], Array]) -> Array:
    native = _PIXELS.loaded() if image.dtype == np.float32 else None
    if native is None or image.size == 0:
        return reference(image)
    result = np.empty(image.shape, np.float32)
    getattr(native, kernel)(flat(image), result.reshape(-1))
    return result


def to_grey(image: Array) -> Array:
    """Apply `pixels.grey_of` to RGB images of any shape."""
    return _through(
        image,
        _PIXELS.loaded(),
        lambda module, src, dst: module.to_grey(src, dst),
        pixels.grey_of,
        (*image.shape[:-1], 1),
    )


def spread(image: Array) -> Array:
    """Repeat the one channel of `image` three times."""
    native = _PIXELS.loaded() if image.dtype in (np.uint8, np.float32) else None
    if native is None:
        return image.repeat(3, axis=-1)
    result = np.empty((*image.shape[:-1], 3), image.dtype)
    native.spread(flat(image), result.reshape(-1))
    return result


def look_up(images: npt.NDArray[np.uint8], entries: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Apply `pixels.looked_up` to uint8 (N, H, W, C)."""
    native = _PIXELS.loaded()
    if native is None or images.size == 0:
        return pixels.looked_up(images, entries)
    _, height, width, channels = images.shape
    result = np.empty(images.shape, np.uint8)
    native.look_up(flat(images), flat(entries), channels, height * width, result.reshape(-1))
    return result


def count(images: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Apply `pixels.counted` to uint8 (N, H, W, C)."""
    native = _PIXELS.loaded()
    if native is None or images.size == 0:
        return pixels.counted(images)
    number, height, width, channels = images.shape
    found = np.zeros((number, channels, 256), np.int64)
    native.count(flat(images), channels, height * width, found.reshape(-1))
    return found


def sharpen_by(images: Array, factor: float) -> Array:
    """Apply `pixels.sharpened` to uint8 or float32 (N, H, W, C)."""
    native = _PIXELS.loaded()
    if native is None or images.size == 0 or min(images.shape[1:3]) < 3:
        return pixels.sharpened(images, factor)
    result = np.empty(images.shape, images.dtype)
    native.sharpen(flat(images), *images.shape[1:], np.float32(1 - factor), result.reshape(-1))
    return result


def flat(array: Array) -> Array:
    """Return the array with one axis, contiguous and aligned, as kernels need it."""
    found: Array = np.require(array, requirements=["C", "A"]).reshape(-1)
    return found


def _through(
    image: Array,
    native: ModuleType | None,
    kernel: Callable[[ModuleType, Array, Array], None],
    reference: Callable[[Array], Array],
    shape: tuple[int, ...] | None = None,
) -> Array:
    values = image if image.dtype in (np.uint8, np.float32) else convert_image_dtype(image, np.float32)
    if native is None or values.size == 0:
        result = reference(values)
    else:
        result = np.empty(values.shape if shape is None else shape, values.dtype)
        kernel(native, flat(values), result.reshape(-1))
    return result if result.dtype == image.dtype else convert_image_dtype(result, image.dtype, saturate=True)


def _narrow(image: Array) -> Array:
    """Return uint8 and float32 unchanged, and other types as float32 without scaling."""
    return image if image.dtype in (np.uint8, np.float32) else cast(image, np.float32)
