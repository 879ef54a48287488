"""What the compiled kernels of all folders share, and their plain versions with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

# These are what operations are known by, and float32 to calculate with: a Python number would make float64 of what it
# meets.

BRIGHTNESS, SATURATION, HUE, CONTRAST = range(4)  # of colours
MULTIPLY, DIVIDE, ADD, SUBTRACT = range(4)  # arithmetic with a number for each channel
LEFT_RIGHT, UP_DOWN = 1, 2  # bits of a flip


ZERO, HALF, ONE, TWO, THREE, FOUR, FIVE, SIX = (np.float32(value) for value in (0, 0.5, 1, 2, 3, 4, 5, 6))
TINY = np.float32(1e-9)  # a divisor in place of nothing
TOP = np.float32(255)  # the highest level
PER_LEVEL = np.float32(1 / 255)  # a level as a number up to 1 ...
LEVELS = np.float32(255.5)  # ... and back, before the fraction is dropped
LEVEL = np.float32(255.5 / 255)  # there and back in one


_NO_BYTES, _NO_FLOATS = np.empty(0, np.uint8), np.empty(0, np.float32)
_NONE: dict[bool, tuple[npt.NDArray[np.uint8], npt.NDArray[np.float32]]] = {
    True: (_NO_BYTES, _NO_FLOATS),
    False: (_NO_BYTES.view(), _NO_FLOATS.view()),
}
for _each in _NONE[False]:
    _each.flags.writeable = False


def by_kind(flat: npt.NDArray[Any]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float32]]:
    """An array of bytes or floats as both, one of them empty, as a kernel for both kinds takes them.

    >>> by_kind(np.ones(2, np.uint8))
    (array([1, 1], dtype=uint8), array([], dtype=float32))
    """
    no_bytes, no_floats = _NONE[flat.flags.writeable]
    return (flat, no_floats) if flat.dtype == np.uint8 else (no_bytes, flat)
