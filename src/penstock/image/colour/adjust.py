"""Changes of brightness, contrast, sharpness, saturation and hue, by a given or a random number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from penstock.image import rules
from penstock.image.colour import run
from penstock.image.colour.arguments import (
    around_zero,
    between,
    check_colours,
    check_kind,
    check_number,
    check_numbers,
    composed,
    on_batch,
    per_image,
)
from penstock.image.drawn import Keys, stateless_key
from penstock.image.rules import image_op, random_image_op
from penstock.trace.drawing import element_key
from penstock.trace.lift import of_nature

__all__ = ["adjust_brightness", "adjust_contrast", "adjust_hue", "adjust_saturation", "adjust_sharpness"]
__all__ += ["random_brightness", "random_contrast", "random_hue", "random_saturation", "stateless_random_brightness"]
__all__ += ["stateless_random_contrast", "stateless_random_hue", "stateless_random_saturation"]


@image_op()
def adjust_brightness(image: npt.NDArray[Any], delta: Any) -> npt.NDArray[Any]:
    """Add `delta` to each value of an image (H, W, C) or a batch (N, H, W, C), as tf.image.adjust_brightness does.

    `delta` is in units of the full range: 0.1 adds a tenth of 255 to uint8. Integers are computed in float32 from 0 to
    1, are truncated and clipped to the limits of their dtype; floats are not clipped. The result has the dtype of the
    image. The function releases the GIL; equal inputs give equal bits on every machine, those of TensorFlow for uint8
    and float32.

    Args:
        image: Integers or floats.
        delta: A finite number, or for a batch an array of N.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the image has another rank, or if `delta` is not finite.
        InvalidTypeError: If the values are not integers or floats.

    Example:
        >>> import numpy as np
        >>> adjust_brightness(np.array([[[0], [100], [250]]], np.uint8), 0.1).ravel().tolist()
        [25, 125, 255]
    """
    array = check_numbers("adjust_brightness", image)
    deltas = per_image("adjust_brightness", "delta", delta, array)
    return on_batch(lambda images: run.brightness(images, deltas), array)


def some_delta(key: Keys, shape: Sequence[int], *, max_delta: Any) -> dict[str, Any]:
    """Return random arguments of `adjust_brightness` for an image of this shape."""
    return {"delta": around_zero("random_brightness", key, max_delta)}


@random_image_op(sample=some_delta, becomes=adjust_brightness)
def random_brightness(image: npt.NDArray[Any], max_delta: float, seed: int | None = None) -> npt.NDArray[Any]:
    """Call `adjust_brightness` with a random delta, uniform in [-max_delta, max_delta), the same for a whole batch.

    In a data set the result depends on its seed, the epoch and the element's number, see `element_key`.

    Args:
        image: Integers or floats, (H, W, C) or (N, H, W, C).
        max_delta: At least 0, in units of the full range.
        seed: An integer. Equal seeds give equal results for the same element.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the image has another rank, or if `max_delta` is negative.
        InvalidTypeError: If the values are not integers or floats.

    Example:
        >>> import numpy as np
        >>> image = np.full((1, 1, 3), 100, np.uint8)
        >>> bool((random_brightness(image, 0.2, seed=1) == random_brightness(image, 0.2, seed=1)).all())
        True
    """
    array = check_numbers("random_brightness", image)
    return adjust_brightness(array, **some_delta(element_key(seed), array.shape, max_delta=max_delta))


@composed(check_numbers)
def stateless_random_brightness(image: npt.NDArray[Any], max_delta: float, seed: Any) -> npt.NDArray[Any]:
    """Do the same as `random_brightness`, with random numbers that depend on `seed` only.

    Args:
        image: Integers or floats, (H, W, C) or (N, H, W, C).
        max_delta: At least 0, in units of the full range.
        seed: An integer or a pair of integers. The result depends on the seed and the arguments only.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the image has another rank, if `max_delta` is negative, or if the seed is invalid.
        InvalidTypeError: If the values are not integers or floats.

    Example:
        >>> import numpy as np
        >>> image = np.full((1, 1, 3), 100, np.uint8)
        >>> stateless_random_brightness(image, 0.2, (1, 2)).ravel().tolist()
        [141, 141, 141]
    """
    op = "stateless_random_brightness"
    return adjust_brightness(image, around_zero(op, stateless_key(op, seed), max_delta))


@image_op()
def adjust_contrast(images: npt.NDArray[Any], contrast_factor: Any) -> npt.NDArray[Any]:
    """Multiply the distance of each value from the mean of its channel, as tf.image.adjust_contrast does.

    Each channel of each image has its own mean: `(x - mean) * contrast_factor + mean`. Integers are computed in float32
    from 0 to 1, are truncated and clipped to the limits of their dtype; floats are not clipped. The result keeps the
    dtype. The function releases the GIL. Equal inputs give equal bits on every machine, those of TensorFlow for uint8
    and float32.

    Args:
        images: Integers or floats, (H, W, C) or (N, H, W, C).
        contrast_factor: A finite number, or for a batch an array of N.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the image has another rank, or if the factor is not finite.
        InvalidTypeError: If the values are not integers or floats.

    Example:
        >>> import numpy as np
        >>> adjust_contrast(np.array([[[0], [100]]], np.uint8), 0.5).ravel().tolist()
        [25, 75]
    """
    array = check_numbers("adjust_contrast", images)
    factors = per_image("adjust_contrast", "contrast_factor", contrast_factor, array)
    return on_batch(lambda batch: run.contrast(batch, factors), array)


def some_contrast(key: Keys, shape: Sequence[int], *, lower: Any, upper: Any) -> dict[str, Any]:
    """Return random arguments of `adjust_contrast` for an image of this shape."""
    return {"contrast_factor": between("random_contrast", key, lower, upper)}


@random_image_op(sample=some_contrast, becomes=adjust_contrast)
def random_contrast(image: npt.NDArray[Any], lower: float, upper: float, seed: int | None = None) -> npt.NDArray[Any]:
    """Call `adjust_contrast` with a random factor, uniform in [lower, upper), the same for a whole batch.

    In a data set the result depends on its seed, the epoch and the element's number, see `element_key`.

    Args:
        image: Integers or floats, (H, W, C) or (N, H, W, C).
        lower: At least 0.
        upper: Greater than `lower`.
        seed: An integer. Equal seeds give equal results for the same element.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the image has another rank, or unless `0 <= lower < upper`.
        InvalidTypeError: If the values are not integers or floats.

    Example:
        >>> import numpy as np
        >>> image = np.array([[[0], [100]]], np.uint8)
        >>> bool((random_contrast(image, 0.5, 1.5, seed=1) == random_contrast(image, 0.5, 1.5, seed=1)).all())
        True
    """
    array = check_numbers("random_contrast", image)
    return adjust_contrast(array, **some_contrast(element_key(seed), array.shape, lower=lower, upper=upper))


@composed(check_numbers)
def stateless_random_contrast(image: npt.NDArray[Any], lower: float, upper: float, seed: Any) -> npt.NDArray[Any]:
    """Do the same as `random_contrast`, with random numbers that depend on `seed` only.

    Args:
        image: Integers or floats, (H, W, C) or (N, H, W, C).
        lower: At least 0.
        upper: Greater than `lower`.
        seed: An integer or a pair of integers. The result depends on the seed and the arguments only.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the image has another rank, unless `0 <= lower < upper`, or if the seed is invalid.
        InvalidTypeError: If the values are not integers or floats.

    Example:
        >>> import numpy as np
        >>> image = np.array([[[0], [100]]], np.uint8)
        >>> stateless_random_contrast(image, 0.5, 1.5, (1, 2)).ravel().tolist()
        [0, 120]
    """
    op = "stateless_random_contrast"
    return adjust_contrast(image, between(op, stateless_key(op, seed), lower, upper))


@image_op()
def adjust_sharpness(image: npt.NDArray[Any], sharpness_factor: float) -> npt.NDArray[Any]:
    """Blend an image (H, W, C), or each image of a batch (N, H, W, C), with a smoothed copy of it.

    `factor * x + (1 - factor) * smooth(x)`, where `smooth` weighs a pixel 5/13 and its eight neighbours 1/13 each, and
    leaves the border. As torchvision's adjust_sharpness, which is PIL's ImageEnhance.Sharpness. uint8 is truncated and
    stops at 0 and 255, float32 at 0 and 1; an image of less than 3 rows or columns stays. The function releases the
    GIL.

    Args:
        image: uint8 or float32.
        sharpness_factor: 0 smooths, 1 changes nothing, 2 sharpens; at least 0.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the image has another rank, or if the factor is negative.
        InvalidTypeError: If the image has another dtype.

    Example:
        >>> import numpy as np
        >>> adjust_sharpness(np.array([0, 0, 0, 0, 13, 0, 0, 0, 0], np.uint8).reshape(3, 3, 1), 2)[1, 1].tolist()
        [21]
    """
    array = check_kind("adjust_sharpness", image, floats=True)
    factor = check_number("adjust_sharpness", "sharpness_factor", sharpness_factor, 0)
    return on_batch(lambda images: run.sharpen_by(images, factor), array)


MAX_DELTA = 0.5  # half a circle in either direction covers all hues


@of_nature(rules.COSTLY)
@image_op()
def adjust_hue(image: npt.NDArray[Any], delta: Any) -> npt.NDArray[Any]:
    """Rotate the hue of an RGB image (H, W, 3) or a batch (N, H, W, 3), as tf.image.adjust_hue does.

    Along the hexagon of HSV (https://en.wikipedia.org/wiki/HSL_and_HSV#Hue_and_chroma); the largest and the smallest
    value of a pixel stay. Integers are computed in float32 from 0 to 1 and are truncated. The result has the dtype of
    the image. The function releases the GIL; equal inputs give equal bits on every machine, those of TensorFlow for
    uint8 and float32.

    Args:
        image: Integers or floats.
        delta: Share of the full circle, from -1 to 1; for a batch also an array of N.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the image has another rank or number of channels, or if `delta` is out of range.
        InvalidTypeError: If the values are not integers or floats.

    Example:
        >>> import numpy as np
        >>> adjust_hue(np.array([[[200, 100, 50]]], np.uint8), 1 / 3).ravel().tolist()
        [50, 200, 100]
    """
    array = check_colours("adjust_hue", image)
    deltas = per_image("adjust_hue", "delta", delta, array, -1, 1)
    return on_batch(lambda images: run.hue(images, deltas), array)


def some_turn(key: Keys, shape: Sequence[int], *, max_delta: Any) -> dict[str, Any]:
    """Return random arguments of `adjust_hue` for an image of this shape."""
    return {"delta": around_zero("random_hue", key, max_delta, MAX_DELTA)}


@of_nature(rules.COSTLY)
@random_image_op(sample=some_turn, becomes=adjust_hue)
def random_hue(image: npt.NDArray[Any], max_delta: float, seed: int | None = None) -> npt.NDArray[Any]:
    """Call `adjust_hue` with a random delta, uniform in [-max_delta, max_delta), the same for a whole batch.

    In a data set the result depends on its seed, the epoch and the element's number, see `element_key`.

    Args:
        image: Integers or floats, (H, W, 3) or (N, H, W, 3).
        max_delta: Share of the full circle, from 0 to 0.5.
        seed: An integer. Equal seeds give equal results for the same element.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the image has another rank or number of channels, or if `max_delta` is not in [0, 0.5].
        InvalidTypeError: If the values are not integers or floats.

    Example:
        >>> import numpy as np
        >>> image = np.array([[[200, 100, 50]]], np.uint8)
        >>> bool((random_hue(image, 0.2, seed=1) == random_hue(image, 0.2, seed=1)).all())
        True
    """
    array = check_colours("random_hue", image)
    return adjust_hue(array, **some_turn(element_key(seed), array.shape, max_delta=max_delta))


@of_nature(rules.COSTLY)
@composed(check_colours)
def stateless_random_hue(image: npt.NDArray[Any], max_delta: float, seed: Any) -> npt.NDArray[Any]:
    """Do the same as `random_hue`, with random numbers that depend on `seed` only.

    Args:
        image: Integers or floats, (H, W, 3) or (N, H, W, 3).
        max_delta: Share of the full circle, from 0 to 0.5.
        seed: An integer or a pair of integers. The result depends on the seed and the arguments only.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the image has another rank or number of channels, if `max_delta` is not in [0, 0.5], or
            if the seed is invalid.
        InvalidTypeError: If the values are not integers or floats.

    Example:
        >>> import numpy as np
        >>> image = np.array([[[200, 100, 50]]], np.uint8)
        >>> stateless_random_hue(image, 0.2, (1, 2)).ravel().tolist()
        [156, 200, 50]
    """
    op = "stateless_random_hue"
    return adjust_hue(image, around_zero(op, stateless_key(op, seed), max_delta, MAX_DELTA))


@of_nature(rules.COSTLY)
@image_op()
def adjust_saturation(image: npt.NDArray[Any], saturation_factor: Any) -> npt.NDArray[Any]:
    """Multiply the saturation of an RGB image (H, W, 3) or a batch (N, H, W, 3), as tf.image.adjust_saturation does.

    The saturation is that of HSV (https://en.wikipedia.org/wiki/HSL_and_HSV) and is limited to 1; a factor of 0 gives
    grey. Integers are computed in float32 from 0 to 1 and are truncated. The result has the dtype of the image. The
    function releases the GIL. Equal inputs give equal bits on every machine, those of TensorFlow for uint8 and float32.
    (A float pixel whose hue rounds up to the full circle keeps its colour, whereas TensorFlow makes it grey.)

    Args:
        image: Integers or floats.
        saturation_factor: A finite number, or for a batch an array of N.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the image has another rank or number of channels, or if the factor is not finite.
        InvalidTypeError: If the values are not integers or floats.

    Example:
        >>> import numpy as np
        >>> adjust_saturation(np.array([[[200, 100, 50]]], np.uint8), 0.5).ravel().tolist()
        [200, 150, 125]
    """
    array = check_colours("adjust_saturation", image)
    factors = per_image("adjust_saturation", "saturation_factor", saturation_factor, array)
    return on_batch(lambda images: run.saturation(images, factors), array)


def some_saturation(key: Keys, shape: Sequence[int], *, lower: Any, upper: Any) -> dict[str, Any]:
    """Return random arguments of `adjust_saturation` for an image of this shape."""
    return {"saturation_factor": between("random_saturation", key, lower, upper)}


@of_nature(rules.COSTLY)
@random_image_op(sample=some_saturation, becomes=adjust_saturation)
def random_saturation(image: npt.NDArray[Any], lower: float, upper: float, seed: int | None = None) -> npt.NDArray[Any]:
    """Call `adjust_saturation` with a random factor, uniform in [lower, upper), the same for a whole batch.

    In a data set the result depends on its seed, the epoch and the element's number, see `element_key`.

    Args:
        image: Integers or floats, (H, W, 3) or (N, H, W, 3).
        lower: At least 0.
        upper: Greater than `lower`.
        seed: An integer. Equal seeds give equal results for the same element.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the image has another rank or number of channels, or unless `0 <= lower < upper`.
        InvalidTypeError: If the values are not integers or floats.

    Example:
        >>> import numpy as np
        >>> image = np.array([[[200, 100, 50]]], np.uint8)
        >>> bool((random_saturation(image, 0.5, 1.5, seed=1) == random_saturation(image, 0.5, 1.5, seed=1)).all())
        True
    """
    array = check_colours("random_saturation", image)
    return adjust_saturation(array, **some_saturation(element_key(seed), array.shape, lower=lower, upper=upper))


@of_nature(rules.COSTLY)
@composed(check_colours)
def stateless_random_saturation(image: npt.NDArray[Any], lower: float, upper: float, seed: Any) -> npt.NDArray[Any]:
    """Do the same as `random_saturation`, with random numbers that depend on `seed` only.

    Args:
        image: Integers or floats, (H, W, 3) or (N, H, W, 3).
        lower: At least 0.
        upper: Greater than `lower`.
        seed: An integer or a pair of integers. The result depends on the seed and the arguments only.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the image has another rank or number of channels, unless `0 <= lower < upper`, or if
            the seed is invalid.
        InvalidTypeError: If the values are not integers or floats.

    Example:
        >>> import numpy as np
        >>> image = np.array([[[200, 100, 50]]], np.uint8)
        >>> stateless_random_saturation(image, 0.5, 1.5, (1, 2)).ravel().tolist()
        [200, 66, 0]
    """
    op = "stateless_random_saturation"
    return adjust_saturation(image, between(op, stateless_key(op, seed), lower, upper))
