"""Each colour operation on arrays of any number type, with the compiled kernel if it is there, else the reference.

uint8 and float32 are processed directly. Other types are converted to float32 and back, with saturation, as in
tf.image.
"""

from __future__ import annotations

from collections.abc import Callable
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
    return _by_factors(_PIXELS, "brightness", images, deltas, in_strips(pixels.brightness))


def saturation(images: Array, factors: Factors) -> Array:
    """Apply `pixels.saturation` to each of (N, H, W, 3), with a factor per image, (N,)."""
    return _by_factors(_PIXELS, "saturation", images, factors, in_strips(pixels.saturation))


def hue(images: Array, deltas: Factors) -> Array:
    """Apply `pixels.hue` to each of (N, H, W, 3), with a delta per image, (N,)."""
    return _by_factors(_PIXELS, "hue", images, deltas, in_strips(pixels.hue))


def contrast(images: Array, factors: Factors) -> Array:
    """Apply `means.contrast` to each of (N, H, W, C), with a factor per image, (N,)."""
    return _by_factors(_MEANS, "contrast", images, factors, means.contrast)


def _by_factors(
    kernels: Kernels, kernel: str, images: Array, factors: Factors, reference: Callable[[Array, float], Array]
) -> Array:
    channels = images.shape[-1]

    def plain(values: Array) -> Array:
        made = [reference(image, float(factor)) for image, factor in zip(values, factors, strict=True)]
        return np.array(made, values.dtype).reshape(values.shape)

    def run(values: Array) -> Array:
        result = np.empty(values.shape, values.dtype)
        pixels_of_each = values[:1].size // channels if channels else 0
        found = _compiled(kernels, kernel, values, result, pixels_of_each, channels, flat(factors))
        return plain(values) if found is None else found

    return _through(images, run)


def standardise(images: Array) -> npt.NDArray[np.float32]:
    """Apply `means.standardised` to (N, H, W, C)."""
    values = _narrow(images)
    found = _compiled(_MEANS, "standardise", values, np.empty(values.shape, np.float32), values[:1].size)
    return means.standardised(values) if found is None else found


def normalise(image: Array, mean: npt.NDArray[np.float32], std: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Apply `means.normalised` to images of any shape. `mean` and `std` have an entry for each channel."""
    values = _narrow(image)
    found = _compiled(_MEANS, "normalise", values, np.empty(values.shape, np.float32), flat(mean), flat(std))
    return means.normalised(values, mean, std) if found is None else found


def to_hsv(image: Array) -> Array:
    """Apply `pixels.hsv_of` to floats of any shape."""
    return _space(image, "to_hsv", pixels.hsv_of)


def to_rgb(image: Array) -> Array:
    """Apply `pixels.rgb_of` to floats of any shape."""
    return _space(image, "to_rgb", pixels.rgb_of)


def _space(image: Array, kernel: str, reference: Callable[[Array], Array]) -> Array:
    plain = image.dtype != np.float32
    found = None if plain else _compiled(_PIXELS, kernel, image, np.empty(image.shape, np.float32))
    return reference(image) if found is None else found


def to_grey(image: Array) -> Array:
    """Apply `pixels.grey_of` to RGB images of any shape."""

    def run(values: Array) -> Array:
        found = _compiled(_PIXELS, "to_grey", values, np.empty((*image.shape[:-1], 1), values.dtype))
        return pixels.grey_of(values) if found is None else found

    return _through(image, run)


def spread(image: Array) -> Array:
    """Repeat the one channel of `image` three times."""
    plain = image.dtype not in (np.uint8, np.float32)
    found = None if plain else _compiled(_PIXELS, "spread", image, np.empty((*image.shape[:-1], 3), image.dtype))
    return image.repeat(3, axis=-1) if found is None else found


def look_up(images: npt.NDArray[np.uint8], entries: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Apply `pixels.looked_up` to uint8 (N, H, W, C)."""
    _, height, width, channels = images.shape
    result = np.empty(images.shape, np.uint8)
    found = _compiled(_PIXELS, "look_up", images, result, flat(entries), channels, height * width)
    return pixels.looked_up(images, entries) if found is None else found


def count(images: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Apply `pixels.counted` to uint8 (N, H, W, C)."""
    number, height, width, channels = images.shape
    result = np.zeros((number, channels, 256), np.int64)
    found = _compiled(_PIXELS, "count", images, result, channels, height * width)
    return pixels.counted(images) if found is None else found


def sharpen_by(images: Array, factor: float) -> Array:
    """Apply `pixels.sharpened` to uint8 or float32 (N, H, W, C)."""
    found = None
    if min(images.shape[1:3]) >= 3:
        result = np.empty(images.shape, images.dtype)
        found = _compiled(_PIXELS, "sharpen", images, result, *images.shape[1:], np.float32(1 - factor))
    return pixels.sharpened(images, factor) if found is None else found


def _compiled(kernels: Kernels, name: str, images: Array, result: Array, *arguments: Any) -> Array | None:
    """Run a kernel from `images` into `result`. Return the result, or None without the kernel and without pixels."""
    native = kernels.loaded()
    if native is None or images.size == 0:
        return None
    getattr(native, name)(flat(images), *arguments, result.reshape(-1))
    return result


def flat(array: Array) -> Array:
    """Return the array with one axis, contiguous and aligned, as kernels need it."""
    return np.require(array, requirements=["C", "A"]).reshape(-1)


def _through(image: Array, run: Callable[[Array], Array]) -> Array:
    """Call `run` with uint8 or float32, and convert other types to float32 and back."""
    values = image if image.dtype in (np.uint8, np.float32) else convert_image_dtype(image, np.float32)
    result = run(values)
    return result if result.dtype == image.dtype else convert_image_dtype(result, image.dtype, saturate=True)


def _narrow(image: Array) -> Array:
    """Return uint8 and float32 unchanged, and other types as float32 without scaling."""
    return image if image.dtype in (np.uint8, np.float32) else cast(image, np.float32)
