"""Change the values of an image by how often they occur in it: autocontrast, equalize, as RandAugment needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.image import rules
from penstock.image.colour.arguments import check_kind
from penstock.image.colour.batches import on_batch
from penstock.image.kernels.colour import run, tables
from penstock.trace.lift import traceable

if TYPE_CHECKING:
    import numpy.typing as npt


@traceable("image.autocontrast", rules.same_shape, batches=lambda rank: rank == 3)
def autocontrast(image: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Stretch the values of each channel of each image to 0 to 255; a channel of one value stays.

    `(x - lowest) * (255 / (highest - lowest))` in float32, truncated, as torchvision's autocontrast; PIL's
    ImageOps.autocontrast may differ by one level. Runs without the GIL.

    >>> autocontrast(np.array([[[10], [20], [30]]], np.uint8)).ravel().tolist()
    [0, 127, 255]

    Args:
        image: uint8, (H, W, C) or (N, H, W, C).

    Raises:
        InvalidArgumentError: another rank.
        InvalidTypeError: another dtype.
    """
    array = check_kind("autocontrast", image, floats=False)
    return on_batch(lambda images: _by_counts(images, tables.stretching), array)


@traceable("image.equalize", rules.same_shape, batches=lambda rank: rank == 3)
def equalize(image: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Make all levels of each channel of each image about equally frequent.

    As torchvision's equalize, which is PIL's ImageOps.equalize. Runs without the GIL.

    >>> equalize(np.arange(256, dtype=np.uint8).repeat(4).reshape(32, 32, 1) // 2)[-1, -1].tolist()
    [255]

    Args:
        image: uint8, (H, W, C) or (N, H, W, C).

    Raises:
        InvalidArgumentError: another rank.
        InvalidTypeError: another dtype.
    """
    array = check_kind("equalize", image, floats=False)
    return on_batch(lambda images: _by_counts(images, tables.equalising), array)


def _by_counts(images: npt.NDArray[np.uint8], tables_of: Any) -> npt.NDArray[np.uint8]:
    return run.look_up(images, tables_of(run.count(images)))
