"""BlockSizer chooses the number of elements per Block: some milliseconds of work or some megabytes."""

from __future__ import annotations

from penstock.physical.transform import RunAll, Transforms

# of work in a Block: its transfer, parsing and shuffling cost about 0.3 ms in addition to the elements
_SECONDS = 0.005
_BYTES = 1 << 21
# per component if there are many: the fixed 5 µs per component and Block cost as much as a copy of these
_COLUMN_BYTES = 1 << 15
_MOST = 1 << 16  # elements
# seconds of work per worker in a Block: all workers together then run 1,400 tasks per second
_OF_EACH_WORKER = 0.0007
# bytes per worker in a Block, if the Blocks of all workers together need at most this fraction of the budget
_BYTES_OF_EACH_WORKER, _SHARE_OF_BUDGET = 1 << 18, 16
_STEPS = (8, 4, 2)  # factors of growth while the consumer waits for a whole unit
_SEVERAL = 0.3  # share of the allowed seconds, below which several units may be together
_MOSTLY = 0.75  # share of the time of a Block that its elements take, above which larger Blocks bring no gain
_LEAST = 0.25  # least share of its time that an element takes; a clock may show that additional elements are free


class BlockSizer:
    """Begins with one element, for a fast first batch, and doubles the number while Blocks stay small.

    A second sizer for the same work can resume with the size of the first one. A consumer may wait for a `unit` of
    elements, such as a batch. The sizer then asks for a whole unit if the unit takes at most `seconds`, and for several
    units if they take much less. Below a unit, the size grows by up to eight times, to the size that fits according to
    the last Block. The fixed cost of the last Block makes this size too small rather than too large. The consumer gets
    nothing before the unit is complete, so this is safe.

    A Block has a fixed cost, such as one per step or component. Blocks of two sizes show this cost: if it is high,
    larger Blocks take little longer. If the first Block takes too long for the usual growth, but not longer than
    allowed, the sizer tries twice its size once.
    """

    __slots__ = (
        "_before", "_bytes", "_elements", "_made", "_most", "_nbytes", "_of_several", "_seconds", "_trial", "_unit",
        "seconds", "share", "want",
    )  # fmt: skip

    def __init__(self, most: int = _MOST, seconds: float = _SECONDS, unit: int = 0) -> None:
        self.seconds = seconds  # seconds of work per Block
        self._of_several, self._bytes = seconds * _SEVERAL, _BYTES  # the same for several units; bytes per Block
        self._most = max(1, min(most, _MOST))
        self._unit = min(unit, self._most)
        self.want = 1
        self.share = _MOST  # present upper limit
        self._elements = self._nbytes = self._made = 0  # observed since the last decision
        self._seconds = 0.0
        self._before = 0, 0.0  # elements and seconds of the last Blocks of another size
        self._trial: bool | None = None  # True during a trial of twice the size; None before it

    def resume(self, want: int) -> None:
        """Ask for `want` elements from now on, up to the maximum."""
        self.want = min(want, self._most)
        self._trial = False

    def aim(self, seconds: float, workers: int, left: int | None, budget: int) -> None:
        """Aim for Blocks of `seconds`, or more for many workers.

        A task holds the interpreter lock for about 0.4 ms, and all workers wait for this lock. If only `left` elements
        remain, each worker gets one Block, so that no worker waits at the end for several Blocks of another. `budget`
        is the number of bytes for all buffers.
        """
        least = workers * _OF_EACH_WORKER
        self.seconds, self._of_several = max(seconds, least), max(seconds * _SEVERAL, least)
        self._bytes = max(_BYTES, min(workers * _BYTES_OF_EACH_WORKER, budget // (_SHARE_OF_BUDGET * workers)))
        self.share = _MOST if left is None else max(left // workers, 1)

    def observe(self, elements: int, seconds: float, nbytes: int, made: int = 0, columns: int = 1) -> None:
        """Record that a Block of `elements` took `seconds` and has `nbytes`.

        A Block of less than half the wanted size counts together with the next ones. A stage may return a first Block
        that took all the time, and then others that took none.

        Args:
            elements: Number of elements of the Block.
            seconds: Seconds of work.
            nbytes: Number of bytes of the Block.
            made: Number of bytes of the output. It counts for several units.
            columns: Number of components.
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
        most = max(self._bytes, columns * _COLUMN_BYTES)
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
        """Set the wanted size, after Blocks of the present size took `seconds`."""
        if wanted != self.want:
            self._before = self.want, seconds
            self.want = wanted

    def _of_each(self, seconds: float) -> float:
        """Return the seconds of one more element, estimated from Blocks of two sizes."""
        whole = seconds / self.want
        elements, before = self._before
        if not elements or elements == self.want:
            return whole
        return min(max((seconds - before) / (self.want - elements), _LEAST * whole), whole)

    def _allowed(self, elements: int) -> float:
        """Return the allowed seconds of work of a Block with `elements`."""
        return self._of_several if self._is_several(elements) else self.seconds

    def _counting(self, elements: int, nbytes: int, made: int) -> int:
        """Return the bytes that count for a Block with `elements`.

        Large results stay apart, for any number of workers: memory for them is reused only if there is little of it.
        """
        return max(nbytes, made * self._bytes // _BYTES) if self._is_several(elements) else nbytes

    def _is_several(self, elements: int) -> bool:
        return 0 < self._unit < elements


def may_wait(transforms: Transforms) -> bool:
    """Return True if a function may do anything else than compute."""
    return any(not transform.computes for transform in transforms)


def worked(transforms: Transforms, run: RunAll, seconds: float, cpu: float) -> float:
    """Return the seconds of work of a Block. For transforms that only compute, this is the CPU time.

    If other programs or threads use the core or the interpreter's lock, a Block takes longer, but is not more work.
    Smaller Blocks would then wait for the lock more often.
    """
    if not getattr(run, "here", True):
        return seconds
    for transform in transforms:
        if not transform.computes:
            return seconds
    return cpu
