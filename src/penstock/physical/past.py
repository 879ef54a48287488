"""Past: states of the input in front of elements that may have to come again."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

_LEAST = 64  # notes that are never too many


class Past:
    """(position, state) pairs in ascending order; those that nobody will ask for are forgotten."""

    def __init__(self) -> None:
        self._notes: deque[tuple[int, Any]] = deque()
        self._thin_at = _LEAST

    def __len__(self) -> int:
        return len(self._notes)

    def note(self, position: int, state: Any, wanted: np.ndarray) -> None:
        """What gives the element at `position` first; `wanted` are earlier positions that may be asked for."""
        self._notes.append((position, state))
        if len(self._notes) > self._thin_at:
            notes = list(self._notes)
            keep = np.searchsorted([at for at, _ in notes], np.sort(wanted), side="right") - 1
            self._notes = deque(notes[i] for i in np.unique([*keep[keep >= 0], len(notes) - 1]).tolist())
            self._thin_at = 2 * len(self._notes) + _LEAST

    def ends_at(self, position: int) -> bool:
        """Whether the last note stands in front of this position."""
        return bool(self._notes) and self._notes[-1][0] == position

    def before(self, position: int) -> tuple[int, Any]:
        """The last note not behind `position`; earlier ones are forgotten."""
        while len(self._notes) > 1 and self._notes[1][0] <= position:
            self._notes.popleft()
        return self._notes[0]
