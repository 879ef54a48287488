"""SavedWriter writes elements into the chunks of a saved data set. The data set exists from its commit on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.spec import LeafSpec
from penstock.errors import PenstockError
from penstock.io import storage
from penstock.store.chunk import Chunk
from penstock.store.chunk_files import ChunkWriter
from penstock.store.column_buffer import Alike, ColumnBuffer, joined
from penstock.store.lock import Lock, hold
from penstock.store.manifest import Manifest, file_in, read_manifest, spec_as_json, write_manifest

_CHUNK = 1 << 25  # bytes of one shard that wait for their file
_WAITING = 1 << 26  # bytes of all shards that wait
_BLOCK = 1 << 10  # bytes that a Block costs in addition to its elements
Sources = tuple[tuple[str, int, int | str], ...]  # see Manifest.sources
_RUN = re.compile(r"data-[0-9a-f]{12}")  # name of a folder that SavedWriter makes; _FILE is the pattern of its files
_FILE = re.compile(r"shard_-?\d{4,}_\d{5,}\.arrow(\.\w+\.part)?")


class SavedWriter:
    """Collects up to 64 MiB of elements in memory, and writes those of a shard as one file.

    The files are in a folder of their own, `run`. Readers ignore the folder until `commit` has written the manifest.
    The writer locks the folder until then. The folder of a killed writer has no lock, and the next commit removes it. A
    folder at a URL cannot be locked, so the files of a killed writer stay there.
    """

    def __init__(self, folder: str, *, plan: str, codec: str | None, spec: Any = None, sources: Sources = ()) -> None:
        self._folder = folder
        self._remote = storage.is_url(folder)
        self._plan = plan
        self._writer = ChunkWriter(folder, codec)
        self._known = spec
        self._sources = sources
        self._run = f"data-{token_hex(6)}"
        self._alike = Alike()
        self._waiting: dict[int, ColumnBuffer] = {}
        self._bytes: dict[int, int] = {}
        self._total = 0  # bytes of all waiting elements
        self._numbers: dict[int, int] = {}  # number of written files, per shard
        self._chunks: list[Chunk] = []
        self._adopted: Any = None
        self._lock: Lock | None = None
        self._over = False

    def add(self, block: Block, shards: np.ndarray | None = None) -> None:
        """Add the elements of a Block to the shards with these numbers. Default: shard 0.

        Raises:
            InvalidTypeError: If the elements cannot be stored, or differ in structure or rank from earlier elements.
            OSError: If the disk cannot store them.
        """
        block, specs = self._alike(block)
        for shard, part in by_shard(block, shards):
            if shard not in self._waiting:
                self._waiting[shard] = waiting_of(shards, part, _CHUNK)
            self._put(shard, part, specs)

    def _put(self, shard: int, block: Block, specs: list[LeafSpec]) -> None:
        self._waiting[shard].add(block, specs)
        cost = block.nbytes + _BLOCK
        self._bytes[shard] = self._bytes.get(shard, 0) + cost
        self._total += cost
        if self._bytes[shard] >= _CHUNK:
            self._write(shard)
        while self._total >= _WAITING:
            self._write(max(self._bytes, key=lambda one: self._bytes[one]))

    def _write(self, shard: int) -> None:
        waiting = self._waiting.pop(shard)
        self._total -= self._bytes.pop(shard)
        for block, specs in joined(waiting.kept()):
            self._write_chunk(shard, block, specs)

    def _write_chunk(self, shard: int, block: Block, specs: list[LeafSpec]) -> None:
        self._begin()
        number = self._numbers.get(shard, 0)
        self._numbers[shard] = number + 1
        name = f"{self._run}/shard_{shard:05d}_{number:05d}.arrow"
        self._chunks.append(self._writer.write(name, shard, block, specs))

    def _begin(self) -> None:
        """Make the folder of the run before the first file. The folder is locked before it gets its final name."""
        if self._remote:
            return
        run = Path(self._folder, self._run)
        if not run.exists():
            unseen = run.with_name(f"{self._run}.part")
            unseen.mkdir(parents=True, exist_ok=True)
            with suppress(OSError):  # on a file system without locks, no other run is removed
                self._lock = hold(str(unseen))
            unseen.replace(run)

    def run(self) -> str:
        """Make the folder into which other processes write chunks, and return its name relative to the data set."""
        self._begin()
        return self._run

    def adopt(self, chunks: Sequence[Chunk], spec: Any) -> None:
        """Append chunks that other processes have written. All their elements satisfy `spec`.

        The commit removes other files of the folder.
        """
        self._adopted = spec
        self._chunks += chunks

    def _drop_strays(self) -> None:
        """Remove the files of workers that were killed before they reported the files."""
        listed = {Path(chunk.file).name for chunk in self._chunks}
        run = file_in(self._folder, self._run)
        for name in storage.names_in(run):
            if name not in listed:
                storage.remove(file_in(run, name))

    def commit(self) -> None:
        """Write the waiting elements, then the manifest. It replaces an earlier data set in the folder."""
        if self._adopted is not None:
            self._drop_strays()
        for shard in sorted(self._waiting):
            self._write(shard)
        if not self._remote:
            Path(self._folder).mkdir(parents=True, exist_ok=True)
        before = self._committed()
        spec = self._alike.spec if self._adopted is None else self._adopted
        spec = spec if self._known is None else self._known
        codec = self._writer.codec if self._chunks else None
        write_manifest(
            self._folder,
            Manifest(self._plan, self._run, codec, spec_as_json(spec), tuple(self._chunks), self._sources),
            replace=True,
        )
        self._over = True
        if self._remote:
            if before is not None and before != self._run and _RUN.fullmatch(before):
                self._remove(before)
            return
        for run in self._runs():
            self._remove_replaced(run, known=run == before)

    def _committed(self) -> str | None:
        """Return the run of the present manifest, or None if there is no readable manifest."""
        try:
            return read_manifest(self._folder).run
        except (PenstockError, OSError):
            return None

    def _runs(self) -> list[str]:
        """Return the names of other folders that contain only files of a SavedWriter."""
        names = [name for name in _names(self._folder) if _RUN.fullmatch(name) and name != self._run]
        return [name for name in names if all(map(_FILE.fullmatch, _names(file_in(self._folder, name))))]

    def _remove_replaced(self, run: str, *, known: bool = False) -> None:
        """Remove a run, unless another process writes to it or the manifest names it.

        If the run is locked, the holder of the lock removes it: the holder checks the manifest again after the release.

        Args:
            run: Name of the folder of the run.
            known: If True, the manifest named this run before the commit.
        """
        while self._committed() not in (None, run):
            try:
                lock = hold(file_in(self._folder, run))
            except OSError:  # the folder is gone, or cannot be locked
                if known:
                    self._remove(run)
                return
            if lock is None:
                return
            try:
                if self._committed() not in (None, run):  # another writer may have committed the run before this lock
                    self._remove(run)
                    return
            finally:
                lock.release()

    def discard(self) -> None:
        """Remove the written files, unless they were committed. Idempotent."""
        self._waiting.clear()
        if not self._over:
            self._over = True
            if self._committed() != self._run:  # an interrupt may have come directly after the manifest was written
                self._remove(self._run)
        if self._lock is not None:
            self._lock.release()
            self._remove_replaced(self._run)

    def _remove(self, run: str) -> None:
        """Remove a run if possible. A run that stays does no harm: the manifest names another run."""
        with suppress(PenstockError, OSError):
            storage.remove(file_in(self._folder, run))


def _names(folder: str) -> list[str]:
    try:
        return [path.name for path in Path(folder).iterdir()]
    except OSError:  # the path is not a folder, or another process has removed it
        return [""]


def by_shard(block: Block, shards: np.ndarray | None) -> list[tuple[int, Block]]:
    """Return the elements of each shard. Default: all elements are in shard 0."""
    if shards is None:
        return [(0, block)]
    found = []
    for shard in np.unique(shards).tolist():
        rows = np.flatnonzero(shards == shard)
        found.append((shard, block if len(rows) == block.size else block.take(rows)))
    return found


def waiting_of(shards: np.ndarray | None, first: Block, expected: int) -> ColumnBuffer:
    """Return the buffer for the elements of a shard, of which `first` are the first.

    A single shard expects `expected` bytes. One of several shards grows from the size of its first elements.
    """
    return ColumnBuffer(expected if shards is None else first.nbytes + 1)
