"""Sharpen or smooth images, as RandAugment needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.image import rules
from penstock.image.colour.arguments import check_kind, check_number
from penstock.image.colour.batches import on_batch
from penstock.image.kernels.colour import run
from penstock.trace.lift import traceable

if TYPE_CHECKING:
    import numpy.typing as npt


@traceable("image.adjust_sharpness", rules.same_shape, batches=lambda rank: rank == 3)
def adjust_sharpness(image: npt.NDArray[Any], sharpness_factor: float) -> npt.NDArray[Any]:
    """Blend an image (H, W, C), or each of a batch (N, H, W, C), with its smoothed self.

    `factor * x + (1 - factor) * smooth(x)`, where `smooth` weighs a pixel 5/13 and its eight neighbours 1/13 each, and
    leaves the border. As torchvision's adjust_sharpness, which is PIL's ImageEnhance.Sharpness. uint8 is truncated and
    stops at 0 and 255, float32 at 0 and 1; an image of less than 3 rows or columns stays. Runs without the GIL.

    >>> import numpy as np
    >>> adjust_sharpness(np.array([0, 0, 0, 0, 13, 0, 0, 0, 0], np.uint8).reshape(3, 3, 1), 2)[1, 1].tolist()
    [21]

    Args:
        image: uint8 or float32.
        sharpness_factor: 0 smooths, 1 changes nothing, 2 sharpens; at least 0.

    Raises:
        InvalidArgumentError: another rank, or a negative factor.
        InvalidTypeError: another dtype.
    """
    array = check_kind("adjust_sharpness", image, floats=True)
    factor = check_number("adjust_sharpness", "sharpness_factor", sharpness_factor, 0)
    return on_batch(lambda images: run.sharpen_by(images, factor), array)
