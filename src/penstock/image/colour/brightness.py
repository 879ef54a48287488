"""Change the brightness of images, by a given number or one drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.image import rules
from penstock.image.colour.arguments import check_numbers
from penstock.image.colour.batches import on_batch, per_image
from penstock.image.colour.draws import around_zero, composed
from penstock.image.drawn import Keys, stateless_key
from penstock.image.kernels.colour import run
from penstock.trace.drawing import element_key
from penstock.trace.lift import traceable
from penstock.trace.random_op import random_op

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


@traceable("image.adjust_brightness", rules.same_shape, batches=lambda rank: rank == 3)
def adjust_brightness(image: npt.NDArray[Any], delta: Any) -> npt.NDArray[Any]:
    """Add `delta` to each value of an image (H, W, C) or a batch (N, H, W, C), as tf.image.adjust_brightness does.

    `delta` is in units of the full range: 0.1 adds a tenth of 255 to uint8. Integers are computed in float32 from 0 to
    1, come back truncated and stop at their limits; floats are added to as they are and do not stop at 1. The result
    has the dtype of the image. Runs without the GIL; equal inputs give equal bits on every machine, those of TensorFlow
    for uint8 and float32.

    >>> import numpy as np
    >>> adjust_brightness(np.array([[[0], [100], [250]]], np.uint8), 0.1).ravel().tolist()
    [25, 125, 255]

    Args:
        image: integers or floats.
        delta: a finite number, or for a batch an array of N.

    Raises:
        InvalidArgumentError: another rank, or a `delta` that is no such number.
        InvalidTypeError: other values.
    """
    array = check_numbers("adjust_brightness", image)
    deltas = per_image("adjust_brightness", "delta", delta, array)
    return on_batch(lambda images: run.brightness(images, deltas), array)


def some_delta(key: Keys, shape: Sequence[int], *, max_delta: Any) -> dict[str, Any]:
    """The arguments of `adjust_brightness` for an image of this shape."""
    return {"delta": around_zero("random_brightness", key, max_delta)}


@random_op(
    "image.random_brightness",
    lambda spec, **_: rules.same_shape(spec),
    sample=some_delta,
    becomes=adjust_brightness,
    batches=lambda rank: rank == 3,
)
def random_brightness(image: npt.NDArray[Any], max_delta: float, seed: int | None = None) -> npt.NDArray[Any]:
    """`adjust_brightness` by a delta drawn uniformly from [-max_delta, max_delta); a batch draws once for all.

    In a data set it follows from its seed, the epoch and the element's number, see `element_key`.

    >>> import numpy as np
    >>> image = np.full((1, 1, 3), 100, np.uint8)
    >>> bool((random_brightness(image, 0.2, seed=1) == random_brightness(image, 0.2, seed=1)).all())
    True

    Args:
        image: integers or floats, (H, W, C) or (N, H, W, C).
        max_delta: at least 0, in units of the full range.
        seed: any integer; equal seeds draw alike for the same element.

    Raises:
        InvalidArgumentError: another rank, or a negative `max_delta`.
        InvalidTypeError: other values.
    """
    array = check_numbers("random_brightness", image)
    return adjust_brightness(array, **some_delta(element_key(seed), array.shape, max_delta=max_delta))


@composed(check_numbers)
def stateless_random_brightness(image: npt.NDArray[Any], max_delta: float, seed: Any) -> npt.NDArray[Any]:
    """`random_brightness` that follows from `seed` alone, an integer or a pair of integers.

    >>> import numpy as np
    >>> image = np.full((1, 1, 3), 100, np.uint8)
    >>> stateless_random_brightness(image, 0.2, (1, 2)).ravel().tolist()
    [141, 141, 141]

    Raises:
        InvalidArgumentError: another rank, a negative `max_delta`, or another kind of seed.
        InvalidTypeError: other values.
    """
    op = "stateless_random_brightness"
    return adjust_brightness(image, around_zero(op, stateless_key(op, seed), max_delta))
