"""Cut rectangles out of images, at a given place or somewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.block.spec import TensorSpec
from penstock.errors import InvalidArgumentError
from penstock.image.checks import check_image, numbers
from penstock.image.drawn import Keys, integers, stateless_key
from penstock.image.geometry.arguments import check_integer, check_sizes
from penstock.image.geometry.window import window_batch
from penstock.trace.drawing import element_key
from penstock.trace.lift import random_op, tensor, traceable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from penstock.block.spec import LeafSpec


def _cropped(spec: LeafSpec, *, target_height: Any, target_width: Any, **_: Any) -> TensorSpec:
    known = tensor(spec)
    return TensorSpec((*known.shape[:-3], int(target_height), int(target_width), known.shape[-1]), known.dtype)


@traceable("image.crop_to_bounding_box", _cropped, batches=lambda rank: rank == 3)
def crop_to_bounding_box(
    image: npt.NDArray[Any], offset_height: int, offset_width: int, target_height: int, target_width: int
) -> npt.NDArray[Any]:
    """Cut a rectangle out of an image (H, W, C) or of each of a batch (N, H, W, C); a view, nothing is copied.

    >>> import numpy as np
    >>> crop_to_bounding_box(np.arange(9).reshape(3, 3, 1), 1, 0, 2, 2).ravel().tolist()
    [3, 4, 6, 7]

    Args:
        image: any number type.
        offset_height: the first row, from 0.
        offset_width: the first column, from 0.
        target_height: how many rows, at least 1.
        target_width: how many columns, at least 1.

    Raises:
        InvalidArgumentError: another rank, or a rectangle that is not inside the image.
    """
    op = "crop_to_bounding_box"
    array = check_image(op, image)
    top, left = check_integer(op, "offset_height", offset_height), check_integer(op, "offset_width", offset_width)
    height = check_integer(op, "target_height", target_height, 1)
    width = check_integer(op, "target_width", target_width, 1)
    if top + height > array.shape[-3] or left + width > array.shape[-2]:
        message = (
            f"{op}: rows {top} to {top + height} and columns {left} to {left + width} "
            f"are not inside an image of shape {array.shape}."
        )
        raise InvalidArgumentError(message, hint="resize_with_crop_or_pad takes images of any size.")
    return array[..., top : top + height, left : left + width, :]


def _centre(size: int, fraction: float) -> tuple[int, int]:
    """First row or column of the centre, and how many it has: in float64, rounded down, as tf.image does it."""
    start = int((float(size) - float(size) * fraction) / 2)
    return start, size - 2 * start


def _central(spec: LeafSpec, *, central_fraction: float) -> TensorSpec:
    known = tensor(spec)
    height, width = (None if side is None else _centre(side, float(central_fraction))[1] for side in known.shape[-3:-1])
    return TensorSpec((*known.shape[:-3], height, width, known.shape[-1]), known.dtype)


@traceable("image.central_crop", _central, batches=lambda rank: rank == 3)
def central_crop(image: npt.NDArray[Any], central_fraction: float) -> npt.NDArray[Any]:
    """Keep the centre of an image (H, W, C) or of each of a batch (N, H, W, C); a view, nothing is copied.

    Of `size` rows or columns, `int((size - size * central_fraction) / 2)` are cut off on both sides.

    >>> import numpy as np
    >>> central_crop(np.zeros((10, 7, 3)), 0.5).shape
    (6, 5, 3)

    Args:
        image: any number type.
        central_fraction: the share of each side that stays, above 0 and up to 1.

    Raises:
        InvalidArgumentError: another rank or fraction.
    """
    array = check_image("central_crop", image)
    share = numbers(central_fraction)
    if share.ndim or share.dtype.kind not in "iuf" or not 0 < share <= 1:
        message = f"central_crop: central_fraction must be above 0 and at most 1, got {central_fraction!r}."
        raise InvalidArgumentError(message)
    top, height = _centre(array.shape[-3], float(central_fraction))
    left, width = _centre(array.shape[-2], float(central_fraction))
    return array[..., top : top + height, left : left + width, :]


def crop_at(value: npt.NDArray[Any], offset: npt.ArrayLike, size: Sequence[int]) -> npt.NDArray[Any]:
    """The part of an array that begins at `offset` and has `size`, both with one number per axis; a view.

    An array with one axis more in front is a batch, `offset` then has a row for each; its part is a new array.

    >>> crop_at(np.arange(9).reshape(3, 3), (1, 0), (1, 2)).tolist()
    [[3, 4]]
    >>> crop_at(np.arange(6).reshape(2, 3), [[1], [0]], (2,)).tolist()
    [[1, 2], [3, 4]]
    """
    starts = np.asarray(offset, np.int64)
    if starts.ndim == 1:
        return value[tuple(slice(start, start + extent) for start, extent in zip(starts, size, strict=True))]
    if len(size) == 3 and size[2] == value.shape[3]:
        return window_batch(value, (size[0], size[1]), top=starts[:, 0], left=starts[:, 1])
    found = np.empty((len(value), *size), value.dtype)
    for i, start in enumerate(starts):
        found[i] = crop_at(value[i], start, size)
    return found


def somewhere(key: Keys, shape: Sequence[int], *, size: Any) -> dict[str, Any]:
    """Where a part of `size` begins in an array of this shape: every place is as likely."""
    return _somewhere("random_crop", key, shape, size)


def _somewhere(op: str, key: Keys, shape: Sequence[int], size: Any) -> dict[str, Any]:
    extents = check_sizes(op, "size", size, len(shape), f"one for each axis of shape {tuple(shape)}")
    if any(extent > known for extent, known in zip(extents, shape, strict=True)):
        message = f"{op}: a part of size {list(extents)} does not fit into an array of shape {tuple(shape)}."
        raise InvalidArgumentError(message, hint="Pad or resize it first.")
    return {
        "offset": integers(key, [known - extent + 1 for known, extent in zip(shape, extents, strict=True)]),
        "size": extents,
    }


def _cropped_somewhere(spec: LeafSpec, *, size: Any) -> TensorSpec:
    known = tensor(spec)
    return TensorSpec(check_sizes("random_crop", "size", size, len(known.shape), "one for each axis"), known.dtype)


@random_op("image.random_crop", _cropped_somewhere, sample=somewhere, becomes=crop_at, batches=lambda rank: True)
def random_crop(value: npt.NDArray[Any], size: Sequence[int], seed: int | None = None) -> npt.NDArray[Any]:
    """Cut a part of `size` out of an array of any rank, at a place drawn uniformly; a view, nothing is copied.

    The place is one for a whole batch. In a data set it follows from its seed, the epoch and the element's number, see
    `element_key`.

    >>> random_crop(np.arange(100).reshape(10, 10, 1), (2, 3, 1), seed=5)[:, :, 0].tolist()
    [[36, 37, 38], [46, 47, 48]]

    Args:
        value: any dtype.
        size: one number for each axis, at most that of the array; an axis that is to stay has its own.
        seed: any integer; equal seeds choose alike for the same element.

    Raises:
        InvalidArgumentError: a size of another rank, or one that does not fit.
    """
    array = numbers(value)
    return crop_at(array, **somewhere(element_key(seed), array.shape, size=size))


def stateless_random_crop(value: npt.NDArray[Any], size: Sequence[int], seed: Any) -> npt.NDArray[Any]:
    """`random_crop` that follows from `seed` alone, an integer or a pair of integers.

    >>> stateless_random_crop(np.arange(5), [2], seed=(1, 2)).tolist()
    [3, 4]

    Raises:
        InvalidArgumentError: a size of another rank, one that does not fit, or another seed.
    """
    op = "stateless_random_crop"
    array = numbers(value)
    return crop_at(array, **_somewhere(op, stateless_key(op, seed), array.shape, size))
