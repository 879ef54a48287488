"""RangeSizer: how many elements of the base a range has."""

from __future__ import annotations

_SECONDS = 0.02  # of work in a range: what asking and answering costs is small beside it
_BYTES = 1 << 22
_GROWTH = 2  # times, from one range to the next at most: the first tell little


class RangeSizer:
    """Begins with the least there can be, so that the first elements come soon."""

    def __init__(self, unit: int, *, steady: bool = False, seconds: float = _SECONDS, nbytes: int = _BYTES) -> None:
        self._unit = unit
        self._seconds = seconds
        self._bytes = nbytes
        self._steady = steady  # always the least
        self.length = unit

    def observe(self, elements: int, seconds: float, nbytes: int) -> None:
        """Learn that `elements` of the base took `seconds` and became `nbytes`."""
        if elements < 1 or self._steady:
            return
        most = self.length * _GROWTH
        if seconds > 0:
            most = min(most, int(elements * self._seconds / seconds))
        if nbytes > 0:
            most = min(most, elements * self._bytes // nbytes)
        self.length = max(most // self._unit, 1) * self._unit
