"""Resize without stretching, and fill up with zeros."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.block.spec import TensorSpec
from penstock.errors import InvalidArgumentError
from penstock.image.checks import check_image
from penstock.image.resizing import ResizeMethod, check_resize, resize
from penstock.trace.lift import tensor, traceable

if TYPE_CHECKING:
    import numpy.typing as npt

    from penstock.block.spec import LeafSpec


def _padded(spec: LeafSpec, *, target_height: Any, target_width: Any, method: str, antialias: bool) -> TensorSpec:
    known = tensor(spec)
    shape = (*known.shape[:-3], int(target_height), int(target_width), known.shape[-1])
    return TensorSpec(shape, known.dtype if method == ResizeMethod.NEAREST_NEIGHBOR else np.float32)


@traceable("image.resize_with_pad", _padded, batches=lambda rank: rank == 3)
def resize_with_pad(
    image: npt.NDArray[Any],
    target_height: int,
    target_width: int,
    method: str = ResizeMethod.BILINEAR,
    antialias: bool = False,
) -> npt.NDArray[Any]:
    """Resize an image (H, W, C), or each of a batch, to fit into a size unstretched, with zeros around it.

    As tf.image.resize_with_pad does it: both sides are divided by the larger of the two ratios, in float32, and rounded
    down; of an odd number of rows or columns to fill, the larger half comes below and to the right. A side never
    becomes less than one pixel, where TensorFlow refuses. Gives float32, "nearest" the dtype of the image.

    >>> resize_with_pad(np.full((2, 4, 1), 9, np.uint8), 4, 4)[..., 0].tolist()
    [[0.0, 0.0, 0.0, 0.0], [9.0, 9.0, 9.0, 9.0], [9.0, 9.0, 9.0, 9.0], [0.0, 0.0, 0.0, 0.0]]

    Args:
        image: any number type.
        target_height: rows of the result, at least 1.
        target_width: columns of the result, at least 1.
        method: one of `ResizeMethod`.
        antialias: as in `resize`.

    Raises:
        InvalidArgumentError: a rank, size or method that is not supported, or an image without pixels.
        InvalidTypeError: the image is no array of numbers.
    """
    array = check_image("resize_with_pad", image)
    target = check_resize((target_height, target_width), method, "resize_with_pad")
    if 0 in array.shape[-3:]:
        message = f"resize_with_pad: an image needs at least one pixel and one channel, got shape {array.shape}."
        raise InvalidArgumentError(message)
    size, before = fitted(array.shape[-3], array.shape[-2], target)
    resized = resize(array, size, method, antialias=antialias)
    padded = np.zeros((*array.shape[:-3], *target, array.shape[-1]), resized.dtype)
    padded[..., before[0] : before[0] + size[0], before[1] : before[1] + size[1], :] = resized
    return padded


def fitted(height: int, width: int, target: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """The size in which an image fits into `target`, and how many rows and columns of zeros come before it.

    >>> fitted(100, 200, (50, 50))
    ((25, 50), (12, 0))
    """
    sides, wanted = np.array([height, width], np.float32), np.array(target, np.float32)
    exact = sides / (sides / wanted).max()
    size = np.maximum(np.floor(exact).astype(np.int64), 1)
    before = np.clip(np.floor((wanted - exact) / np.float32(2)).astype(np.int64), 0, np.array(target) - size)
    return (int(size[0]), int(size[1])), (int(before[0]), int(before[1]))
