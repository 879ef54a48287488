"""each: what one image draws, for every image of a batch and for the keys of many elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.image.drawn import Keys
from penstock.keys import fold

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt


def each(key: Keys, shape: Sequence[int], draw: Callable[[int], npt.ArrayLike]) -> npt.NDArray[np.generic]:
    """`draw(key)` for an image of `shape`; for a batch one row for each image, from a key of its own.

    An array of keys gives one axis more in front, as many elements of this shape draw.

    >>> each(5, (8, 8, 3), lambda key: [key, 1]).tolist()
    [5, 1]
    >>> each(5, (3, 8, 8, 3), lambda key: [key, 1]).shape
    (3, 2)
    """
    if isinstance(key, np.ndarray):
        return np.stack([each(int(one), shape, draw) for one in key])
    if len(shape) == 3:
        return np.asarray(draw(key))
    rows = [np.asarray(draw(fold(key, number))) for number in range(shape[0])]
    return np.stack(rows) if rows else np.asarray(draw(key))[None][:0]
