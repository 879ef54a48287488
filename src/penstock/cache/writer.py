"""SavedWriter: elements into the chunks of a saved data set, which is there when it is committed, and not before."""

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
from penstock.cache.column_buffer import Alike, ColumnBuffer, joined
from penstock.cache.entry.lock import Lock, hold
from penstock.errors import PenstockError
from penstock.io import storage
from penstock.io.saved.chunk import Chunk
from penstock.io.saved.chunk_files import ChunkWriter
from penstock.io.saved.manifest import Manifest, file_in, read_manifest, spec_as_json, write_manifest

_CHUNK = 1 << 25  # bytes of a shard that wait to become a file
_WAITING = 1 << 26  # bytes of all shards that wait
_BLOCK = 1 << 10  # bytes that a Block costs beside its elements
Sources = tuple[tuple[str, int, int | str], ...]  # as in a Manifest
_RUN = re.compile(r"data-[0-9a-f]{12}")  # a folder of ours, and what is in it
_FILE = re.compile(r"shard_-?\d{4,}_\d{5,}\.arrow(\.\w+\.part)?")


class SavedWriter:
    """Elements wait in memory, up to 64 MiB, until those of a shard are written as one file.

    The files are in a folder of their own, `run`, which nobody knows before `commit` has written the manifest. It is
    locked until then: those of writers that were killed are not, and go with the next commit. Behind a URL nothing can
    be locked: what a killed writer left stays there.
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
        self._total = 0  # of them
        self._numbers: dict[int, int] = {}  # of files written, per shard
        self._chunks: list[Chunk] = []
        self._adopted: Any = None
        self._lock: Lock | None = None
        self._over = False

    def add(self, block: Block, shards: np.ndarray | None = None) -> None:
        """Keep the elements of a Block, in the shards with these numbers (shard 0).

        Raises InvalidTypeError for elements that cannot be stored, or are of another kind than those before, and
        OSError where the disk does not take them.
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
        """Make the folder of the run, for the first file: nobody sees it before it is locked."""
        if self._remote:
            return
        run = Path(self._folder, self._run)
        if not run.exists():
            unseen = run.with_name(f"{self._run}.part")
            unseen.mkdir(parents=True, exist_ok=True)
            with suppress(OSError):  # where nothing can be locked, nothing of others is removed
                self._lock = hold(str(unseen))
            unseen.replace(run)

    def run(self) -> str:
        """Make the folder that others write chunks into, and return its name below the data set's."""
        self._begin()
        return self._run

    def adopt(self, chunks: Sequence[Chunk], spec: Any) -> None:
        """Take chunks that others have written, behind all that there are, of elements that all satisfy this spec.

        Other files in the folder go with the commit.
        """
        self._adopted = spec
        self._chunks += chunks

    def _drop_strays(self) -> None:
        """Remove what workers have written that were killed before they could say so."""
        listed = {Path(chunk.file).name for chunk in self._chunks}
        run = file_in(self._folder, self._run)
        for name in storage.names_in(run):
            if name not in listed:
                storage.remove(file_in(run, name))

    def commit(self) -> None:
        """Write what waits, then the manifest, in the place of a data set that was there."""
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
        """The run that is there for everybody; None for none, or one whose files nobody can tell."""
        try:
            return read_manifest(self._folder).run
        except (PenstockError, OSError):
            return None

    def _runs(self) -> list[str]:
        """The other folders that were written by save, and by nothing else."""
        names = [name for name in _names(self._folder) if _RUN.fullmatch(name) and name != self._run]
        return [name for name in names if all(map(_FILE.fullmatch, _names(file_in(self._folder, name))))]

    def _remove_replaced(self, run: str, *, known: bool = False) -> None:
        """Remove a run, unless somebody writes to it or it is the data set; `known`: it was that before.

        Who finds it locked leaves it to who has the lock, who therefore looks once more behind letting go of it.
        """
        while self._committed() not in (None, run):
            try:
                lock = hold(file_in(self._folder, run))
            except OSError:  # it is gone, or nothing can be locked
                if known:
                    self._remove(run)
                return
            if lock is None:
                return
            try:
                if self._committed() not in (None, run):  # it may have become that before we had the lock
                    self._remove(run)
                    return
            finally:
                lock.release()

    def discard(self) -> None:
        """Remove what was written, unless it was committed. Idempotent."""
        self._waiting.clear()
        if not self._over:
            self._over = True
            if self._committed() != self._run:  # it may have been interrupted just behind that
                self._remove(self._run)
        if self._lock is not None:
            self._lock.release()
            self._remove_replaced(self._run)

    def _remove(self, run: str) -> None:
        """What cannot be removed stays: the data set that is there is right."""
        with suppress(PenstockError, OSError):
            storage.remove(file_in(self._folder, run))


def _names(folder: str) -> list[str]:
    try:
        return [path.name for path in Path(folder).iterdir()]
    except OSError:  # it is no folder, or somebody else has removed it
        return [""]


def by_shard(block: Block, shards: np.ndarray | None) -> list[tuple[int, Block]]:
    """The elements of each shard, whose numbers are given (0)."""
    if shards is None:
        return [(0, block)]
    found = []
    for shard in np.unique(shards).tolist():
        rows = np.flatnonzero(shards == shard)
        found.append((shard, block if len(rows) == block.size else block.take(rows)))
    return found


def waiting_of(shards: np.ndarray | None, first: Block, expected: int) -> ColumnBuffer:
    """What elements of a shard wait in, the first of which are given; all shards get so many bytes."""
    return ColumnBuffer(expected if shards is None else first.nbytes + 1)
