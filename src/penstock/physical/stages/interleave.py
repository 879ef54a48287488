"""Interleave and flat_map: data sets made from elements, read in turn."""

from __future__ import annotations

import time
from bisect import bisect_left, insort
from collections.abc import Callable
from functools import partial

import numpy as np

from penstock.block.block import Block, concat_blocks, joins_freely
from penstock.errors import PenstockError
from penstock.physical.chained import Growing, SlotStates
from penstock.physical.executor import Reader
from penstock.physical.inner_inputs import AT_ONCE, InnerInputs, Input
from penstock.physical.inner_plans import Opening
from penstock.physical.memory import UNCOUNTED, Memory
from penstock.physical.stage import Cursor, Stage, State

_MOST_EARLY = 128  # elements that an input is asked for ahead of its turn, where they come at once
_PATIENCE = 64  # times that inputs are asked for little, until they all run out together
_OF_A_CALL = 5e-5  # seconds that asking an input may take, as it is asked for more
_MOST_HELD = 1 << 22  # bytes at hand beyond which no more is asked for than is needed


class _Rounds:
    """Whole rounds over all slots, put together ahead; its inputs move on when all of it has been given."""

    def __init__(self, block: Block, order: list[int], cursors: list[Cursor], length: int) -> None:
        self.block = block
        self.order = order
        self._cursors = cursors
        self._length = length
        self._at = 0
        self._states: list[State] | None = None  # of its slots, in front of it

    @property
    def over(self) -> bool:
        return self._at == self.block.size

    def take(self, want: int) -> tuple[Block, int, int]:
        """Some elements, and whose turn it is then, with what was given in it."""
        start, self._at = self._at, min(self._at + want, self.block.size)
        turns = len(self.order)
        turn, given = divmod(self._at % (turns * self._length), self._length)
        if self.over:
            for cursor in self._cursors:
                cursor.pass_by(self.block.size // turns)
        return self.block.slice(start, self._at), self.order[turn], given

    def states(self, state_of: Callable[[int], State]) -> Callable[[], list[tuple[int, State]]]:
        """Tells the states of its slots as they are now, when it is asked."""
        if self._states is None:
            self._states = [state_of(slot) for slot in self.order]
        return partial(_moved_on, self._states, self._at, self._length)


def _moved_on(states: list[State], count: int, length: int) -> list[tuple[int, State]]:
    """The states of slots which, from these on, have given so many elements in their turns."""
    whole, left = divmod(count, len(states) * length)
    found = []
    for turn, (slot, before, number, (below, offset)) in enumerate(states):
        given = whole * length + min(max(left - turn * length, 0), length)
        found.append((slot, [slot, before, number, [below, offset + given]]))
    return found


class Interleave(Stage):
    """tf.data's order: `block_length` elements from each of `cycle_length` slots in turn.

    When an input ends, the turn passes on at once; the freed slot takes the next input when its turn comes. A `reader`
    reads the open inputs ahead; then further ones are opened early, so that their reading has begun by their turn.

    There may be thousands of slots: nothing that is done for an element, its state included, looks at all of them.
    There may be thousands of short inputs: a Block holds the elements of several, and those of `flat_map` that are
    alike and small run together, unless they open `visibly`.
    """

    # beside those of `Stage` these would be more than an object has without a dict, which is slower
    __slots__ = (
        "_account", "_acts_inside", "_block_length", "_blocked", "_changed", "_complete", "_cycle_length", "_early",
        "_given_in_turn", "_held", "_hidden", "_inputs", "_looked", "_looked_all", "_patience", "_rounds",
        "_singly", "_slots", "_states", "_turn", "_turns", "_until", "_visibly", "_want", "reader",
    )  # fmt: skip

    def __init__(
        self,
        build_outer: Callable[[], Stage],
        opening: Opening,
        cycle_length: int,
        block_length: int,
        label: str,
        where: str | None,
        reader: Reader | None = None,
        *,
        visibly: Callable[[], bool] = lambda: True,
        memory: Memory = UNCOUNTED,
    ) -> None:
        self._account = memory.account("at hand", label, where)
        self._inputs = InnerInputs(build_outer, opening, label, where, reader)
        super().__init__(label, (self._inputs.outer.stage,), where)
        self._held = self._inputs.held
        self._cycle_length = cycle_length
        self._block_length = block_length
        self.reader = reader  # whose lane analyses show
        self._visibly = visibly
        self._hidden: bool | None = None  # whether nobody could see that an input is opened
        self._want = 1  # elements that were asked for last
        self._until = 0.0  # when no further input is to be opened for them
        self._complete = False  # whether nothing is to be added to those at hand
        self._slots: dict[int, Input] = {}
        self._turns: list[int] = []  # the numbers of these slots, sorted
        self._states = SlotStates(self._state_of)
        self._changed = self._states.moved.add
        self._blocked: int | None = None  # the slot without which there is no whole round, until its turn
        self._rounds: _Rounds | None = None  # made and not given yet
        self._patience = _PATIENCE
        self._early = 1  # elements to ask an input for ahead of its turn
        self._turn = 0
        self._given_in_turn = 0
        self._singly = False  # an element is not to wait for the next one, of this input or another
        self._looked: object = None  # when the input whose turn it was was looked at
        self._looked_all: object = None  # when all of them were
        self._acts_inside = False  # somebody sees when they are made, and not only when workers make them

    def next(self, want: int) -> Block | None:
        until, self._want = time.perf_counter() + AT_ONCE, want
        self._until, self._complete = until, False
        found = self._piece(want)
        if found is not None and found.size < want and not self._singly and self._opens_together():
            parts, got = [found], found.size
            while got < want and not self._complete and time.perf_counter() < until:
                more = self._piece(want - got, found)
                if more is None:
                    break
                parts.append(more)
                got += more.size
            found = concat_blocks(parts)
        self._account.hold(self._held.nbytes + (0 if self._rounds is None else self._rounds.block.nbytes))
        return found

    def _opens_together(self) -> bool:
        """Whether nobody could see that an input is opened before the loop has all of the one before."""
        if self._hidden is None:
            self._hidden = not self._visibly()
        return self._hidden and not self._inputs.outer.stage.seen_below

    @property
    def may_grow(self) -> bool:
        return True  # what its function makes is not known before

    @property
    def seen(self) -> bool:
        return self._acts_inside or super().seen

    @property
    def seen_below(self) -> bool:
        return self._singly or super().seen_below

    def _look_at(self, stage: Stage) -> None:
        """Learn whether somebody could see when the elements of an input are made: then that holds of this step."""
        if self._acts_inside or not stage.seen_below:
            return
        acts = stage.seen
        if acts or not self._singly:
            self._singly, self._acts_inside = True, acts
            self.look_again()

    def _look_at_all(self, slots: list[int]) -> bool:
        """The same of all these inputs: one that was asked ahead of its turn may have come to another stream in it."""
        for slot in slots:
            cursor = self._slots[slot].cursor
            if cursor is not None:
                self._look_at(cursor.stage)
        return self._singly

    def _piece(self, want: int, behind: Block | None = None) -> Block | None:
        """The next elements, of one input or of whole rounds; None at the end.

        Those that are to follow others in one Block have to fit them: None, too, where they do not, or where a failure
        is next, or what somebody sees. Then they come alone, when they are asked for again.
        """
        while True:
            if self._rounds is not None:
                return self._part(self._rounds, want, behind)
            slot = self._slots.get(self._turn)
            if slot is None:
                if want > 1 and self._may_run_together():
                    together, any_came = self._together(want, behind)
                    if together is not None or self._complete:
                        return together
                    if any_came:
                        continue
                opened = self._inputs.following()
                if opened is not None:
                    if behind is not None and opened.cursor is None:
                        return None
                    self._put(self._turn, self._inputs.taken())
                elif self._slots:  # none is left for free slots
                    at = bisect_left(self._turns, self._turn)
                    self._turn, self._given_in_turn = self._turns[at % len(self._turns)], 0
                else:
                    return None
                continue
            if behind is not None and (self._singly or slot.error is not None):
                return None
            self._changed(self._turn)
            try:
                more = slot.fill(1 if self._singly else self._share())
            except Exception as error:
                if behind is not None:
                    slot.keep(error)
                    return None
                self._failed(slot)
                raise
            look = Stage.latest_look
            if self._looked is not look and slot.cursor is not None:
                self._look_at(slot.cursor.stage)  # another stream's turn may have come in it
                self._looked = look
            if not more:
                slot.close()
                self._free(self._turn)
                self._pass_turn()
            elif not self._put_together(want):
                return self._rest_of_turn(slot, want, behind)

    def _may_run_together(self) -> bool:
        """Whether the next inputs may: those of `flat_map`, if nobody sees it, or looks at what their steps give."""
        if self._cycle_length > 1 or self.reader is not None or self._inputs.waiting:
            return False
        if self.is_observed or self._singly:
            return False
        return self._opens_together()

    def _together(self, want: int, behind: Block | None) -> tuple[Block | None, bool]:
        found, any_came, self._complete = self._inputs.together(want, behind, self._want, self._until)
        if found is None and behind is None:  # nothing is at hand yet that would wait for others
            self._until = time.perf_counter() + AT_ONCE
        return found, any_came

    def _share(self) -> int:
        """Elements to ask one input for: of all slots that there will be, or they would run out one after the other."""
        slots = len(self._slots) if self._inputs.are_open else self._cycle_length
        return max(self._want // slots, self._early)

    def _failed(self, slot: Input) -> None:
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

    def _put(self, turn: int, slot: Input) -> None:
        self._slots[turn] = slot
        insort(self._turns, turn)
        self._changed(turn)
        if slot.cursor is not None:
            self._look_at(slot.cursor.stage)

    def _free(self, turn: int) -> None:
        del self._slots[turn]
        del self._turns[bisect_left(self._turns, turn)]
        self._changed(turn)

    def _put_together(self, want: int) -> bool:
        """Whole rounds over all slots at once, as far as their elements are at hand; whether there are any."""
        if self._given_in_turn or len(self._slots) < 2 or self._singly:
            return False
        if len(self._slots) < self._cycle_length and not self._inputs.are_open:
            return False
        if self._blocked is not None and self._blocked != self._turn and self._blocked in self._slots:
            return False
        self._blocked = None
        at = bisect_left(self._turns, self._turn)
        order = [*self._turns[at:], *self._turns[:at]]
        rounds = self._at_hand(order, want)
        if rounds < 1:
            return False
        count = rounds * self._block_length
        cursors = [cursor for slot in order if (cursor := self._slots[slot].cursor) is not None]
        try:
            joined = concat_blocks([cursor.peek().slice(0, count) for cursor in cursors])
        except PenstockError:  # elements of several kinds: whoever makes one of them says so
            return False
        index = np.arange(joined.size).reshape(len(order), rounds, self._block_length).transpose(1, 0, 2).reshape(-1)
        self._rounds = _Rounds(joined.take(index), order, cursors, self._block_length)
        return True

    def _at_hand(self, order: list[int], want: int) -> int:
        """The rounds for which all slots have elements, up to those that are worth putting together."""
        turns, length = len(order), self._block_length
        share = self._share()
        if self._looked_all is not Stage.latest_look:  # not only of the one whose turn it is
            self._looked_all = Stage.latest_look
            if self._look_at_all(order):
                return 0
        held = [count for slot in order if (count := self._slots[slot].at_hand)]
        asked, ask = turns - len(held), share
        if 0 < len(held) < turns and self._patience:  # let all run out together, so that rounds are many
            self._patience -= 1
            ask = min(share, *held)
        elif not held:
            self._patience = _PATIENCE
        started = time.perf_counter()
        rounds = share
        for slot in order:
            rounds = min(rounds, self._slots[slot].fill_early(ask) // length)
            if rounds < 1:
                self._blocked = slot
                return 0
        if asked > turns // 2:
            self._learn(asked, time.perf_counter() - started)
        first = self._slots[order[0]].cursor
        assert first is not None
        block = first.peek()
        fits = _MOST_HELD * block.size // (turns * length * max(block.nbytes, 1))
        return min(rounds, max(fits, want // (turns * length), 1))

    def _learn(self, asked: int, seconds: float) -> None:
        """Ask for more at a time where that takes little more: thousands of inputs would be asked for each element."""
        most = max(4 * AT_ONCE, asked * _OF_A_CALL)
        if seconds < most and self._held.nbytes < _MOST_HELD:
            self._early = min(2 * self._early, _MOST_EARLY)
        elif seconds > 2 * most or self._held.nbytes > 2 * _MOST_HELD:
            self._early = max(self._early // 2, 1)

    def _part(self, rounds: _Rounds, want: int, behind: Block | None) -> Block | None:
        if behind is not None and not joins_freely(behind, rounds.block):
            return None
        block, self._turn, self._given_in_turn = rounds.take(want)
        if rounds.over:
            self._states.moved.update(rounds.order)
            self._rounds = None
        return block

    def _rest_of_turn(self, slot: Input, want: int, behind: Block | None) -> Block | None:
        assert slot.cursor is not None
        if behind is not None and not joins_freely(behind, slot.cursor.peek()):
            return None
        block = slot.cursor.take_available(min(want, self._block_length - self._given_in_turn))
        self._given_in_turn += block.size
        if self._given_in_turn == self._block_length:
            self._pass_turn()
        return block

    def state(self) -> State:
        behind = None if self._rounds is None else self._rounds.states(self._state_of)
        parts = [*self._inputs.state(), self._turn, self._given_in_turn, self._states.now(behind)]
        return Growing(parts, self._inputs.begun.since())

    def _state_of(self, turn: int) -> State:
        slot = self._slots.get(turn)
        return None if slot is None else [turn, slot.before, slot.number, slot.state()]

    def restore(self, state: State) -> None:
        outer, number, self._turn, self._given_in_turn, slots, *later = state
        self._inputs.restore(outer, number, dict(later[0]) if later else {})
        for turn, before, of_input, place in slots:
            reopened = self._inputs.reopened(before, of_input, place)
            if reopened is not None:
                self._put(turn, reopened)

    def close(self) -> None:
        self._account.close()
        for slot in self._slots.values():
            slot.close()
        self._inputs.close()
