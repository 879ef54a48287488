"""WriteRole: whether a pass writes to its entry, waits for who does, or goes on without either."""

from __future__ import annotations

import logging
import math
from time import monotonic

from penstock.cache.entry.lease import Lease
from penstock.cache.entry.lock import Lock, Unlockable
from penstock.cache.entry.writer import EntryWriter
from penstock.errors import PenstockError
from penstock.physical.storage import Storage
from penstock.redacted import redacted

_LOG = logging.getLogger("penstock.physical")
_PAUSE = 0.05  # seconds between looks at what another process commits
_REMOTE_PAUSE = 1.0  # where a look is a request to a server
_PATIENCE = 10.0  # seconds without a commit, after which the other seems to stand still
_LOOK = 0.25  # seconds between looks of a pass that goes on by itself
_UNLOCKABLE: set[str] = set()  # folders of which that was said


class WriteRole:
    """The role of one pass that has given all that was committed: to write, to wait, or to go on alone.

    One that has begun by itself stays so, until the files have caught up with it: what comes from the input then
    belongs behind what others write.
    """

    def __init__(self, storage: Storage, label: str) -> None:
        self._storage = storage
        self._label = label
        self._pause = _REMOTE_PAUSE if storage.remote else _PAUSE
        self.begin()

    def begin(self) -> None:
        """The input goes on behind what is committed."""
        self._alone = False
        self._seen = -1
        self._since = self._looked = monotonic()

    def give_up(self) -> None:
        """Nothing is written from here on."""
        self._alone = True

    def moved(self, count: int) -> bool:
        """Whether the entry holds what comes behind `count` elements, and the pass may read it there."""
        if not self._storage.fixed:
            return False
        if self._alone:
            now = monotonic()
            if now < self._looked + (max(_LOOK, _REMOTE_PAUSE) if self._storage.remote else _LOOK):
                return False
            self._looked = now
        try:
            self._storage.refresh()
        except (PenstockError, OSError) as error:
            self._alone, self._looked = True, math.inf
            _LOG.warning("%s: this pass goes on without what is in %s: %s", *self._names(), error)
            return False
        entry = self._storage.entry
        return entry.elements > count or (entry.complete and entry.elements == count)

    def writer(self, count: int, skip: int) -> EntryWriter | None:
        """What writes what the input gives next, or None where nothing is to be written now.

        The pass has given `count` elements; the input is `skip` elements behind that, which it makes once more.

        The pass then waits (`waited`), or goes on by itself.
        """
        if self._alone:
            return None
        storage = self._storage
        if storage.writes_here():  # who is waited for might wait for us
            self._alone = True
            return None
        try:
            lock = storage.lock()
            return None if lock is None else self._written_by_this(lock, count, skip)
        except Unlockable as error:
            self._alone = True
            if storage.entry.folder not in _UNLOCKABLE:
                _UNLOCKABLE.add(storage.entry.folder)
                _LOG.warning("%s: nothing is written: files in %s cannot be locked: %s", *self._names(), error)
        except (PenstockError, OSError) as error:
            self._alone = True
            _LOG.warning("%s: nothing is written to %s in this pass, which goes on without: %s", *self._names(), error)
        return None

    def _written_by_this(self, lock: Lock | Lease, count: int, skip: int) -> EntryWriter | None:
        """The writer, which has the lock, or None where others were here before it was taken."""
        storage = self._storage
        try:
            storage.look()
            held = storage.entry.elements
            if not storage.entry.complete and held == count - skip:
                return storage.writer(lock)
        except BaseException:
            lock.release()
            raise
        lock.release()
        ends_in_what_is_skipped = count - skip < held <= count  # written by who left no state that this pass knows
        self._alone = not storage.fixed or held < count - skip or ends_in_what_is_skipped
        return None

    def _names(self) -> tuple[str, str]:
        return self._label, redacted(self._storage.entry.folder)

    def waited(self) -> bool:
        """Wait a moment for who writes; False if the pass is to go on by itself."""
        storage = self._storage
        if self._alone:
            return False
        if not storage.fixed:
            self._alone = True
            return False
        now = monotonic()
        if storage.entry.elements != self._seen:
            self._seen, self._since = storage.entry.elements, now
        elif not storage.waits and now > self._since + _PATIENCE + self._pause:
            self._alone = True
            return False
        storage.pause(self._pause)
        return True
