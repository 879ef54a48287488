"""Mirror images, all of them, selected ones or a random half of them, and rotate them by right angles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.block.column import Column, DenseColumn
from penstock.block.spec import LeafSpec, TensorSpec
from penstock.image.checks import check_image, check_integer
from penstock.image.drawn import Keys, integers, stateless_key
from penstock.image.geometry.window import window_batch
from penstock.image.rules import image_op, random_image_op
from penstock.trace.drawing import element_key
from penstock.trace.graph import Allocate
from penstock.trace.lift import tensor

__all__ = ["flip_left_right", "flip_up_down", "random_flip_left_right", "random_flip_up_down", "rot90"]
__all__ += ["stateless_random_flip_left_right", "stateless_random_flip_up_down", "transpose"]


def _columns_reversed(
    column: Column, params: Mapping[str, Any], rows: int, allocate: Allocate | None
) -> list[Column] | None:
    """Flip a whole batch without the GIL. numpy would copy the view `[..., ::-1, :]` pixel by pixel."""
    if not isinstance(column, DenseColumn) or column.array.ndim != 4 or column.array.dtype.hasobject:
        return None
    return [DenseColumn(window_batch(column.array, column.array.shape[1:3], mirrored=True))]


@image_op(block=_columns_reversed)
def flip_left_right(image: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Reverse the columns of an image (H, W, C), or of each image of a batch (N, H, W, C).

    Args:
        image: Array of any dtype.

    Returns:
        A view of the image or batch.

    Raises:
        InvalidArgumentError: If the image has another rank.

    Example:
        >>> import numpy as np
        >>> flip_left_right(np.arange(3).reshape(1, 3, 1)).ravel().tolist()
        [2, 1, 0]
    """
    return check_image("flip_left_right", image)[..., ::-1, :]


