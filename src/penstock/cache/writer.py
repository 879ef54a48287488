"""SavedWriter: elements into the chunks of a saved data set, which is there when it is committed, and not before."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.spec import LeafSpec
from penstock.cache.alike import Alike, joined
from penstock.cache.side_by_side import SideBySide
from penstock.errors import PenstockError
from penstock.io.saved.chunk import Chunk
from penstock.io.saved.chunk_writer import ChunkWriter
from penstock.io.saved.manifest import Manifest, read_manifest, spec_as_json, write_manifest

_CHUNK = 1 << 25  # bytes of a shard that wait to become a file
_WAITING = 1 << 26  # bytes of all shards that wait
_BLOCK = 1 << 10  # bytes that a Block costs beside its elements


class SavedWriter:
    """Elements wait in memory, up to 64 MiB, until those of a shard are written as one file.

    The files are in a folder of their own, `run`, which nobody knows before `commit` has written the manifest.
    """

    def __init__(self, folder: str, *, plan: str, codec: str | None, spec: Any = None) -> None:
        self._folder = Path(folder)
        self._plan = plan
        self._writer = ChunkWriter(self._folder, codec)
        self._known = spec
        self._run = f"data-{token_hex(6)}"
        self._alike = Alike()
        self._waiting: dict[int, SideBySide] = {}
        self._bytes: dict[int, int] = {}
        self._total = 0  # of them
        self._numbers: dict[int, int] = {}  # of files written, per shard
        self._chunks: list[Chunk] = []
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
        (self._folder / self._run).mkdir(parents=True, exist_ok=True)
        number = self._numbers.get(shard, 0)
        self._numbers[shard] = number + 1
        name = f"{self._run}/shard_{shard:05d}_{number:05d}.arrow"
        self._chunks.append(self._writer.write(name, shard, block, specs))

    def commit(self) -> None:
        """Write what waits, then the manifest, in the place of a data set that was there."""
        for shard in sorted(self._waiting):
            self._write(shard)
        self._over = True
        self._folder.mkdir(parents=True, exist_ok=True)
        before = self._run_before()
        spec = self._alike.spec if self._known is None else self._known
        codec = self._writer.codec if self._chunks else None
        write_manifest(
            str(self._folder),
            Manifest(self._plan, self._run, codec, spec_as_json(spec), tuple(self._chunks)),
            replace=True,
        )
        if before is not None:
            self._remove(before)

    def _run_before(self) -> str | None:
        try:
            run = read_manifest(str(self._folder)).run
        except (PenstockError, OSError):
            return None  # none, or one whose files nobody can tell
        return run if run.startswith("data-") and os.sep not in run else None

    def discard(self) -> None:
        """Remove what was written, unless it was committed. Idempotent."""
        if not self._over:
            self._over = True
            self._waiting.clear()
            self._remove(self._run)

    def _remove(self, run: str) -> None:
        shutil.rmtree(self._folder / run, ignore_errors=True)


def by_shard(block: Block, shards: np.ndarray | None) -> list[tuple[int, Block]]:
    """The elements of each shard, whose numbers are given (0)."""
    if shards is None:
        return [(0, block)]
    found = []
    for shard in np.unique(shards).tolist():
        rows = np.flatnonzero(shards == shard)
        found.append((shard, block if len(rows) == block.size else block.take(rows)))
    return found


def waiting_of(shards: np.ndarray | None, first: Block, expected: int) -> SideBySide:
    """What elements of a shard wait in, the first of which are given; all shards get so many bytes."""
    return SideBySide(expected if shards is None else first.nbytes + 1)
