"""Results: what a segment has made and its consumer has not taken, by ticket."""

from __future__ import annotations

from typing import NamedTuple

from penstock.block.block import joins_freely
from penstock.physical.stage import State
from penstock.physical.stretch import Stretch
from penstock.runtime.free_order import Log, OutOfTurn
from penstock.runtime.task import Task

_COPIED = 1 << 16  # bytes of results that are joined: who keeps an element keeps as many


class Held(NamedTuple):
    """What `Results.statistics` tells."""

    begun: int  # tickets begun and not taken
    ready: int  # of them those that are made
    elements: int
    nbytes: int
    ahead: int  # elements that are made or in the making, in front of what the consumer is at


class Results:
    """Tickets in the order in which they were begun, what was made for them, and the place behind what was taken.

    A ticket is begun by its first task and may have several; its result is put in by whoever finishes the last one.
    Where it is `ordered` the consumer takes tickets in their order. Else it takes what is there, and a log keeps what
    was given out of turn, so that a state taken in between gives each element once. The segment owns it and changes
    it under its lock; `statistics`, `ready` and the place of ordered results need none.

    `state` is that of the upstream in front of the first ticket. An element is made of so many `inputs`.
    """

    def __init__(self, state: State, *, ordered: bool, inputs: int = 1) -> None:
        self.ordered = ordered
        self._inputs = inputs
        self.nbytes = 0
        self.filling = False  # whether the last ticket needs further tasks: then there is room for them
        self.begun = 0  # tickets
        self.waiting = 0  # of them not taken
        self.ready = 0  # of them made
        self.elements = 0  # made and not taken
        self.at_consumer = 0  # elements handed over with the one that the consumer is at, and that it has not come to
        self._made: dict[int, tuple[Stretch, int]] = {}  # with their bytes
        self._under_way: dict[int, tuple[int, int, State]] = {}  # first and count of upstream elements, state behind
        self._next = 0  # the first ticket not taken
        self._taken: set[int] = set()  # tickets beyond it, in free order
        self._in_work = 0  # upstream elements that tasks at work take
        self.mean = 0.0  # bytes of a result
        self._before = state  # in front of ticket `_next`
        self._base = 0  # number of the upstream element that comes first there
        self._log = Log()  # what was given, in free order
        self._replayed = 0  # elements that come in the order of an earlier run

    def begin(self, task: Task) -> None:
        """A task is under way."""
        ticket, after = task.ticket, task.after
        first, count = task.span
        self._in_work += count
        if ticket == self.begun:
            self.begun += 1
            self.waiting += 1
        else:
            first, before, _ = self._under_way[ticket]
            count += before
        self._under_way[ticket] = first, count, after
        self.filling = after is None

    def finish(self, inputs: int) -> None:
        """A task that took so many elements is done."""
        self._in_work -= inputs

    def put(self, ticket: int, made: Stretch, nbytes: int) -> None:
        """What was made for a ticket, and its bytes."""
        block = made.block
        if block is not None:
            self.nbytes += nbytes
            self.elements += block.size
            self.mean = self.mean + 0.1 * (nbytes - self.mean) if self.mean else nbytes
        self._made[ticket] = made, nbytes
        self.ready += 1

    def at_hand(self) -> bool:
        """Whether the consumer may take something now."""
        return self._at_hand() is not None

    def _at_hand(self) -> int | None:
        """The ticket to take: the next one if it is made, else, in free order, another."""
        if self._next in self._made:
            return self._next
        return None if self.ordered or not self._made or self._base < self._replayed else min(self._made)

    def take(self) -> Stretch | None:
        """Hand over the next result, if it is made."""
        ticket = self._at_hand()
        if ticket is None:
            return None
        made, nbytes = self._made.pop(ticket)
        self.waiting -= 1
        self.ready -= 1
        block, size = made.block, len(made.failures)
        if block is not None:
            self.nbytes -= nbytes
            self.elements -= block.size
            size += block.size
        self.at_consumer = size - 1 if size else 0
        if self.ordered:
            self._pass_by()
            return made
        first, count, _ = self._under_way[ticket]
        self._log.add(first, count)
        self._taken.add(ticket)
        while self._next in self._taken:
            self._taken.discard(self._next)
            self._pass_by()
        return made

    def take_more(self, first: Stretch, want: int) -> list[Stretch]:
        """`first`, which was just taken, and small results behind it that are made, up to `want` elements to be joined.

        Where calls wait, each is a Block of its own: who takes them would spend on each what a Block costs, in turns
        with dozens of workers that want the interpreter as well.
        """
        parts = [first]
        if first.block is None or first.failures:
            return parts
        left, copied = want - first.block.size, first.block.nbytes
        while left > 0 and (ticket := self._at_hand()) is not None:
            made, nbytes = self._made[ticket]
            block, copied = made.block, copied + nbytes
            if block is None or made.failures or block.size > left or copied > _COPIED:
                break
            if not joins_freely(first.block, block):
                break
            passed = self.at_consumer + 1
            self.take()
            self.at_consumer += passed
            parts.append(made)
            left -= block.size
        return parts

    def _pass_by(self) -> None:
        """The first ticket not taken is so no more."""
        ticket = self._next
        _, count, self._before = self._under_way.pop(ticket)
        self._base += count
        self._next = ticket + 1

    def clear(self) -> None:
        """Let go of what nobody will take."""
        self._made.clear()
        self.ready = self.nbytes = 0

    @property
    def ahead(self) -> int:
        """Elements that are made, or being made, in front of what the consumer is at."""
        return self.elements + self.at_consumer - (-self._in_work // self._inputs)

    def expected(self, more: int) -> float:
        """Bytes that there will be when what is under way is made, and `more` results like the earlier ones."""
        return self.nbytes + (self.waiting - self.ready + more) * self.mean

    def statistics(self) -> Held:
        """How full it is, as of about now; without a lock."""
        return Held(self.waiting, self.ready, self.elements, self.nbytes, self.ahead)

    # -- states

    def place(self, start: int) -> State:
        """Where to go on, for a pass whose element number `start` came first here.

        In free order it is still told what is given from now on, until it is written down.
        """
        if self.ordered:
            return [self._before, (), (), start + self._base]
        view = self._log.view(self._base)
        return [self._before, OutOfTurn(view), view, start + self._base]

    def begin_at(self, state: State, replayed: int = 0) -> None:
        """Nothing is begun yet: the first ticket is behind this upstream state, so many elements in a given order."""
        self._before = state
        self._replayed = replayed
