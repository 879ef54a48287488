"""Cut rectangles out of images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.block.spec import TensorSpec
from penstock.errors import InvalidArgumentError
from penstock.image.checks import check_image, numbers
from penstock.image.geometry.arguments import check_integer
from penstock.trace.lift import tensor, traceable

if TYPE_CHECKING:
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
