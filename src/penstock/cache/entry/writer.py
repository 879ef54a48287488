"""EntryWriter: the thread that writes what a pass makes into its entry, behind what is committed there."""

from __future__ import annotations

import errno
import logging
import threading
import weakref
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.spec import LeafSpec
from penstock.cache.alike import Alike
from penstock.cache.entry import active_writers
from penstock.cache.entry.commit_buffer import CommitBuffer
from penstock.cache.entry.committer import Committer
from penstock.redacted import redacted

_LOG = logging.getLogger("penstock.cache")
_BYTES = 1 << 24  # that wait to become chunks
_SECONDS = 5.0  # that they wait at most
_QUEUE = 1 << 26  # bytes that the pass may be ahead of the disk

_Message = CommitBuffer | bool | None  # to commit; the end, and whether all elements are there; the first of some wait


class EntryWriter:
    """Elements go in by `add`, which joins them; a thread commits what is there, 16 MiB or 5 seconds at a time.

    When it cannot write any more (a full disk, a lost permission) it says so once, what is committed stays, and what is
    added from then on is dropped. It ends by `complete`, by `finish`, or when nobody holds it any more.
    """

    def __init__(self, committer: Committer, alike: Alike, label: str) -> None:
        self._alike = alike
        self._work = work = _Work(committer, label)
        active_writers.begin(committer.folder, work)
        try:
            threading.Thread(target=work.run, name="penstock-entry", daemon=True).start()
        except RuntimeError as error:  # the system gives no more threads
            active_writers.end(committer.folder, work)
            committer.close()
            raise OSError(errno.EAGAIN, str(error)) from error
        weakref.finalize(self, work.leave, complete=False).atexit = False

    @property
    def nbytes(self) -> int:
        """Bytes of the elements that wait."""
        return self._work.nbytes

    def add(self, block: Block, shards: np.ndarray | None, state: Any) -> None:
        """The next elements, of these shards (0), and the state of the input behind them.

        Waits while the disk is behind. Raises InvalidTypeError for elements that cannot be stored, or are of another
        kind than those before.
        """
        kept, specs = self._alike(block)
        self._work.put(kept, specs, shards, state)

    def finish(self) -> None:
        """Commit what was added, and let others write. Returns at once, and never takes a lock. Idempotent."""
        self._work.leave(complete=False)

    def complete(self) -> None:
        """Commit what was added as the last elements there are; returns when that is done, or has failed."""
        self._work.leave(complete=True)
        self._work.over.wait()


class _Work:
    """What the thread does. It does not hold the EntryWriter, so that one that is lost ends it."""

    def __init__(self, committer: Committer, label: str) -> None:
        self.messages: SimpleQueue[_Message] = SimpleQueue()
        self.over = threading.Event()
        self.leaving = False
        self.failed = False
        self.nbytes = 0
        self.fed = monotonic()
        self._committer = committer
        self._label = label
        self._changed = threading.Condition()
        self._gathered = CommitBuffer(_BYTES)

    def leave(self, *, complete: bool) -> None:
        self.leaving = True
        self.messages.put(complete)

    def forget(self) -> None:
        self._changed, self.over = threading.Condition(), threading.Event()
        self.leaving = self.failed = True
        self.over.set()

    def put(self, block: Block, specs: list[LeafSpec], shards: np.ndarray | None, state: Any) -> None:
        with self._changed:
            while self.nbytes > _QUEUE and not self.failed:
                self._changed.wait()
            if self.failed or self.leaving:
                return
            try:
                self._gather(block, specs, shards, state)
            except BaseException:  # an interrupt, too: nothing may be written behind a part of a Block
                self._gathered, self.failed = CommitBuffer(_BYTES), True
                raise

    def _gather(self, block: Block, specs: list[LeafSpec], shards: np.ndarray | None, state: Any) -> None:
        self.fed = monotonic()
        gathered, before = self._gathered, self._gathered.nbytes
        if not before:
            self.messages.put(None)
        gathered.add(block, specs, shards, state)
        self.nbytes += gathered.nbytes - before
        if gathered.nbytes >= _BYTES:
            self.messages.put(self._taken())

    def _taken(self) -> CommitBuffer:
        """What waits; what comes from now on is gathered anew. To be called with the lock."""
        taken, self._gathered = self._gathered, CommitBuffer(_BYTES)
        return taken

    def _drop(self) -> None:
        """What was added behind the end is written by nobody."""
        while not self.messages.empty():
            self.messages.get()
        with self._changed:
            self._gathered = CommitBuffer(_BYTES)
            self.nbytes = 0
            self._changed.notify_all()

    def run(self) -> None:
        try:
            self._serve()
        except Exception as error:
            self.failed = True
            _LOG.warning(
                "%s: nothing is written in the rest of this pass, which goes on without: %s. "
                "%d elements are kept in %s; the next pass goes on behind them.",
                self._label,
                error,
                self._committer.elements,
                redacted(self._committer.folder),
            )
        finally:
            try:
                self._committer.close()
            finally:
                self._drop()
                active_writers.end(self._committer.folder, self)
                self.over.set()

    def _serve(self) -> None:
        due: float | None = None
        while True:
            try:
                message = self.messages.get(timeout=None if due is None else max(due - monotonic(), 0))
            except Empty:
                with self._changed:
                    if not self.messages.empty():  # what was gathered before comes first
                        continue
                    message = self._taken()
            if message is None:
                due = monotonic() + _SECONDS
                continue
            if isinstance(message, CommitBuffer):
                self._commit(message)
                due = None
                continue
            with self._changed:
                rest = self._taken()
            if rest.nbytes:
                self._commit(rest)
            if message:
                self._committer.complete()
            return

    def _commit(self, gathered: CommitBuffer) -> None:
        self._committer.commit(gathered.shards(), gathered.state)
        with self._changed:
            self.nbytes -= gathered.nbytes
            self._changed.notify_all()
