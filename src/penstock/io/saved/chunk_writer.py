"""ChunkWriter: elements into the chunks of a saved data set, one behind the other."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from penstock.block.block import Block
from penstock.block.spec import LeafSpec
from penstock.io import storage
from penstock.io.saved.chunk import Chunk, checksums
from penstock.io.saved.direct_file import DirectFile, room
from penstock.io.saved.durable import whole_file, write_whole
from penstock.io.saved.encode import batch_rows, decided, encode
from penstock.io.saved.manifest import file_in


class ChunkWriter:
    """Writes below a folder or a URL. `codec` is Arrow's name, None, or AUTO, which the first chunk decides upon."""

    def __init__(self, folder: str, codec: str | None) -> None:
        self._folder = folder
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
        return Chunk(file, shard, block.size, rows, content.size, tuple(content.crcs))
