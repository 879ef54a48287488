"""Cached: passes elements on and keeps them, or serves what an earlier pass has kept."""

from __future__ import annotations

from penstock.block.block import Block
from penstock.block.footprint import Footprints
from penstock.cache.memory import MemoryStore
from penstock.physical.memory import UNCOUNTED, Memory
from penstock.physical.stage import Stage, State


class Cached(Stage):
    """The memory cache. A pass fills it if it began at the first element and came to the end."""

    def __init__(
        self, upstream: Stage, store: MemoryStore, label: str, where: str | None, *, memory: Memory = UNCOUNTED
    ) -> None:
        super().__init__(label, (upstream,), where)
        self._stored = memory.account("cache", label, where, of=store)  # by whichever pass
        self._account = memory.account("cache", label, where)  # by this one, until it is complete
        self._alive = Footprints()
        self._upstream = upstream
        self._store = store
        self._kept: tuple[Block, ...] | None = store.blocks()
        self._recording: list[Block] | None = [] if self._kept is None else None
        self._count = 0  # positions handed on, or passed over
        self._at = 0  # Block of the store, and element in it, that comes next
        self._offset = 0
        self._skip = 0

    def next(self, want: int) -> Block | None:
        while True:
            try:
                block = self._read(want) if self._kept is None else self._serve(want)
            except Exception:
                if not self._skip:
                    self._count += 1
                    raise
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
            self._stop_recording()  # a pass with a failure is not whole; the next one tries again
            raise
        if self._recording is not None:
            if block is None:
                self._store.commit(self._recording)
                self._recording = None
                self._account.close()
                self._count_stored()
            else:
                self._recording.append(block.freeze())
                self._alive.add_block(block)
                self._account.hold(self._alive.nbytes)
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

    def _stop_recording(self) -> None:
        self._recording = None
        self._alive = Footprints()
        self._account.close()

    def close(self) -> None:
        self._stop_recording()
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
