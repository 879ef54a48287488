"""Zip, concatenate, enumerate and repeat."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeGuard

import numpy as np

from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.block.structure import LEAF, Structure, nest
from penstock.errors import Context
from penstock.physical.chained import Begun, Growing, LateState, Since
from penstock.physical.stage import CountingStage, Cursor, Stage, State, UnaryStage, as_of_now
from penstock.physical.stages.mix import Agreement, Choices, Chooser
from penstock.physical.stretch import Stretch, fatal
from penstock.plan.node import NamedStep


class ZipStage(Stage):
    """Yields one element of each input in a nest; ends with the shortest. If one input fails, the nest is a failure."""

    def __init__(self, inputs: tuple[Stage, ...], structure: Structure, step: NamedStep) -> None:
        super().__init__(step.label, inputs, step.where)
        self._cursors = [Cursor(stage) for stage in inputs]
        self._structure = structure

    def next(self, want: int) -> Block | None:
        error: Exception | None = None
        failed = []
        for cursor in self._cursors:
            try:
                if not cursor.fill(want):
                    return None
            except Exception as raised:
                error = error or raised
                failed.append(cursor)
        if error is not None:
            for cursor in self._cursors:  # the other inputs advance by one as well
                if cursor not in failed:
                    cursor.take_available(1)
            raise error
        count = min(cursor.available() for cursor in self._cursors)
        blocks = [cursor.take_available(count) for cursor in self._cursors]
        return zipped(blocks, self._structure)

    def can_skip(self) -> bool:
        return all(cursor.stage.can_skip() for cursor in self._cursors)

    def skip(self, count: int) -> int:
        return min((cursor.skip(count) for cursor in self._cursors), default=0)

    def state(self) -> State:
        return [cursor.state() for cursor in self._cursors]

    def restore(self, state: State) -> None:
        for cursor, part in zip(self._cursors, state, strict=True):
            cursor.restore(part)


def zipped(blocks: Sequence[Block], structure: Structure) -> Block:
    """Return Blocks of one size joined element by element, as the parts of a nest."""
    nested = nest(structure, [block.structure for block in blocks])
    origin = next((block.origin for block in blocks if block.origin is not None), None)
    return Block(nested, [column for block in blocks for column in block.columns], blocks[0].size, origin)


class EnumerateStage(UnaryStage):
    """Yields `(number, element)`, counted from `start`."""

    moving = ("_number",)

    def __init__(self, upstream: Stage, start: int, step: NamedStep) -> None:
        super().__init__(upstream, step)
        self._number = start

    def next(self, want: int) -> Block | None:
        try:
            block = self._upstream.next(want)
        except Exception:
            self._number += 1
            raise
        if block is None:
            return None
        numbers = np.arange(self._number, self._number + block.size, dtype=np.int64)
        self._number += block.size
        structure = nest(_PAIR, [LEAF, block.structure])
        return Block(structure, [DenseColumn(numbers), *block.columns], block.size, block.origin)

    def can_skip(self) -> bool:
        return self._upstream.can_skip()

    def skip(self, count: int) -> int:
        passed = self._upstream.skip(count)
        self._number += passed
        return passed


_PAIR = Structure(tuple, (), (LEAF, LEAF), 2)


class SequenceStage(Stage):
    """Streams one after another, each built when its turn comes: concatenate, and repeat over epochs.

    `build(i)` returns stream i; `count` is the number of streams, negative if infinite. An infinite repetition
    continues after a stream without elements, unless no stream has had any: it would loop forever. Streams that are
    `alike` may still differ in `seen`, if one stream ends without side effects and the next begins with some.
    `may_grow` is that of streams not built yet.
    """

    def __init__(
        self, build: Callable[[int], Stage], count: int, step: NamedStep, *, alike: bool = False, may_grow: bool = True
    ) -> None:
        super().__init__(step.label, (), step.where)
        self._build = build
        self._may_grow = may_grow
        self._alike = alike
        self._was_seen = False  # `seen` of the previous stream at its end
        self._count = count
        self._index = 0
        self._gave = False  # True after a stream has yielded an element
        self._stage: Stage | None = None
        self._state: State = None
        self._begun = Begun({})
        self._within: list[SequenceStage] = []  # the nested streams whose turn it is, each inside the one before it
        self._around: list[_Around] = []  # the positions of all of them but the last, beginning with this one

    def next(self, want: int) -> Block | None:
        """Return the next Block of the innermost stream.

        A loop replaces recursion, as repeated `concatenate()` nests deeply.
        """
        asked = want
        while True:
            last = self._last_in_turn()
            if not last._goes_on:
                if last is self:
                    return None
                self._within.pop()
                self._around.pop()
                (self._within[-1] if self._within else self)._advance()
                asked = 1 if self.seen else want  # the caller did not know the side effects of the next stream
                continue
            try:
                block = last._current().next(asked)
            except Exception:
                self._have_given(last)
                raise
            if block is not None:
                self._have_given(last)
                return block
            last._advance()
            asked = 1 if self.seen else want

    def _last_in_turn(self) -> SequenceStage:
        """Return the innermost of the nested streams whose turn it is."""
        within = self._within
        last = within[-1] if within else self
        while last._goes_on:
            stage = last._current()
            if not _in_turn_itself(stage):
                break
            stage._place_said = None  # its own state is not needed any more
            self._around.append((last._index, last._gave, last._count, last._begun.since()))
            within.append(stage)
            last = stage
        return last

    def giving(self) -> tuple[int, SequenceStage]:
        """Return the number of the stream that yielded last, and the innermost `SequenceStage` that contains it."""
        found = self
        while type(found._stage) is SequenceStage:
            found = found._stage
        return found._index, found

    def _have_given(self, last: SequenceStage) -> None:
        if not last._gave:  # an inner stream that has yielded has done so through all outer ones
            for one in (self, *self._within):
                one._gave = True
            self._around = [(index, True, count, since) for index, _, count, since in self._around]

    @property
    def _goes_on(self) -> bool:
        """True if there is a stream whose turn it is."""
        return self._count < 0 or self._index < self._count

    def _current(self) -> Stage:
        if self._stage is None:
            try:
                self._stage = self._made(self._index)
            except Exception as error:  # not the failure of an element: it would come forever
                raise fatal(error, self.label, self.where) from error
            if self._state is not None:
                self._stage.restore(self._state)
                self._state = None
            self._begun.note(self._index, self._stage, self._stage)
            if _in_turn_itself(self._stage):
                self._stage._was_seen = self._was_seen  # its first stream follows the stream before it
            elif self._stage.seen_below is not self._was_seen:
                self.look_again()
        return self._stage

    def _made(self, index: int) -> Stage:
        """Return stream `index`, restored to the position of an earlier run."""
        made = self._build(index)
        self._begun.resume(index, made)
        return made

    def _advance(self) -> None:
        stage = self._stage
        if stage is not None:
            self._was_seen = stage._was_seen if _in_turn_itself(stage) else stage.seen_below
            stage.close()
        self._stage = None
        self._index += 1
        if not self._alike:
            self.look_again()
        if not self._gave and self._count < 0:
            self._count = 0

    @property
    def may_grow(self) -> bool:
        return self._may_grow

    @property
    def seen(self) -> bool:
        last = self._last_in_turn()
        return last._goes_on and last._current().seen

    @property
    def seen_below(self) -> bool:
        last = self._last_in_turn()
        return last._goes_on and last._current().seen_below

    def start(self) -> None:
        if self._goes_on:
            self._current().start()

    def can_skip(self) -> bool:
        """Return True if all further streams can skip. Concatenate has two streams, and those of repeat are alike."""
        last = self._index + 2 if self._count < 0 else min(self._index + 2, self._count)
        if self._index >= last:
            return True
        others = [self._build(index) for index in range(self._index + 1, last)]
        try:
            return all(stream.can_skip() for stream in [self._current(), *others])
        finally:
            for stream in others:
                stream.close()

    def skip(self, count: int) -> int:
        passed = 0
        self._leave()
        while passed < count and self._goes_on:
            here = self._current().skip(count - passed)
            passed += here
            self._gave = self._gave or here > 0
            if passed < count:
                self._advance()
        return passed

    def state(self) -> State:
        last = self._within[-1] if self._within else self
        found = last._state if last._stage is None else last._stage.state()
        innermost = Growing([last._index, found, last._gave, last._count], last._begun.since())
        return _Nested(innermost, tuple(self._around)) if self._around else innermost

    def restore(self, state: State) -> None:
        self.close()  # a stream that was built only for a check, such as in `can_skip`, has another position
        self._stage = None
        self._leave()
        self._index, found, self._gave, self._count, *later = state
        pending = dict(later[0]) if later else {}
        self._state = pending.pop(self._index, found)
        self._begun = Begun(pending)

    def _leave(self) -> None:
        self._within.clear()
        self._around.clear()

    def close(self) -> None:
        if self._stage is not None:
            self._stage.close()


def _in_turn_itself(stage: Stage) -> TypeGuard[SequenceStage]:
    """Return True if a stream is a `SequenceStage` that the outermost one walks through itself.

    Recursive calls would walk through all nested streams.
    """
    return type(stage) is SequenceStage and not stage.is_observed


# index of the current stream, True if a stream has yielded, number of streams, streams started since
_Around = tuple[int, bool, int, Since]


class _Nested(LateState):
    """The state of nested Sequences, each in the one before. It is built only when it is needed."""

    __slots__ = ("_around", "_innermost")

    def __init__(self, innermost: Growing, around: tuple[_Around, ...]) -> None:
        self._innermost = innermost
        self._around = around

    def resolved(self) -> State:
        found = as_of_now(self._innermost)
        for index, gave, count, since in reversed(self._around):
            found = as_of_now(Growing([index, found, gave, count], since))
        return found

    def __iter__(self) -> Iterator[State]:
        found = self._innermost
        for index, gave, count, since in reversed(self._around):
            found = Growing([index, found, gave, count], since)
        return iter(found)


class AgreedStage(CountingStage):
    """Streams one after another whose specs are unknown. It checks that all elements have the kind of the first."""

    def __init__(self, streams: SequenceStage, step: NamedStep, *, any_rank: bool = False) -> None:
        super().__init__(streams, step)
        self._streams = streams
        self._agreement = Agreement(known=False, any_rank=any_rank)

    def make(self, want: int) -> Stretch | None:
        first = self._count
        block = self.pull(want)
        if block is None:
            return None
        if self._agreement.admits(block):
            return Stretch(block)
        number, joined = self._streams.giving()
        contexts = [Context(joined.label, joined.where, first + i) for i in range(block.size)]
        return Stretch(None, tuple((i, self._agreement.error(number, block, at)) for i, at in enumerate(contexts)))

    def place(self) -> State:
        return [*super().place(), self._agreement.kind]

    def go_to(self, place: State) -> None:
        *below, self._agreement.kind = place
        super().go_to(below)


class Rounds(Chooser):
    """Chooses sources in turn, without those that have ended."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._turn = 0  # the source whose turn is next, or the next one after it that has not ended

    def next(self, want: int, dry: Collection[int]) -> Choices | None:
        if len(dry) == self._count:
            return None
        return _Round(self, self._turn, want, dry)

    def picks(self, turn: int, want: int, dry: Collection[int]) -> np.ndarray:
        """Return the sources of the next steps, beginning with this turn."""
        there = [source for source in range(self._count) if source not in dry]
        order = [source for source in there if source >= turn] + [source for source in there if source < turn]
        found = np.resize(np.array(order, np.int64), want)
        self._turn = (int(found[-1]) + 1) % self._count
        return found

    def state(self) -> State:
        return self._turn

    def restore(self, state: State) -> None:
        self._turn = state


class _Round(Choices):
    """Steps that begin with the turn of one source."""

    def __init__(self, rounds: Rounds, turn: int, want: int, dry: Collection[int]) -> None:
        self._rounds = rounds
        self._dry = set(dry)
        self._picks = rounds.picks(turn, want, dry)
        self.size = want
        self.errors = {}

    def picks(self, start: int, stop: int) -> np.ndarray:
        return self._picks[start:stop]

    def ran_dry(self, source: int, at: int) -> None:
        self._dry.add(source)
        self._picks[at:] = self._rounds.picks(source, self.size - at, self._dry)
