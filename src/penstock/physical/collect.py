"""Collect: positions that wait until there are enough of them, while the budget knows what they hold."""

from __future__ import annotations

from penstock.physical.memory import Account
from penstock.physical.stage import Cursor
from penstock.physical.stretch import Stretch, failure, join


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