@image_op()
def flip_up_down(image: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Reverse the rows of an image (H, W, C), or of each image of a batch (N, H, W, C).

    Args:
        image: Array of any dtype.

    Returns:
        A view of the image or batch.

    Raises:
        InvalidArgumentError: If the image has another rank.

    Example:
        >>> import numpy as np
        >>> flip_up_down(np.arange(3).reshape(3, 1, 1)).ravel().tolist()
        [2, 1, 0]
    """
    return check_image("flip_up_down", image)[..., ::-1, :, :]


def flip_left_right_where(image: npt.NDArray[Any], flip: npt.ArrayLike) -> npt.NDArray[Any]:
    """Apply `flip_left_right` to an image if `flip`, or to the images of a batch for which `flip`, (N,), is True.

    An image, flipped or not, is a view; a batch is a new array.

    >>> import numpy as np
    >>> flip_left_right_where(np.arange(4).reshape(2, 1, 2, 1), [False, True]).ravel().tolist()
    [0, 1, 3, 2]
    """
    if image.ndim == 3:
        return image[:, ::-1] if flip else image
    return window_batch(image, image.shape[1:3], mirrored=flip)


def flip_up_down_where(image: npt.NDArray[Any], flip: npt.ArrayLike) -> npt.NDArray[Any]:
    """Apply `flip_up_down` to an image if `flip`, or to the images of a batch for which `flip`, (N,), is True.

    An image, flipped or not, is a view; a batch is a new array.

    >>> import numpy as np
    >>> flip_up_down_where(np.arange(4).reshape(2, 2, 1, 1), [False, True]).ravel().tolist()
    [0, 1, 3, 2]
    """
    if image.ndim == 3:
        return image[::-1] if flip else image
    return window_batch(image, image.shape[1:3], upside_down=flip)


def flip_or_not(key: Keys, shape: Sequence[int]) -> dict[str, Any]:
    """Return random flags that decide to flip an image of this shape, or each image of a batch."""
    count = 1 if len(shape) == 3 else shape[0]
    flips = integers(key, [2] * count) == 1
    return {"flip": flips[..., 0] if len(shape) == 3 else flips}


@random_image_op(sample=flip_or_not, becomes=flip_left_right_where)
def random_flip_left_right(image: npt.NDArray[Any], seed: int | None = None) -> npt.NDArray[Any]:
    """Reverse the columns of an image (H, W, C), or of each image of a batch, with probability one half.

    In a data set the decision follows from its seed, the epoch and the element's number, see `element_key`. An image is
    a view, a batch a new array.

    Args:
        image: Any number type.
        seed: An integer. Equal seeds give equal results for the same element.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the image has another rank.

    Example:
        >>> import numpy as np
        >>> random_flip_left_right(np.arange(3).reshape(1, 3, 1), seed=1).ravel().tolist()
        [2, 1, 0]
    """
    array = check_image("random_flip_left_right", image)
    return flip_left_right_where(array, **flip_or_not(element_key(seed), array.shape))


@random_image_op(sample=flip_or_not, becomes=flip_up_down_where)
def random_flip_up_down(image: npt.NDArray[Any], seed: int | None = None) -> npt.NDArray[Any]:
    """Reverse the rows of an image (H, W, C), or of each image of a batch, with probability one half.

    In a data set the decision follows from its seed, the epoch and the element's number, see `element_key`. An image is
    a view, a batch a new array.

    Args:
        image: Any number type.
        seed: An integer. Equal seeds give equal results for the same element.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the image has another rank.

    Example:
        >>> import numpy as np
        >>> random_flip_up_down(np.arange(3).reshape(3, 1, 1), seed=1).ravel().tolist()
        [2, 1, 0]
    """
    array = check_image("random_flip_up_down", image)
    return flip_up_down_where(array, **flip_or_not(element_key(seed), array.shape))


def stateless_random_flip_left_right(image: npt.NDArray[Any], seed: Any) -> npt.NDArray[Any]:
    """Do the same as `random_flip_left_right`, with random numbers that depend on `seed` only.

    Args:
        image: Any number type.
        seed: An integer or a pair of integers. The result depends on the seed and the arguments only.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the image has another rank, or if the seed is invalid.

    Example:
        >>> import numpy as np
        >>> stateless_random_flip_left_right(np.arange(3).reshape(1, 3, 1), (1, 2)).ravel().tolist()
        [2, 1, 0]
    """
    op = "stateless_random_flip_left_right"
    array = check_image(op, image)
    return flip_left_right_where(array, **flip_or_not(stateless_key(op, seed), array.shape))


def stateless_random_flip_up_down(image: npt.NDArray[Any], seed: Any) -> npt.NDArray[Any]:
    """Do the same as `random_flip_up_down`, with random numbers that depend on `seed` only.

    Args:
        image: Any number type.
        seed: An integer or a pair of integers. The result depends on the seed and the arguments only.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the image has another rank, or if the seed is invalid.

    Example:
        >>> import numpy as np
        >>> stateless_random_flip_up_down(np.arange(3).reshape(3, 1, 1), (1, 2)).ravel().tolist()
        [2, 1, 0]
    """
    op = "stateless_random_flip_up_down"
    array = check_image(op, image)
    return flip_up_down_where(array, **flip_or_not(stateless_key(op, seed), array.shape))


def _turned(spec: LeafSpec, *, k: Any = 1) -> TensorSpec:
    known = tensor(spec)
    *batch, height, width, channels = known.shape
    if k % 2:
        height, width = width, height
    return TensorSpec((*batch, height, width, channels), known.dtype)


@image_op(_turned)
def rot90(image: npt.NDArray[Any], k: int = 1) -> npt.NDArray[Any]:
    """Rotate an image (H, W, C), or each image of a batch (N, H, W, C), by `k` right angles counter-clockwise.

    Args:
        image: Any number type.
        k: An integer. Negative ones rotate clockwise.

    Returns:
        A view of the image or batch.

    Raises:
        InvalidArgumentError: If the image has another rank, or if `k` is not an integer.

    Example:
        >>> rot90(np.arange(6).reshape(2, 3, 1))[:, :, 0].tolist()
        [[2, 5], [1, 4], [0, 3]]
    """
    array = check_image("rot90", image)
    return np.rot90(array, check_integer("rot90", "k", k, None), axes=(-3, -2))


@image_op(lambda spec: _turned(spec))
def transpose(image: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Swap the rows and columns of an image (H, W, C), or of each image of a batch (N, H, W, C).

    Args:
        image: Array of any dtype.

    Returns:
        A view of the image or batch.

    Raises:
        InvalidArgumentError: If the image has another rank.

    Example:
        >>> transpose(np.arange(6).reshape(2, 3, 1))[:, :, 0].tolist()
        [[0, 3], [1, 4], [2, 5]]
    """
    return check_image("transpose", image).swapaxes(-3, -2)
