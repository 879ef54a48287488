"""Interleave and flat_map: data sets made from elements, read in turn."""

from __future__ import annotations

import time
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np

from penstock.block.block import Block, concat_blocks
from penstock.block.footprint import footprint
from penstock.errors import Context, annotate
from penstock.physical.executor import Reader
from penstock.physical.fatal import failed
from penstock.physical.memory import UNCOUNTED, Memory
from penstock.physical.slot_states import SlotStates
from penstock.physical.stage import Cursor, Stage, State

_AT_ONCE = 0.0005  # seconds
_MOST_OUTER = 16


@dataclass(slots=True)
class _Held:
    """Bytes of the Blocks at hand, of all inputs."""

    nbytes: int = 0


@dataclass(slots=True)
class _Input:
    """An open inner data set, and how to open it again; or the failure to open one."""

    before: State  # of the outer stream, where the element that made it comes first
    number: int  # of that element
    cursor: Cursor | None
    held: _Held
    error: Exception | None = None  # met ahead of its turn
    place: State = None  # of the cursor, in front of that error
    nbytes: int = 0  # of the Block at hand

    @property
    def seen(self) -> bool:
        """Whether somebody could see when its elements are made."""
        return self.cursor is not None and self.cursor.stage.seen_below

    def fill_early(self, want: int) -> int:
        """Have elements at hand before its turn, if it has any; an error waits for its turn."""
        if self.cursor is None:
            return 0
        if self.error is None and not self.cursor.available():
            self.place = self.cursor.state()
            try:
                self._filled(self.cursor, want)
            except Exception as error:
                self.error = failed(error)
        return 0 if self.error is not None else self.cursor.available()

    def fill(self, want: int) -> bool:
        error, self.error = self.error, None
        if error is not None:
            raise error
        return self.cursor is not None and (self.cursor.available() > 0 or self._filled(self.cursor, want))

    def _filled(self, cursor: Cursor, want: int) -> bool:
        more = cursor.fill(want)
        self._holds(footprint(cursor.peek()) if more else 0)
        return more

    def _holds(self, nbytes: int) -> None:
        self.held.nbytes += nbytes - self.nbytes
        self.nbytes = nbytes

    def state(self) -> State:
        assert self.cursor is not None
        return self.cursor.state() if self.error is None else self.place

    def close(self) -> None:
        self._holds(0)
        if self.cursor is not None:
            self.cursor.close()


