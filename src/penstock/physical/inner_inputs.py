"""InnerInputs: the data sets that a function creates from outer elements, opened singly, or read together if small."""

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
from penstock.physical.executor import StageReader
from penstock.physical.inner_plans import InnerDataset, Little, Opening, together
from penstock.physical.input_maps import NO_MAPS, Maps
from penstock.physical.stage import Cursor, Stage, State
from penstock.physical.stretch import failed
from penstock.plan.node import NamedStep

AT_ONCE = 0.002  # seconds
_MOST_OUTER = 16
MOST_SMALL = 64  # inputs that are read together
_OF_EACH, _OF_ALL = 1 << 12, 1 << 22  # bytes that each of these inputs, and all together, may have, approximately
_OTHERS, _SELDOM = 16, 64  # after so many inputs in a row that were not small, only each 64th input is checked


@dataclass(slots=True)
class HeldBytes:
    """Bytes of the current Blocks of all inputs."""

    nbytes: int = 0


@dataclass(slots=True)
class Closed:
    """An inner data set that is not open yet."""

    before: State  # state of the outer stream directly before the element that created it
    number: int  # number of this element
    made: InnerDataset


@dataclass(slots=True)
class Input:
    """An open inner data set with the data to open it again, or the error of opening it."""

    before: State  # state of the outer stream directly before the element that created it
    number: int  # number of this element
    cursor: Cursor | None
    held: HeldBytes
    error: Exception | None = None  # an error that occurred before its turn
    place: State = None  # state of the cursor before this error
    nbytes: int = 0  # bytes of the current Block
    maps: Maps = NO_MAPS  # for a small input: the maps that still have to run on its elements

    @property
    def is_whole(self) -> bool:
        """True if nothing follows the available elements."""
        return self.cursor is not None and self.error is None and self.cursor.ended

    @property
    def at_hand(self) -> int:
        """Number of elements that are available without reading."""
        return 0 if self.cursor is None or self.error is not None else self.cursor.available()

    def fill_early(self, want: int) -> int:
        """Make elements available before the input's turn, if it has any. An error is stored until its turn."""
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
        """Record that `count` available elements were yielded."""
        if self.cursor is not None:
            self.cursor.pass_by(count)

    def fill(self, want: int) -> bool:
        error, self.error = self.error, None
        if error is not None:
            raise error
        return self.cursor is not None and (self.cursor.available() > 0 or self._filled(self.cursor, want))

    def keep(self, error: Exception) -> None:
        """Store an error of `fill` until the input's turn."""
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


class OpeningStage(Stage):
    """A Stage that opens data sets, which are not known in advance. Their side effects are those of the stage."""

    acts_inside = False  # True if functions of an opened data set have side effects in this thread
    singly_opened = False  # True if an element must not wait for the next one, of the same data set or another

    @property
    def may_grow(self) -> bool:
        return True

    @property
    def seen(self) -> bool:
        return self.acts_inside or super().seen

    @property
    def seen_below(self) -> bool:
        return self.singly_opened or super().seen_below

    def look_at(self, opened: Stage) -> None:
        """Check if computing the elements of a data set is observable."""
        if self.acts_inside or not opened.seen_below:
            return
        acts = opened.seen
        if acts or not self.singly_opened:
            self.singly_opened, self.acts_inside = True, acts
            self.look_again()


class _Read(Stage):
    """Stage of an input whose elements are all in memory. A restore reads the input again from its start."""

    def next(self, want: int) -> Block | None:
        return None

    def state(self) -> State:
        return None

    def restore(self, state: State) -> None:
        """Do nothing: the stage has no state."""


@dataclass(slots=True)
class Small:
    """Inputs that were read together, with all their elements in `block`, one input after another."""

    inputs: list[Closed]
    counts: list[int]
    starts: list[int]
    block: Block | None
    maps: list[Maps]  # of each input
    seconds: float  # seconds to create and read them


