"""Turn images by right angles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.block.spec import TensorSpec
from penstock.image.checks import check_image
from penstock.image.geometry.arguments import check_integer
from penstock.trace.lift import tensor, traceable

if TYPE_CHECKING:
    import numpy.typing as npt

    from penstock.block.spec import LeafSpec


def _turned(spec: LeafSpec, *, k: Any = 1) -> TensorSpec:
    known = tensor(spec)
    *batch, height, width, channels = known.shape
    if k % 2:
        height, width = width, height
    return TensorSpec((*batch, height, width, channels), known.dtype)


@traceable("image.rot90", _turned, batches=lambda rank: rank == 3)
def rot90(image: npt.NDArray[Any], k: int = 1) -> npt.NDArray[Any]:
    """Turn an image (H, W, C) or each of a batch (N, H, W, C) by `k` right angles counter-clockwise; a view.

    >>> rot90(np.arange(6).reshape(2, 3, 1))[:, :, 0].tolist()
    [[2, 5], [1, 4], [0, 3]]

    Args:
        image: any number type.
        k: any integer; negative ones turn clockwise.

    Raises:
        InvalidArgumentError: another rank, or no integer.
    """
    array = check_image("rot90", image)
    return np.rot90(array, check_integer("rot90", "k", k, None), axes=(-3, -2))


@traceable("image.transpose", lambda spec: _turned(spec), batches=lambda rank: rank == 3)
def transpose(image: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Swap rows and columns of an image (H, W, C) or of each of a batch (N, H, W, C); a view, nothing is copied.

    >>> transpose(np.arange(6).reshape(2, 3, 1))[:, :, 0].tolist()
    [[0, 3], [1, 4], [2, 5]]

    Raises:
        InvalidArgumentError: another rank.
    """
    return check_image("transpose", image).swapaxes(-3, -2)
