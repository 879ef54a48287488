"""Storage: the entry of a step that stores elements in files, and the ways in which its iteration can continue."""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from time import monotonic

from penstock.block.block import Block, concat_blocks
from penstock.block.leaf import NESTED
from penstock.errors import PenstockError
from penstock.hints import redacted
from penstock.io.storage import is_url
from penstock.physical.lower import Lowering, lower
from penstock.physical.stage import Stage
from penstock.physical.stages.scan import ScanStage
from penstock.plan.fingerprint import fingerprint
from penstock.plan.node import Node
from penstock.plan.storing import Snapshot, read_by
from penstock.store.column_buffer import Alike
from penstock.store.entry import Point, StoredEntry
from penstock.store.entry_writer import EntryWriter, goes_on_writing, is_writing
from penstock.store.lock import Lease, Lock, Unlockable
from penstock.store.manifest import library
from penstock.store.snapshot_store import SnapshotStore, without_hint

_LOG = logging.getLogger("penstock.physical")


class Storage:
    """The entry of a step that stores elements in files, in the run that `lowering` describes.

    `made_by` is equal for runs whose states are compatible. `settled`: all iterations yield the same elements in the
    same order.
    """

    def __init__(self, node: Snapshot, lowering: Lowering) -> None:
        options = lowering.options
        self.node = node
        self.store: SnapshotStore = node.store
        self.entry = StoredEntry(self.store.folder(options.seed, options.deterministic))
        self.made_by = f"{library()} {fingerprint(node.input, options.seed, options.deterministic)}"
        if lowering.provenance:
            self.made_by += " numbered"  # sources that number their elements have other states
        self.settled = settled(node.input, lowering)
        self.waits = options.second_writer == "wait"
        self.pause = lowering.pause  # waits some seconds, and raises an error if the run is closed
        self._lowering = lowering

    @property
    def fixed(self) -> bool:
        """True if the order in the files is that of every iteration."""
        return self.settled and self.node.shard_func is None

    @property
    def mends(self) -> bool:
        """True if elements in damaged files are computed again.

        In free order, it is unknown which elements these were.
        """
        return self.node.repairs and self.fixed

    def refresh(self) -> None:
        """Check the entry. If an iteration of this process that has ended is still writing it, wait for that."""
        is_writing(self.entry.folder)
        self.look()

    def look(self) -> None:
        """Check the entry. Raise DataLossError and FailedPreconditionError like `SnapshotStore.refresh`."""
        self.store.refresh(self.entry)

    def readable(self) -> bool:
        """Return True if a new iteration may begin with the committed elements.

        It must be able to continue after them.
        """
        return self.settled or self.entry.complete or self.entry.goes_on(self.made_by)

    def files(self, count: int) -> Stage:
        """Return a stage of the committed elements, in their order, from index `count` on."""
        source, at = self.store.source(self.entry, count)
        stage = ScanStage(source, self.node)
        stage.restore(at)
        return stage

    def whole(self) -> Stage:
        """Return a stage of a complete entry, in the order in which it is read."""
        source, node, lowering = self.store.saved(self.entry.folder), self.node, self._lowering
        assert source is not None
        if node.reader_func is None:
            return ScanStage(source, node)
        dataset = read_by(node.reader_func, source, lowering.dataset)
        return lower(lowering.optimise(getattr(dataset, NESTED), lowering.options), lowering)

    def upstream(self) -> Stage:
        """Return the input. A stored iteration serves all epochs, so it has the random numbers of epoch 0."""
        return lower(self.node.input, replace(self._lowering, epoch=0))

    def input_at(self, point: Point) -> Stage:
        """Return the input, restored to a point."""
        stage = self.upstream()
        if point.state is not None:
            stage.restore(point.state)
        return stage

    def point(self, count: int) -> Point:
        """Return the last point at or before element `count` from which the input can resume."""
        return self.entry.point(count, self.made_by)

    def lock(self) -> Lock | Lease | None:
        """Return the lock, like `SnapshotStore.lock`."""
        self.store.prepare(self.entry.folder)
        return self.store.lock(self.entry.folder)

    @property
    def remote(self) -> bool:
        """True if a check of the entry is a request to a server."""
        return is_url(self.entry.folder)

    def writer(self, lock: Lock | Lease) -> EntryWriter:
        """Return the writer that appends to the committed elements. Raise OSError on failure."""
        committer, alike = self.store.committer(self.entry, lock, self.made_by)
        return EntryWriter(committer, alike, self.node.label)

    def again(self, number: int, why: Exception) -> Block:
        """Compute the elements of a chunk again, and write them if possible."""
        text = "%s: elements are computed and written again, as their file cannot be read: %s"
        _LOG.warning(text, self.node.label, without_hint(why))
        *before, chunk = self.entry.chunks[: number + 1]
        begin = sum(other.elements for other in before)
        stop = begin + chunk.elements
        alike = Alike(self.entry.element_spec())
        point = self.point(begin)
        stage = self.input_at(point)
        kept = []
        try:
            at = point.elements
            while at < stop:
                block = stage.next(stop - at)
                assert block is not None, "the input has fewer elements than were written"
                if at + block.size > begin:
                    kept.append(alike(block.slice(max(begin - at, 0), stop - at).freeze()))
                at += block.size
        finally:
            stage.close()
        try:
            self.store.write_again(self.entry, self.made_by, number, kept)
        except OSError as error:
            text = "%s: the elements could not be written, so the next iteration computes them again: %s"
            _LOG.warning(text, self.node.label, error)
        return concat_blocks([block for block, _ in kept])


