"""Storage: the entry of a step that keeps elements in files, and the ways in which its pass can go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.block.block import Block, concat_blocks
from penstock.cache.alike import Alike
from penstock.cache.entry import here
from penstock.cache.entry.entry import Entry, Point
from penstock.cache.entry.lock import Lock, take
from penstock.cache.entry.writer import EntryWriter
from penstock.physical.stage import Stage, State
from penstock.physical.stages.scan import Scan
from penstock.plan.node import Node
from penstock.plan.snapshot_store import SnapshotStore
from penstock.sources.saved import SavedSource


@dataclass(frozen=True)
class Storage:
    """What a Snapshot stage works with.

    `upstream` opens the input, `by_reader` what gives the elements of a complete entry, `pause` waits some seconds and
    raises if the run was closed meanwhile. `made_by` is the same for runs that understand each other's states.

    `sharded`: elements are in the files in another order than they came in. `reordered`: they are read in another
    order than they are in the files. `settled`: a pass gives the same elements as any other, in the same order.
    """

    node: Node
    store: SnapshotStore
    entry: Entry
    made_by: str
    upstream: Callable[[], Stage]
    by_reader: Callable[[SavedSource], Stage]
    pause: Callable[[float], None]
    sharded: bool
    reordered: bool
    settled: bool
    repairs: bool
    waits: bool

    @property
    def fixed(self) -> bool:
        """Whether the order in the files is that of every pass."""
        return self.settled and not self.sharded

    def refresh(self) -> None:
        """Look at the entry, once a pass of this process that has ended is done with it."""
        here.is_writing(self.entry.folder)
        self.entry.refresh()

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
        return here.goes_on_writing(self.entry.folder)

    def lock(self) -> Lock | None:
        """As `cache.entry.lock.take`."""
        self.store.prepare(self.entry.folder)
        return take(self.entry.folder)

    def writer(self, lock: Lock) -> EntryWriter:
        """What writes behind what is committed. Raises OSError."""
        committer, alike = self.store.committer(self.entry, lock, self.made_by)
        return EntryWriter(committer, alike, self.node.label)

    def state_of(self, stage: Stage) -> State:
        """The state of the input as it is now, which no later element changes."""
        return stage.state() if self.settled else _as_of_now(stage.state())

    def again(self, count: int) -> Block:
        """The elements from number `count` to the end of their chunk, made once more, and written if that can be."""
        number, begin = self.entry.chunk_at(count)
        stop = begin + self.entry.chunks[number].elements
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
        self.store.write_again(self.entry, self.made_by, number, kept)
        return concat_blocks([block for block, _ in kept]).slice(count - begin, stop - begin)


def _as_of_now(state: Any) -> Any:
    """A state in free order, which tells what was given since it was taken."""
    if isinstance(state, (list, tuple)):
        return [_as_of_now(part) for part in state]
    if isinstance(state, dict):
        return {name: _as_of_now(part) for name, part in state.items()}
    resolved = getattr(state, "resolved", None)
    return state if resolved is None else resolved()
