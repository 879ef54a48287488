"""Cover a rectangle of each image with one value (DeVries and Taylor, "Improved regularization with cutout", 2017)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import InvalidArgumentError
from penstock.image import rules
from penstock.image.checks import check_image, numbers
from penstock.image.drawn import Keys, integers, stateless_key
from penstock.image.geometry.arguments import check_fill, check_sizes
from penstock.image.geometry.projective import refuse_one_for_each
from penstock.trace.drawing import element_key
from penstock.trace.lift import traceable
from penstock.trace.random_op import random_op

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from penstock.block.spec import LeafSpec, TensorSpec


def _rule(spec: LeafSpec, *, offset: Any = (), **_: Any) -> TensorSpec:
    refuse_one_for_each(spec, np.shape(offset)[:-1])
    return rules.same_shape(spec)


@traceable("image.cutout", _rule, batches=lambda rank: rank == 3)
def cutout(
    images: npt.NDArray[Any],
    mask_size: int | Sequence[int],
    offset: npt.ArrayLike = (0, 0),
    constant_values: float = 0,
) -> npt.NDArray[Any]:
    """Cover a rectangle of an image (H, W, C), or of each of a batch (N, H, W, C), with one value.

    The rectangle has its centre at `offset`; what of it lies outside the image is left away. It is TensorFlow Addons'
    cutout, and takes odd sizes too: their middle pixel lies at `offset`.

    >>> cutout(np.ones((3, 4, 1), np.uint8), 2, (1, 1))[:, :, 0].tolist()
    [[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 1, 1]]

    Args:
        images: any number type.
        mask_size: (height, width) of the rectangle, or one number for both, at least 0.
        offset: (row, column) of the centre; for a batch one for all, or one for each, (N, 2).
        constant_values: the value, which must fit the dtype.

    Returns:
        A new array.

    Raises:
        InvalidArgumentError: ranks, sizes, offsets or a value that are not supported.
    """
    array = check_image("cutout", images)
    return _covered("cutout", array, mask_size, offset, constant_values)


def _covered(op: str, images: npt.NDArray[Any], mask_size: Any, offset: Any, constant_values: Any) -> npt.NDArray[Any]:
    boxes = rectangles(op, images.shape, mask_size, offset)
    fill = check_fill(op, "constant_values", constant_values, images.dtype)
    found = np.array(images if images.ndim == 4 else images[None], order="C")
    for image, (top, left, height, width) in zip(found, boxes.tolist(), strict=True):
        image[max(top, 0) : max(top + height, 0), max(left, 0) : max(left + width, 0)] = fill
    return found if images.ndim == 4 else found[0]


def rectangles(op: str, shape: Sequence[int], mask_size: Any, offset: Any) -> npt.NDArray[np.int64]:
    """What to cover of each image of this shape: (top, left, height, width), (N, 4); may lie outside.

    >>> rectangles("cutout", (3, 4, 1), 2, (0, 1)).tolist()
    [[-1, 0, 2, 2]]

    Raises:
        InvalidArgumentError: sizes or offsets that are not supported.
    """
    sizes = mask_size if numbers(mask_size).ndim else (mask_size, mask_size)
    size = check_sizes(op, "mask_size", sizes, 2, "height and width")
    count = shape[0] if len(shape) == 4 else 1
    centres = numbers(offset)
    if centres.dtype.kind not in "iu" or centres.shape not in ((2,), (count, 2)):
        wanted = "2 integers" if len(shape) == 3 else f"2 integers or an array of shape ({count}, 2)"
        message = f"{op}: offset must be {wanted} for images of shape {tuple(shape)}, got {offset!r}."
        raise InvalidArgumentError(message)
    found = np.empty((count, 4), np.int64)
    found[:, :2] = centres.astype(np.int64) - np.array(size) // 2
    found[:, 2:] = size
    return found


def somewhere(key: Keys, shape: Sequence[int], **how: Any) -> dict[str, Any]:
    """The centre of the rectangle in an image of this shape, or in each image of a batch: any pixel."""
    return {"offset": _somewhere("random_cutout", key, shape), **how}


def _somewhere(op: str, key: Keys, shape: Sequence[int]) -> npt.NDArray[np.int64]:
    count = 1 if len(shape) == 3 else shape[0]
    if 0 in shape[-3:-1]:
        message = f"{op}: an image needs at least one pixel, got shape {tuple(shape)}."
        raise InvalidArgumentError(message)
    centres = integers(key, list(shape[-3:-1]) * count)
    return centres if len(shape) == 3 else centres.reshape(*centres.shape[:-1], count, 2)


@random_op(
    "image.random_cutout",
    _rule,
    sample=somewhere,
    becomes=partial(_covered, "random_cutout"),
    batches=lambda rank: rank == 3,
)
def random_cutout(
    images: npt.NDArray[Any],
    mask_size: int | Sequence[int],
    constant_values: float = 0,
    seed: int | None = None,
) -> npt.NDArray[Any]:
    """`cutout` of a rectangle whose centre is any pixel; each image of a batch (N, H, W, C) has its own.

    In a data set it follows from its seed, the epoch and the element's number, see `element_key`.

    >>> int(random_cutout(np.ones((32, 32, 3), np.uint8), 8).sum()) >= (32 * 32 - 8 * 8) * 3
    True

    Args:
        images: any number type.
        mask_size: (height, width) of the rectangle, or one number for both, at least 0.
        constant_values: the value, which must fit the dtype.
        seed: any integer; equal seeds choose alike for the same element.

    Returns:
        A new array.

    Raises:
        InvalidArgumentError: ranks, sizes or a value that are not supported.
    """
    op = "random_cutout"
    array = check_image(op, images)
    return _covered(op, array, mask_size, _somewhere(op, element_key(seed), array.shape), constant_values)


def stateless_random_cutout(
    images: npt.NDArray[Any],
    mask_size: int | Sequence[int],
    seed: Any,
    constant_values: float = 0,
) -> npt.NDArray[Any]:
    """`random_cutout` that follows from `seed` alone, an integer or a pair of integers.

    >>> stateless_random_cutout(np.ones((1, 6, 1), np.uint8), 2, (1, 2)).ravel().tolist()
    [0, 0, 1, 1, 1, 1]

    Raises:
        InvalidArgumentError: ranks, sizes, a value or a seed that are not supported.
    """
    op = "stateless_random_cutout"
    array = check_image(op, images)
    return _covered(op, array, mask_size, _somewhere(op, stateless_key(op, seed), array.shape), constant_values)
