"""Change each value by itself: invert, posterize, solarize, as RandAugment needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import InvalidArgumentError
from penstock.image import rules
from penstock.image.colour.arguments import check_kind, check_number
from penstock.image.colour.batches import on_batch
from penstock.image.kernels.colour import run
from penstock.trace.lift import traceable

if TYPE_CHECKING:
    import numpy.typing as npt


@traceable("image.invert", rules.same_shape, batches=lambda rank: rank == 3)
def invert(image: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The negative of an image (H, W, C) or a batch (N, H, W, C): `255 - x` for uint8, `1 - x` for float32.

    As torchvision's invert, which is PIL's ImageOps.invert.

    >>> invert(np.array([[[0], [100]]], np.uint8)).ravel().tolist()
    [255, 155]

    Raises:
        InvalidArgumentError: another rank.
        InvalidTypeError: another dtype.
    """
    array = check_kind("invert", image, floats=True)
    inverted: npt.NDArray[Any] = np.bitwise_not(array) if array.dtype == np.uint8 else np.float32(1) - array
    return inverted


@traceable("image.posterize", rules.same_shape, batches=lambda rank: rank == 3)
def posterize(image: npt.NDArray[np.uint8], bits: int) -> npt.NDArray[np.uint8]:
    """Keep the highest `bits` bits of each value of a uint8 image (H, W, C) or batch (N, H, W, C).

    As torchvision's posterize, which is PIL's ImageOps.posterize.

    >>> posterize(np.array([[[100], [255]]], np.uint8), 2).ravel().tolist()
    [64, 192]

    Args:
        image: uint8.
        bits: from 0 (black) to 8 (unchanged).

    Raises:
        InvalidArgumentError: another rank, or `bits` that are no such integer.
        InvalidTypeError: another dtype.
    """
    array = check_kind("posterize", image, floats=False)
    kept = check_number("posterize", "bits", bits, 0, 8)
    if kept != int(kept):
        message = f"posterize: bits must be an integer from 0 to 8, got {bits!r}."
        raise InvalidArgumentError(message)
    return array & np.uint8(256 - (1 << (8 - int(kept))))


@traceable("image.solarize", rules.same_shape, batches=lambda rank: rank == 3)
def solarize(image: npt.NDArray[Any], threshold: float = 128) -> npt.NDArray[Any]:
    """`invert` the values of an image (H, W, C) or a batch (N, H, W, C) that are at least `threshold`.

    As torchvision's solarize, which is PIL's ImageOps.solarize.

    >>> solarize(np.array([[[100], [200]]], np.uint8), 128).ravel().tolist()
    [100, 55]

    Args:
        image: uint8 or float32.
        threshold: from 0 to 256 for uint8 (256 changes nothing), from 0 to 1 for float32.

    Raises:
        InvalidArgumentError: another rank, or a threshold that is not in the range.
        InvalidTypeError: another dtype.
    """
    array = check_kind("solarize", image, floats=True)
    if array.dtype == np.uint8:
        first = int(np.ceil(check_number("solarize", "threshold", threshold, 0, 256)))
        levels = np.arange(256, dtype=np.uint8)
        table = np.where(np.arange(256) >= first, 255 - levels, levels)
        return on_batch(lambda images: run.look_up(images, table), array)
    least = np.float32(check_number("solarize", "threshold", threshold, 0, 1))
    return np.where(array >= least, np.float32(1) - array, array)
