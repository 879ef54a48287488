"""EntryWriter commits the elements of an iteration to its entry, in a thread.

The module also records the entries that this process writes to, so that its iterations do not wait for each other.
"""

from __future__ import annotations

import atexit
import errno
import logging
import math
import os
import threading
import weakref
from functools import cache
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Protocol

import numpy as np

from penstock.block.block import Block
from penstock.block.spec import LeafSpec
from penstock.forked import in_child
from penstock.hints import redacted
from penstock.io import storage
from penstock.store.column_buffer import Alike, ColumnBuffer, Kept
from penstock.store.committer import Committer
from penstock.store.saved_writer import by_shard, waiting_of

_BLOCK = 1 << 10  # bytes that a Block costs in addition to its elements


class CommitBuffer:
    """Collects elements by shard, with the state of the input after them, for one commit.

    `nbytes` is the memory that the elements use. `expected` is the number of bytes of a full buffer.
    """

    def __init__(self, expected: int) -> None:
        self.nbytes = 0
        self.state: Any = None
        self._expected = expected
        self._shards: dict[int, ColumnBuffer] = {}

    def add(self, block: Block, specs: list[LeafSpec], shards: np.ndarray | None, state: Any) -> None:
        """Add the next elements to these shards. Default: shard 0. After an interrupt, the buffer must be discarded."""
        for shard, part in by_shard(block, shards):
            if shard not in self._shards:
                self._shards[shard] = waiting_of(shards, part, self._expected)
            self._shards[shard].add(part, specs)
        self.state = state
        self.nbytes += block.nbytes + _BLOCK

    def shards(self) -> dict[int, list[Kept]]:
        """Return the elements of each shard."""
        return {shard: waiting.kept() for shard, waiting in self._shards.items()}


_IDLE = 1.0  # seconds without a new element, after which an iteration counts as abandoned
_EXIT_PATIENCE = 30.0  # seconds that interpreter exit waits for the disk


class WriterWork(Protocol):
    """The work of a thread that writes an entry.

    - `leaving`: True after the thread was asked to end.
    - `over`: Set after the thread has released the entry.
    - `fed`: Time of the last element, on the clock of `time.monotonic`.
    """

    leaving: bool
    fed: float
    over: threading.Event

    def leave(self, *, complete: bool) -> None:
        """Ask the thread to commit its elements and release the entry."""

    def forget(self) -> None:
        """Reset the object in a forked child, which has no such thread."""


_WORKS: dict[str, WriterWork] = {}  # by folder


def _name(folder: str) -> str:
    return folder if storage.is_url(folder) else os.path.realpath(folder)


def begin(folder: str, work: WriterWork) -> None:
    """Record that `work` writes to an entry."""
    _prepare()
    _WORKS[_name(folder)] = work


def end(folder: str, work: WriterWork) -> None:
    """Record that `work` no longer writes to an entry."""
    if _WORKS.get(_name(folder)) is work:
        del _WORKS[_name(folder)]


def is_writing(folder: str) -> bool:
    """Return True if an iteration of this process writes to an entry.

    If an iteration has ended, wait until its thread has released the entry.
    """
    return _still(folder, idle=math.inf)


def goes_on_writing(folder: str) -> bool:
    """Return True if an active iteration of this process writes to an entry.

    An iteration without a new element for a while loses the entry.
    """
    return _still(folder, idle=_IDLE)


def _still(folder: str, idle: float) -> bool:
    work = _WORKS.get(_name(folder))
    if work is None:
        return False
    if not work.leaving and monotonic() >= work.fed + idle:
        work.leave(complete=False)
    if work.leaving:
        work.over.wait()
    return not work.over.is_set()


@cache
def _prepare() -> None:
    atexit.register(_leave)
    in_child(_forget)


def _leave() -> None:
    """Commit the elements of all iterations at interpreter exit."""
    works = list(_WORKS.values())
    for work in works:
        if not work.leaving:
            work.leave(complete=False)
    for work in works:
        work.over.wait(_EXIT_PATIENCE)


def _forget() -> None:
    for work in _WORKS.values():
        work.forget()
    _WORKS.clear()


_LOG = logging.getLogger("penstock.store")
_BYTES = 1 << 24  # bytes that wait until they are committed as chunks
_SECONDS = 5.0  # longest wait of an element in seconds
_QUEUE = 1 << 26  # waiting bytes at which the iteration waits for the disk

# A CommitBuffer is committed. A bool ends the thread: True if all elements were added. None starts the wait of
# _SECONDS.
_Message = CommitBuffer | bool | None


class EntryWriter:
    """Joins elements, and commits them in a thread after 16 MiB or 5 seconds.

    If the thread cannot write any more (a full disk, a lost permission), it logs one warning. Committed elements stay,
    and later elements are dropped. The thread ends after `complete`, after `finish`, or when the EntryWriter is
    garbage-collected.
    """

    def __init__(self, committer: Committer, alike: Alike, label: str) -> None:
        self._alike = alike
        self._work = work = _Work(committer, label)
        begin(committer.folder, work)
        try:
            threading.Thread(target=work.run, name="penstock-entry", daemon=True).start()
        except RuntimeError as error:  # the system cannot start another thread
            end(committer.folder, work)
            committer.close()
            raise OSError(errno.EAGAIN, str(error)) from error
        weakref.finalize(self, work.leave, complete=False).atexit = False

    @property
    def nbytes(self) -> int:
        """Number of bytes of the elements that wait."""
        return self._work.nbytes

    def add(self, block: Block, shards: np.ndarray | None, state: Any) -> None:
        """Add the next elements to these shards, with the state of the input after them. Default: shard 0.

        The call waits if the disk is too slow.

        Raises:
            InvalidTypeError: If the elements cannot be stored, or differ in structure or rank from earlier elements.
        """
        kept, specs = self._alike(block)
        self._work.put(kept, specs, shards, state)

    def finish(self) -> None:
        """Commit the added elements, and release the entry. Returns at once, and never takes a lock. Idempotent."""
        self._work.leave(complete=False)

    def complete(self) -> None:
        """Commit the added elements, and mark the entry as complete. Returns after the commit, or after its failure."""
        self._work.leave(complete=True)
        self._work.over.wait()


class _Work:
    """The work of the thread. It has no reference to the EntryWriter, so that garbage collection can end the thread."""

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
            except BaseException:  # Also after an interrupt: an incomplete Block must not be followed by others.
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
        """Return the buffer of waiting elements, and begin a new one. The caller holds the lock."""
        taken, self._gathered = self._gathered, CommitBuffer(_BYTES)
        return taken

    def _drop(self) -> None:
        """Drop elements that were added after the end."""
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
                "%s: nothing is written in the rest of this iteration: %s. "
                "%d elements are kept in %s; the next iteration continues after them.",
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
                end(self._committer.folder, self)
                self.over.set()

    def _serve(self) -> None:
        due: float | None = None
        while True:
            try:
                message = self.messages.get(timeout=None if due is None else max(due - monotonic(), 0))
            except Empty:
                with self._changed:
                    if not self.messages.empty():  # a full buffer was queued earlier, and must be committed first
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
