"""FreeOrder makes a run in free order (`deterministic=False`) resumable, with each element returned once.

Such a run returns a later element before an earlier one if the later one is ready first. A user may count elements from
the moment of a state. After a restore, the elements that were returned since that moment must come again in the same
order. A state therefore lists ranges of upstream elements: those already returned out of turn (`OutOfTurn`), and those
returned after the state was taken (`LogView`, up to the moment when the state is written). A resumed run first returns
the latter in the listed order, and then continues in free order.
"""

from __future__ import annotations

import weakref

import numpy as np

from penstock.block.block import Block
from penstock.physical.stage import Stage, State
from penstock.physical.stretch import Stretch, failure, join

Ranges = list[tuple[int, int]]  # (first, count) of elements

_TIDY_AT = 1024  # entries of a log between two checks for old entries


class Log:
    """The ranges that a segment has returned, in their order, as far back as any view needs them.

    A view is taken for every Block, and read only when a state is written, so taking a view is cheap for any number of
    ranges. The log knows its views by weak references without a callback. A callback is Python code that runs at any
    place where a view is freed, and a Ctrl-C that arrives inside the callback is lost.
    """

    def __init__(self) -> None:
        self._kept: tuple[int, Ranges] = 0, []  # number of dropped entries, and the remaining entries
        self._open = 0  # no range before this entry is out of turn
        self._views: list[weakref.ref[LogView]] = []
        self._tidy_at = _TIDY_AT
        self._tidy_views_at = _TIDY_AT

    def add(self, first: int, count: int) -> None:
        dropped, entries = self._kept
        entries.append((first, count))
        if len(entries) >= self._tidy_at:
            oldest = min((view.out_of_turn for view in self._living()), default=self._open)
            self._kept = oldest, entries[oldest - dropped :]
            self._tidy_at = 2 * len(self._kept[1]) + _TIDY_AT

    def view(self, base: int) -> LogView:
        """Return a view of the ranges returned out of turn and of all later ranges, counted from `base`.

        `base` is the first element that was not returned. It never decreases.
        """
        dropped, entries = self._kept
        while self._open - dropped < len(entries) and entries[self._open - dropped][0] < base:
            self._open += 1
        found = LogView(self, self._open, dropped + len(entries), base)
        self._views.append(weakref.ref(found))
        if len(self._views) >= self._tidy_views_at:
            self._tidy_views_at = 2 * len(self._living()) + _TIDY_AT
        return found

    def _living(self) -> list[LogView]:
        living = [view for view in (ref() for ref in self._views) if view is not None]
        self._views = [weakref.ref(view) for view in living]
        return living

    def part(self, start: int, stop: int | None = None) -> Ranges:
        """Return the entries `start` to `stop`, or to the present end."""
        dropped, entries = self._kept
        return entries[start - dropped : None if stop is None else stop - dropped]


class LogView:
    """The part of a state that grows: all ranges returned since the state was taken."""

    __slots__ = ("__weakref__", "_base", "_log", "_start", "out_of_turn")

    def __init__(self, log: Log, out_of_turn: int, start: int, base: int) -> None:
        self._log = log
        self.out_of_turn = out_of_turn  # first of the entries before `_start` that may be after `_base`
        self._start = start
        self._base = base

    def resolved(self) -> list[list[int]]:
        return [[first - self._base, count] for first, count in self._log.part(self._start)]

    @property
    def has_grown(self) -> bool:
        return bool(self._log.part(self._start))

    def done(self) -> list[list[int]]:
        """Return the sorted ranges that had been returned out of turn when the state was taken."""
        before = self._log.part(self.out_of_turn, self._start)
        return sorted([first - self._base, count] for first, count in before if count and first >= self._base)


class OutOfTurn:
    """The part of a state that lists the ranges returned out of turn when the state was taken."""

    __slots__ = ("_view",)

    def __init__(self, view: LogView) -> None:
        self._view = view

    def resolved(self) -> list[list[int]]:
        return self._view.done()


