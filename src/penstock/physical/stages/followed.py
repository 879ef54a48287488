"""Followed: the elements of an entry that another pass is writing, as they are committed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic

from penstock.block.block import Block
from penstock.cache.entry.entry import Entry
from penstock.cache.entry.lease import writer_of
from penstock.io.storage import is_url
from penstock.physical.stage import Stage, State
from penstock.physical.stages.scan import Scan
from penstock.plan.snapshot_store import committed
from penstock.redacted import redacted

_LOG = logging.getLogger("penstock.physical")
_PAUSE = 0.05  # seconds between looks
_REMOTE_PAUSE = 1.0  # where a look is a request to a server
_PATIENCE = 10.0  # seconds without anything new, behind which it is said that nobody writes


class Followed(Stage):
    """Waits for elements that are not there yet, whoever writes them, and ends when the entry is complete."""

    def __init__(self, entry: Entry, pause: Callable[[float], None], label: str, where: str | None) -> None:
        super().__init__(label, (), where)
        self._entry = entry
        self._pause = pause
        self._files: Scan | None = None
        self._count = 0
        self._over = False
        self._told = False

    def next(self, want: int) -> Block | None:
        while self._files is not None or self._more():
            assert self._files is not None
            try:
                block = self._files.next(want)
            except Exception:
                self._count += 1
                raise
            if block is not None:
                self._count += block.size
                return block
            self._files = None
        return None

    def _more(self) -> bool:
        """Whether there are further elements; waits until that is known."""
        since = monotonic()
        while not self._over:
            self._over = True  # should the entry be unreadable
            self._entry.refresh()
            self._over = self._entry.complete and self._entry.elements <= self._count
            if self._entry.elements > self._count:
                source, at = committed(self._entry, self._count)
                self._files = Scan(source, self.label, self.where)
                self._files.restore(at)
                return True
            if not self._over:
                if monotonic() >= since + _PATIENCE:
                    self._tell()
                self._pause(_REMOTE_PAUSE if is_url(self._entry.folder) else _PAUSE)
        return False

    def _tell(self) -> None:
        """A line, once, where nobody writes to what is waited for: who did may be dead."""
        if not self._told and writer_of(self._entry.folder) is None:
            self._told = True
            _LOG.warning(
                "%s: it waits, and nobody seems to write to %s, which has %d elements and is not complete. It goes on "
                "when a pass of its pipeline does; load() without wait gives what is there.",
                self.label,
                redacted(self._entry.folder),
                self._entry.elements,
            )

    def state(self) -> State:
        return self._count

    def restore(self, state: State) -> None:
        self._count = state
