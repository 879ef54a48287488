"""SavedWriter: elements into the chunks of a saved data set, which is there when it is committed, and not before."""

from __future__ import annotations

import functools
import os
import shutil
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np

from penstock.block.block import Block, concat_blocks
from penstock.block.spec import LeafSpec
from penstock.block.structure import Structure, flatten
from penstock.errors import InvalidTypeError, PenstockError
from penstock.io.saved.chunks import encode_chunk
from penstock.io.saved.durable import write_whole
from penstock.io.saved.manifest import Chunk, Manifest, read_manifest, spec_as_json, write_manifest

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
        self._codec = codec
        self._known = spec
        self._run = f"data-{token_hex(6)}"
        self._structure: Structure | None = None
        self._specs: list[LeafSpec] = []
        self._waiting: dict[int, list[tuple[Block, list[LeafSpec]]]] = {}
        self._bytes: dict[int, int] = {}
        self._total = 0  # of them
        self._numbers: dict[int, int] = {}  # of files written, per shard
        self._chunks: list[Chunk] = []
        self._over = False

    @property
    def nbytes(self) -> int:
        """Bytes of the elements that wait."""
        return self._total

    def add(self, block: Block, shards: np.ndarray | None = None) -> None:
        """Keep the elements of a Block, in the shards with these numbers (shard 0).

        Raises InvalidTypeError for elements that cannot be stored, or are of another kind than those before, and
        OSError where the disk does not take them.
        """
        block, specs = self._alike(block)
        if shards is None:
            self._put(0, block, specs)
            return
        for shard in np.unique(shards).tolist():
            rows = np.flatnonzero(shards == shard)
            self._put(shard, block if len(rows) == block.size else block.take(rows), specs)

    def _alike(self, block: Block) -> tuple[Block, list[LeafSpec]]:
        """The Block with dict keys in the order of the first, and its specs."""
        columns = list(block.columns)
        specs = [column.spec() for column in columns]
        if self._structure is None:
            from penstock.block.arrow import schema_of

            schema_of(block.structure, specs)  # what cannot be stored says so before the first file is written
            self._structure, self._specs = block.structure, specs
        elif block.structure != self._structure:
            order = self._structure.flatten(block.structure.build(list(range(len(block.columns)))))
            columns, specs = [columns[i] for i in order], [specs[i] for i in order]
        self._specs = _relaxed(self._specs, specs)
        return Block(self._structure, columns, block.size), specs  # no file holds their origin

    def _put(self, shard: int, block: Block, specs: list[LeafSpec]) -> None:
        self._waiting.setdefault(shard, []).append((block, specs))
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
        alike = next((i for i, (_, specs) in enumerate(waiting) if specs != waiting[0][1]), len(waiting))
        # a last batch that is smaller shall not make lists of all the others
        parts = [waiting[:alike], waiting[alike:]] if 2 * alike >= len(waiting) else [waiting]
        for part in parts:
            if part:
                specs = functools.reduce(_relaxed, [specs for _, specs in part])
                self._write_chunk(shard, concat_blocks([block for block, _ in part]), specs)

    def _write_chunk(self, shard: int, block: Block, specs: list[LeafSpec]) -> None:
        import crc32c

        content, rows, self._codec = encode_chunk(block, specs, self._codec)
        folder = self._folder / self._run
        folder.mkdir(parents=True, exist_ok=True)
        number = self._numbers.get(shard, 0)
        self._numbers[shard] = number + 1
        name = f"shard_{shard:05d}_{number:05d}.arrow"
        write_whole(folder / name, content)
        check = crc32c.crc32c(content)
        self._chunks.append(Chunk(f"{self._run}/{name}", shard, block.size, rows, len(content), check))

    def commit(self, *, replace: bool) -> bool:
        """Write what waits, then the manifest. With `replace` a data set that was there goes, else it stays."""
        for shard in sorted(self._waiting):
            self._write(shard)
        self._over = True
        self._folder.mkdir(parents=True, exist_ok=True)
        before = self._run_before() if replace else None
        spec = self._known
        if spec is None and self._structure is not None:
            spec = self._structure.build(self._specs)
        codec = self._codec if self._chunks else None
        manifest = Manifest(self._plan, self._run, codec, spec_as_json(spec), tuple(self._chunks))
        if not write_manifest(str(self._folder), manifest, replace=replace):
            self._remove(self._run)
            return False
        if before is not None:
            self._remove(before)
        return True

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


def _relaxed(before: list[LeafSpec], now: list[LeafSpec]) -> list[LeafSpec]:
    """The specs that both satisfy."""
    found = []
    for one, other in zip(before, now, strict=True):
        both = one.relax(other)
        if both is None:
            message = f"All elements of a saved data set have one spec: before it was {one}, now it is {other}."
            raise InvalidTypeError(message, hint="np.float32(value) converts.")
        found.append(both)
    return found


def stored_as(spec: Any) -> Any:
    """A nest of specs, if its elements can be stored; raises InvalidTypeError otherwise."""
    from penstock.block.arrow import schema_of

    leaves, structure = flatten(spec)
    schema_of(structure, leaves)
    return spec
