"""BlockSizer: how many elements to ask for at a time: a Block is some milliseconds of work or some megabytes."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.physical.transform import RunAll, Transform

_SECONDS = 0.005  # of work in a Block: handing over, parsing and shuffling it cost some 0.3 ms around the elements
_BYTES = 1 << 21
_COLUMN_BYTES = 1 << 15  # of each component, where there are many: 5 µs for each and Block are as much as copying these
_MOST = 1 << 16  # elements
_OF_EACH_WORKER = 0.0007  # seconds of a Block of functions that wait: together they have 1,400 tasks a second then
_STEPS = (8, 4, 2)  # times as many, of what is waited for as a whole
_SEVERAL = 0.3  # of the seconds that one unit may take: together with others
_MOSTLY = 0.75  # of the seconds of a Block are its elements', where more of them in one are no gain
_LEAST = 0.25  # of what its elements take, which more of them take at least as long: a clock may say that they are free


class BlockSizer:
    """Begins with one element, for a fast first batch, and doubles while Blocks stay small.

    What does the same work once more resumes where the one before it had come to. Who waits for a `unit` of elements
    may ask for all of it where that takes `seconds`, and for several where they take much less together. Up to the unit
    it grows to what should fit by the last Block, at most eight times as many: what that cost beside its elements makes
    them too few rather than too many, and nobody gets anything before the unit is there.

    What a Block costs beside its elements, once for each of hundreds of steps or components, is known from Blocks of
    two sizes: more elements then take little longer. Where the first is too much work for another size, but no more
    than a Block may be, twice as many are tried once.
    """

    __slots__ = (
        "_before", "_elements", "_made", "_most", "_nbytes", "_seconds", "_trial", "_unit", "seconds", "share", "want",
    )  # fmt: skip

    def __init__(self, most: int = _MOST, seconds: float = _SECONDS, unit: int = 0) -> None:
        self.seconds = seconds  # of work that a Block should be
        self._most = max(1, min(most, _MOST))
        self._unit = min(unit, self._most)
        self.want = 1
        self.share = _MOST  # what is asked for at most just now
        self._elements = self._nbytes = self._made = 0  # observed since the last conclusion
        self._seconds = 0.0
        self._before = 0, 0.0  # elements of the last Blocks of another size, and their seconds
        self._trial: bool | None = None  # whether twice as many are tried just now; None: they have not been yet

    def resume(self, want: int) -> None:
        """Ask for so many from here on, as far as this may be."""
        self.want = min(want, self._most)
        self._trial = False

    def wait(self, seconds: float, workers: int, left: int | None) -> None:
        """Have Blocks of `seconds`, or of more where many threads run functions that wait; what is left is shared.

        A task takes some 0.1 ms of the interpreter, for which all of them queue, however long their functions wait. Of
        elements of which some are `left` each worker gets one Block, or some would wait at the end for one of many.
        """
        self.seconds = max(seconds, workers * _OF_EACH_WORKER)
        self.share = _MOST if left is None else max(left // workers, 1)

    def observe(self, elements: int, seconds: float, nbytes: int, made: int = 0, columns: int = 1) -> None:
        """A Block of `elements` took `seconds` and holds `nbytes`; `made` came out, which counts for several units.

        One of less than half of what was asked for says little by itself and counts with those behind it: a stage may
        give the first of what it has made, which took all the time, and then the others, which took none.
        """
        self._elements += elements
        self._seconds += seconds
        self._nbytes += nbytes
        self._made += made
        if elements < self.want // 2:
            return
        share = max(elements, self.want) / max(self._elements, self.want)
        seconds, nbytes, made = self._seconds * share, int(self._nbytes * share), int(self._made * share)
        self._elements = self._nbytes = self._made = 0
        self._seconds = 0.0
        most = max(_BYTES, columns * _COLUMN_BYTES)
        allowed, each = self._allowed(self.want), self._of_each(seconds)
        failed = False
        if self._trial:
            self._trial = False
            failed = seconds > allowed * 1.2 and each * self.want > _MOSTLY * seconds
        if failed or seconds > allowed * 2 or self._counting(self.want, nbytes, made) > most * 2:
            self._ask_for(max(self.want // 2, 1), seconds)
            return
        inside = self.want < self._unit
        for step in _STEPS if inside else _STEPS[-1:]:
            wanted = min(self.want * step, self._unit if inside else self._most)
            foreseen = seconds + (wanted - self.want) * each
            counting = self._counting(wanted, nbytes, made) * wanted / self.want
            if foreseen < self._allowed(wanted) * 1.2 and counting < most:
                self._trial = False
                self._ask_for(wanted, seconds)
                return
        if self._trial is None and seconds <= allowed:
            wanted = min(2 * self.want, self._most)
            if self._counting(wanted, nbytes, made) * wanted / self.want < most:
                self._trial = True
                self._ask_for(wanted, seconds)

    def _ask_for(self, wanted: int, seconds: float) -> None:
        """From here on, where as many as before took so long."""
        if wanted != self.want:
            self._before = self.want, seconds
            self.want = wanted

    def _of_each(self, seconds: float) -> float:
        """Seconds that one more element takes, by what it took before with more or fewer of them."""
        whole = seconds / self.want
        elements, before = self._before
        if not elements or elements == self.want:
            return whole
        return min(max((seconds - before) / (self.want - elements), _LEAST * whole), whole)

    def _allowed(self, elements: int) -> float:
        """Seconds of work that a Block of so many may be."""
        return self.seconds * _SEVERAL if self._several(elements) else self.seconds

    def _counting(self, elements: int, nbytes: int, made: int) -> int:
        """The bytes that matter for a Block of so many."""
        return max(nbytes, made) if self._several(elements) else nbytes

    def _several(self, elements: int) -> bool:
        return 0 < self._unit < elements


def may_wait(transforms: Sequence[Transform]) -> bool:
    """Whether these functions may do something else than compute."""
    return any(not transform.computes for transform in transforms)


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
