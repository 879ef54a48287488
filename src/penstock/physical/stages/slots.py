"""InputSlots: the open inputs of an interleave by slot, and the slot whose turn it is."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

from penstock.physical.chained import SlotStates
from penstock.physical.inner_inputs import Input
from penstock.physical.stage import State


class InputSlots:
    """`cycle` slots, each with an input or free. In its turn, an input yields up to `length` elements.

    There may be thousands of slots, so only `in_turn` and `close` visit all of them.
    """

    def __init__(self, cycle: int, length: int) -> None:
        self.cycle = cycle
        self.length = length
        self.turn = 0  # the slot whose turn it is
        self.given = 0  # elements yielded in this turn
        self.blocked: int | None = None  # a slot without which there is no whole round, until its turn
        self.inputs: dict[int, Input] = {}  # by slot
        self._occupied: list[int] = []  # sorted
        self.states = SlotStates(self._state_of)
        self.changed = self.states.moved.add  # notes that the state of a slot may change

    def put(self, slot: int, opened: Input) -> None:
        """Let an input occupy a free slot."""
        self.inputs[slot] = opened
        insort(self._occupied, slot)
        self.changed(slot)

    def free(self, slot: int) -> None:
        """Close the input of a slot, which has ended or could not be opened."""
        self.inputs.pop(slot).close()
        del self._occupied[bisect_left(self._occupied, slot)]
        self.changed(slot)

    def in_turn(self) -> list[int]:
        """Return the occupied slots, beginning with the one whose turn it is."""
        at = bisect_left(self._occupied, self.turn)
        return [*self._occupied[at:], *self._occupied[:at]]

    def in_rounds(self, *, least: int) -> list[int]:
        """Return the occupied slots in turn, or none unless whole rounds over `least` slots may begin now."""
        if self.given or len(self.inputs) < least or (self.blocked != self.turn and self.blocked in self.inputs):
            return []
        self.blocked = None
        return self.in_turn()

    def go_to_occupied(self) -> None:
        """Pass the turn to the next slot with an input."""
        at = bisect_left(self._occupied, self.turn)
        self.turn, self.given = self._occupied[at % len(self._occupied)], 0

    def pass_turn(self) -> None:
        self.turn = (self.turn + 1) % self.cycle
        self.given = 0

    def count(self, elements: int) -> None:
        """Count elements of this turn. The last one passes the turn on."""
        self.given += elements
        if self.given == self.length:
            self.pass_turn()

    def pass_by(self, slots: Iterable[int], elements: int) -> None:
        """Record that so many elements of each of these slots were yielded."""
        for slot in slots:
            self.inputs[slot].pass_by(elements)
            self.changed(slot)

    def _state_of(self, slot: int) -> State:
        held = self.inputs.get(slot)
        return None if held is None else [slot, held.before, held.number, held.state()]

    def close(self) -> None:
        for held in self.inputs.values():
            held.close()
