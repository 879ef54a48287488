"""What an array stores as a float32, and back, compiled: the numbers of `units` for uint8, floats as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core.extending import overload

from penstock.compiled.kernel import INLINED, inlined
from penstock.image.kernels.floats import LEVELS, PER_LEVEL, TOP, ZERO
from penstock.image.kernels.instructions import pick


@inlined
def clipped(value: Any, top: Any) -> Any:
    """`value`, at least 0 and at most `top`."""
    value = pick(value > ZERO, value, ZERO)
    return pick(value < top, value, top)


@inlined
def level(value: Any) -> Any:
    """A float32 as a uint8, saturated and truncated."""
    return np.uint8(np.int32(clipped(value, TOP)))


def unit(pixel: Any) -> Any:
    """A stored value as float32: a level as its share of 255."""


@overload(unit, jit_options=INLINED, strict=False)
def _unit(pixel: Any) -> Any:
    if pixel == types.uint8:
        return lambda pixel: np.float32(pixel) * PER_LEVEL
    return lambda pixel: pixel


def stored(value: Any, like: Any) -> Any:
    """A float32 as it is stored in an array like `like`: saturated and truncated to a level, or as it is."""


@overload(stored, jit_options=INLINED, strict=False)
def _stored(value: Any, like: Any) -> Any:
    if like.dtype == types.uint8:
        return lambda value, like: level(value * LEVELS)
    return lambda value, like: value
