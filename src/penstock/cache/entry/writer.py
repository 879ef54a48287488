"""EntryWriter: the thread that writes what a pass makes into its entry, behind what is committed.

It knows which entries this process writes to at the moment, as their passes must not wait for each other.
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
from penstock.cache.column_buffer import Alike, ColumnBuffer, Kept
from penstock.cache.entry.committer import Committer
from penstock.cache.writer import by_shard, waiting_of
from penstock.forked import in_child
from penstock.hints import redacted
from penstock.io import storage

_BLOCK = 1 << 10  # bytes that a Block costs beside its elements


class CommitBuffer:
    """Elements by their shards, and the state of the input behind them. `nbytes` is what they cost.

    Some `expected` bytes will come.
    """

    def __init__(self, expected: int) -> None:
        self.nbytes = 0
        self.state: Any = None
        self._expected = expected
        self._shards: dict[int, ColumnBuffer] = {}

    def add(self, block: Block, specs: list[LeafSpec], shards: np.ndarray | None, state: Any) -> None:
        """The next elements, of these shards (0). If this is interrupted, what is here is of no use any more."""
        for shard, part in by_shard(block, shards):
            if shard not in self._shards:
                self._shards[shard] = waiting_of(shards, part, self._expected)
            self._shards[shard].add(part, specs)
        self.state = state
        self.nbytes += block.nbytes + _BLOCK

    def shards(self) -> dict[int, list[Kept]]:
        """The elements of each shard."""
        return {shard: waiting.kept() for shard, waiting in self._shards.items()}


_IDLE = 1.0  # seconds without a new element, after which a pass has been left standing
_EXIT_PATIENCE = 30.0  # seconds that interpreter exit waits for the disk


class Work(Protocol):
    """What a thread writes. `leaving`: it has been told to end; `over`: it has let go of the entry.

    `fed` is when it got its last element, on the clock of `time.monotonic`.
    """

    leaving: bool
    fed: float
    over: threading.Event

    def leave(self, *, complete: bool) -> None:
        """Commit and let go of the entry."""

    def forget(self) -> None:
        """In a forked child: there is no thread."""


_WORKS: dict[str, Work] = {}  # by folder


def _name(folder: str) -> str:
    return folder if storage.is_url(folder) else os.path.realpath(folder)


def begin(folder: str, work: Work) -> None:
    """An entry is written to from now on."""
    _prepare()
    _WORKS[_name(folder)] = work


def end(folder: str, work: Work) -> None:
    """It is not any more."""
    if _WORKS.get(_name(folder)) is work:
        del _WORKS[_name(folder)]


def is_writing(folder: str) -> bool:
    """Whether a pass of this process writes to an entry; returns when one that has ended has let go of it."""
    return _still(folder, idle=math.inf)


def goes_on_writing(folder: str) -> bool:
    """The same; a pass that has been left standing for a while is taken the entry from."""
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
    """At interpreter exit: what passes have made is committed."""
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
        begin(committer.folder, work)
        try:
            threading.Thread(target=work.run, name="penstock-entry", daemon=True).start()
        except RuntimeError as error:  # the system gives no more threads
            end(committer.folder, work)
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
                "%s: nothing more is written in this iteration: %s. "
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
