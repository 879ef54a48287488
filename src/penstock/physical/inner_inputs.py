"""InnerInputs: the data sets that a function makes of outer elements, opened for slots in turn or read together."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn
from penstock.block.footprint import footprint
from penstock.errors import Context, annotate
from penstock.physical.chained import Begun
from penstock.physical.executor import Reader
from penstock.physical.inner_plans import NO_MAPS, Little, Made, Maps, Opening, together
from penstock.physical.stage import Cursor, Stage, State
from penstock.physical.stretch import failed

AT_ONCE = 0.002  # seconds
_MOST_OUTER = 16
MOST_SMALL = 64  # inputs that are read together
_OF_EACH, _OF_ALL = 1 << 12, 1 << 22  # about the bytes that these may have
_OTHERS, _SELDOM = 16, 64  # inputs in a row that were not small, behind which only each 64th is looked at


@dataclass(slots=True)
class Held:
    """Bytes of the Blocks at hand, of all inputs."""

    nbytes: int = 0


@dataclass(slots=True)
class Closed:
    """An inner data set that is not open yet."""

    before: State  # of the outer stream, where the element that made it comes first
    number: int  # of that element
    made: Made


@dataclass(slots=True)
class Input:
    """An open inner data set, and how to open it again; or the failure to open one."""

    before: State  # of the outer stream, where the element that made it comes first
    number: int  # of that element
    cursor: Cursor | None
    held: Held
    error: Exception | None = None  # met ahead of its turn
    place: State = None  # of the cursor, in front of that error
    nbytes: int = 0  # of the Block at hand
    maps: Maps = NO_MAPS  # of a small one, which are to run on what it gives

    @property
    def is_whole(self) -> bool:
        """Whether nothing comes behind what is at hand."""
        return self.cursor is not None and self.error is None and self.cursor.ended

    @property
    def at_hand(self) -> int:
        """Elements that it gives without being asked."""
        return 0 if self.cursor is None or self.error is not None else self.cursor.available()

    def fill_early(self, want: int) -> int:
        """Have elements at hand before its turn, if it has any; an error waits for its turn."""
        cursor = self.cursor
        if cursor is None or self.error is not None:
            return 0
        if not cursor.available():
            try:
                self._filled(cursor, want)
            except Exception as error:
                self.keep(error)
                return 0
        return cursor.available()

    def pass_by(self, count: int) -> None:
        """Note that so many elements that were at hand have been given."""
        if self.cursor is not None:
            self.cursor.pass_by(count)

    def fill(self, want: int) -> bool:
        error, self.error = self.error, None
        if error is not None:
            raise error
        return self.cursor is not None and (self.cursor.available() > 0 or self._filled(self.cursor, want))

    def keep(self, error: Exception) -> None:
        """What `fill` raised, for its turn."""
        assert self.cursor is not None
        self.error, self.place = failed(error), self.cursor.before

    def _filled(self, cursor: Cursor, want: int) -> bool:
        more = cursor.fill(want)
        self.holds(footprint(cursor.peek()) if more else 0)
        return more

    def holds(self, nbytes: int) -> None:
        self.held.nbytes += nbytes - self.nbytes
        self.nbytes = nbytes

    def state(self) -> State:
        assert self.cursor is not None
        return self.cursor.state() if self.error is None else self.place

    def close(self) -> None:
        self.holds(0)
        if self.cursor is not None:
            self.cursor.close()


class _Read(Stage):
    """In place of the stage of an input all of which is at hand; from its start it comes again as it came."""

    def next(self, want: int) -> Block | None:
        return None

    def state(self) -> State:
        return None

    def restore(self, state: State) -> None:
        """It never has one."""


@dataclass(slots=True)
class Small:
    """Inputs that were read together: all that comes of one, then of the next."""

    inputs: list[Closed]
    counts: list[int]
    starts: list[int]
    block: Block | None
    maps: list[Maps]  # of each
    seconds: float  # that making and reading them took


def _apart(block: Block, start: int, stop: int) -> Block:
    """Some of its elements; few of them do not keep the memory of all."""
    part = block.slice(start, stop)
    if 2 * part.size > block.size:
        return part
    columns: list[Column] = []
    for column in part.columns:
        if isinstance(column, DenseColumn):
            own = column.array.copy()
            own.flags.writeable = column.array.flags.writeable
            columns.append(DenseColumn(own))
        else:
            columns.append(column.apart() if isinstance(column, BytesColumn) else column)
    return Block(part.structure, columns, part.size, None if part.origin is None else part.origin.apart())


class InnerInputs:
    """The inputs of an interleave or flat_map in the order of the outer elements, each given once.

    One by one, for a slot: then those behind it are opened early where a `reader` reads ahead. Or several that are
    small and alike, with all that comes of them.
    """

    def __init__(
        self, build_outer: Callable[[], Stage], opening: Opening, label: str, where: str | None, reader: Reader | None
    ) -> None:
        self.outer = Cursor(build_outer())
        self.held = Held()
        self._build_outer = build_outer
        self._opening = opening
        self._label = label
        self._where = where
        self._reader = reader
        self._elements: list[Any] | None = None  # of the outer Block at hand, from number `_first` of it on
        self._first = 0
        self._ask = 1  # outer elements to ask for
        self._ended = False
        self._number = 0
        self.begun = Begun({})
        self._behind: deque[Closed | Input] = deque()  # those that wait
        self._read = _Read(label, (), where)
        self._others = 0  # inputs in a row that were not small
        self._few = MOST_SMALL  # of them at a time, behind one that could not be read with those before it
        self.waiting: deque[Input] = deque()

    @property
    def are_open(self) -> bool:
        """Whether there is none left that would have to be opened."""
        return self._ended and not self.waiting and not self._behind

    def following(self, *, small: bool = False) -> Input | None:
        """The next input, open, which waits for a free slot; None when there is none left.

        With `small` one that is small is read at once, and has no stage.
        """
        early = 0 if self._reader is None else self._reader.early()
        while len(self.waiting) <= early:
            if small and not self.waiting:
                found = self.small(1, 0.0)
                if found is not None:
                    self.waiting.append(self.read(found, 0))
                    break
                if self.waiting:  # with the failure to make or to open it
                    continue
            following = self._make_next()
            if following is None:
                break
            self.waiting.append(self._open(following) if isinstance(following, Closed) else following)
        return self.waiting[0] if self.waiting else None

    def may_be_small(self) -> bool:
        """Whether the next input may be one that is small, and whoever asks for its elements reads it, as of now."""
        if self.waiting or (self._others >= _OTHERS and self._number % _SELDOM):
            return False
        return (self._reader is None or self._reader.quick()) and not self.begun.pending

    def small(self, most: int, until: float) -> Small | None:
        """The next inputs as far as they are small and go together, up to so many, and none any more behind `until`.

        None is waiting. Where the next one is not small, or has to be read by its stage, there are none.
        """
        inputs: list[Closed] = []
        littles: list[Little] = []
        nbytes = 0
        few = most if self._few == MOST_SMALL else min(most, self._few)
        began = time.perf_counter()
        following = self._make_next()
        while isinstance(following, Closed):
            little = self._little(following)
            if little is None or (littles and not little.goes_with(littles[0])):
                break
            inputs.append(following)
            littles.append(little)
            nbytes += little.nbytes
            following = None
            if self._reader is not None:
                self._reader.tried(little.seconds)
                if not self._reader.quick():
                    break
            if len(inputs) >= few or time.perf_counter() > until or nbytes > min(most * _OF_EACH, _OF_ALL):
                break
            if self._ask == 1 and not self.outer.available():  # the next one may take long to come
                break
            following = self._make_next()
        if following is not None:
            self._behind.appendleft(following)
        found, seconds = self._together(littles), time.perf_counter() - began
        count = 0 if found is None else len(found[1])
        if count < len(inputs) or not count:
            self._others += 1
        elif count > 1:
            self._others = 0
        if not count:
            self.waiting.extend(map(self._open, inputs[:1]))
        self._behind.extendleft(reversed(inputs[max(count, 1) :]))
        self._few = min(2 * self._few, MOST_SMALL) if count == len(inputs) else max(count, 1)
        if found is None:
            return None
        maps = [little.maps for little in littles[:count]]
        return Small(inputs[:count], found[1], [0, *accumulate(found[1])], found[0], maps, seconds)

    def _little(self, closed: Closed) -> Little | None:
        try:
            return self._opening.small(closed.made)
        except Exception:  # of what a function closes over, for one: it comes in its turn
            return None

    def _together(self, littles: list[Little]) -> tuple[Block | None, list[int]] | None:
        """The elements of as many of the first of them as can be read together, and how many these are."""

        def joined(count: int) -> tuple[Block | None, list[int]] | None:
            try:
                return together(littles[:count])
            except Exception:  # whatever it is, the stage of one of them says so
                return None

        if not littles:
            return None
        found = joined(len(littles))
        if found is not None:
            return found
        least, most = 0, len(littles)
        while least + 1 < most:
            middle = (least + most) // 2
            fits = joined(middle) is not None
            least, most = (middle, most) if fits else (least, middle)
        return joined(least) if least else None

    def read(self, small: Small, index: int, given: int = 0) -> Input:
        """One of these, of which so many elements were given."""
        closed, start, count = small.inputs[index], small.starts[index], small.counts[index]
        block = None if small.block is None or not count else _apart(small.block, start, start + count)
        cursor = Cursor.over_all(self._read, block, given)
        found = Input(closed.before, closed.number, cursor, self.held, maps=small.maps[index])
        found.holds(0 if block is None else block.nbytes)
        return found

    def taken(self) -> Input:
        """The input that waits, for its slot."""
        found = self.waiting.popleft()
        if found.cursor is not None:
            self.begun.note(found.number, found.cursor.stage, found.cursor)
        return found

    def _make_next(self) -> Closed | Input | None:
        """What the function makes of the next outer element, or the failure; None when there is none left."""
        if self._behind or self._ended:
            return self._behind.popleft() if self._behind else None
        before, number = self.outer.state(), self._number
        try:
            if not self._fill_outer(self._ask):
                self._ended = True
                return None
        except Exception as error:
            self._number += 1
            return Input(before, number, None, self.held, failed(error))
        self._number += 1
        if self._elements is None:
            self._elements, self._first = self.outer.peek().elements(), self.outer.offset
        element = self._elements[self.outer.offset - self._first]
        self.outer.pass_by(1)
        try:
            return Closed(before, number, self._opening.make(element))
        except Exception as error:
            return self._unopened(before, number, error)

    def _open(self, closed: Closed) -> Input:
        try:
            cursor = self._cursor(closed.made, closed.number)
            self.begun.resume(closed.number, cursor)
            if self._reader is not None:
                cursor.stage.start()
            return Input(closed.before, closed.number, cursor, self.held)
        except Exception as error:
            return self._unopened(closed.before, closed.number, error)

    def _unopened(self, before: State, number: int, error: Exception) -> Input:
        """The failure to open an input."""
        is_last = number == self._number - 1 and self.outer.offset > 0
        origin = self.outer.last().origin if is_last else None
        file, offset = (None, None) if origin is None else origin.at(0)
        annotate(error, Context(self._label, self._where, number, file, offset))
        return Input(before, number, None, self.held, failed(error))

    def _fill_outer(self, ask: int) -> bool:
        """Have an outer element at hand; a few at a time where they come at once."""
        if self.outer.available():
            return True
        self._elements = None
        started = time.perf_counter()
        more = self.outer.fill(1 if self.outer.stage.seen else ask)
        at_once = time.perf_counter() - started < AT_ONCE
        self._ask = min(2 * self._ask, _MOST_OUTER) if at_once else 1
        return more

    def _cursor(self, made: Made, number: int) -> Cursor:
        stage = self._opening.stage(made, number)
        return Cursor(stage if self._reader is None else self._reader.ahead(stage))

    def state(self) -> tuple[State, int]:
        """Where the outer stream goes on with the input that is next, and its number."""
        following = self.waiting[0] if self.waiting else self._behind[0] if self._behind else None
        return (self.outer.state(), self._number) if following is None else (following.before, following.number)

    def restore(self, outer: State, number: int, pending: Mapping[int, State]) -> None:
        """`pending` are states of inputs behind those in slots, which an earlier run had begun."""
        self.outer.restore(outer)
        self._number = number
        self.begun = Begun(pending)

    def reopened(self, before: State, number: int, place: State) -> Input | None:
        """An input that was open, from this place of it on; None where its element is not there any more."""
        again = Cursor(self._build_outer())
        try:
            again.restore(before)
            if not again.fill(1):
                return None
            block = again.take_available(1)
        finally:
            again.close()
        cursor = self._cursor(self._opening.make(block.elements()[0]), number)
        cursor.restore(place)  # of a small one: so many from its start
        if self._reader is not None:
            cursor.stage.start()
        return Input(before, number, cursor, self.held)

    def close(self) -> None:
        for waiting in self.waiting:
            waiting.close()
        self.outer.close()
