"""Cut a rectangle out of an array, somewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.block.spec import TensorSpec
from penstock.errors import InvalidArgumentError
from penstock.image.checks import numbers
from penstock.image.drawn import Keys, integers, stateless_key
from penstock.image.geometry.arguments import check_sizes
from penstock.image.kernels.geometry.window import window_batch
from penstock.trace.drawing import element_key
from penstock.trace.lift import tensor
from penstock.trace.random_op import random_op

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from penstock.block.spec import LeafSpec


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


def _cropped(spec: LeafSpec, *, size: Any) -> TensorSpec:
    known = tensor(spec)
    return TensorSpec(check_sizes("random_crop", "size", size, len(known.shape), "one for each axis"), known.dtype)


@random_op("image.random_crop", _cropped, sample=somewhere, becomes=crop_at, batches=lambda rank: True)
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
