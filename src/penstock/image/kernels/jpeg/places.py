"""Where the needed coefficients of a block lie, if it becomes `side` × `side` samples: row by row, in four columns."""

from __future__ import annotations

import numpy as np

from penstock.image.kernels.jpeg.planes import NATURAL
from penstock.image.kernels.jpeg.vectors import Code, vector_step

NEEDED = 16  # coefficients of a block, at most
UNUSED = NEEDED  # the one of a block's memory that takes what is not needed
IN_PLACES = 256  # of PLACES, for one side


def _places(side: int) -> list[int]:
    """Where coefficient k lies, also of a damaged run that goes past the end."""
    cells = [divmod(int(natural), 8) for natural in NATURAL]
    places = [4 * row + column if max(row, column) < side else UNUSED for row, column in cells]
    return places + [UNUSED] * (IN_PLACES - 64)


def _furthest(side: int) -> int:
    return max((k for k, place in enumerate(_places(side)) if place != UNUSED), default=0)


PLACES = np.array([_places(side) for side in range(5)], np.int64).reshape(-1)
FURTHEST = np.array([_furthest(side) for side in range(5)], np.int64)


def _placed(code: Code) -> None:
    _, at, _, to = code.args
    order = [_places(4).index(place) for place in range(NEEDED)]
    values = code.load(code.at(0, at), 32)
    code.store(code.shuffled(values, values, order), code.at(2, to))
    code.store(code.all(0, values), code.at(0, at))


placed = vector_step(_placed, "aiai")
"""placed(values, at, coefficients, to): a block's coefficients, from those in the order of its codes, now zeros."""
