"""`ScanStage` yields a source's elements. `FollowedStage` yields those of an entry that is still being written."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic

from penstock.block.block import Block
from penstock.errors import Context, raise_as_failure
from penstock.hints import redacted
from penstock.io.storage import is_url
from penstock.physical.stage import Stage, State
from penstock.plan.node import NamedStep
from penstock.sources.source import IndexedSource, Reader, Source
from penstock.store.entry import StoredEntry
from penstock.store.lock import writer_of
from penstock.store.snapshot_store import committed


class ScanStage(Stage):
    """Reads a source from its start or from a stored position. The source is opened for the first element."""

    def __init__(self, source: Source, step: NamedStep) -> None:
        super().__init__(step.label, (), step.where)
        self._source = source
        self._reader: Reader | None = None
        self._position: State = None
        self._unreadable = False  # True if opening failed: nothing follows that failure

    def next(self, want: int) -> Block | None:
        if self._unreadable:
            return None
        try:
            if self._reader is None:
                self._unreadable = True
                self._reader = self._source.open(self._position)
                self._unreadable = False
            return self._reader.read(want)
        except Exception as error:
            raise_as_failure(error, Context(stage=self.label, where=self.where))

    @property
    def at_end(self) -> bool:
        return self._reader is not None and self._reader.at_end

    def state(self) -> State:
        return self._position if self._reader is None else self._reader.position()

    def restore(self, state: State) -> None:
        self._position = state

    def can_skip(self) -> bool:
        source = self._source
        return isinstance(source, IndexedSource) and type(source).open is IndexedSource.open

    def skip(self, count: int) -> int:
        assert isinstance(self._source, IndexedSource)
        before = self._position or 0
        self._position = min(before + count, self._source.cardinality)
        return int(self._position) - before

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()


_LOG = logging.getLogger("penstock.physical")
_PAUSE = 0.05  # seconds between checks
_REMOTE_PAUSE = 1.0  # if a check is a request to a server
_PATIENCE = 10.0  # seconds without new elements, after which a missing writer is logged


class FollowedStage(Stage):
    """Waits for elements from any writer, and ends when the entry is complete."""

    def __init__(self, entry: StoredEntry, pause: Callable[[float], None], step: NamedStep) -> None:
        super().__init__(step.label, (), step.where)
        self._entry = entry
        self._pause = pause
        self._files: ScanStage | None = None
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
        """Return True if there are further elements; wait until this is known."""
        since = monotonic()
        while not self._over:
            self._over = True  # stays True if the entry is unreadable
            self._entry.refresh()
            self._over = self._entry.complete and self._entry.elements <= self._count
            if self._entry.elements > self._count:
                source, at = committed(self._entry, self._count)
                self._files = ScanStage(source, self)
                self._files.restore(at)
                return True
            if not self._over:
                if monotonic() >= since + _PATIENCE:
                    self._tell()
                self._pause(_REMOTE_PAUSE if is_url(self._entry.folder) else _PAUSE)
        return False

    def _tell(self) -> None:
        """Log once that no process writes the entry. The former writer may have died."""
        if not self._told and writer_of(self._entry.folder) is None:
            self._told = True
            _LOG.warning(
                "%s waits for elements, but no process writes to %s, which has %d elements and is not complete. It "
                "continues when an iteration of its pipeline does. load() without wait returns the existing elements.",
                self.label,
                redacted(self._entry.folder),
                self._entry.elements,
            )

    def state(self) -> State:
        return self._count

    def restore(self, state: State) -> None:
        self._count = state
