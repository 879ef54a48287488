"""Which positions of a stretch hold elements."""

from __future__ import annotations

import numpy as np

from penstock.physical.stretch import Stretch


def held(stretch: Stretch) -> np.ndarray:
    """The positions that hold elements, in order."""
    if not stretch.failures:
        return np.arange(stretch.size)
    holds = np.ones(stretch.size, bool)
    holds[[position for position, _ in stretch.failures]] = False
    return np.flatnonzero(holds)
