"""RangeSizer: how many elements of the base a range has."""

from __future__ import annotations

# Of work in a range: a worker that comes back from waiting needs some 0.7 ms around one, half of it for caches that
# others have used meanwhile, which is small beside it.
_SECONDS = 0.05
_BYTES = 1 << 22
_GROWTH = 2  # times, from one range to the next at most: the first tell little
_SHORTEST = 8  # to which part of its length a range shrinks where the base is about to end


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

    def before_end(self, left: int, workers: int) -> int:
        """The length of the next range where so many elements are left for all: the last ranges are shorter.

        So workers are done at about the same time, and none waits for another's whole range.
        """
        if workers < 2:
            return self.length
        most = max(left // (2 * workers), self.length // _SHORTEST)
        return min(self.length, max(most // self._unit, 1) * self._unit)
