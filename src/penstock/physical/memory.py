"""Memory: stages report the bytes of their buffers here, so that one budget can be enforced.

`Collector` stores positions until there are enough of them. `FillingLog` logs the progress of a step that fills a
buffer before its first element.
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
    """A single buffer is larger than the user's budget. It ends the run; `error` is the reason."""


class Account(ABC):
    """The bytes of one buffer. The account is also closed when the last reference to it is gone."""

    lasting = False  # True if the buffer may outlive the run; it then counts in the budget of the process

    @abstractmethod
    def hold(self, nbytes: int, full: int | None = None) -> None:
        """Report that the buffer has this many bytes now. Cheap; called once per Block, by any thread.

        `full` is the size of the full buffer, if it is known for certain. The call raises Overspent if the user chose
        the size of the buffer, and it is larger than the user's budget.
        """

    @abstractmethod
    def close(self) -> None:
        """Report that the buffer is gone. Idempotent; never waits, because the garbage collector may call it."""


class Memory(ABC):
    """Opens accounts: one for each buffer of a run."""

    @abstractmethod
    def account(self, kind: str, label: str, where: str | None = None, *, of: Any = None) -> Account:
        """Return an account for a buffer of the stage with this label.

        Buffers whose size the user chooses have the kinds "shuffle", "cache", "batch", "window", "group" and "unique";
        "at hand" are buffers whose size the engine chooses. Stages that share a buffer pass it as `of`, an object with
        weak references, and get the same account, so that it counts once.
        """

    @property
    def is_tight(self) -> bool:
        """True if the bytes are checked at each element, because the budget is a few megabytes."""
        return False

    @abstractmethod
    def observer(self, node: Node, stage: Stage) -> Around | None:
        """Receive every stage of the run before it is used, and return a wrapper for its `next`, or None.

        See `Stage.observe`.
        """


class _Uncounted(Account):
    def hold(self, nbytes: int, full: int | None = None) -> None:
        """Count nothing."""

    def close(self) -> None:
        """Do nothing."""


class _Nowhere(Memory):
    def account(self, kind: str, label: str, where: str | None = None, *, of: Any = None) -> Account:
        return _NOBODY

    def observer(self, node: Node, stage: Stage) -> None:
        """Observe nothing."""


_NOBODY = _Uncounted()
UNCOUNTED: Memory = _Nowhere()


_MOST_ASKED = 4096


def elements_for(want: int, pulled: int, given: int) -> int:
    """Return the number of elements to request where several become one: `pulled` elements gave `given` results."""
    return max(1, min(want * (pulled + 8) // (given + 1), _MOST_ASKED))


# While a buffer fills, few elements are requested if each takes long: a run cannot be stopped within a Block, and
# progress is logged between Blocks only.

_LOG = logging.getLogger("penstock.physical")
_FIRST = 5.0  # seconds until the first log line, ...
_AGAIN = 20.0  # ... and between later lines
_SHORT, _LONG = 0.02, 0.1  # seconds per Block, below which more elements are requested, and above which fewer


class FillingLog:
    """Logs the progress of a filling step: after five seconds, then every twenty seconds, and when it is full.

    The first line of the program is a warning, on rank 0 only. All other lines have the level INFO.

    The first request is for `ask` elements, and no request is for more than `at_once`. `most` is the expected number of
    elements; it is negative if unknown.
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
        """Return the number of elements to request next."""
        return self._ask

    def at(self, count: int) -> None:
        """Record that `count` elements are stored. The last of them are those requested last."""
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
        text = "%s fills: %s elements after %.0f seconds; the first element comes when it is full"
        first = not FillingLog._warned and os.environ.get("RANK", "0") == "0"
        FillingLog._warned = True
        _LOG.log(logging.WARNING if first else logging.INFO, text, self._label, of, now - self._begun)

    def full(self, count: int) -> None:
        if self._said:
            seconds = self._clock() - self._begun
            _LOG.info("%s is full: %s elements after %.0f seconds", self._label, f"{count:,}", seconds)
            self._said = False


class Collector:
    """Takes positions like `Cursor.take`.

    Its account keeps the largest size so far, which the next fill needs again.
    """

    def __init__(self, cursor: Cursor, account: Account) -> None:
        self._cursor = cursor
        self._account = account
        self._most = 0
        self._late: Stretch | None = None  # a failure that came first

    def ready(self, ask: int) -> None:
        """Make elements available, if the next position is an element. A failure is stored until `take`."""
        if not self._cursor.available():
            try:
                self._cursor.fill(ask)
            except Exception as error:
                self._late = failure(error)

    def take(self, count: int, ask: int = 0) -> Stretch | None:
        """Return the next `count` positions, fewer only at the end, or None if there are none."""
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
