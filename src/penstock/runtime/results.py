"""Results: the results of a segment that its consumer has not taken yet, by ticket."""

from __future__ import annotations

from typing import NamedTuple

from penstock.block.block import joins_freely
from penstock.physical.stage import State
from penstock.physical.stretch import Stretch
from penstock.runtime.free_order import Log, OutOfTurn
from penstock.runtime.task import Task

_COPIED = 1 << 16  # bytes of joined results; a user that keeps one element keeps all these bytes


class ResultCounts(NamedTuple):
    """The result of `Results.statistics`."""

    begun: int  # tickets that were begun and not taken
    ready: int  # tickets with a result
    elements: int
    nbytes: int
    ahead: int  # elements that are computed or in progress, beyond the consumer's present one


class Results:
    """Tickets in the order of their begin, their results, and the position after the taken results.

    The first task of a ticket begins it. A ticket may have several tasks, and the worker that finishes the last one
    stores the result. If the results are `ordered`, the consumer takes tickets in order. Otherwise it takes any ready
    ticket, and a log records the results taken out of turn, so that a restored run returns each element once. The
    segment changes the object under its lock. `statistics`, `ready` and the place of ordered results need no lock.

    Args:
        state: State of the upstream before the first ticket.
        ordered: If True, results are taken in order.
        inputs: Number of input elements per element.
    """

    def __init__(self, state: State, *, ordered: bool, inputs: int = 1) -> None:
        self.ordered = ordered
        self._inputs = inputs
        self.nbytes = 0
        self.complete = False  # True if no ticket begins any more
        self.filling = False  # True if the last ticket needs further tasks, for which there is always room
        self.begun = 0  # number of tickets
        self.waiting = 0  # tickets not taken
        self.ready = 0  # tickets with a result
        self.elements = 0  # elements that are ready
        self.at_consumer = 0  # elements of the last taken results that the consumer has not reached
        self._made: dict[int, tuple[Stretch, int]] = {}  # result and its bytes, by ticket
        # first upstream element, number of elements, and state after them, by ticket
        self._under_way: dict[int, tuple[int, int, State]] = {}
        self._next = 0  # the first ticket not taken
        self._taken: set[int] = set()  # later tickets that were taken, in free order
        self._in_work = 0  # upstream elements of running tasks
        self.mean = 0.0  # average bytes of a result
        self._before = state  # upstream state before ticket `_next`
        self._base = 0  # number of the first upstream element of ticket `_next`
        self._log = Log()  # taken results, in free order
        self._replayed = 0  # elements that come in the order of an earlier run

    def begin(self, task: Task) -> None:
        """Record the begin of a task."""
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
        """Record the end of a task with so many inputs."""
        self._in_work -= inputs

    def put(self, ticket: int, made: Stretch, nbytes: int) -> None:
        """Store the result of a ticket, and its bytes."""
        block = made.block
        if block is not None:
            self.nbytes += nbytes
            self.elements += block.size
            self.mean = self.mean + 0.1 * (nbytes - self.mean) if self.mean else nbytes
        self._made[ticket] = made, nbytes
        self.ready += 1

    def at_hand(self) -> bool:
        """Return True if the consumer can take a result now."""
        return self._at_hand() is not None

    def _at_hand(self) -> int | None:
        """Return the ticket to take: the next one if it has a result, or another one in free order. None: no result."""
        if self._next in self._made:
            return self._next
        return None if self.ordered or not self._made or self._base < self._replayed else min(self._made)

    def take(self) -> Stretch | None:
        """Return the next result, or None if there is none yet."""
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
        """Return `first` and small results after it that may be joined with it, up to `want` elements.

        If calls wait, each call has a Block of its own. Without this method, the consumer would pay the fixed cost of a
        Block for each, while dozens of workers want the interpreter as well.
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
        """Move past the first ticket, which was taken."""
        ticket = self._next
        _, count, self._before = self._under_way.pop(ticket)
        self._base += count
        self._next = ticket + 1

    def clear(self) -> None:
        """Drop all results."""
        self._made.clear()
        self.ready = self.nbytes = 0

    @property
    def ahead(self) -> int:
        """Number of elements that are computed or in progress, beyond the consumer's present one."""
        return self.elements + self.at_consumer - (-self._in_work // self._inputs)

    def expected(self, more: int) -> float:
        """Return the expected bytes of all present tickets and of `more` further results."""
        return self.nbytes + (self.waiting - self.ready + more) * self.mean

    def statistics(self) -> ResultCounts:
        """Return approximate present counts, without a lock."""
        return ResultCounts(self.waiting, self.ready, self.elements, self.nbytes, self.ahead)

    # -- states

    def place(self, start: int) -> State:
        """Return the position at which to resume. The first element here was number `start` of the iteration.

        In free order, the state still records later results until it is written.
        """
        if self.ordered:
            return [self._before, (), (), start + self._base]
        view = self._log.view(self._base)
        return [self._before, OutOfTurn(view), view, start + self._base]

    def begin_at(self, state: State, replayed: int = 0) -> None:
        """Set the upstream state of the first ticket. The next `replayed` elements come in a fixed order."""
        self._before = state
        self._replayed = replayed
