"""SavedSource: the elements of a saved data set, by number. Local files are mapped."""

from __future__ import annotations

import copy
import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from penstock.block.block import Block, concat_blocks
from penstock.block.structure import flatten
from penstock.errors import NotFoundError
from penstock.forked import new_lock, new_rlock
from penstock.io.storage import is_url
from penstock.sources.arrow_pieces import RECENT, BlockPiece, Piece
from penstock.sources.row_files import gather
from penstock.sources.source import IndexedSource
from penstock.store.chunk import Chunk
from penstock.store.chunk_files import ChunkFile, read_soon
from penstock.store.folder import last_name
from penstock.store.manifest import Manifest, file_in

if TYPE_CHECKING:
    from penstock.io.remote.system import DaemonPool


class RoundRobin:
    """The order of elements that takes one element of each shard in turn.

    >>> shard, row = RoundRobin([3, 1]).places(np.arange(4))
    >>> shard.tolist(), row.tolist()
    ([0, 1, 0, 0], [0, 0, 1, 2])
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        ends = sorted({size for size in sizes if size})
        self._active = [np.array([i for i, size in enumerate(sizes) if size >= end]) for end in ends]
        self._rounds = np.array([0, *ends[:-1]], np.int64)  # from this round on, only the active shards have elements
        lengths = [(end - first) * len(s) for end, first, s in zip(ends, self._rounds, self._active, strict=False)]
        self._begins = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)

    def places(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (shard, number in it) of the elements with these numbers."""
        shards, rows = np.empty_like(numbers), np.empty_like(numbers)
        stretch = np.searchsorted(self._begins, numbers, side="right") - 1
        for i in np.unique(stretch).tolist():
            found = np.flatnonzero(stretch == i)
            turn, place = np.divmod(numbers[found] - self._begins[i], len(self._active[i]))
            shards[found] = self._active[i][place]
            rows[found] = self._rounds[i] + turn
        return shards, rows


_MOST_OPEN = 1024  # files that are mapped at a time
_AHEAD = 2  # files
_LARGE = 1 << 20  # bytes; a larger record batch is returned alone instead of copied together with its neighbours


@cache
def _looking() -> DaemonPool:
    """Return a thread that verifies files ahead of time."""
    from penstock.io.remote.system import DaemonPool

    return DaemonPool(1, "penstock-saved")


