"""Access by index: saved elements, and the elements of a cache in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from penstock.block.block import Block
from penstock.errors import Context, FailedPreconditionError, annotate
from penstock.forked import new_lock
from penstock.physical.access import (
    Access,
    FunctionAccess,
    access,
    accessible,
    all_failed,
    by_part,
    obstacle,
    require_access,
    scattered,
)
from penstock.physical.lower import Lowering, lower
from penstock.physical.stages.located import drain, located
from penstock.physical.storage import Storage, settled
from penstock.physical.stretch import Stretch
from penstock.plan.counted import in_files
from penstock.plan.inputs import Scan
from penstock.plan.storing import Cache, DiskCache, Snapshot
from penstock.sources.arrow_pieces import RECENT, BlockPiece, Piece
from penstock.sources.row_files import gather
from penstock.store.memory import MemoryStore
from penstock.store.saved_source import SavedSource


class _MendingAccess(Access):
    """The elements of a complete cache.

    If a file cannot be read, its elements are computed again, one file at a time.
    """

    def __init__(self, node: Snapshot, saved: SavedSource, lowering: Lowering) -> None:
        self._node = node
        self._lowering = lowering
        self._lock = new_lock()
        self._begins = np.cumsum([0, *(chunk.elements for chunk in saved.manifest.chunks)])
        self._open: tuple[SavedSource | None, Access] = saved, _read(node, saved, lowering)

    @property
    def size(self) -> int:
        return self._open[1].size

    def rows(self, numbers: np.ndarray) -> Stretch:
        while True:
            saved, elements = self._open
            found = elements.rows(numbers)
            if not found.failures or saved is None:
                return found
            with self._lock:
                if self._renewed(saved):
                    continue
                return self._mended(numbers, found, saved)

    def _renewed(self, saved: SavedSource) -> bool:
        """Return True if the access was replaced: by repaired or rewritten files, or by the input."""
        node, lowering = self._node, self._lowering
        now = node.store.saved(node.store.folder(lowering.options.seed, lowering.options.deterministic))
        if now is saved or (now is None and obstacle(node.input) is not None):
            return False
        same = replace(lowering, epoch=0)
        self._open = now, access(node.input, same) if now is None else _read(node, now, lowering)
        return True

    def _mended(self, numbers: np.ndarray, found: Stretch, saved: SavedSource) -> Stretch:
        node, lowering = self._node, self._lowering
        # optimised as in an iteration, because the files contain states of the optimised plan
        below = lowering.optimise(node.input, lowering.options)
        storage = Storage(replace(node, input=below), lowering)
        storage.refresh()
        if storage.entry.run != saved.manifest.run:
            return found
        lost = np.array([at for at, _ in found.failures])
        left = np.delete(np.arange(len(numbers)), lost)
        chunks = np.searchsorted(self._begins, numbers[lost], side="right") - 1
        why = {chunk: error for chunk, (_, error) in zip(chunks.tolist(), found.failures, strict=True)}
        try:
            again = gather(chunks, numbers[lost], partial(self._of_chunk, storage, saved, why))
        except Exception as error:
            for _, failed in found.failures:
                failed.add_note(f"Computing its elements again failed, too: {error}")
            return found
        parts = [(lost, Stretch(again)), (left, Stretch(found.block))]
        return scattered([(where, stretch) for where, stretch in parts if len(where)])

    def _of_chunk(
        self, storage: Storage, saved: SavedSource, why: dict[int, Exception], number: int, numbers: np.ndarray
    ) -> Block:
        first = int(self._begins[number])

        def mended() -> list[Piece]:
            block = storage.again(number, why[number])
            return [BlockPiece(block, first, block.nbytes)]

        (piece,) = RECENT.get(self, number, mended)
        made = piece.rows_at(numbers)
        return located(made, saved, numbers) if self._lowering.provenance else made


def _read(node: Snapshot, saved: SavedSource, lowering: Lowering) -> Access:
    return access(Scan(source=saved, where=node.where), lowering)


def _filled(fill: Callable[[], Access]) -> Access:
    """Return the elements that a cache stores for a plan without index. `fill` runs an iteration to fill the cache."""
    lock, found = new_lock(), list[Access]()

    def kept() -> Access:
        with lock:
            if not found:
                found.append(fill())
            return found[0]

    return FunctionAccess(lambda: kept().size, lambda numbers: kept().rows(numbers))


def _fill_files(node: Snapshot, lowering: Lowering) -> Access:
    beside = lowering.beside()
    below = beside.optimise(node.input, beside.options)  # optimised as in an iteration, which may have begun to fill it
    stage = lower(replace(node, input=below), beside)
    try:
        first = drain(stage, node.label, node.cardinality)
    finally:
        stage.close()
    saved = node.store.saved(node.store.folder(beside.options.seed, beside.options.deterministic))
    if saved is not None:
        return _read(node, saved, lowering)
    if first is not None:
        raise first
    message = f"{node.label} could not be filled: another process writes it, or the disk has no room."
    raise FailedPreconditionError(message, hint="See the log for the reason.")


def _reordered(node: Snapshot) -> str | None:
    return None if node.faithful else "yields its elements in the order of its shards"


@accessible(Snapshot, unless=_reordered)
@accessible(DiskCache)
def _snapshot(node: Snapshot, lowering: Lowering) -> Access:
    """Return the elements in files, if an iteration has written them. Otherwise compute elements without writing."""
    options = lowering.options
    try:
        saved = node.store.saved(node.store.folder(options.seed, options.deterministic))
    except Exception as error:  # an error in the files of the folder
        annotate(error, Context(node.label, node.where))
        raise
    if saved is not None:
        mending = node.repairs and settled(node.input, lowering)
        return _MendingAccess(node, saved, lowering) if mending else _read(node, saved, lowering)
    if isinstance(node, DiskCache) and obstacle(node.input) is not None:
        return _filled(partial(_fill_files, node, lowering))
    found = in_files(node, options.seed, options.deterministic)
    require_access(
        found,
        f"Reading a {node.name} that is not complete",
        hint="Run a complete iteration first: then its elements have an index.",
    )
    return access(node.input, replace(lowering, epoch=0))


def _in_turn(pieces: Sequence[Block | Exception]) -> Access:
    """Return Blocks and errors, one after another."""
    begins = np.cumsum([0, *(piece.size if isinstance(piece, Block) else 1 for piece in pieces)])

    def rows(numbers: np.ndarray) -> Stretch:
        def rows_of(index: int, places: np.ndarray) -> Stretch:
            piece = pieces[index]
            if isinstance(piece, Block):
                return Stretch(piece.take(numbers[places] - begins[index]))
            return all_failed(piece, len(places))

        return by_part(np.searchsorted(begins, numbers, side="right") - 1, rows_of)

    return FunctionAccess(lambda: int(begins[-1]), rows)


def _fill_memory(node: Cache, lowering: Lowering) -> Access:
    """Return all positions of an iteration. If some failed, the cache stores nothing, so they are stored here."""
    blocks = node.store.blocks()
    if blocks is not None:
        return _in_turn(blocks)
    pieces: list[Block | Exception] = []
    stage = lower(node, lowering.beside())
    try:
        drain(stage, node.label, node.cardinality, pieces)
    finally:
        stage.close()
    return _in_turn(node.store.blocks() or pieces)


@accessible(Cache)
def _cache(node: Cache, lowering: Lowering) -> Access:
    """Return the elements of a cache after it is complete. Before, the elements are computed."""
    if obstacle(node.input) is not None:
        return _filled(partial(_fill_memory, node, lowering))
    elements, stored = access(node.input, replace(lowering, epoch=0)), list[Access]()

    def rows(numbers: np.ndarray) -> Stretch:
        blocks = node.store.blocks() if isinstance(node.store, MemoryStore) and not stored else None
        if blocks is not None and sum(block.size for block in blocks) == elements.size:
            stored.append(_in_turn(blocks))  # otherwise the fill had failures, which shifted the indices
        return stored[0].rows(numbers) if stored else elements.rows(numbers)

    return FunctionAccess(lambda: elements.size, rows)
