"""Mirror images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.image import rules
from penstock.image.checks import check_image
from penstock.trace.lift import traceable

if TYPE_CHECKING:
    import numpy.typing as npt


@traceable("image.flip_left_right", rules.same_shape, batches=lambda rank: rank == 3)
def flip_left_right(image: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Reverse the columns of an image (H, W, C) or of each of a batch (N, H, W, C); a view, nothing is copied.

    >>> import numpy as np
    >>> flip_left_right(np.arange(3).reshape(1, 3, 1)).ravel().tolist()
    [2, 1, 0]

    Raises:
        InvalidArgumentError: another rank.
    """
    return check_image("flip_left_right", image)[..., ::-1, :]


@traceable("image.flip_up_down", rules.same_shape, batches=lambda rank: rank == 3)
def flip_up_down(image: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Reverse the rows of an image (H, W, C) or of each of a batch (N, H, W, C); a view, nothing is copied.

    >>> import numpy as np
    >>> flip_up_down(np.arange(3).reshape(3, 1, 1)).ravel().tolist()
    [2, 1, 0]

    Raises:
        InvalidArgumentError: another rank.
    """
    return check_image("flip_up_down", image)[..., ::-1, :, :]
