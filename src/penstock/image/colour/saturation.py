"""Change the saturation of RGB images, by a given factor or one drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.image import rules
from penstock.image.colour.arguments import check_colours
from penstock.image.colour.batches import on_batch, per_image
from penstock.image.colour.draws import between, composed
from penstock.image.drawn import Keys, stateless_key
from penstock.image.kernels.colour import run
from penstock.trace.drawing import element_key
from penstock.trace.lift import traceable
from penstock.trace.random_op import random_op

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


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
