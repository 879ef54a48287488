"""Turn the hue of RGB images and change their saturation, by a given number or one drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.image import rules
from penstock.image.colour import run
from penstock.image.colour.arguments import around_zero, between, check_colours, composed, on_batch, per_image
from penstock.image.drawn import Keys, stateless_key
from penstock.trace.drawing import element_key
from penstock.trace.lift import traceable
from penstock.trace.nature import of_nature
from penstock.trace.random_op import random_op

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


MAX_DELTA = 0.5  # half a circle in either direction is all of it


@of_nature(rules.COSTLY)
@traceable("image.adjust_hue", rules.same_shape, batches=lambda rank: rank == 3)
def adjust_hue(image: npt.NDArray[Any], delta: Any) -> npt.NDArray[Any]:
    """Turn the hue of an RGB image (H, W, 3) or a batch (N, H, W, 3), as tf.image.adjust_hue does.

    Along the hexagon of HSV (https://en.wikipedia.org/wiki/HSL_and_HSV#Hue_and_chroma); the largest and the smallest
    value of a pixel stay. Integers are computed in float32 from 0 to 1 and come back truncated. The result has the
    dtype of the image. Runs without the GIL; equal inputs give equal bits on every machine, those of TensorFlow for
    uint8 and float32.

    >>> import numpy as np
    >>> adjust_hue(np.array([[[200, 100, 50]]], np.uint8), 1 / 3).ravel().tolist()
    [50, 200, 100]

    Args:
        image: integers or floats.
        delta: share of the full circle, from -1 to 1; for a batch also an array of N.

    Raises:
        InvalidArgumentError: another rank or number of channels, or a `delta` that is no such number.
        InvalidTypeError: other values.
    """
    array = check_colours("adjust_hue", image)
    deltas = per_image("adjust_hue", "delta", delta, array, -1, 1)
    return on_batch(lambda images: run.hue(images, deltas), array)


def some_turn(key: Keys, shape: Sequence[int], *, max_delta: Any) -> dict[str, Any]:
    """The arguments of `adjust_hue` for an image of this shape."""
    return {"delta": around_zero("random_hue", key, max_delta, MAX_DELTA)}


@of_nature(rules.COSTLY)
@random_op(
    "image.random_hue",
    lambda spec, **_: rules.same_shape(spec),
    sample=some_turn,
    becomes=adjust_hue,
    batches=lambda rank: rank == 3,
)
def random_hue(image: npt.NDArray[Any], max_delta: float, seed: int | None = None) -> npt.NDArray[Any]:
    """`adjust_hue` by a delta drawn uniformly from [-max_delta, max_delta); a batch draws once for all.

    In a data set it follows from its seed, the epoch and the element's number, see `element_key`.

    >>> import numpy as np
    >>> image = np.array([[[200, 100, 50]]], np.uint8)
    >>> bool((random_hue(image, 0.2, seed=1) == random_hue(image, 0.2, seed=1)).all())
    True

    Args:
        image: integers or floats, (H, W, 3) or (N, H, W, 3).
        max_delta: share of the full circle, from 0 to 0.5.
        seed: any integer; equal seeds draw alike for the same element.

    Raises:
        InvalidArgumentError: another rank or number of channels, or a `max_delta` outside 0 to 0.5.
        InvalidTypeError: other values.
    """
    array = check_colours("random_hue", image)
    return adjust_hue(array, **some_turn(element_key(seed), array.shape, max_delta=max_delta))


@of_nature(rules.COSTLY)
@composed(check_colours)
def stateless_random_hue(image: npt.NDArray[Any], max_delta: float, seed: Any) -> npt.NDArray[Any]:
    """`random_hue` that follows from `seed` alone, an integer or a pair of integers.

    >>> import numpy as np
    >>> image = np.array([[[200, 100, 50]]], np.uint8)
    >>> stateless_random_hue(image, 0.2, (1, 2)).ravel().tolist()
    [156, 200, 50]

    Raises:
        InvalidArgumentError: another rank or number of channels, a `max_delta` outside 0 to 0.5, or another kind of
            seed.
        InvalidTypeError: other values.
    """
    op = "stateless_random_hue"
    return adjust_hue(image, around_zero(op, stateless_key(op, seed), max_delta, MAX_DELTA))


@of_nature(rules.COSTLY)
@traceable("image.adjust_saturation", rules.same_shape, batches=lambda rank: rank == 3)
def adjust_saturation(image: npt.NDArray[Any], saturation_factor: Any) -> npt.NDArray[Any]:
    """Multiply the saturation of an RGB image (H, W, 3) or a batch (N, H, W, 3), as tf.image.adjust_saturation does.

    By way of HSV (https://en.wikipedia.org/wiki/HSL_and_HSV), the saturation stopping at 1; 0 gives grey. Integers are
    computed in float32 from 0 to 1 and come back truncated. The result has the dtype of the image. Runs without the
    GIL; equal inputs give equal bits on every machine, those of TensorFlow for uint8 and float32. (A float pixel whose
    hue rounds up to the full circle keeps its colour, where TensorFlow makes it grey.)

    >>> import numpy as np
    >>> adjust_saturation(np.array([[[200, 100, 50]]], np.uint8), 0.5).ravel().tolist()
    [200, 150, 125]

    Args:
        image: integers or floats.
        saturation_factor: a finite number, or for a batch an array of N.

    Raises:
        InvalidArgumentError: another rank or number of channels, or a factor that is no such number.
        InvalidTypeError: other values.
    """
    array = check_colours("adjust_saturation", image)
    factors = per_image("adjust_saturation", "saturation_factor", saturation_factor, array)
    return on_batch(lambda images: run.saturation(images, factors), array)


def some_saturation(key: Keys, shape: Sequence[int], *, lower: Any, upper: Any) -> dict[str, Any]:
    """The arguments of `adjust_saturation` for an image of this shape."""
    return {"saturation_factor": between("random_saturation", key, lower, upper)}


@of_nature(rules.COSTLY)
@random_op(
    "image.random_saturation",
    lambda spec, **_: rules.same_shape(spec),
    sample=some_saturation,
    becomes=adjust_saturation,
    batches=lambda rank: rank == 3,
)
def random_saturation(image: npt.NDArray[Any], lower: float, upper: float, seed: int | None = None) -> npt.NDArray[Any]:
    """`adjust_saturation` by a factor drawn uniformly from [lower, upper); a batch draws once for all.

    In a data set it follows from its seed, the epoch and the element's number, see `element_key`.

    >>> import numpy as np
    >>> image = np.array([[[200, 100, 50]]], np.uint8)
    >>> bool((random_saturation(image, 0.5, 1.5, seed=1) == random_saturation(image, 0.5, 1.5, seed=1)).all())
    True

    Args:
        image: integers or floats, (H, W, 3) or (N, H, W, 3).
        lower: at least 0.
        upper: greater than `lower`.
        seed: any integer; equal seeds draw alike for the same element.

    Raises:
        InvalidArgumentError: another rank or number of channels, or bounds that are not 0 <= lower < upper.
        InvalidTypeError: other values.
    """
    array = check_colours("random_saturation", image)
    return adjust_saturation(array, **some_saturation(element_key(seed), array.shape, lower=lower, upper=upper))


@of_nature(rules.COSTLY)
@composed(check_colours)
def stateless_random_saturation(image: npt.NDArray[Any], lower: float, upper: float, seed: Any) -> npt.NDArray[Any]:
    """`random_saturation` that follows from `seed` alone, an integer or a pair of integers.

    >>> import numpy as np
    >>> image = np.array([[[200, 100, 50]]], np.uint8)
    >>> stateless_random_saturation(image, 0.5, 1.5, (1, 2)).ravel().tolist()
    [200, 66, 0]

    Raises:
        InvalidArgumentError: another rank or number of channels, bounds that are not 0 <= lower < upper, or another
            kind of seed.
        InvalidTypeError: other values.
    """
    op = "stateless_random_saturation"
    return adjust_saturation(image, between(op, stateless_key(op, seed), lower, upper))
