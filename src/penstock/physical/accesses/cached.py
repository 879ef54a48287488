"""By number: what a cache in memory keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from penstock.block.block import Block
from penstock.cache.memory import MemoryStore
from penstock.forked import new_lock
from penstock.physical.access import Access, access, accessible, obstacle, scattered
from penstock.physical.drain import drain
from penstock.physical.lower import Lowering, lower
from penstock.physical.stretch import Stretch
from penstock.plan.storing import Cache


class _Pieces:
    """Blocks and failures, one behind the other."""

    def __init__(self, pieces: Sequence[Block | Exception]) -> None:
        self._pieces = pieces
        self._begins = np.cumsum([0, *(piece.size if isinstance(piece, Block) else 1 for piece in pieces)])

    @property
    def size(self) -> int:
        return int(self._begins[-1])

    def rows(self, numbers: np.ndarray) -> Stretch:
        which = np.searchsorted(self._begins, numbers, side="right") - 1
        parts = []
        for index in np.unique(which).tolist():
            places = np.flatnonzero(which == index)
            piece = self._pieces[index]
            if isinstance(piece, Block):
                parts.append((places, Stretch(piece.take(numbers[places] - self._begins[index]))))
            else:
                parts.append((places, Stretch(None, tuple((i, piece) for i in range(len(places))))))
        return scattered(parts)


class _Kept(Access):
    """What a cache keeps, once it is complete; before that the elements are made."""

    def __init__(self, elements: Access, store: MemoryStore) -> None:
        self._elements = elements
        self._store = store
        self._pieces: _Pieces | None = None

    @property
    def size(self) -> int:
        return self._elements.size

    def rows(self, numbers: np.ndarray) -> Stretch:
        if self._pieces is None:
            self._look()
        return self._elements.rows(numbers) if self._pieces is None else self._pieces.rows(numbers)

    def _look(self) -> None:
        blocks = self._store.blocks() if isinstance(self._store, MemoryStore) else None
        if blocks is not None and sum(block.size for block in blocks) == self._elements.size:
            self._pieces = _Pieces(blocks)  # else failures, when it was filled, put elements under wrong numbers


class _Filled(Access):
    """What a cache keeps of elements that have no numbers of their own: those of one pass, which fills it."""

    def __init__(self, node: Cache, lowering: Lowering) -> None:
        self._node = node
        self._lowering = lowering
        self._lock = new_lock()
        self._found: _Pieces | None = None

    @property
    def size(self) -> int:
        return self._kept().size

    def rows(self, numbers: np.ndarray) -> Stretch:
        return self._kept().rows(numbers)

    def _kept(self) -> _Pieces:
        with self._lock:
            if self._found is None:
                blocks = self._node.store.blocks()
                self._found = _Pieces(self._fill() if blocks is None else blocks)
            return self._found

    def _fill(self) -> Sequence[Block | Exception]:
        """All positions of a pass. Of one with failures the cache keeps nothing; then they are kept here."""
        pieces: list[Block | Exception] = []
        stage = lower(self._node, self._lowering.beside())
        try:
            drain(stage, self._node.label, self._node.cardinality, pieces)
        finally:
            stage.close()
        return self._node.store.blocks() or pieces


@accessible(Cache)
def _cache(node: Cache, lowering: Lowering) -> Access:
    if obstacle(node.input) is not None:
        return _Filled(node, lowering)
    return _Kept(access(node.input, replace(lowering, epoch=0)), node.store)
