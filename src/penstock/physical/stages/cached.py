"""Cached: passes elements on and keeps them, or serves what an earlier pass has kept."""

from __future__ import annotations

import logging

from penstock.block.block import Block
from penstock.block.size_text import size_text
from penstock.cache.memory import MemoryStore
from penstock.cache.recorder import Recorder
from penstock.physical.fatal import failed
from penstock.physical.memory import UNCOUNTED, Memory
from penstock.physical.stage import Stage, State
from penstock.plan.node import UNKNOWN_CARDINALITY

_LOG = logging.getLogger("penstock.physical")


class Cached(Stage):
    """The memory cache. A pass fills it if it began at the first element and came to the end.

    `cardinality` is the number of its elements, where that is known: all of them then lie side by side.
    """

    def __init__(
        self,
        upstream: Stage,
        store: MemoryStore,
        label: str,
        where: str | None,
        *,
        memory: Memory = UNCOUNTED,
        cardinality: int = UNKNOWN_CARDINALITY,
    ) -> None:
        super().__init__(label, (upstream,), where)
        self._stored = memory.account("cache", label, where, of=store)  # by whichever pass
        self._account = memory.account("cache", label, where)  # by this one, until it is complete
        self._upstream = upstream
        self._store = store
        self._kept: tuple[Block, ...] | None = store.blocks()
        self._recording = Recorder(cardinality) if self._kept is None else None
        self._count = 0  # positions handed on, or passed over
        self._at = 0  # Block of the store, and element in it, that comes next
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
            dropped = min(self._skip, block.size)
            self._skip -= dropped
            if dropped < block.size:
                return block.slice(dropped, block.size)

    def _read(self, want: int) -> Block | None:
        try:
            block = self._upstream.next(want)
        except Exception:
            self._stop_recording("an element failed, and only a pass without a failure is kept")
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
        """Let go of what was kept so far; `why` is worth a word to whoever waits for the cache to fill."""
        recording, self._recording = self._recording, None
        self._account.close()
        if why and recording is not None and self._store.tell():
            where = "" if self.where is None else f" ({self.where})"
            _LOG.warning("%s%s kept nothing: %s; the next pass makes all elements again.", self.label, where, why)

    def close(self) -> None:
        made = 0 if self._recording is None else self._recording.elements
        self._stop_recording(f"the pass stopped after {made} elements, before its end" if made else "")
        super().close()

    def state(self) -> State:
        """The count, and the way to go on without a cache where there is one that is shorter than from the start."""
        return [self._count + self._skip, None if self._kept is not None or self._skip else self._upstream.state()]

    def restore(self, state: State) -> None:
        count, below = state
        if self._kept is None and below is not None and count:
            self._upstream.restore(below)
            self._stop_recording()  # it begins in the middle; a later pass will fill the cache
            self._count = count
        else:
            self._skip = count  # from the store, or from the start, filling the cache on the way
