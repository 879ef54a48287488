"""Gamma correction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.image import rules
from penstock.image.colour.arguments import check_number, check_numbers
from penstock.image.colour.batches import on_batch
from penstock.image.dtypes import convert_image_dtype
from penstock.image.kernels.colour import run, tables
from penstock.trace.lift import traceable

if TYPE_CHECKING:
    import numpy.typing as npt


@traceable("image.adjust_gamma", rules.same_shape, batches=lambda rank: rank == 3)
def adjust_gamma(image: npt.NDArray[Any], gamma: float = 1, gain: float = 1) -> npt.NDArray[Any]:
    """`gain * image ** gamma` of an image (H, W, C) or a batch (N, H, W, C), as tf.image.adjust_gamma does.

    Integers are computed in float32 from 0 to 1, come back truncated and stop at their limits; a float below 0 has a
    power only if `gamma` is whole, and is NaN otherwise. The result has the dtype of the image. A `gamma` above 1 makes
    the image darker, one below 1 brighter (https://en.wikipedia.org/wiki/Gamma_correction). Runs without the GIL;
    uint8 equals TensorFlow's levels, float32 differs from it in the last bits of the power.

    >>> adjust_gamma(np.array([[[0], [128], [255]]], np.uint8), 2).ravel().tolist()
    [0, 64, 255]

    Args:
        image: integers or floats.
        gamma: at least 0.
        gain: any finite number.

    Raises:
        InvalidArgumentError: another rank, a negative `gamma`, or a number that is not finite.
        InvalidTypeError: other values.
    """
    array = check_numbers("adjust_gamma", image)
    power, factor = check_number("adjust_gamma", "gamma", gamma, 0), check_number("adjust_gamma", "gain", gain)
    if array.dtype == np.uint8:
        table = tables.power_table(power, factor)
        return on_batch(lambda images: run.look_up(images, table), array)
    made = tables.powers(np.asarray(convert_image_dtype(array, np.float32)), power, factor)
    changed: npt.NDArray[Any] = convert_image_dtype(made, array.dtype, saturate=True)
    return changed
