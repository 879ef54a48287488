"""`RangeWindow`: which worker computes which range of a stream, the length of ranges, and the consumer's next range.

It uses no sockets, threads or clock. The caller reports events, and the window returns the ranges to request. If a
worker is lost, its unanswered ranges go to other workers. The consumer's position is the only acknowledgement.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

# Seconds of work in a range. This must be long compared to the overhead of about 0.7 ms per range, for a worker that
# wakes up. Half of the overhead comes from cold caches.
_SECONDS = 0.05
_BYTES = 1 << 22
_GROWTH = 2  # maximum factor between two ranges, as the first ranges are poor estimates
_SHORTEST = 8  # divisor of the length for the shortest ranges before the end of the base


class RangeSizer:
    """Chooses the length of ranges. It starts with the minimum, so that the first elements come soon."""

    def __init__(self, unit: int, *, steady: bool = False, seconds: float = _SECONDS, nbytes: int = _BYTES) -> None:
        self._unit = unit
        self._seconds = seconds
        self._bytes = nbytes
        self._steady = steady  # always use the minimum
        self.length = unit

    def observe(self, elements: int, seconds: float, nbytes: int) -> None:
        """Take into account that `elements` of the base took `seconds` and became `nbytes`."""
        if elements < 1 or self._steady:
            return
        most = self.length * _GROWTH
        if seconds > 0:
            most = min(most, int(elements * self._seconds / seconds))
        if nbytes > 0:
            most = min(most, elements * self._bytes // nbytes)
        self.length = max(most // self._unit, 1) * self._unit

    def before_end(self, left: int, workers: int) -> int:
        """Return the length of the next range if `left` elements remain. The last ranges are shorter.

        Then the workers finish at about the same time, and no worker waits for a whole range of another.
        """
        if workers < 2:
            return self.length
        most = max(left // (2 * workers), self.length // _SHORTEST)
        return min(self.length, max(most // self._unit, 1) * self._unit)


KILLS = 3  # workers that a range may kill before the iteration ends
_AT_ONCE = 2  # ranges per worker: one in work, one waiting


Cut = Callable[[int, int], tuple[int, str | None]]  # (start, wished length) of a range -> (stop, worker)


@dataclass(slots=True)
class Range:
    """Elements from `start` up to `stop` (exclusive) of the base. `made` is their result."""

    start: int
    stop: int
    worker: str | None = None
    made: Any = None
    kills: int = 0
    wish: str | None = None  # the worker that other consumers will ask for this range


@dataclass(slots=True, eq=False)
class RangeWindow:
    """The ranges from the consumer's position on, in order. A range is requested, computed or waiting for a worker.

    At most `most` ranges are in the window. `end` is the number of base elements, once a worker has found it.
    `expected` is its estimate; ranges before it become shorter. If consumers share results, `cut` returns the end and
    worker of a range. If consumers take turns, a range has one turn, and starts `apart` elements after the last range.
    """

    start: int  # of the next range
    sizer: RangeSizer
    most: int
    cut: Cut | None = None
    apart: int = 0
    expected: int | None = None
    end: int | None = None
    _ranges: deque[Range] = field(default_factory=deque)

    def __iter__(self) -> Iterator[Range]:
        return iter(self._ranges)

    @property
    def over(self) -> bool:
        """True if no range is left."""
        return not self._ranges and self.end is not None and self.start >= self.end

    def loads(self, workers: Mapping[str, Any]) -> dict[str, int]:
        """Return the number of requested and unanswered ranges of each worker."""
        found = dict.fromkeys(workers, 0)
        for each in self._ranges:
            if each.made is None and each.worker in found:
                found[each.worker] += 1
        return found

    def to_ask(self, workers: Mapping[str, Any], coming: Collection[str] = ()) -> list[Range]:
        """Return the ranges to request now, each with its worker. Ranges of lost workers come first.

        A range waits if other consumers will request it from a worker that is `coming`.
        """
        loads = self.loads(workers)
        found: list[Range] = []
        while loads:
            least = min(loads, key=loads.__getitem__)
            if loads[least] >= _AT_ONCE:
                break
            each = self._unasked(len(loads))
            if each is None:
                break
            worker = least
            if each.wish is not None and (each.wish in loads or each.wish in coming):
                worker = each.wish
                if loads.get(worker, _AT_ONCE) >= _AT_ONCE:
                    break
            each.worker = worker
            loads[worker] += 1
            found.append(each)
        return found

    def _unasked(self, workers: int) -> Range | None:
        for each in self._ranges:
            if each.made is None and each.worker is None:
                return each
        if len(self._ranges) >= self.most or (self.end is not None and self.start >= self.end):
            return None
        length = self.sizer.length
        if self.expected is not None:
            length = self.sizer.before_end(self.expected - self.start, workers)
        made = Range(self.start, self.start + length)
        if self.cut is not None:
            made.stop, made.wish = self.cut(made.start, length)
        self.start = made.start + self.apart if self.apart else made.stop
        self._ranges.append(made)
        return made

    def arrived(self, worker: str, start: int, made: Any) -> bool:
        """Store the result of the range at `start`.

        Return False if the worker was not asked, or has answered before.
        """
        for each in self._ranges:
            if each.start == start and each.worker == worker and each.made is None:
                each.made = made
                return True
        return False

    def ended(self, end: int) -> None:
        """Set the number of base elements, and remove the ranges after them."""
        self.end = end if self.end is None else min(self.end, end)
        while self._ranges and self._ranges[-1].start >= self.end and self._ranges[-1].made is None:
            self._ranges.pop()
            self.start = self.end
        self.start = min(self.start, max(self.end, self._ranges[-1].stop if self._ranges else self.end))

    def lost(self, worker: str, *, blamed: bool = True) -> Range | None:
        """Reassign the ranges of a lost worker. Return the range that has killed too many workers, or None."""
        first = blamed
        fatal = None
        for each in self._ranges:
            if each.worker == worker and each.made is None:
                each.worker = None
                if first:  # a worker processes its ranges in order, so its first range is to blame
                    each.kills += 1
                    first = False
                    if each.kills >= KILLS:
                        fatal = each
        return fatal

    def take(self) -> Range | None:
        """Return the consumer's next range if its result is there, or None."""
        if self._ranges and self._ranges[0].made is not None:
            return self._ranges.popleft()
        return None
