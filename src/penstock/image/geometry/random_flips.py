"""Mirror images or leave them, each with probability one half."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.image import rules
from penstock.image.checks import check_image
from penstock.image.drawn import Keys, integers, stateless_key
from penstock.image.geometry.flips import flip_left_right_where, flip_up_down_where
from penstock.trace.drawing import element_key
from penstock.trace.random_op import random_op

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


def flip_or_not(key: Keys, shape: Sequence[int]) -> dict[str, Any]:
    """Whether to flip an image of this shape, or each image of a batch."""
    count = 1 if len(shape) == 3 else shape[0]
    flips = integers(key, [2] * count) == 1
    return {"flip": flips[..., 0] if len(shape) == 3 else flips}


@random_op(
    "image.random_flip_left_right",
    rules.same_shape,
    sample=flip_or_not,
    becomes=flip_left_right_where,
    batches=lambda rank: rank == 3,
)
def random_flip_left_right(image: npt.NDArray[Any], seed: int | None = None) -> npt.NDArray[Any]:
    """Reverse the columns of an image (H, W, C), or not; of a batch (N, H, W, C) each image is decided by itself.

    In a data set the decision follows from its seed, the epoch and the element's number, see `element_key`. An image
    is a view, a batch a new array.

    >>> import numpy as np
    >>> random_flip_left_right(np.arange(3).reshape(1, 3, 1), seed=1).ravel().tolist()
    [2, 1, 0]

    Args:
        image: any number type.
        seed: any integer; equal seeds decide alike for the same element.

    Raises:
        InvalidArgumentError: another rank.
    """
    array = check_image("random_flip_left_right", image)
    return flip_left_right_where(array, **flip_or_not(element_key(seed), array.shape))


@random_op(
    "image.random_flip_up_down",
    rules.same_shape,
    sample=flip_or_not,
    becomes=flip_up_down_where,
    batches=lambda rank: rank == 3,
)
def random_flip_up_down(image: npt.NDArray[Any], seed: int | None = None) -> npt.NDArray[Any]:
    """Reverse the rows of an image (H, W, C), or not; of a batch (N, H, W, C) each image is decided by itself.

    In a data set the decision follows from its seed, the epoch and the element's number, see `element_key`. An image
    is a view, a batch a new array.

    >>> import numpy as np
    >>> random_flip_up_down(np.arange(3).reshape(3, 1, 1), seed=1).ravel().tolist()
    [2, 1, 0]

    Args:
        image: any number type.
        seed: any integer; equal seeds decide alike for the same element.

    Raises:
        InvalidArgumentError: another rank.
    """
    array = check_image("random_flip_up_down", image)
    return flip_up_down_where(array, **flip_or_not(element_key(seed), array.shape))


def stateless_random_flip_left_right(image: npt.NDArray[Any], seed: Any) -> npt.NDArray[Any]:
    """`random_flip_left_right` that follows from `seed` alone, an integer or a pair of integers.

    >>> import numpy as np
    >>> stateless_random_flip_left_right(np.arange(3).reshape(1, 3, 1), (1, 2)).ravel().tolist()
    [2, 1, 0]

    Raises:
        InvalidArgumentError: another rank or seed.
    """
    op = "stateless_random_flip_left_right"
    array = check_image(op, image)
    return flip_left_right_where(array, **flip_or_not(stateless_key(op, seed), array.shape))


def stateless_random_flip_up_down(image: npt.NDArray[Any], seed: Any) -> npt.NDArray[Any]:
    """`random_flip_up_down` that follows from `seed` alone, an integer or a pair of integers.

    >>> import numpy as np
    >>> stateless_random_flip_up_down(np.arange(3).reshape(3, 1, 1), (1, 2)).ravel().tolist()
    [2, 1, 0]

    Raises:
        InvalidArgumentError: another rank or seed.
    """
    op = "stateless_random_flip_up_down"
    array = check_image(op, image)
    return flip_up_down_where(array, **flip_or_not(stateless_key(op, seed), array.shape))