def _apart(block: Block, start: int, stop: int) -> Block:
    """Return a part of a Block. A small part is copied, so that it does not keep the whole Block alive."""
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
    """The inputs of an interleave or flat_map in the order of the outer elements, each returned once.

    Inputs are returned one by one for a slot; if a `reader` reads ahead, later inputs are opened early. Several small
    and similar inputs are returned together, with all their elements.
    """

    def __init__(
        self, build: Callable[[], Stage], opening: Opening, step: NamedStep, reader: StageReader | None
    ) -> None:
        self.outer = Cursor(build())
        self.held = HeldBytes()
        self._build_outer = build
        self._opening = opening
        self._step = step
        self._reader = reader
        self._elements: list[Any] | None = None  # of the current outer Block, from number `_first` on
        self._first = 0
        self._ask = 1  # outer elements to request
        self._ended = False
        self._number = 0
        self.begun = Begun({})
        self._behind: deque[Closed | Input] = deque()  # inputs that wait
        self._read = _Read(step.label, (), step.where)
        self._others = 0  # number of inputs in a row that were not small
        self._few = MOST_SMALL  # inputs to read together after one that did not fit those before it
        self.waiting: deque[Input] = deque()

    @property
    def are_open(self) -> bool:
        """True if no input has to be opened any more."""
        return self._ended and not self.waiting and not self._behind

    def following(self, *, small: bool = False) -> Input | None:
        """Return the next open input, which waits for a free slot, or None at the end.

        With `small`, a small input is read at once and has no stage.
        """
        early = 0 if self._reader is None else self._reader.early()
        while len(self.waiting) <= early:
            if small and not self.waiting:
                found = self.small(1, 0.0)
                if found is not None:
                    self.waiting.append(self.read(found, 0))
                    break
                if self.waiting:  # an input whose creation or opening failed
                    continue
            following = self._make_next()
            if following is None:
                break
            self.waiting.append(self._open(following) if isinstance(following, Closed) else following)
        return self.waiting[0] if self.waiting else None

    def may_be_small(self) -> bool:
        """Return True if the next input may be small and should be read by the consumer's thread."""
        if self.waiting or (self._others >= _OTHERS and self._number % _SELDOM):
            return False
        return (self._reader is None or self._reader.quick()) and not self.begun.pending

    def small(self, most: int, seconds: float) -> Small | None:
        """Return the next inputs while they are small and similar: up to `most`, and none after so many `seconds`.

        No input may be waiting. If the next input is not small, or must be read by its stage, return None.
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
            if len(inputs) >= few or time.perf_counter() - began > seconds or nbytes > min(most * _OF_EACH, _OF_ALL):
                break
            if self._ask == 1 and not self.outer.available():  # the next outer element may take long
                break
            following = self._make_next()
        if following is not None:
            self._behind.appendleft(following)
        found, took = self._together(littles), time.perf_counter() - began
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
        return Small(inputs[:count], found[1], [0, *accumulate(found[1])], found[0], maps, took)

    def _little(self, closed: Closed) -> Little | None:
        try:
            return self._opening.small(closed.made)
        except Exception:  # any error, such as one of a captured value: the input fails when it is its turn
            return None

    def _together(self, littles: list[Little]) -> tuple[Block | None, list[int]] | None:
        """Read as many of the first inputs together as possible. Return their elements and their lengths."""

        def joined(count: int) -> tuple[Block | None, list[int]] | None:
            try:
                return together(littles[:count])
            except Exception:  # any error: the stage of the input raises it again
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
        """Return one of the inputs that were read together, after `given` of its elements."""
        closed, start, count = small.inputs[index], small.starts[index], small.counts[index]
        block = None if small.block is None or not count else _apart(small.block, start, start + count)
        cursor = Cursor.over_all(self._read, block, given)
        found = Input(closed.before, closed.number, cursor, self.held, maps=small.maps[index])
        found.holds(0 if block is None else block.nbytes)
        return found

    def taken(self) -> Input:
        """Remove and return the waiting input, for its slot."""
        found = self.waiting.popleft()
        if found.cursor is not None:
            self.begun.note(found.number, found.cursor.stage, found.cursor)
        return found

    def _make_next(self) -> Closed | Input | None:
        """Return the result of the function for the next outer element, or its error, or None at the end."""
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
        """Return an input for the error of opening it."""
        is_last = number == self._number - 1 and self.outer.offset > 0
        origin = self.outer.last().origin if is_last else None
        file, offset = (None, None) if origin is None else origin.at(0)
        annotate(error, Context(self._step.label, self._step.where, number, file, offset))
        return Input(before, number, None, self.held, failed(error))

    def _fill_outer(self, ask: int) -> bool:
        """Make an outer element available. If outer elements come fast, several are requested."""
        if self.outer.available():
            return True
        self._elements = None
        started = time.perf_counter()
        more = self.outer.fill(1 if self.outer.stage.seen else ask)
        at_once = time.perf_counter() - started < AT_ONCE
        self._ask = min(2 * self._ask, _MOST_OUTER) if at_once else 1
        return more

    def _cursor(self, made: InnerDataset, number: int) -> Cursor:
        stage = self._opening.stage(made, number)
        return Cursor(stage if self._reader is None else self._reader.ahead(stage))

    def state(self) -> tuple[State, int]:
        """Return the state of the outer stream before the next input, and the number of this input."""
        following = self.waiting[0] if self.waiting else self._behind[0] if self._behind else None
        return (self.outer.state(), self._number) if following is None else (following.before, following.number)

    def restore(self, outer: State, number: int, pending: Mapping[int, State]) -> None:
        """Restore. `pending` are states of inputs after those in slots, which an earlier run had started."""
        self.outer.restore(outer)
        self._number = number
        self.begun = Begun(pending)

    def reopened(self, before: State, number: int, place: State) -> Input | None:
        """Open an input again at this position. Return None if its outer element does not exist any more."""
        again = Cursor(self._build_outer())
        try:
            again.restore(before)
            if not again.fill(1):
                return None
            block = again.take_available(1)
        finally:
            again.close()
        cursor = self._cursor(self._opening.make(block.elements()[0]), number)
        cursor.restore(place)  # for a small input: the number of elements from its start
        if self._reader is not None:
            cursor.stage.start()
        return Input(before, number, cursor, self.held)

    def close(self) -> None:
        for waiting in self.waiting:
            waiting.close()
        self.outer.close()