class Interleave(Stage):
    """tf.data's order: `block_length` elements from each of `cycle_length` slots in turn.

    When an input ends, the turn passes on at once; the freed slot takes the next input when its turn comes. A `reader`
    reads the open inputs ahead; then further ones are opened early, so that their reading has begun by their turn.

    There may be thousands of slots: nothing that is done for an element, its state included, looks at all of them.
    """

    def __init__(
        self,
        build_outer: Callable[[], Stage],
        open_input: Callable[[Any, int], Stage],
        cycle_length: int,
        block_length: int,
        label: str,
        where: str | None,
        reader: Reader | None = None,
        *,
        memory: Memory = UNCOUNTED,
    ) -> None:
        self._account = memory.account("at hand", label, where)
        self._outer = Cursor(build_outer())
        super().__init__(label, (self._outer.stage,), where)
        self._build_outer = build_outer
        self._open_input = open_input
        self._cycle_length = cycle_length
        self._block_length = block_length
        self.reader = reader
        self._slots: dict[int, _Input] = {}
        self._turns: list[int] = []  # the numbers of these slots, sorted
        self._held = _Held()
        self._states = SlotStates(self._state_of)
        self._blocked: int | None = None  # the slot without which there is no whole round, until its turn
        self._waiting: deque[_Input] = deque()
        self._turn = 0
        self._given_in_turn = 0
        self._number = 0
        self._ask = 1  # outer elements to ask for
        self._outer_ended = False
        self._singly = False  # an element is not to wait for the next one, of this input or another

    def next(self, want: int) -> Block | None:
        share = max(want // max(len(self._slots), 1), 1)
        while self._slots or not self._outer_ended or self._waiting:
            slot = self._slots.get(self._turn)
            if slot is None:
                if not self._occupy(self._turn) and self._slots:  # none is left for free slots
                    at = bisect_left(self._turns, self._turn)
                    self._turn, self._given_in_turn = self._turns[at % len(self._turns)], 0
                continue
            self._states.changed(self._turn)
            self._singly = self._singly or slot.seen
            try:
                more = slot.fill(1 if self._singly else share)
            except Exception:
                self._failed(slot)
                raise
            if not more:
                slot.close()
                self._free(self._turn)
                self._pass_turn()
                continue
            found = self._rounds(want, share) or self._rest_of_turn(slot, want)
            self._account.hold(self._held.nbytes)
            return found
        return None

    def _failed(self, slot: _Input) -> None:
        """A failure counts as one of the turn's elements; one in opening an input leaves its slot to the next."""
        if slot.cursor is None:
            self._free(self._turn)
            return
        self._given_in_turn += 1
        if self._given_in_turn == self._block_length:
            self._pass_turn()

    def _pass_turn(self) -> None:
        self._turn = (self._turn + 1) % self._cycle_length
        self._given_in_turn = 0

    def _put(self, turn: int, slot: _Input) -> None:
        self._slots[turn] = slot
        insort(self._turns, turn)
        self._states.changed(turn)

    def _free(self, turn: int) -> None:
        del self._slots[turn]
        del self._turns[bisect_left(self._turns, turn)]
        self._states.changed(turn)

    def _rounds(self, want: int, share: int) -> Block | None:
        """Whole rounds over all slots at once, as far as their elements are at hand."""
        if self._given_in_turn or len(self._slots) < 2 or self._singly:
            return None
        if len(self._slots) < self._cycle_length and not (self._outer_ended and not self._waiting):
            return None
        if self._blocked is not None and self._blocked != self._turn and self._blocked in self._slots:
            return None
        self._blocked = None
        length = self._block_length
        rounds = max(want // (len(self._slots) * length), 1)
        at = bisect_left(self._turns, self._turn)
        for slot in chain(islice(self._turns, at, None), islice(self._turns, at)):
            rounds = min(rounds, self._slots[slot].fill_early(share) // length)
            if rounds < 1:
                self._blocked = slot
                return None
        order = [*self._turns[at:], *self._turns[:at]]
        self._states.changed(*order)
        cursors = [self._slots[slot].cursor for slot in order]
        blocks = [cursor.take_available(rounds * length) for cursor in cursors if cursor is not None]
        joined = concat_blocks(blocks)
        index = np.arange(joined.size).reshape(len(order), rounds, length).transpose(1, 0, 2).reshape(-1)
        return joined.take(index)

    def _rest_of_turn(self, slot: _Input, want: int) -> Block:
        assert slot.cursor is not None
        block = slot.cursor.take_available(min(want, self._block_length - self._given_in_turn))
        self._given_in_turn += block.size
        if self._given_in_turn == self._block_length:
            self._pass_turn()
        return block

    def _occupy(self, turn: int) -> bool:
        """Put the next input into a free slot; False when there is none left."""
        early = 0 if self.reader is None else self.reader.early()
        while not self._outer_ended and len(self._waiting) <= early:
            opened = self._open_next()
            if opened is None:
                self._outer_ended = True
            else:
                self._waiting.append(opened)
        if not self._waiting:
            return False
        self._put(turn, self._waiting.popleft())
        return True

    def _open_next(self) -> _Input | None:
        before, number = self._outer.state(), self._number
        try:
            if not self._fill_outer():
                return None
        except Exception as error:
            self._number += 1
            return _Input(before, number, None, self._held, failed(error))
        self._number += 1
        block = self._outer.take_available(1)
        try:
            cursor = self._opened(block, number)
            if self.reader is not None:
                cursor.stage.start()
            return _Input(before, number, cursor, self._held)
        except Exception as error:
            file, offset = (None, None) if block.origin is None else block.origin.at(0)
            annotate(error, Context(self.label, self.where, number, file, offset))
            return _Input(before, number, None, self._held, failed(error))

    def _fill_outer(self) -> bool:
        """Have an outer element at hand; a few at a time where they come at once."""
        if self._outer.available():
            return True
        started = time.perf_counter()
        more = self._outer.fill(1 if self._outer.stage.seen else self._ask)
        at_once = time.perf_counter() - started < _AT_ONCE
        self._ask = min(2 * self._ask, _MOST_OUTER) if at_once else 1
        return more

    def _opened(self, block: Block, number: int) -> Cursor:
        stage = self._open_input(block.elements()[0], number)
        return Cursor(stage if self.reader is None else self.reader.ahead(stage))

    def state(self) -> State:
        if self._waiting:
            outer, number = self._waiting[0].before, self._waiting[0].number
        else:
            outer, number = self._outer.state(), self._number
        return [outer, number, self._turn, self._given_in_turn, self._states.now()]

    def _state_of(self, turn: int) -> State:
        slot = self._slots.get(turn)
        return None if slot is None else [turn, slot.before, slot.number, slot.state()]

    def restore(self, state: State) -> None:
        outer, self._number, self._turn, self._given_in_turn, slots = state
        self._outer.restore(outer)
        for turn, before, number, inner in slots:
            again = Cursor(self._build_outer())
            try:
                again.restore(before)
                if not again.fill(1):
                    continue
                block = again.take_available(1)
            finally:
                again.close()
            cursor = self._opened(block, number)
            cursor.restore(inner)
            if self.reader is not None:
                cursor.stage.start()
            self._put(turn, _Input(before, number, cursor, self._held))

    def close(self) -> None:
        self._account.close()
        for slot in (*self._slots.values(), *self._waiting):
            slot.close()
        self._outer.close()
