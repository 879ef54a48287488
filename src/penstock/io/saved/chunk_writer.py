"""ChunkWriter: elements into the chunks of a saved data set, one behind the other."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from penstock.block.block import Block
from penstock.block.spec import LeafSpec
from penstock.cgroup import machine_left, memory_left
from penstock.io import storage
from penstock.io.saved.chunk import Chunk, checksums
from penstock.io.saved.direct_file import DirectFile, room
from penstock.io.saved.durable import whole_file, write_whole
from penstock.io.saved.encode import batch_rows, decided, encode
from penstock.io.saved.manifest import file_in

KEPT = 0.5  # of the memory that is free; the caches of files that nobody used lately count as free


class ChunkWriter:
    """Writes below a folder or a URL. `codec` is Arrow's name, None, or AUTO, which the first chunk decides upon."""

    def __init__(self, folder: str, codec: str | None) -> None:
        self._folder = folder
        self._kept = 0  # bytes that the system was told to keep in its cache of files
        self.codec = codec

    def write(self, file: str, shard: int, block: Block, specs: Sequence[LeafSpec]) -> Chunk:
        """Write elements, which are of `specs`, and bring them to the disk under their name.

        Raises InvalidTypeError for what cannot be stored, and OSError where the disk, or its owner, does not take it.
        """
        self.codec = decided(block, specs, self.codec)
        rows = batch_rows(block, specs, self.codec)
        name = file_in(self._folder, file)
        if storage.is_url(name):
            sent = io.BytesIO()
            encode(block, specs, self.codec, rows, sent)
            size, crcs = sent.tell(), tuple(checksums(sent.getbuffer()))
            write_whole(name, sent.getbuffer())
            return Chunk(file, shard, block.size, rows, size, crcs)
        with whole_file(Path(name)) as part, DirectFile(part, room()) as content:
            encode(block, specs, self.codec, rows, content)
            content.finish()
            self._keep(content)
        return Chunk(file, shard, block.size, rows, content.size, tuple(content.crcs))

    def _keep(self, content: DirectFile) -> None:
        """The next epoch reads what was written: it stays in memory, up to a share of what is free now.

        What is behind that goes past the memory: a large entry would push out its own beginning, and all else.
        """
        found = [amount for amount in (machine_left(), memory_left()) if amount is not None]
        if found and self._kept + content.size <= min(found) * KEPT:
            content.keep()
            self._kept += content.size
