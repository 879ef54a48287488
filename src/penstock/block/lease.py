"""Lease: memory that is lent to arrays, and is free again when the last of them is gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class Lease(np.ndarray):
    """The owner that every array over a piece of memory has at the end of its `base` chain; its death ends the loan."""

    _then: Callable[[], None] | None = None

    def __array_finalize__(self, obj: Any) -> None:
        """A view of a lease is no owner: it keeps the class default."""

    def __del__(self) -> None:
        if self._then is not None:
            self._then()


def leased(memory: np.ndarray, then: Callable[[], None]) -> np.ndarray:
    """`memory` as a plain array. `then` is called once, in whatever thread, when it and all views of it are gone.

    >>> freed = []
    >>> part = leased(np.zeros(8, np.uint8), lambda: freed.append("memory"))[2:4].view(np.uint16)
    >>> freed
    []
    >>> del part
    >>> freed
    ['memory']
    """
    lease = memory.view(Lease)
    lease._then = then
    # numpy shortens a base chain up to a change of type: without the view between them, this would be one of `memory`.
    array: np.ndarray = lease[:].view(np.ndarray)
    return array
