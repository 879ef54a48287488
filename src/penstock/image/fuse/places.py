"""Which row or column of an image each one of the result shows, -1 being none: where paddings, flips and crops lead."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]


def padded(places: Places, before: int, after: int, mode: str) -> Places:
    """`places` (N, size) after padding one axis as tf.pad does.

    >>> here = np.arange(3)[None]
    >>> [padded(here, 2, 0, mode).tolist()[0] for mode in ("CONSTANT", "REFLECT", "SYMMETRIC")]
    [[-1, -1, 0, 1, 2], [2, 1, 0, 1, 2], [1, 0, 0, 1, 2]]
    """
    size = places.shape[1]
    at = np.arange(-before, size + after)
    if mode != "CONSTANT":
        edge = 1 if mode == "SYMMETRIC" else 0
        at = np.where(at < 0, -at - edge, at)
        at = np.where(at >= size, 2 * size - 2 + edge - at, at)
    return shown(places, at)


def shown(places: Places, at: Places) -> Places:
    """The places numbered `at`; -1 for numbers that are none.

    >>> shown(np.array([[5, 6]]), np.array([-1, 1, 2])).tolist()
    [[-1, 6, -1]]
    """
    inside = (at >= 0) & (at < places.shape[1])
    return np.where(inside, places[:, np.where(inside, at, 0)], -1)


def flipped(places: Places, flip: Any) -> Places:
    """Backwards where `flip` is true, for all or for each.

    >>> flipped(np.arange(3)[None], np.array([False, True])).tolist()
    [[0, 1, 2], [2, 1, 0]]
    """
    return np.where(np.reshape(flip, (-1, 1)), places[:, ::-1], places)


def cropped(places: Places, starts: Any, extent: int) -> Places:
    """`extent` of them from `starts` on, one for all or one for each.

    >>> cropped(np.arange(4)[None], np.array([0, 2]), 2).tolist()
    [[0, 1], [2, 3]]
    """
    at = np.reshape(starts, (-1, 1)) + np.arange(extent)
    rows = max(len(at), len(places))
    return np.take_along_axis(
        np.broadcast_to(places, (rows, places.shape[1])), np.broadcast_to(at, (rows, extent)), axis=1
    )
