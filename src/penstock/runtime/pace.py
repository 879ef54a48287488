"""Pace: how many elements to ask for at a time, so that a Block is about a millisecond of work or a megabyte."""

from __future__ import annotations

_SECONDS = 0.002  # of work in a Block: what hands it over costs some tens of microseconds
_BYTES = 1 << 20
_MOST = 1 << 16  # elements


class Pace:
    """Begins with one element, for a fast first batch, and doubles while Blocks stay small."""

    __slots__ = ("_most", "want")

    def __init__(self, most: int = _MOST) -> None:
        self._most = max(1, min(most, _MOST))
        self.want = 1

    def observe(self, elements: int, seconds: float, nbytes: int) -> None:
        """A Block of `elements` took `seconds` and holds `nbytes`."""
        if elements < self.want // 2:
            return  # the source gave less than asked for: nothing learnt
        if seconds < _SECONDS / 2 and nbytes < _BYTES / 2:
            self.want = min(self.want * 2, self._most)
        elif seconds > _SECONDS * 2 or nbytes > _BYTES * 2:
            self.want = max(self.want // 2, 1)
