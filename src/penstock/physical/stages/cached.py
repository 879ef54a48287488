"""Stages that store elements and read them in later iterations: in memory and in files."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import numpy as np

from penstock.block.block import Block
from penstock.errors import Context, DataLossError, FailedPreconditionError, InvalidTypeError, annotate
from penstock.hints import size_text
from penstock.physical.chained import LateState
from penstock.physical.key_function import KeyFunction
from penstock.physical.memory import UNCOUNTED, Memory
from penstock.physical.stage import Stage, State, StretchStage, as_of_now
from penstock.physical.storage import Storage, WriteRole
from penstock.physical.stretch import Stretch, failed, failure
from penstock.plan.node import UNKNOWN_CARDINALITY, NamedStep
from penstock.store.entry import Point
from penstock.store.entry_writer import EntryWriter
from penstock.store.memory import MemoryStore
from penstock.store.recorder import BlockRecorder
from penstock.store.snapshot_store import without_hint

_LOG = logging.getLogger("penstock.physical")


class CachedStage(Stage):
    """The memory cache. An iteration fills it if it began at the first element and reached the end.

    `cardinality` is the number of elements, if it is known: they are then stored contiguously. `settled` is True if
    each iteration computes the same elements in the same order.
    """

    def __init__(
        self,
        upstream: Stage,
        store: MemoryStore,
        step: NamedStep,
        *,
        memory: Memory = UNCOUNTED,
        cardinality: int = UNKNOWN_CARDINALITY,
        settled: bool = True,
    ) -> None:
        super().__init__(step.label, (upstream,), step.where)
        self._settled = settled
        # the same count as `_count`, for states that tell later whether elements were yielded from memory since
        self._given = [0]
        self._stored = memory.account("cache", step.label, step.where, of=store)  # bytes stored by any iteration
        self._account = memory.account("cache", step.label, step.where)  # bytes of this iteration until it is complete
        self._upstream = upstream
        self._store = store
        self._kept: tuple[Block, ...] | None = store.blocks()
        self._recording = BlockRecorder(cardinality) if self._kept is None else None
        self._count = 0  # positions returned or skipped
        self._at = 0  # index of the next Block in the store, and of the next element in it
        self._offset = 0
        self._skip = 0

    @property
    def at_hand(self) -> bool:
        return self._kept is not None

    @property
    def seen(self) -> bool:
        return self._kept is None and self._upstream.seen

    @property
    def seen_below(self) -> bool:
        return self._kept is None and self._upstream.seen_below

    def next(self, want: int) -> Block | None:
        while True:
            try:
                block = self._read(want) if self._kept is None else self._serve(want)
            except Exception as error:
                if not self._skip:
                    self._count += 1
                    raise
                failed(error)
                self._skip -= 1
                self._count += 1
                continue
            if block is None:
                return None
            self._count += block.size
            self._given[0] = self._count
            dropped = min(self._skip, block.size)
            self._skip -= dropped
            if dropped < block.size:
                return block.slice(dropped, block.size)

    def _read(self, want: int) -> Block | None:
        try:
            block = self._upstream.next(want)
        except Exception:
            self._stop_recording("an element failed, and only an iteration without failures is stored")
            raise
        recording = self._recording
        if recording is None:
            return block
        if block is None:
            self._store.commit(recording.finish(), recording.nbytes)
            self._recording = None
            self._account.close()
            self._count_stored()
            return None
        block = recording.add(block)
        most = self._store.most
        if most is None:
            self._account.hold(recording.nbytes, recording.full)
        elif recording.nbytes <= most:
            self._account.hold(recording.nbytes)
        else:
            self._store.overflowed = True
            self._stop_recording(f"its elements have more than {size_text(most)}")
        return block

    def _count_stored(self) -> None:
        self._stored.hold(self._store.nbytes)
        if self._stored.lasting:
            self._store.keep(self._stored)

    def _serve(self, want: int) -> Block | None:
        assert self._kept is not None
        if not self._count:
            self._count_stored()
        if self._at == len(self._kept):
            return None
        kept = self._kept[self._at]
        block = kept.slice(self._offset, self._offset + max(want, self._skip))
        self._offset += block.size
        if self._offset == kept.size:
            self._at, self._offset = self._at + 1, 0
        return block

    def _stop_recording(self, why: str = "") -> None:
        """Free the elements stored so far. `why` is logged for users who wait for the cache."""
        recording, self._recording = self._recording, None
        self._account.close()
        if why and recording is not None and self._store.tell():
            where = "" if self.where is None else f" ({self.where})"
            _LOG.info(
                "%s%s stores nothing: %s. The next iteration computes all elements again.", self.label, where, why
            )

    def close(self) -> None:
        made = 0 if self._recording is None else self._recording.elements
        self._stop_recording(f"the iteration stopped after {made} elements, before its end" if made else "")
        super().close()

    def state(self) -> State:
        """Return the count, and the state of the input if resuming there is shorter than from the start."""
        count = self._count + self._skip
        if self._kept is not None and not self._settled:
            return _FromMemory(count, self._given)
        return [count, None if self._kept is not None or self._skip else self._upstream.state()]

    def restore(self, state: State) -> None:
        count, below = state
        if self._kept is None and below is not None and count:
            self._upstream.restore(below)
            self._stop_recording()  # this iteration begins in the middle; a later one fills the cache
            self._count = count
        else:
            self._skip = count  # read from the store, or from the start while filling the cache
            if below is None and self._kept is None and not self._settled:
                where = "" if self.where is None else f" ({self.where})"
                _LOG.warning(_OTHER_ORDER, self.label, where)


class _FromMemory(LateState):
    """The state of an iteration from memory, in an order that cannot be repeated.

    It records whether elements were yielded.
    """

    __slots__ = ("_count", "_given")

    def __init__(self, count: int, given: list[int]) -> None:
        self._count = count
        self._given = given

    def __iter__(self) -> Iterator[State]:
        return iter([self._count, None])

    @property
    def has_grown(self) -> bool:
        return self._given[0] > self._count


_OTHER_ORDER = (
    "%s%s: its elements were in the memory of a process that has ended. In free order (deterministic=False), they are "
    "computed in another order now: in the resumed epoch, some elements are repeated and others are missing. Keep the "
    "order of the steps before the cache, or pass it a filename."
)
_SHARDS, _FILES, _INPUT, _END = "shards", "files", "input", "end"


class SnapshotStage(StretchStage):
    """Yields the committed elements, then the following elements of its input, and writes those if it can.

    A place tells where positions come from. ["shards", count, state of the reader, run]: a complete entry whose files
    are read in their own order. ["files", count, run]: files in the order of writing. ["input", count, state, skip]:
    the input in this state, after `skip` of its positions. A stage may continue from another place if all yield the
    same elements.
    """

    def __init__(self, storage: Storage, shard_func: KeyFunction | None, *, memory: Memory = UNCOUNTED) -> None:
        step = storage.node
        super().__init__(step.label, (), step.where)
        self._account = memory.account("at hand", step.label, step.where)
        self._storage = storage
        self._shard_func = shard_func
        self._role = WriteRole(storage)
        self._writer: EntryWriter | None = None
        self._stage: Stage | None = None
        self._from = _END
        self._run: str | None = None  # run of the entry whose files are read
        self._count = 0  # positions computed or skipped
        self._skip = 0  # positions of the input that are repeated
        storage.refresh()
        if storage.entry.complete and not storage.node.faithful:
            self._use(_SHARDS, storage.whole())
        elif storage.readable():
            self._decide()
        else:
            self._use(_INPUT, storage.upstream())
            self._role.give_up()

    def _use(self, kind: str, stage: Stage | None, skip: int = 0) -> None:
        if self._stage is not None:
            self._stage.close()
        self._from, self._stage, self._skip = kind, stage, skip
        self.inputs = () if stage is None else (stage,)
        self.look_again()

    def _decide(self) -> None:
        """Find the origin of the next position."""
        storage = self._storage
        storage.refresh()
        self._run = storage.entry.run
        if storage.entry.elements > self._count:
            self._use(_FILES, storage.files(self._count))
        elif storage.entry.complete:
            self._use(_END, None)
        else:
            point = storage.point(self._count)
            if not storage.settled and point.elements != self._count:
                message = "The files of this iteration are gone. In free order it is unknown which elements are left."
                raise FailedPreconditionError(message, hint="Start the iteration again.", file=storage.entry.folder)
            self._use(_INPUT, storage.input_at(point), self._count - point.elements)
            self._role.begin()

    def make(self, want: int) -> Stretch | None:
        if self._from == _INPUT and self._writer is None:
            self._take_role()
        if self._stage is None:
            return None
        try:
            block = self._stage.next(want + self._skip)
        except Exception as error:
            return self._failed(error)
        if block is None:
            return self._ended()
        if self._from != _INPUT:
            self._count += block.size
            return Stretch(block.freeze())
        return self._dropped(self._written(block))

    def _take_role(self) -> None:
        """Become the writer, wait for another writer, or do neither."""
        while self._from == _INPUT:
            if self._role.moved(self._count):
                self._decide()
                continue
            self._writer = self._role.writer(self._count, self._skip)
            if self._writer is not None or not self._role.waited():
                return

    def _ended(self) -> Stretch | None:
        """Handle the end of the files or of the input."""
        if self._from == _FILES:
            whole = self._storage.entry.complete and self._storage.entry.elements == self._count
            self._use(_END, None)  # it stays at the end, even if the entry is unreadable by now
            if not whole:
                self._decide()
            return Stretch(None)
        if self._writer is not None:
            self._writer.complete()
            self._stop_writing()
        if self._from == _INPUT:
            self._use(_END, None)
        return None

    def _failed(self, error: Exception) -> Stretch:
        if self._from == _INPUT:
            self._stop_writing()  # no file contains the failed element; the next iteration tries again
            self._role.give_up()
            return self._dropped(failure(error))
        if self._from == _FILES and isinstance(error, (DataLossError, OSError)):
            try:
                made = self._instead(error)
            except Exception as again:
                error.add_note(f"Computing its elements again failed, too: {again}")
            else:
                if made is not None:
                    return made
        self._count += 1
        return failure(error)

    def _instead(self, error: Exception) -> Stretch | None:
        """Return a replacement for an unreadable file: its positions, or an empty stretch after a change of origin."""
        storage, run = self._storage, self._run
        if storage.fixed:
            storage.refresh()
            if storage.entry.run != run:  # the entry was removed or rewritten while this iteration read it
                self._decide()
                return Stretch(None)
        if storage.mends:
            number, begin = storage.entry.chunk_at(self._count)
            block = storage.again(number, error)
            made = block.slice(self._count - begin, block.size)
            self._count += made.size
            self._use(_END, None)
            self._decide()
            return Stretch(made)
        point = storage.point(self._count)
        if not storage.node.repairs or point.elements != self._count:
            return None
        text = "%s: this iteration continues without the files after element %d, as the next cannot be read: %s"
        _LOG.warning(text, self.label, self._count, without_hint(error))
        self._use(_INPUT, storage.input_at(point))
        self._role.give_up()
        return Stretch(None)

    def _written(self, block: Block) -> Stretch:
        block.freeze()  # later iterations yield read-only arrays, so this one does, too
        at = self._count - self._skip
        shards, errors = (None, {}) if self._shard_func is None else self._shard_func(block, at)
        if errors:
            self._stop_writing()
            self._role.give_up()
            left = np.delete(np.arange(block.size), list(errors))
            return Stretch(block.take(left) if len(left) else None, tuple(sorted(errors.items(), key=lambda e: e[0])))
        if self._writer is not None:
            assert self._stage is not None
            try:
                self._writer.add(block, shards, as_of_now(self._stage.state()))
                self._account.hold(self._writer.nbytes)
            except InvalidTypeError as error:  # elements that files cannot store: the first one raises the error
                self._stop_writing()
                self._role.give_up()
                annotate(error, Context(self.label, self.where, at))
                return Stretch(block.slice(1, block.size) if block.size > 1 else None, ((0, error),))
        return Stretch(block)

    def _dropped(self, made: Stretch) -> Stretch:
        """Return the stretch without the repeated positions."""
        dropped = min(self._skip, made.size)
        self._skip -= dropped
        self._count += made.size - dropped
        return made.slice(dropped, made.size) if dropped else made

    def _stop_writing(self) -> None:
        self._account.hold(0)
        if self._writer is not None:
            self._writer.finish()
            self._writer = None

    def place(self) -> State:
        run = self._storage.entry.run
        if self._from == _SHARDS:
            assert self._stage is not None
            return [_SHARDS, self._count, self._stage.state(), run]
        if self._stage is None or self._from == _FILES:
            return [_FILES, self._count, run]
        return [_INPUT, self._count, self._stage.state(), self._skip]

    def go_to(self, place: State) -> None:
        kind, self._count, *more = place
        storage = self._storage
        storage.refresh()
        entry = storage.entry
        there = entry.run == more[-1] and entry.elements >= self._count
        if kind == _INPUT:
            state, skip = more
            if storage.fixed and entry.elements >= self._count:
                self._decide()
                return
            self._use(_INPUT, storage.input_at(Point(0, state)), skip)
            self._role.begin()
            if not storage.settled:
                self._role.give_up()
        elif kind == _SHARDS and there and entry.complete:
            whole = storage.whole()
            whole.restore(more[0])
            self._use(_SHARDS, whole)
        elif kind == _FILES and (there or storage.fixed or not self._count):
            self._decide()
        else:
            message = "The state belongs to an iteration over a snapshot that is not there."
            hint = f"{self.label} read {more[-1]!r} then; copy its folder here, or start the iteration again."
            raise FailedPreconditionError(message, hint=hint, context=Context(self.label, self.where))

    def close(self) -> None:
        self._stop_writing()
        self._account.close()
        super().close()
