"""Window: which ranges of a stream are asked of which worker, how long they are, and which the consumer has next.

A machine without sockets, threads or a clock: it is told what happened, and says what to ask. What a worker has been
asked and not answered is asked of another when it is lost. The only acknowledgement is the place of the consumer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# Seconds of work in a range: a worker that comes back from waiting needs some 0.7 ms around one, half of it for caches
# that others have used meanwhile, which is small beside it.
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


KILLS = 3  # workers that a range may take with it
_AT_ONCE = 2  # ranges that a worker is given: one to work at, one for behind it


Cut = Callable[[int, int], tuple[int, str | None]]  # of a range: its start and wished length, to stop and worker


@dataclass(slots=True)
class Range:
    """Elements `start` up to, not including, `stop` of the base. `made` is what became of them."""

    start: int
    stop: int
    worker: str | None = None
    made: Any = None
    kills: int = 0
    wish: str | None = None  # the worker that others are told to ask for it, too


class Window:
    """The ranges from the consumer's on, in their order: asked for, made, or waiting for a worker.

    `most` are in it at a time. `end` is the number of elements of the base once a worker has met it, `expected` what it
    is said to be, after which ranges are shortened. Where consumers
    share what is made, `cut` says where ranges end and who makes them; where they take turns, a range is of one turn
    and `apart` elements behind the last.
    """

    def __init__(
        self,
        start: int,
        sizer: RangeSizer,
        most: int,
        cut: Cut | None = None,
        apart: int = 0,
        expected: int | None = None,
    ) -> None:
        self._cut = cut
        self._expected = expected
        self._apart = apart
        self._sizer = sizer
        self.most = most
        self._next = start  # where the next range begins
        self._ranges: deque[Range] = deque()
        self.end: int | None = None

    def __iter__(self) -> Iterator[Range]:
        return iter(self._ranges)

    @property
    def over(self) -> bool:
        """Whether nothing is left to come."""
        return not self._ranges and self.end is not None and self._next >= self.end

    def loads(self, workers: Mapping[str, Any]) -> dict[str, int]:
        """How many ranges each of these workers has been asked for, and has not answered."""
        found = dict.fromkeys(workers, 0)
        for each in self._ranges:
            if each.made is None and each.worker in found:
                found[each.worker] += 1
        return found

    def to_ask(self, workers: Mapping[str, Any], coming: Collection[str] = ()) -> list[Range]:
        """What to ask now: each range with the worker whom it is given to. Those that were lost come first.

        A range that others will ask of a worker that is `coming` waits for it.
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
        if len(self._ranges) >= self.most or (self.end is not None and self._next >= self.end):
            return None
        length = self._sizer.length
        if self._expected is not None:
            length = self._sizer.before_end(self._expected - self._next, workers)
        made = Range(self._next, self._next + length)
        if self._cut is not None:
            made.stop, made.wish = self._cut(made.start, length)
        self._next = made.start + self._apart if self._apart else made.stop
        self._ranges.append(made)
        return made

    def arrived(self, worker: str, start: int, made: Any) -> bool:
        """A worker has made the range that begins at `start`. False if it was not to, or has said so."""
        for each in self._ranges:
            if each.start == start and each.worker == worker and each.made is None:
                each.made = made
                return True
        return False

    def ended(self, end: int) -> None:
        """The base has so many elements: ranges behind it hold nothing."""
        self.end = end if self.end is None else min(self.end, end)
        while self._ranges and self._ranges[-1].start >= self.end and self._ranges[-1].made is None:
            self._ranges.pop()
            self._next = self.end
        self._next = min(self._next, max(self.end, self._ranges[-1].stop if self._ranges else self.end))

    def lost(self, worker: str, *, blamed: bool = True) -> Range | None:
        """A worker is gone: what it was to make is asked of others. The range that has killed too many, if one has."""
        first = blamed
        fatal = None
        for each in self._ranges:
            if each.worker == worker and each.made is None:
                each.worker = None
                if first:  # it works at them in their order
                    each.kills += 1
                    first = False
                    if each.kills >= KILLS:
                        fatal = each
        return fatal

    def take(self) -> Range | None:
        """The range that is next for the consumer, if it has been made."""
        if self._ranges and self._ranges[0].made is not None:
            return self._ranges.popleft()
        return None
