"""Memory: where stages say how many bytes their buffers hold, so that one budget can be kept.

Collector holds positions that wait until there are enough of them. FillingLog says in the log how far a step is that
fills before it gives its first element.
"""

from __future__ import annotations

import logging
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.physical.stage import Cursor
from penstock.physical.stretch import Fatal, Stretch, failure, join

if TYPE_CHECKING:
    from penstock.physical.stage import Around, Stage
    from penstock.plan.node import Node


class Overspent(Fatal):
    """A buffer alone is larger than the budget that the user gave: the run ends, and `error` says why."""


class Account(ABC):
    """What one buffer holds. It is closed, too, when nobody holds the account any more."""

    lasting = False  # may be kept beyond the run: its budget is the process's

    @abstractmethod
    def hold(self, nbytes: int, full: int | None = None) -> None:
        """The buffer holds so many bytes from now on. Cheap; called once per Block, by any thread.

        `full` is what it comes to when it has filled up, where that is known for certain. Raises Overspent if the size
        of such a buffer is the user's choice, and more than the budget that he gave.
        """

    @abstractmethod
    def close(self) -> None:
        """The buffer is gone. Idempotent; never waits, so that the garbage collector may call it anywhere."""


class Memory(ABC):
    """Opens accounts: one for each buffer of a run."""

    @abstractmethod
    def account(self, kind: str, label: str, where: str | None = None, *, of: Any = None) -> Account:
        """An account for a buffer of the stage with this label.

        Sizes that the user chooses have the kinds "shuffle", "cache", "batch", "window", "group" and "unique"; what is
        "at hand" the engine chooses. What several stages share is counted once: they give it as `of`, an object that
        can be weakly referenced, and get the same account.
        """

    @property
    def is_tight(self) -> bool:
        """Whether it is looked at each element of the run, whether it fits in a few megabytes."""
        return False

    @abstractmethod
    def observer(self, node: Node, stage: Stage) -> Around | None:
        """Is shown every stage of the run before it is asked for anything, and may look at what it gives.

        See `Stage.observe`.
        """


class _Uncounted(Account):
    def hold(self, nbytes: int, full: int | None = None) -> None:
        """Nobody counts."""

    def close(self) -> None:
        """Nothing was opened."""


class _Nowhere(Memory):
    def account(self, kind: str, label: str, where: str | None = None, *, of: Any = None) -> Account:
        return _NOBODY

    def observer(self, node: Node, stage: Stage) -> None:
        """Nobody looks."""


_NOBODY = _Uncounted()
UNCOUNTED: Memory = _Nowhere()


_MOST_ASKED = 4096


def elements_for(want: int, pulled: int, given: int) -> int:
    """How many elements to ask for where several become one: `given` came of the `pulled` so far."""
    return max(1, min(want * (pulled + 8) // (given + 1), _MOST_ASKED))


# In filling, where an element takes long, few are asked for: nobody can stop a pass, or say how far it is, in the
# middle of a Block.

_LOG = logging.getLogger("penstock.physical")
_FIRST = 5.0  # seconds until something is said, ...
_AGAIN = 20.0  # ... and until it is said again
_SHORT, _LONG = 0.02, 0.1  # seconds that a Block may take, until more or fewer are asked for


class FillingLog:
    """Told how far a step is; a line after five seconds, one every twenty, and one when it is full.

    The first line of the program is a warning, on rank 0; all others are for who looks at INFO.

    The first time it asks for `ask` elements, and never for more than `at_once`. `most` is how many there will be;
    negative where nobody knows.
    """

    _warned: ClassVar[bool] = False

    def __init__(
        self,
        label: str,
        most: int,
        clock: Callable[[], float] = time.monotonic,
        *,
        ask: int = 1,
        at_once: int = 4096,
    ) -> None:
        self._at_once = at_once
        self._ask = ask
        self._label = label
        self._most = most
        self._clock = clock
        self._begun = clock()
        self._next = self._begun + _FIRST
        self._said = False
        self._last = self._begun

    def ask(self) -> int:
        """How many elements to ask for next."""
        return self._ask

    def at(self, count: int) -> None:
        """Note that `count` elements are there, the last of them those that were asked for."""
        now = self._clock()
        taken, self._last = now - self._last, now
        if taken < _SHORT:
            self._ask = min(4 * self._ask, self._at_once)
        elif taken > _LONG:
            self._ask = max(self._ask // 4, 1)
        if now < self._next:
            return
        self._next = now + _AGAIN
        self._said = True
        of = f"{count:,} of {self._most:,}" if self._most >= 0 else f"{count:,}"
        text = "%s fills: %s elements after %.0f seconds; the first one comes when it is full"
        first = not FillingLog._warned and os.environ.get("RANK", "0") == "0"
        FillingLog._warned = True
        _LOG.log(logging.WARNING if first else logging.INFO, text, self._label, of, now - self._begun)

    def full(self, count: int) -> None:
        if self._said:
            seconds = self._clock() - self._begun
            _LOG.info("%s is full: %s elements after %.0f seconds", self._label, f"{count:,}", seconds)
            self._said = False


class Collector:
    """Takes as `Cursor.take` does. Its account keeps the most that has waited: what is being filled will again."""

    def __init__(self, cursor: Cursor, account: Account) -> None:
        self._cursor = cursor
        self._account = account
        self._most = 0
        self._late: Stretch | None = None  # a failure that came first

    def ready(self, ask: int) -> None:
        """Have elements at hand, if the next position is one; a failure waits for `take`."""
        if not self._cursor.available():
            try:
                self._cursor.fill(ask)
            except Exception as error:
                self._late = failure(error)

    def take(self, count: int, ask: int = 0) -> Stretch | None:
        """The next `count` positions, fewer only at the end; None if there are none."""
        cursor, ask = self._cursor, max(ask, count)
        parts = [] if self._late is None else [self._late]
        self._late = None
        got, waiting = len(parts), 0
        while got < count:
            try:
                if not cursor.fill(count - got if cursor.stage.seen or (got and cursor.stage.cuts) else ask):
                    break
                parts.append(Stretch(cursor.take_available(count - got)))
            except Exception as error:
                parts.append(failure(error))
            got += parts[-1].size
            block = parts[-1].block
            if block is not None and (len(parts) > 1 or got < count):
                waiting += block.nbytes
                self._reach(waiting)
        return join(parts) if parts else None

    def _reach(self, nbytes: int) -> None:
        if nbytes > self._most:
            self._most = nbytes
            self._account.hold(nbytes)

    def close(self) -> None:
        self._account.close()
        self._cursor.close()
