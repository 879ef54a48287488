"""Where the needed coefficients of a block lie, if it becomes `side` × `side` samples: row by row, in four columns."""

from __future__ import annotations

import numpy as np

from penstock.image.kernels.jpeg.planes import NATURAL

NEEDED = 16  # coefficients of a block, at most
UNUSED = NEEDED  # the one of a block's memory that takes what is not needed
IN_PLACES = 320  # of PLACES, for one side: as far as looks reach from behind a block, at 64 + 2 * 32 + 128


def _places(side: int) -> list[int]:
    """Where coefficient k lies, also of what is looked at behind a block, and of a damaged run that goes past it."""
    cells = [divmod(int(natural), 8) for natural in NATURAL]
    places = [4 * row + column if max(row, column) < side else UNUSED for row, column in cells]
    return places + [UNUSED] * (IN_PLACES - 64)


def _furthest(side: int) -> int:
    return max((k for k, place in enumerate(_places(side)) if place != UNUSED), default=0)


PLACES = np.array([_places(side) for side in range(5)], np.int64).reshape(-1)
FURTHEST = np.array([_furthest(side) for side in range(5)], np.int64)
