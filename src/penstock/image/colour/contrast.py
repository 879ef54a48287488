"""Change the contrast of images, by a given factor or one drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.image import rules
from penstock.image.colour.arguments import check_numbers
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


@traceable("image.adjust_contrast", rules.same_shape, batches=lambda rank: rank == 3)
def adjust_contrast(images: npt.NDArray[Any], contrast_factor: Any) -> npt.NDArray[Any]:
    """Multiply the distance of each value from the mean of its channel, as tf.image.adjust_contrast does.

    Each channel of each image has its own mean: `(x - mean) * contrast_factor + mean`. Integers are computed in float32
    from 0 to 1, come back truncated and stop at their limits; floats do not stop. The result keeps the dtype. Runs
    without the GIL; equal inputs give equal bits on every machine, those of TensorFlow for uint8 and float32.

    >>> import numpy as np
    >>> adjust_contrast(np.array([[[0], [100]]], np.uint8), 0.5).ravel().tolist()
    [25, 75]

    Args:
        images: integers or floats, (H, W, C) or (N, H, W, C).
        contrast_factor: a finite number, or for a batch an array of N.

    Raises:
        InvalidArgumentError: another rank, or a factor that is no such number.
        InvalidTypeError: other values.
    """
    array = check_numbers("adjust_contrast", images)
    factors = per_image("adjust_contrast", "contrast_factor", contrast_factor, array)
    return on_batch(lambda batch: run.contrast(batch, factors), array)


def some_contrast(key: Keys, shape: Sequence[int], *, lower: Any, upper: Any) -> dict[str, Any]:
    """The arguments of `adjust_contrast` for an image of this shape."""
    return {"contrast_factor": between("random_contrast", key, lower, upper)}


@random_op(
    "image.random_contrast",
    lambda spec, **_: rules.same_shape(spec),
    sample=some_contrast,
    becomes=adjust_contrast,
    batches=lambda rank: rank == 3,
)
def random_contrast(image: npt.NDArray[Any], lower: float, upper: float, seed: int | None = None) -> npt.NDArray[Any]:
    """`adjust_contrast` by a factor drawn uniformly from [lower, upper); a batch draws once for all.

    In a data set it follows from its seed, the epoch and the element's number, see `element_key`.

    >>> import numpy as np
    >>> image = np.array([[[0], [100]]], np.uint8)
    >>> bool((random_contrast(image, 0.5, 1.5, seed=1) == random_contrast(image, 0.5, 1.5, seed=1)).all())
    True

    Args:
        image: integers or floats, (H, W, C) or (N, H, W, C).
        lower: at least 0.
        upper: greater than `lower`.
        seed: any integer; equal seeds draw alike for the same element.

    Raises:
        InvalidArgumentError: another rank, or bounds that are not 0 <= lower < upper.
        InvalidTypeError: other values.
    """
    array = check_numbers("random_contrast", image)
    return adjust_contrast(array, **some_contrast(element_key(seed), array.shape, lower=lower, upper=upper))


@composed(check_numbers)
def stateless_random_contrast(image: npt.NDArray[Any], lower: float, upper: float, seed: Any) -> npt.NDArray[Any]:
    """`random_contrast` that follows from `seed` alone, an integer or a pair of integers.

    >>> import numpy as np
    >>> image = np.array([[[0], [100]]], np.uint8)
    >>> stateless_random_contrast(image, 0.5, 1.5, (1, 2)).ravel().tolist()
    [0, 120]

    Raises:
        InvalidArgumentError: another rank, bounds that are not 0 <= lower < upper, or another kind of seed.
        InvalidTypeError: other values.
    """
    op = "stateless_random_contrast"
    return adjust_contrast(image, between(op, stateless_key(op, seed), lower, upper))
