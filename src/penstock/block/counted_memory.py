"""CountedMemory: memory that somebody counts already, whoever else shows a part of it."""

from __future__ import annotations

from typing import Any

import numpy as np


class CountedMemory(np.ndarray):
    """The owner that every array over a piece of memory has in its `base` chain, for `footprint` to know it by."""


def counted_memory(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """A plain array without content, of which the views that others hold have no footprint of their own.

    >>> from penstock.block.footprint import Footprints
    >>> whole, alive = counted_memory((100,), np.float64), Footprints()
    >>> alive.add(whole[:10])
    >>> alive.nbytes
    0
    """
    owner = np.empty(shape, dtype).view(CountedMemory)
    # numpy shortens a base chain up to a change of type: without the view between them, this would have no such owner.
    array: np.ndarray = owner[:].view(np.ndarray)
    return array