@dataclass(frozen=True)
class SavedSource(IndexedSource):
    """The elements of some shards, one of each shard in turn. Each shard keeps the order in which it was written."""

    holds_spec: ClassVar[bool] = True
    folder: str
    manifest: Manifest
    element_spec: Any
    shards: tuple[int, ...]

    @classmethod
    def whole(cls, folder: str, manifest: Manifest, element_spec: Any = None) -> SavedSource:
        spec = manifest.element_spec() if element_spec is None else element_spec
        return cls(folder, manifest, spec, manifest.shards)

    @property
    def label(self) -> str:
        part = "" if len(self.shards) == len(self.manifest.shards) else f", shard {self.shards[0]}"
        return f"load({last_name(self.folder)}{part})"

    @property
    def spec(self) -> Any:
        return self.element_spec

    @property
    def cardinality(self) -> int:
        return self._table.size

    @cached_property
    def _table(self) -> _ChunkTable:
        return _ChunkTable(self.folder, self.manifest, self.shards, self.element_spec)

    def rows(self, start: int, stop: int) -> Block:
        return self._table.rows(start, stop)

    def rows_at(self, indices: np.ndarray) -> Block:
        return self._table.rows_at(indices)

    def seam(self, start: int, stop: int) -> int:
        return self._table.seam(start, stop)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out open files."""
        return {part.name: getattr(self, part.name) for part in fields(self)}


class _ChunkTable:
    """The chunks of the shards, concatenated. Positions count over all chunks. Thread-safe."""

    def __init__(self, folder: str, manifest: Manifest, shards: tuple[int, ...], spec: Any) -> None:
        self._folder = folder
        self._structure = flatten(spec)[1] if manifest.chunks else None
        of_shard: dict[int, list[Chunk]] = {shard: [] for shard in shards}
        for chunk in manifest.chunks:
            if chunk.shard in of_shard:
                of_shard[chunk.shard].append(chunk)
        self._chunks = [chunk for shard in shards for chunk in of_shard[shard]]
        sizes = [sum(chunk.elements for chunk in of_shard[shard]) for shard in shards]
        self.size = sum(sizes)
        self._turns = RoundRobin(sizes) if len(shards) > 1 else None
        self._shard_begins = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
        counts = [chunk.elements for chunk in self._chunks]
        self._begins = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)
        self._lock = new_rlock()
        self._open: OrderedDict[int, ChunkFile] = OrderedDict()
        self._opening: dict[int, threading.Lock] = {}
        self._looked_at: set[int] = set()  # files that are verified ahead of time, finished or not
        self._verified: set[int] = set()
        self._failed: dict[int, Exception] = {}
        self._last: tuple[int, Piece] | None = None

    def rows(self, start: int, stop: int) -> Block:
        if self._turns is not None:
            return self.rows_at(np.arange(start, stop))
        parts = []
        while start < stop:
            piece = self._piece_with(start)
            end = min(stop, piece.stop)
            parts.append(piece.rows(start, end))
            start = end
        return concat_blocks(parts).freeze()  # read-only, like the content of a mapped file

    def seam(self, start: int, stop: int) -> int:
        """Return the end of a large record batch, or the start of one after small batches."""
        if self._turns is not None:
            return stop
        end, number = start, int(np.searchsorted(self._begins, start, side="right")) - 1
        while end < stop:
            chunk, begin = self._chunks[number], int(self._begins[number])
            if chunk.rows < chunk.elements or chunk.bytes >= _LARGE:  # batches inside a chunk have a MiB or more
                if end > start:
                    return end
                batch = (start - begin) // chunk.rows
                return min(begin + min((batch + 1) * chunk.rows, chunk.elements), stop)
            end, number = begin + chunk.elements, number + 1
        return stop

    def _piece_with(self, place: int) -> Piece:
        last = self._last
        if last is not None and last[1].first <= place < last[1].stop:
            return last[1]
        number = int(np.searchsorted(self._begins, place, side="right")) - 1
        if last is None or last[0] != number:
            self._look_ahead(number, in_order=last is not None and last[0] + 1 == number)
        piece = self._batch(number, (place - int(self._begins[number])) // self._chunks[number].rows)
        self._last = number, piece
        return piece

    def _look_ahead(self, number: int, *, in_order: bool) -> None:
        """Have the next files verified while the elements of this file are returned.

        Verifying the checksums of a file takes about as long as copying its elements. An ordered iteration over large
        files leaves this work to a thread. An error of a file is raised when its elements are requested.
        """
        following = range(number + 1, min(number + 1 + _AHEAD, len(self._chunks)))
        ahead = [other for other in following if other not in self._verified and other not in self._looked_at]
        if in_order and not is_url(self._folder) and all(self._chunks[other].bytes >= _LARGE for other in ahead):
            with suppress(RuntimeError):  # the system has no more threads
                for other in ahead:
                    _looking().submit(partial(self._batch, other, 0))
                    self._looked_at.add(other)
        elif ahead:
            read_soon(self._name(ahead[0]))

    def rows_at(self, numbers: np.ndarray) -> Block:
        places = numbers
        if self._turns is not None:
            shards, rows = self._turns.places(numbers)
            places = self._shard_begins[shards] + rows
        return gather(np.searchsorted(self._begins, places, side="right") - 1, places, self._of_chunk)

    def _of_chunk(self, number: int, places: np.ndarray) -> Block:
        batches = (places - self._begins[number]) // self._chunks[number].rows
        return gather(batches, places, lambda batch, found: self._batch(number, batch).rows_at(found))

    def _batch(self, number: int, batch: int) -> Piece:
        (piece,) = RECENT.get(self, number << 32 | batch, lambda: [self._load(number, batch)])
        return piece

    def _load(self, number: int, batch: int) -> Piece:
        assert self._structure is not None
        file = self._file(number)
        block = file.block(batch, self._structure)
        first = int(self._begins[number]) + batch * self._chunks[number].rows
        return BlockPiece(block, first, file.holds(block) + (1 << 10))

    def _file(self, number: int) -> ChunkFile:
        file = self._known(number)
        if file is not None:
            return file
        with self._lock:
            opening = self._opening.setdefault(number, new_lock())
        with opening:  # one thread verifies the file; other threads wait only for this file
            file = self._known(number)
            if file is not None:
                return file
            try:
                file = self._opened(number)
            except MemoryError:  # more memory may be free next time
                raise
            except Exception as error:
                self._failed[number] = error.with_traceback(None)
                raise copy.copy(error) from None
            with self._lock:
                self._opening.pop(number, None)
                self._open[number] = file
                if len(self._open) > _MOST_OPEN:
                    self._open.popitem(last=False)  # Blocks that point into the file keep it mapped
            return file

    def _known(self, number: int) -> ChunkFile | None:
        """Return an open file, or None. Raises the error of a file that failed verification."""
        with self._lock:
            if number in self._failed:
                raise copy.copy(self._failed[number])
            file = self._open.get(number)
            if file is not None:
                self._open.move_to_end(number)
            return file

    def _opened(self, number: int) -> ChunkFile:
        name = self._name(number)
        try:
            file = ChunkFile(name, self._chunks[number], verified=number in self._verified)
        except NotFoundError:
            message = "A file of the saved data set is missing."
            hint = "It was removed, or save() has put another data set there since this one was loaded: load it again."
            raise NotFoundError(message, hint=hint, file=name) from None
        self._verified.add(number)
        return file

    def _name(self, number: int) -> str:
        return file_in(self._folder, self._chunks[number].file)