def settled(plan: Node, lowering: Lowering) -> bool:
    """Return True if all iterations yield the same elements in the same order."""
    return all(lowering.ordered(getattr(node, "deterministic", None)) for node in plan.walk())


_PAUSE = 0.05  # seconds between checks for commits of another process
_REMOTE_PAUSE = 1.0  # if a check is a request to a server
_PATIENCE = 10.0  # seconds without a commit, after which the other process seems to have stopped
_LOOK = 0.25  # seconds between checks of an iteration that computes elements itself
_UNLOCKABLE: set[str] = set()  # folders for which this was logged


class WriteRole:
    """The role of one iteration after all committed elements: write, wait, or compute elements without writing.

    An iteration that computes without writing keeps this role until the files have caught up with it. Its elements
    would follow those of other writers.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._pause = _REMOTE_PAUSE if storage.remote else _PAUSE
        self.begin()

    def begin(self) -> None:
        """Reset the role: the input continues after the committed elements."""
        self._alone = False
        self._seen = -1
        self._since = self._looked = monotonic()

    def give_up(self) -> None:
        """Write nothing from here on."""
        self._alone = True

    def moved(self, count: int) -> bool:
        """Return True if the entry contains elements after the first `count` ones that the iteration may read."""
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
            _LOG.warning("%s: this iteration continues without the files in %s: %s", *self._names(), error)
            return False
        entry = self._storage.entry
        return entry.elements > count or (entry.complete and entry.elements == count)

    def writer(self, count: int, skip: int) -> EntryWriter | None:
        """Return a writer for the next elements of the input, or None if nothing may be written now.

        The iteration has yielded `count` elements. The input is `skip` elements before that, and computes these
        elements again.

        Without a writer, the iteration then waits (`waited`) or continues without writing.
        """
        if self._alone:
            return None
        storage = self._storage
        if goes_on_writing(storage.entry.folder):  # the other iteration might wait for this one
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
            _LOG.warning("%s: in this iteration, nothing is written to %s: %s", *self._names(), error)
        return None

    def _written_by_this(self, lock: Lock | Lease, count: int, skip: int) -> EntryWriter | None:
        """Return the writer, which holds the lock, or None if another process wrote before the lock was taken."""
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
        # the other writer left no state that this iteration can use
        ends_in_what_is_skipped = count - skip < held <= count
        self._alone = not storage.fixed or held < count - skip or ends_in_what_is_skipped
        return None

    def _names(self) -> tuple[str, str]:
        return self._storage.node.label, redacted(self._storage.entry.folder)

    def waited(self) -> bool:
        """Wait a moment for the writer. Return False if the iteration continues without it."""
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
