"""Pace: how many elements to ask for at a time, so that a Block is some milliseconds of work or some megabytes."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.physical.transform import RunAll, Transform

_SECONDS = 0.005  # of work in a Block: handing over, parsing and shuffling it cost some 0.3 ms around the elements
_BYTES = 1 << 21
_MOST = 1 << 16  # elements


class Pace:
    """Begins with one element, for a fast first batch, and doubles while Blocks stay small.

    What does the same work once more resumes where the one before it had come to.
    """

    __slots__ = ("_elements", "_most", "_nbytes", "_seconds", "seconds", "want")

    def __init__(self, most: int = _MOST, seconds: float = _SECONDS) -> None:
        self.seconds = seconds  # of work that a Block should be
        self._most = max(1, min(most, _MOST))
        self.want = 1
        self._elements = self._nbytes = 0  # observed since the last conclusion
        self._seconds = 0.0

    def resume(self, want: int) -> None:
        """Ask for so many from here on, as far as this may be."""
        self.want = min(want, self._most)

    def observe(self, elements: int, seconds: float, nbytes: int) -> None:
        """A Block of `elements` took `seconds` and holds `nbytes`.

        One of less than half of what was asked for says little by itself and counts with those behind it: a stage may
        give the first of what it has made, which took all the time, and then the others, which took none.
        """
        self._elements += elements
        self._seconds += seconds
        self._nbytes += nbytes
        if elements < self.want // 2:
            return
        share = max(elements, self.want) / max(self._elements, self.want)
        seconds, nbytes = self._seconds * share, int(self._nbytes * share)
        self._elements = self._nbytes = 0
        self._seconds = 0.0
        if seconds < self.seconds * 0.6 and nbytes < _BYTES / 2:
            self.want = min(self.want * 2, self._most)
        elif seconds > self.seconds * 2 or nbytes > _BYTES * 2:
            self.want = max(self.want // 2, 1)


def worked(transforms: Sequence[Transform], run: RunAll, seconds: float, cpu: float) -> float:
    """Seconds of work in so many by the clock: of transforms that only compute, those that they had a core for.

    Beside other programs, or a thread that keeps the interpreter's lock, a Block takes longer and is no more work.
    Smaller Blocks would then wait for the lock more often.
    """
    if not getattr(run, "here", True):
        return seconds
    for transform in transforms:
        if not transform.computes:
            return seconds
    return cpu
