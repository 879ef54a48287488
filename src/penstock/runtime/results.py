"""Results: what a segment has made and its consumer has not taken, by ticket."""

from __future__ import annotations

from typing import NamedTuple

from penstock.physical.stage import State
from penstock.physical.stretch import Stretch
from penstock.runtime.free_order import Log, OutOfTurn
from penstock.runtime.task import Task


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
    it under its lock; `statistics`, `ahead`, whether there is something and the place of ordered results need none.

    `state` is that of the upstream in front of the first ticket.
    """

    def __init__(self, state: State, *, ordered: bool) -> None:
        self.ordered = ordered
        self.nbytes = 0
        self.filling = False  # whether the last ticket needs further tasks: then there is room for them
        self.begun = 0  # tickets
        self.waiting = 0  # of them not taken
        self._made: dict[int, tuple[Stretch, int]] = {}  # with their bytes
        self._after: dict[int, State] = {}
        self._spans: dict[int, list[int]] = {}
        self._next = 0  # the first ticket not taken
        self._taken: set[int] = set()  # tickets beyond it, in free order
        self._elements = 0
        self._in_work = 0  # elements that tasks at work take
        self._at_consumer = 0  # elements handed over with the one that the consumer is at
        self.mean = 0.0  # bytes of a result
        self._before = state  # in front of ticket `_next`
        self._base = 0  # number of the upstream element that comes first there
        self._log = Log()  # what was given, in free order
        self._replayed = 0  # elements that come in the order of an earlier run

    def begin(self, task: Task) -> None:
        """A task is under way."""
        ticket, _, after, (first, count) = task
        if ticket == self.begun:
            self.begun += 1
            self.waiting += 1
            self._spans[ticket] = [first, count]
        else:
            self._spans[ticket][1] += count
        self._in_work += count
        self.filling = after is None
        if after is not None:
            self._after[ticket] = after

    def finish(self, inputs: int) -> None:
        """A task that took so many elements is done."""
        self._in_work -= inputs

    def put(self, ticket: int, made: Stretch) -> int:
        """What was made for a ticket; its bytes."""
        nbytes = 0
        if made.block is not None:
            nbytes = made.block.nbytes
            self.nbytes += nbytes
            self._elements += made.block.size
            self.mean = nbytes if not self.mean else 0.9 * self.mean + 0.1 * nbytes
        self._made[ticket] = made, nbytes
        return nbytes

    def head(self) -> int | None:
        """The ticket that the consumer may take now."""
        if self._next in self._made:
            return self._next
        if not self.ordered and self._made and self._base >= self._replayed:
            return min(self._made)
        return None

    def take(self, ticket: int) -> Stretch:
        """Hand over the result of a ticket."""
        made, nbytes = self._made.pop(ticket)
        self.waiting -= 1
        self._at_consumer = max(made.size - 1, 0)
        if made.block is not None:
            self.nbytes -= nbytes
            self._elements -= made.block.size
        if self.ordered:
            self._pass_by()
            return made
        first, count = self._spans[ticket]
        self._log.add(first, count)
        self._taken.add(ticket)
        while self._next in self._taken:
            self._taken.discard(self._next)
            self._pass_by()
        return made

    def _pass_by(self) -> None:
        """The first ticket not taken is so no more."""
        ticket = self._next
        self._base += self._spans.pop(ticket)[1]
        self._before = self._after.pop(ticket)
        self._next = ticket + 1

    def clear(self) -> None:
        """Let go of what nobody will take."""
        self._made.clear()
        self.nbytes = 0

    def __bool__(self) -> bool:
        """Whether there is something to take, now or in its turn."""
        return bool(self._made)

    @property
    def elements(self) -> int:
        """Elements made and not taken."""
        return self._elements

    @property
    def lead(self) -> int:
        """Elements made and not taken, with those that were handed over and that the consumer has not come to."""
        return self._elements + self._at_consumer

    @property
    def ahead(self) -> int:
        """Elements that are made, or being made, in front of what the consumer is at."""
        return self.lead + self._in_work

    def expected(self, more: int) -> float:
        """Bytes that there will be when what is under way is made, and `more` results like the earlier ones."""
        return self.nbytes + (self.waiting - len(self._made) + more) * self.mean

    def statistics(self) -> Held:
        """How full it is, as of about now; without a lock."""
        return Held(self.waiting, len(self._made), self._elements, self.nbytes, self.ahead)

    # -- states

    def place(self, start: int) -> State:
        """Where to go on, for a pass whose element number `start` came first here.

        In free order it is still told what is given from now on, until it is written down.
        """
        if self.ordered:
            return [self._before, [], [], start + self._base]
        view = self._log.view(self._base)
        return [self._before, OutOfTurn(view), view, start + self._base]

    def begin_at(self, state: State, replayed: int = 0) -> None:
        """Nothing is begun yet: the first ticket is behind this upstream state, so many elements in a given order."""
        self._before = state
        self._replayed = replayed
