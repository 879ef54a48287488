"""Mirror images: all of them, or those that are chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.image import rules
from penstock.image.checks import check_image
from penstock.image.kernels.geometry.window import window_batch
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


def flip_left_right_where(image: npt.NDArray[Any], flip: npt.ArrayLike) -> npt.NDArray[Any]:
    """`flip_left_right` of an image if `flip`, or of the images of a batch for which `flip`, (N,), says so.

    An image, flipped or not, is a view; a batch is a new array.

    >>> import numpy as np
    >>> flip_left_right_where(np.arange(4).reshape(2, 1, 2, 1), [False, True]).ravel().tolist()
    [0, 1, 3, 2]
    """
    if image.ndim == 3:
        return image[:, ::-1] if flip else image
    return window_batch(image, image.shape[1:3], mirrored=flip)


def flip_up_down_where(image: npt.NDArray[Any], flip: npt.ArrayLike) -> npt.NDArray[Any]:
    """`flip_up_down` of an image if `flip`, or of the images of a batch for which `flip`, (N,), says so.

    An image, flipped or not, is a view; a batch is a new array.

    >>> import numpy as np
    >>> flip_up_down_where(np.arange(4).reshape(2, 2, 1, 1), [False, True]).ravel().tolist()
    [0, 1, 3, 2]
    """
    if image.ndim == 3:
        return image[::-1] if flip else image
    return window_batch(image, image.shape[1:3], upside_down=flip)
