"""Interleave and flat_map: data sets created from elements, read in turn."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from heapq import heapify, heapreplace
from itertools import islice

import numpy as np

from penstock.block.block import Block, concat_blocks, joins_freely
from penstock.errors import PenstockError, marked
from penstock.physical.chained import Growing
from penstock.physical.executor import StageReader
from penstock.physical.inner_inputs import MOST_SMALL, InnerInputs, Input, OpeningStage, Small
from penstock.physical.inner_plans import Opening
from penstock.physical.input_maps import InputMaps, Maps
from penstock.physical.memory import UNCOUNTED, Memory
from penstock.physical.stage import Stage, State
from penstock.physical.stages.request_sizes import MOST_HELD, RequestSizes
from penstock.physical.stages.slots import InputSlots
from penstock.physical.stages.turns import InputPart, InputsInRow, MidwayState, Order, SlotTurns, WholeRounds
from penstock.plan import ops
from penstock.plan.step_effects import opens_visibly

_WHOLE_INPUT = 1 << 62  # a block length that no input reaches: flat_map reads each input to its end
# small inputs read together, if there are thousands of slots
_MOST_OPENED = 1 << 12
_MOST_SLOTS = 1 << 24  # limits within which positions of elements fit 64 bits; with so many slots ...
_LONGEST = 1 << 32  # ... and turns no longer than this, which no available input fills


@dataclass(slots=True)
class _Woven:
    """Elements of several inputs in order, joined in advance. The inputs advance when all of them were yielded."""

    block: Block
    turns: Order
    maps: list[Maps]  # maps of its inputs
    small: Small | None = None  # the inputs that open
    given: int = 0  # elements yielded
    start: MidwayState | None = None  # the state before the first of them, if it was requested


def _given(piece: Block | Exception) -> Block:
    if isinstance(piece, Exception):
        raise marked(piece)
    return piece


class InterleaveStage(OpeningStage):
    """tf.data's order: `block_length` elements from each of `cycle_length` slots in turn.

    When an input ends, the turn passes on at once, and the free slot takes the next input when its turn comes. A
    `reader` reads the open inputs ahead. It also opens further inputs early, so that reading has started before their
    turn.

    There may be thousands of slots, so no work per element, including its state, visits all slots. There may be
    thousands of short inputs, so a Block contains elements of several inputs. Small similar inputs run together and are
    joined with available elements of the others, unless it is observable that they are opened.
    """

    def __init__(
        self,
        node: ops.FlatMap | ops.Interleave,
        build_outer: Callable[[], Stage],
        opening: Opening,
        reader: StageReader | None = None,
        *,
        memory: Memory = UNCOUNTED,
    ) -> None:
        self._account = memory.account("at hand", node.label, node.where)
        self._inputs = InnerInputs(build_outer, opening, node, reader)
        super().__init__(node.label, (self._inputs.outer.stage,), node.where)
        self.reader = reader  # an analysis shows its lane
        self._opens_visibly = cache(partial(opens_visibly, node.function))
        self._slots = InputSlots(getattr(node, "cycle_length", 1), getattr(node, "block_length", _WHOLE_INPUT))
        self._sizes = RequestSizes(self._inputs.held)
        self._maps = InputMaps()
        self._woven: _Woven | None = None  # joined elements that were not all yielded yet
        self._looked: object = None  # value of `Stage.latest_look` when all inputs were checked

    def next(self, want: int) -> Block | None:
        until = self._sizes.begin(want)
        found = self._piece(want)
        if found is not None and found.size < want and not self.singly_opened and self._opens_together():
            parts, got = [found], found.size
            while got < want and time.perf_counter() < until:
                more = self._piece(want - got, found)
                if more is None:
                    break
                parts.append(more)
                got += more.size
            found = concat_blocks(parts)
        self._account.hold(self._inputs.held.nbytes + (0 if self._woven is None else self._woven.block.nbytes))
        return found

    def _opens_together(self) -> bool:
        """Return True if it is not observable that an input is opened before the previous one is consumed."""
        return not self._opens_visibly() and not self._inputs.outer.stage.seen_below

    def _piece(self, want: int, behind: Block | None = None) -> Block | None:
        """Return the next elements of one input or of whole rounds, or None at the end.

        With `behind`, the elements are appended to that Block, so they must fit it. The result is also None if they do
        not fit, if the next position is a failure, or if computing it is observable. The next call returns them
        separately.
        """
        while True:
            if self._woven is not None:
                return self._part(self._woven, want, behind)
            slots = self._slots
            slot = slots.inputs.get(slots.turn)
            if slot is None:
                small = self._inputs.may_be_small()
                if small and self._may_weave() and self._weave():
                    continue
                opened = self._inputs.following(small=small)
                if opened is not None:
                    if behind is not None and opened.cursor is None:
                        return None
                    self._put(slots.turn, self._inputs.taken())
                elif slots.inputs:  # no input is left for free slots
                    slots.go_to_occupied()
                else:
                    return None
                continue
            if behind is not None and (self.singly_opened or slot.error is not None):
                return None
            slots.changed(slots.turn)
            try:
                more = slot.at_hand > 0 or self._filled(slot)
            except Exception as error:
                if behind is not None:
                    slot.keep(error)
                    return None
                if slot.cursor is None:  # a failure of opening it
                    slots.free(slots.turn)
                else:
                    slots.count(1)
                raise
            if slot.cursor is not None:
                self.look_at(slot.cursor.stage)  # another stream may have begun in it
            if not more:
                slots.free(slots.turn)
                slots.pass_turn()
            elif not self._put_together(want):
                return self._rest_of_turn(slot, want, behind)

    def _filled(self, slot: Input) -> bool:
        """Read elements of the input whose turn it is. Return False at its end."""
        began = time.perf_counter()
        more = slot.fill(1 if self.singly_opened else self._share())
        self._sizes.learn(1, time.perf_counter() - began)
        return more

    def _share(self) -> int:
        return self._sizes.share(len(self._slots.inputs) if self._inputs.are_open else self._slots.cycle)

    def _put(self, slot: int, opened: Input) -> None:
        self._slots.put(slot, opened)
        if opened.cursor is not None:
            self.look_at(opened.cursor.stage)

    def _put_together(self, want: int) -> bool:
        """Join whole rounds over all slots, as far as elements are available; return True if there were any."""
        slots, length = self._slots, self._slots.length
        least = 2 if self._inputs.are_open else max(slots.cycle, 2)
        order = [] if self.singly_opened else slots.in_rounds(least=least)
        rounds = self._at_hand(order, want) if order else 0
        if rounds < 1:
            return False
        count = rounds * length
        inputs = [slots.inputs[slot] for slot in order]
        cursors = [each.cursor for each in inputs if each.cursor is not None]
        blocks = [cursor.peek().slice(0, count) for cursor in cursors]
        if any(block.structure != blocks[0].structure for block in blocks):
            return False
        try:
            joined = concat_blocks(blocks)
        except PenstockError:  # elements of several kinds: computing one of them raises the error
            return False
        index = np.arange(joined.size).reshape(len(order), rounds, length).transpose(1, 0, 2).reshape(-1)
        turns = WholeRounds(length, order, rounds, [cursor.offset for cursor in cursors])
        self._woven = _Woven(joined.take(index), turns, [each.maps for each in inputs])
        return True

    def _may_weave(self) -> bool:
        """Return True if the next inputs, which may be small, may be joined with available elements of the others."""
        unfit = self._slots.given or self.singly_opened or self._slots.cycle > _MOST_SLOTS
        return not unfit and self._inputs.held.nbytes <= MOST_HELD and self._opens_together()

    def _weave(self) -> bool:
        """Join all elements before the first input that is not small or has no available elements.

        Return False if there are few of them, or if the next input is not small. No available input receives a request.
        """
        slots = self._slots
        turn, cycle, length = slots.turn, slots.cycle, min(slots.length, _LONGEST)
        parts: list[InputPart] = []
        free: list[int] = []  # turns in which inputs open
        limit: tuple[int, int] | None = None  # the place where an input runs out that has further elements
        for slot in slots.in_turn():
            held, first = slots.inputs[slot], (slot - turn) % cycle
            given = 0 if held.cursor is None else held.cursor.offset
            part = InputPart(slot, first, held.at_hand, given, held.maps, held.is_whole)
            parts.append(part)
            last, rest = first + part.count // length * cycle, part.count % length
            if part.whole:
                free.append(last + cycle)
            elif limit is None or (last, rest) < limit:
                limit = last, rest
                if last < cycle:
                    return False
        most = max(min(cycle, _MOST_OPENED), MOST_SMALL if limit is None else 0)
        taken = {part.first for part in parts}
        free += islice((first for first in range(cycle) if first not in taken), most + 1)
        small = self._inputs.small(most, self._sizes.ahead)
        if small is None:
            return False
        self._sizes.learn_ahead(small.seconds)
        if cycle == 1 and not parts and small.block is not None:
            self._woven = _Woven(small.block, InputsInRow(length, small.starts), small.maps, small)
            return True
        heapify(free)
        opening = 0
        for count, maps in zip(small.counts, small.maps, strict=True):
            first = free[0]
            if limit is not None and (first, 0) > limit:
                break
            parts.append(InputPart((turn + first) % cycle, first, count, maps=maps, whole=True, opens=opening))
            heapreplace(free, first + (count // length + 1) * cycle)
            opening += 1
        left = [self._inputs.read(small, index) for index in range(opening, len(small.counts))]
        self._inputs.waiting.extendleft(reversed(left))
        ends = [] if limit is None else [limit]
        if not self._inputs.are_open:
            ends.append((free[0], 0))
        turns = SlotTurns(turn, cycle, length, parts, min(ends, default=None))
        block = self._joined(turns, small)
        if block is None:
            again = [self._inputs.read(small, index) for index in range(opening)]
            self._inputs.waiting.extendleft(reversed(again))
            return False
        self._woven = _Woven(block, turns, [part.maps for part in parts], small)
        return True

    def _joined(self, turns: SlotTurns, small: Small) -> Block | None:
        """Return the joined elements, or None if their kinds differ or there are none."""
        blocks, starts, at = [], [], 0
        for slot, opens, given, _ in turns.over():
            if opens >= 0:
                starts.append(at + small.starts[opens])
                continue
            starts.append(at)
            cursor = self._slots.inputs[slot].cursor
            if given and cursor is not None:
                blocks.append(cursor.peek().slice(0, given))
                at += given
        if small.block is not None:
            blocks.append(small.block)
        if any(block.structure != blocks[0].structure for block in blocks):
            return None
        try:
            rows = turns.rows(starts)
            return concat_blocks(blocks).take(rows) if len(rows) else None
        except Exception:  # different kinds, or too much memory: each input raises the error itself
            return None

    def _at_hand(self, order: list[int], want: int) -> int:
        """Return the number of rounds for which all slots have elements, up to a number that is worth joining."""
        slots, turns, length = self._slots, len(order), self._slots.length
        inputs = slots.inputs
        share = self._share()
        if self._looked is not Stage.latest_look:  # an input read before its turn may have begun another stream
            self._looked = Stage.latest_look
            for cursor in [inputs[slot].cursor for slot in order]:
                if cursor is not None:
                    self.look_at(cursor.stage)
            if self.singly_opened:
                return 0
        held = [count for slot in order if (count := inputs[slot].at_hand)]
        asked, ask = turns - len(held), self._sizes.even(share, held, turns)
        started = time.perf_counter()
        rounds = max(share, *held) if len(held) == turns else share
        for slot in order:
            rounds = min(rounds, inputs[slot].fill_early(ask) // length)
            if rounds < 1:
                slots.blocked = slot
                return 0
        if asked > turns // 2:
            self._sizes.learn(asked, time.perf_counter() - started)
        first = inputs[order[0]].cursor
        assert first is not None
        block = first.peek()
        fits = MOST_HELD * block.size // (turns * length * max(block.nbytes, 1))
        return min(rounds, max(fits, want // (turns * length), 1))

    def _part(self, woven: _Woven, want: int, behind: Block | None) -> Block | None:
        mapped = any(each.maps for each in woven.maps)
        stop = min(woven.given + (min(want, self._maps.most) if mapped else want), woven.block.size)
        block = woven.block.slice(woven.given, stop)
        piece = self._maps.run(block, *woven.turns.inputs(woven.given, stop), woven.maps) if mapped else block
        if behind is not None and (isinstance(piece, Exception) or not joins_freely(behind, piece)):
            return None
        woven.given += piece.size if isinstance(piece, Block) else 1
        if woven.given == woven.block.size:
            self._woven = None
            self._move_on(woven)
        return _given(piece)

    def _move_on(self, woven: _Woven) -> None:
        """Advance the inputs after all joined elements were yielded."""
        slots, turns, small = self._slots, woven.turns, woven.small
        if isinstance(turns, WholeRounds):
            slots.pass_by(turns.order, turns.each)  # it is the turn of the same slot
        elif isinstance(turns, SlotTurns):
            for turn, opens, given, closed in turns.over():
                if opens >= 0:
                    if not closed and small is not None:
                        self._put(turn, self._inputs.read(small, opens, given))
                elif closed:
                    slots.free(turn)
                elif given:
                    slots.pass_by((turn,), given)
            turn, slots.given = turns.end
            slots.turn = turns.slot(turn)

    def _rest_of_turn(self, slot: Input, want: int, behind: Block | None) -> Block | None:
        cursor = slot.cursor
        assert cursor is not None
        count = min(want, self._slots.length - self._slots.given, cursor.available())
        if slot.maps.maps:
            count = min(count, self._maps.most)
        block = cursor.peek().slice(0, count)
        piece: Block | Exception = block
        if slot.maps.maps:
            piece = self._maps.run(block, np.zeros(count, int), cursor.offset + np.arange(count), [slot.maps])
        if behind is not None and (isinstance(piece, Exception) or not joins_freely(behind, piece)):
            return None
        count = piece.size if isinstance(piece, Block) else 1
        cursor.pass_by(count)
        self._slots.count(count)
        return _given(piece)

    def state(self) -> State:
        slots, inputs = self._slots, self._inputs
        if self._woven is not None:
            return Growing(self._midway(self._woven), inputs.begun.since())
        return Growing([*inputs.state(), slots.turn, slots.given, slots.states.now()], inputs.begun.since())

    def _midway(self, woven: _Woven) -> MidwayState:
        start = woven.start
        if start is None:
            opens = [] if woven.small is None else [(closed.before, closed.number) for closed in woven.small.inputs]
            outer = [*opens, self._inputs.state()]  # before inputs that open, and after all of them
            start = woven.start = MidwayState(woven.turns, self._slots.states.now(), outer)
        return MidwayState(start.turns, start.opened, start.outer, woven.given)

    def restore(self, state: State) -> None:
        outer, number, self._slots.turn, self._slots.given, slots, *later = state
        self._inputs.restore(outer, number, dict(later[0]) if later else {})
        for turn, before, of_input, place in slots:
            reopened = self._inputs.reopened(before, of_input, place)
            if reopened is not None:
                self._put(turn, reopened)

    def close(self) -> None:
        self._account.close()
        self._slots.close()
        self._inputs.close()
