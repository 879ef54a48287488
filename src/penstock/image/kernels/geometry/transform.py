"""Projective transforms of a whole batch by the compiled kernel, or by the reference where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.compiled import Compiled
from penstock.errors import InvalidArgumentError
from penstock.image.kernels.geometry import transform_reference as reference

if TYPE_CHECKING:
    import numpy.typing as npt

_NATIVE = Compiled("penstock.image.kernels.geometry.transform_native")


def transform_batch(
    images: npt.NDArray[Any],
    transforms: npt.NDArray[np.float32],
    mode: int,
    bilinear: bool,
    fill: Any,
    out_height: int,
    out_width: int,
) -> npt.NDArray[Any]:
    """`reference.transform` with the same bits, in one call without the GIL for uint8 and float32.

    >>> row = np.array([[[[1], [2], [3]]]], np.uint8)
    >>> right = np.array([[1, 0, -1, 0, 1, 0, 0, 0]], np.float32)
    >>> transform_batch(row, right, reference.NEAREST, False, np.uint8(0), 1, 3).ravel().tolist()
    [1, 1, 2]
    """
    native = _NATIVE.ready() if images.dtype in (np.uint8, np.float32) else None
    count, height, width, channels = images.shape
    result = np.empty((count, out_height, out_width, channels), images.dtype)
    if native is None or not result.size:
        result[...] = reference.transform(images, transforms, mode, bilinear, fill, out_height, out_width)
        return result
    # Readable only, so that the kernel compiles once for arrays of both kinds.
    pixels, numbers = (
        np.require(images, requirements=["C", "A"]).reshape(-1).view(),
        np.ascontiguousarray(transforms).view(),
    )
    filling = np.full(channels, fill, images.dtype)
    pixels.flags.writeable = numbers.flags.writeable = filling.flags.writeable = False
    status = native.transform(
        pixels, count, height, width, channels, numbers, mode, bilinear, filling, out_height, out_width, result.ravel()
    )
    if status != 0:
        message = f"transform: the kernel refused images of shape {images.shape} for a result of shape {result.shape}."
        raise InvalidArgumentError(message)
    return result