class FreeOrder(Stage):
    """Returns the elements of the upstream without some ranges, and with some ranges first, as its state lists."""

    def __init__(self, upstream: Stage) -> None:
        super().__init__(upstream.label, (upstream,), upstream.where)
        self._upstream = upstream
        self._excluded: Ranges = []
        self._first: Ranges = []
        self._base = 0  # upstream positions before this stage
        self._count = 0  # upstream positions pulled since
        self.given: int | np.ndarray = 0  # number of the first element of the last Block, or of each element
        self._start: State = None  # upstream state from which the ranges count, while `_held` is needed
        self._held: Stretch | None = None  # elements that were pulled to reach the ranges that come first

    def next(self, want: int) -> Block | None:
        while self._first:
            if self._held is None:
                self._hold(max(first + count for first, count in self._first))
            start, count = self._first[0]
            self._first[:1] = []
            if start < self._held_size():
                return self._give(start, start + min(want, count), start + count)
        while self._held is not None:
            gaps = [*sorted(self._excluded), (self._held_size(), 0)]
            start = 0
            while gaps and gaps[0][0] <= start:
                first, count = gaps.pop(0)
                start = max(start, first + count)
            if start < self._held_size():
                return self._give(start, min(start + want, gaps[0][0]))
            self._held = self._start = None
        return self._next_kept(want)

    def _held_size(self) -> int:
        return 0 if self._held is None else self._held.size

    def _give(self, start: int, stop: int, until: int = 0) -> Block:
        """Return the first piece of the stored positions `start` to `stop`. The rest up to `until` stays first."""
        assert self._held is not None
        piece = next(self._held.slice(start, stop).pieces())
        given = piece.size if isinstance(piece, Block) else 1
        if start + given < until:
            self._first.insert(0, (start + given, until - start - given))
        self._excluded = sorted([*self._excluded, (start, given)])
        self.given = self._base + start
        if isinstance(piece, Block):
            return piece
        raise piece

    def _hold(self, count: int) -> None:
        self._start = self._upstream.state()
        parts: list[Stretch] = []
        while self._count < count:
            try:
                block = self._upstream.next(count - self._count)
                if block is None:
                    break
                parts.append(Stretch(block))
            except Exception as error:
                parts.append(failure(error))
            self._count += parts[-1].size
        self._held = join(parts) if parts else Stretch(None)

    def _next_kept(self, want: int) -> Block | None:
        while True:
            first = self._count
            try:
                block = self._upstream.next(want)
            except Exception:
                self._count += 1
                if any(start <= first < start + count for start, count in self._excluded):
                    self._forget()
                    continue
                raise
            if block is None:
                return None
            self._count += block.size
            kept = self._kept(block, first)
            if kept is not None:
                return kept

    def _kept(self, block: Block, first: int) -> Block | None:
        self.given = self._base + first
        if not self._excluded:
            return block
        mask = np.ones(block.size, bool)
        for start, count in self._excluded:
            mask[max(start - first, 0) : max(start + count - first, 0)] = False
        self._forget()
        rows = np.flatnonzero(mask)
        if len(rows) == block.size:
            return block
        self.given = self._base + first + rows
        return block.take(rows) if len(rows) else None

    def _forget(self) -> None:
        """Remove ranges that are already passed."""
        self._excluded = [(start, count) for start, count in self._excluded if start + count > self._count]

    def state(self) -> State:
        if self._held is not None:
            return [self._start, list(self._excluded), list(self._first), self._base]
        ahead = [(start - self._count, count) for start, count in self._excluded if start + count > self._count]
        clipped = [(max(start, 0), count + min(start, 0)) for start, count in ahead]
        return [self._upstream.state(), clipped, list(self._first), self._base + self._count]

    def restore(self, state: State) -> None:
        below, excluded, first, self._base = state
        self._excluded = [(start, count) for start, count in excluded]
        self._first = [(start, count) for start, count in first]
        self._upstream.restore(below)

    def pinned(self) -> int:
        """Return the number of elements that come first, in a fixed order."""
        return sum(count for _, count in self._first)

    @staticmethod
    def merged(state: State, done: Ranges, first: Ranges) -> State:
        """Return the state that also leaves out `done` and begins with `first`: ranges of the elements of `state`.

        The remaining elements that `state` itself begins with follow in their order. An earlier run has returned them,
        and a user may still count on this order.
        """
        below, excluded, front, base = state
        gone = [(start, count) for start, count in excluded]
        front = [(start, count) for start, count in front]
        left = _gaps([*first, *done], sum(count for _, count in front))
        found = [part for span in [*first, *left] for part in _upstream_ranges(span, gone, front)]
        left_out = [part for span in done for part in _upstream_ranges(span, gone, front)]
        return [below, sorted(gone + left_out), found, base]


def _gaps(ranges: Ranges, stop: int) -> Ranges:
    """Return the positions before `stop` that are in none of the ranges."""
    found, at = [], 0
    for start, count in [*sorted(ranges), (stop, 0)]:
        if at < min(start, stop):
            found.append((at, min(start, stop) - at))
        at = max(at, start + count)
    return found


def _upstream_ranges(span: tuple[int, int], excluded: Ranges, front: Ranges) -> Ranges:
    """Return the upstream positions of the elements `span` of a stream.

    The stream has the ranges `front` first and the ranges `excluded` nowhere.
    """
    first, count = span
    found: Ranges = []
    for start, size in front:
        if first < size and count:
            taken = min(size - first, count)
            found.append((start + first, taken))
            first, count = 0, count - taken
        else:
            first = max(first - size, 0)
    for start, gap in sorted(excluded + front):
        if start <= first:
            first += gap
        elif start < first + count:
            found.append((first, start - first))
            count -= start - first
            first = start + gap
    return [*found, (first, count)] if count else found
