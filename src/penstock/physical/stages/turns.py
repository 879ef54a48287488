"""The order of elements that an interleave joins in advance, and its state between any two of them.

Nothing here contains elements: an order maps positions in the joined elements to inputs and their elements.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from penstock.physical.input_maps import NO_MAPS, Maps
from penstock.physical.stage import State

Outer = list[tuple[State, int]]  # positions in the outer stream, each with the number of the next element


@dataclass(slots=True)
class InputPart:
    """An input with available elements. Its turns are those of its slot, from turn `first` on."""

    slot: int
    first: int
    count: int  # number of available elements
    given: int = 0  # number of elements before these
    maps: Maps = NO_MAPS
    whole: bool = False  # True if nothing follows them
    opens: int = -1  # for an input that opens with its first turn: its index among those read together


class SlotTurns:
    """The order in which inputs yield their available elements, as far as these reach. It contains no elements.

    A *place* is the number of a turn and the number of elements yielded in it. An input has one turn in each round of
    `cycle`, in its slot. In the turn in which it runs out, it ends, with the remaining elements or none. `parts` are
    the inputs; inputs that open come last, in order of opening. `end` is the place after all elements that are yielded,
    or None if these are all available ones.
    """

    def __init__(self, turn: int, cycle: int, length: int, parts: list[InputPart], end: tuple[int, int] | None) -> None:
        self._turn = turn  # the slot of turn 0
        self._cycle = cycle
        self._length = length
        self._parts = parts
        self._first = np.array([part.first for part in parts], np.int64)
        self._count = np.array([part.count for part in parts], np.int64)
        self._whole = np.array([part.whole for part in parts], bool)
        self._last = self._first + self._count // length * cycle  # turns in which they run out
        self.end = (int(self._last.max()) + 1, 0) if end is None else end
        # per element: a key that determines its place, its input, and its number in the input
        self._keys = self._which = self._numbers = np.empty(0, np.int64)

    def over(self) -> list[tuple[int, int, int, bool]]:
        """Return per input: its slot, its index among opening inputs, the elements yielded, and True if it ended."""
        given, closed = self._given(*self.end).tolist(), self._closed(self.end[0]).tolist()
        slots, opens = [part.slot for part in self._parts], [part.opens for part in self._parts]
        return list(zip(slots, opens, given, closed, strict=True))

    def _given(self, turn: int, inside: int) -> np.ndarray:
        """Return the number of elements of each input before a place."""
        rounds, rest = np.divmod(turn - self._first, self._cycle)
        given = np.minimum(rounds * self._length + np.where(rest > 0, self._length, inside), self._count)
        found: np.ndarray = np.where(rounds < 0, 0, given)
        return found

    def _closed(self, turn: int) -> np.ndarray:
        found: np.ndarray = self._whole & (self._last < turn)
        return found

    def rows(self, starts: list[int]) -> np.ndarray:
        """Return the elements in order, as rows of a Block in which the elements of input i begin at `starts[i]`."""
        given = self._given(*self.end)
        part = np.arange(len(given)).repeat(given)
        number = np.arange(len(part)) - (np.cumsum(given) - given)[part]
        turn, inside = (number, 0) if self._length == 1 else np.divmod(number, self._length)
        keys = (self._first[part] + turn * self._cycle) * self._length + inside
        order = np.argsort(keys)
        self._keys, self._which = keys[order], part[order]
        self._numbers = number[order] + np.array([each.given for each in self._parts])[self._which]
        rows: np.ndarray = (np.array(starts)[part] + number)[order]
        return rows

    def inputs(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the input of each of these elements, and its number in the input."""
        return self._which[start:stop], self._numbers[start:stop]

    def slot(self, turn: int) -> int:
        return (self._turn + turn) % self._cycle

    def state(self, count: int, opened: Iterable[State], outer: Outer) -> list[State]:
        """Return the state of an interleave after `count` of these elements.

        Before them, the slots had the states `opened`. `outer` contains the positions in the outer stream before each
        input that opens, and after all of them.
        """
        turn, inside = divmod(int(self._keys[count]), self._length)
        given, closed = self._given(turn, inside).tolist(), self._closed(turn).tolist()
        before: dict[int, State] = {state[0]: state for state in opened}
        slots: list[State] = []
        following = 0
        for index, part in enumerate(self._parts):
            if part.opens >= 0:
                if (turn, inside) <= (part.first, 0):
                    break
                following += 1
            if closed[index]:
                continue
            if part.opens >= 0:
                slots.append([part.slot, *outer[part.opens], [None, given[index]]])
            else:
                slot, where, number, (below, offset) = before[part.slot]
                slots.append([slot, where, number, [below, offset + given[index]]])
        return [*outer[following], self.slot(turn), inside, slots]


class WholeRounds:
    """Whole rounds over slots in their `order`, during which no slot opens or ends."""

    def __init__(self, length: int, order: list[int], rounds: int, given: list[int]) -> None:
        self._length = length
        self._given = np.array(given)  # elements of each slot before these
        self.order = order
        self.each = rounds * length  # elements of each slot

    def inputs(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the inputs, as `SlotTurns.inputs` does."""
        turn, inside = np.divmod(np.arange(start, stop), self._length)
        rounds, now = np.divmod(turn, len(self.order))
        return now, self._given[now] + rounds * self._length + inside

    def state(self, count: int, opened: Iterable[State], outer: Outer) -> list[State]:
        """Return the state, as `SlotTurns.state` does."""
        turn, inside = divmod(count, self._length)
        rounds, now = divmod(turn, len(self.order))
        before: dict[int, State] = {state[0]: state for state in opened}
        slots: list[State] = []
        for index, slot in enumerate(self.order):
            given = (rounds + (index < now)) * self._length + (inside if index == now else 0)
            _, where, number, (below, offset) = before[slot]
            slots.append([slot, where, number, [below, offset + given]])
        return [*outer[0], self.order[now], inside, slots]


class InputsInRow:
    """One input after another, in one slot: `starts` are the numbers of their first elements."""

    def __init__(self, length: int, starts: list[int]) -> None:
        self._length = length
        self._starts = starts

    def inputs(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the inputs, as `SlotTurns.inputs` does."""
        rows = np.arange(start, stop)
        which = np.searchsorted(self._starts, rows, "right") - 1
        return which, rows - np.array(self._starts)[which]

    def state(self, count: int, opened: Iterable[State], outer: Outer) -> list[State]:
        """Return the state, as `SlotTurns.state` does."""
        at = bisect_right(self._starts, count) - 1
        given = count - self._starts[at]
        if not given:
            return [*outer[at], 0, 0, []]
        return [*outer[at + 1], 0, given % self._length, [[0, *outer[at], [None, given]]]]


Order = SlotTurns | WholeRounds | InputsInRow


@dataclass(slots=True)
class MidwayState:
    """The parts of a state within joined elements. They are computed only when they are needed."""

    turns: Order
    opened: Iterable[State]
    outer: Outer
    given: int = 0

    def __iter__(self) -> Iterator[State]:
        return iter(self.turns.state(self.given, self.opened, self.outer))
