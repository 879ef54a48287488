"""Storage: the entry of a step that keeps elements in files, and the ways in which its pass can go on."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from penstock.block.block import Block, concat_blocks
from penstock.block.leaf import NESTED
from penstock.cache.alike import Alike
from penstock.cache.entry import active_writers
from penstock.cache.entry.entry import Entry, Point
from penstock.cache.entry.lease import Lease
from penstock.cache.entry.lock import Lock
from penstock.cache.entry.writer import EntryWriter
from penstock.io.saved.manifest import library
from penstock.io.storage import is_url
from penstock.physical.lower import Lowering, lower
from penstock.physical.stage import Stage, State, as_of_now
from penstock.physical.stages.scan import Scan
from penstock.plan.fingerprint import fingerprint
from penstock.plan.node import Node
from penstock.plan.shards import read_by
from penstock.plan.snapshot_store import SnapshotStore, without_hint
from penstock.plan.storing import Snapshot
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
        active_writers.is_writing(self.entry.folder)
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
        return active_writers.goes_on_writing(self.entry.folder)

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
        text = "%s: elements are made and written once more, as their file cannot be read: %s"
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
