"""Cached: passes elements on and keeps them, or serves what an earlier pass has kept."""

from __future__ import annotations

from penstock.block.block import Block
from penstock.cache.memory import MemoryStore
from penstock.physical.stage import Stage, State


class Cached(Stage):
    """The memory cache. A pass fills it if it began at the first element and came to the end."""

    def __init__(self, upstream: Stage, store: MemoryStore, label: str, where: str | None) -> None:
        super().__init__(label, (upstream,), where)
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
            self._recording = None  # a pass with a failure is not whole; the next one tries again
            raise
        if self._recording is not None:
            if block is None:
                self._store.commit(self._recording)
                self._recording = None
            else:
                self._recording.append(block.freeze())
        return block

    def _serve(self, want: int) -> Block | None:
        assert self._kept is not None
        if self._at == len(self._kept):
            return None
        kept = self._kept[self._at]
        block = kept.slice(self._offset, self._offset + max(want, self._skip))
        self._offset += block.size
        if self._offset == kept.size:
            self._at, self._offset = self._at + 1, 0
        return block

    def state(self) -> State:
        """The count, and the way to go on without a cache where there is one that is shorter than from the start."""
        return [self._count + self._skip, None if self._kept is not None or self._skip else self._upstream.state()]

    def restore(self, state: State) -> None:
        count, below = state
        if self._kept is None and below is not None and count:
            self._upstream.restore(below)
            self._recording = None  # it begins in the middle; a later pass will fill the cache
            self._count = count
        else:
            self._skip = count  # from the store, or from the start, filling the cache on the way
