"""Storage: the entry of a step that keeps elements in files, and the ways in which its pass can go on."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import monotonic

from penstock.block.block import Block, concat_blocks
from penstock.block.leaf import NESTED
from penstock.cache.column_buffer import Alike
from penstock.cache.entry.entry import Entry, Point
from penstock.cache.entry.lock import Lease, Lock, Unlockable
from penstock.cache.entry.writer import EntryWriter, goes_on_writing, is_writing
from penstock.errors import PenstockError
from penstock.hints import redacted
from penstock.io.saved.manifest import library
from penstock.io.storage import is_url
from penstock.physical.lower import Lowering, lower
from penstock.physical.stage import Stage, State, as_of_now
from penstock.physical.stages.scan import Scan
from penstock.plan.fingerprint import fingerprint
from penstock.plan.node import Node
from penstock.plan.snapshot_store import SnapshotStore, without_hint
from penstock.plan.storing import Snapshot, read_by
from penstock.sources.saved import SavedSource

_LOG = logging.getLogger("penstock.physical")


@dataclass(frozen=True)
class Storage:
    """What a Snapshot stage works with.

    `upstream` opens the input, `by_reader` what gives the elements of a complete entry, `pause` waits some seconds and
    raises if the run was closed meanwhile. `made_by` is the same for runs that understand each other's states.

    `sharded`: elements are in the files in another order than they came in. `reordered`: they are read in another
    order than they are in the files. `settled`: a pass gives the same elements as any other, in the same order.
    """

    node: Snapshot
    store: SnapshotStore
    entry: Entry
    made_by: str
    upstream: Callable[[], Stage]
    by_reader: Callable[[SavedSource], Stage]
    pause: Callable[[float], None]
    sharded: bool
    reordered: bool
    settled: bool
    waits: bool

    @property
    def fixed(self) -> bool:
        """Whether the order in the files is that of every pass."""
        return self.settled and not self.sharded

    @property
    def mends(self) -> bool:
        """Whether elements whose file is damaged are made once more; in free order nobody knows which these were."""
        return self.node.repairs and self.fixed

    def refresh(self) -> None:
        """Look at the entry, once a pass of this process that has ended is done with it."""
        is_writing(self.entry.folder)
        self.look()

    def look(self) -> None:
        """Look at the entry as it is. Raises DataLossError and FailedPreconditionError as `SnapshotStore.refresh`."""
        self.store.refresh(self.entry)

    def readable(self) -> bool:
        """Whether a new pass may begin with what is committed: it must be able to go on behind it."""
        return self.settled or self.entry.complete or self.entry.goes_on(self.made_by)

    def files(self, count: int) -> Stage:
        """What is committed, in its order, from element number `count` on."""
        source, at = self.store.source(self.entry, count)
        stage = Scan(source, self.node.label, self.node.where)
        stage.restore(at)
        return stage

    def whole(self) -> Stage:
        """A complete entry, in the order in which it is to be read."""
        source = self.store.saved(self.entry.folder)
        assert source is not None
        return self.by_reader(source)

    def input_at(self, point: Point) -> Stage:
        """The input from there on."""
        stage = self.upstream()
        if point.state is not None:
            stage.restore(point.state)
        return stage

    def point(self, count: int) -> Point:
        """The last place in front of, or at, element number `count` from which the input can go on."""
        return self.entry.point(count, self.made_by)

    def writes_here(self) -> bool:
        """Whether another pass of this process is writing to the entry."""
        return goes_on_writing(self.entry.folder)

    def lock(self) -> Lock | Lease | None:
        """As `SnapshotStore.lock`."""
        self.store.prepare(self.entry.folder)
        return self.store.lock(self.entry.folder)

    @property
    def remote(self) -> bool:
        """Whether a look at the entry is a request to a server."""
        return is_url(self.entry.folder)

    def writer(self, lock: Lock | Lease) -> EntryWriter:
        """What writes behind what is committed. Raises OSError."""
        committer, alike = self.store.committer(self.entry, lock, self.made_by)
        return EntryWriter(committer, alike, self.node.label)

    def state_of(self, stage: Stage) -> State:
        """The state of the input as it is now, which no later element changes."""
        return as_of_now(stage.state())

    def again(self, number: int, why: Exception) -> Block:
        """The elements of a chunk, made once more, and written if that can be."""
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
            text = "%s: they could not be written, and the next pass will make them, too: %s"
            _LOG.warning(text, self.node.label, error)
        return concat_blocks([block for block, _ in kept])


def storage_of(node: Snapshot, lowering: Lowering) -> Storage:
    """The storage of a step, in the run that `lowering` describes."""
    assert node.store is not None
    options = lowering.options

    made_by = f"{library()} {fingerprint(node.input, options.seed, options.deterministic)}"
    if lowering.provenance:
        made_by += " numbered"  # sources that number their elements have states of their own

    def by_reader(source: SavedSource) -> Stage:
        if node.reader_func is None:
            return Scan(source, node.label, node.where)
        dataset = read_by(node.reader_func, source, lowering.dataset)
        return lower(lowering.optimise(getattr(dataset, NESTED), options), lowering)

    return Storage(
        node,
        node.store,
        Entry(node.store.folder(options.seed, options.deterministic)),
        made_by,
        # what is kept is one pass for all epochs, so it is the same pass whichever epoch happens to write it
        upstream=lambda: lower(node.input, replace(lowering, epoch=0)),
        by_reader=by_reader,
        pause=lowering.pause,
        sharded=node.shard_func is not None,
        reordered=not node.faithful,
        settled=settled(node.input, lowering),
        waits=options.second_writer == "wait",
    )


def settled(plan: Node, lowering: Lowering) -> bool:
    """Whether each pass gives the same elements in the same order."""
    return all(lowering.ordered(getattr(node, "deterministic", None)) for node in plan.walk())


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
