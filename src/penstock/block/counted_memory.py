"""CountedMemory: memory that somebody counts already, whoever else shows a part of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from penstock.block.arena import ALIGNMENT


class CountedMemory(np.ndarray):
    """The owner that every array over a piece of memory has in its `base` chain, for `footprint` to know it by."""


def counted_memory(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """A plain array without content, of which the views that others hold have no footprint of their own.

    It is aligned as batches are: what is copied from 16 bytes beside a cache line takes a third longer.

    >>> from penstock.block.footprint import Footprints
    >>> whole, alive = counted_memory((100,), np.float64), Footprints()
    >>> alive.add(whole[:10])
    >>> alive.nbytes
    0
    """
    nbytes = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    owner = memory[start : start + nbytes].view(dtype).reshape(shape).view(CountedMemory)
    # numpy shortens a base chain up to a change of type: without the view between them, this would have no such owner.
    array: np.ndarray = owner[:].view(np.ndarray)
    return array


def is_counted(array: np.ndarray) -> bool:
    """Whether an array is a part of such memory.

    >>> is_counted(counted_memory((100,), np.float64)[:10]), is_counted(np.zeros(100)[:10])
    (True, False)
    """
    base = array.base
    while isinstance(base, np.ndarray) and not isinstance(base, CountedMemory):
        base = base.base
    return isinstance(base, CountedMemory)
