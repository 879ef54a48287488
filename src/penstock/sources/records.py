"""The records of TFRecord files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from penstock.block.block import Block, concat_blocks
from penstock.block.column import BytesColumn
from penstock.block.origin import Origin
from penstock.block.spec import TensorSpec
from penstock.io.storage import little_of
from penstock.sources.files import FileReader, FilesSource, Place

if TYPE_CHECKING:
    from penstock.io.tfrecord.reader import RecordReader

_OF_A_BUFFER = 1 << 16  # bytes
_CHUNK = 1 << 22  # bytes of records read at a time


@dataclass(frozen=True)
class RecordsSource(FilesSource):
    """Byte strings, each with its file and offset."""

    kind: ClassVar[str] = "TFRecordDataset"
    index_hint: ClassVar[str] = "IndexedTFRecordDataset reads uncompressed TFRecord files by number."

    @property
    def spec(self) -> Any:
        return TensorSpec((), bytes)

    def open_file(self, name: str, place: Place) -> FileReader:
        from penstock.io.tfrecord.reader import RecordReader

        reader = RecordReader(name, compression_type=self.compression_type, buffer_size=self.buffer_size, offset=place)
        return _RecordsFile(name, reader)

    def small(self) -> tuple[bytes, int] | None:
        if len(self.files) != 1 or self.compression_type:
            return None
        content = little_of(self.files[0])
        return None if content is None else (content, len(content))

    @classmethod
    def together(
        cls, sources: Sequence[RecordsSource], parts: Sequence[bytes]
    ) -> tuple[Block | None, list[int]] | None:
        """One walk over all of them; at the end of each a record has to end, or they are read one by one.

        A buffer has few of them: who keeps one record keeps all of it.
        """
        from penstock.io.tfrecord.reader import whole_files

        if len(parts) > 1 and sum(map(len, parts)) > _OF_A_BUFFER:
            middle = len(parts) // 2
            halves = [cls.together(sources[:middle], parts[:middle]), cls.together(sources[middle:], parts[middle:])]
            made = [half for half in halves if half is not None]
            blocks = [block for block, _ in made if block is not None]
            if len(made) < 2:
                return None
            return concat_blocks(blocks) if blocks else None, [count for _, counts in made for count in counts]
        buffer = np.frombuffer(b"".join(parts), np.uint8)
        found = whole_files(buffer, [len(part) for part in parts])
        if found is None:
            return None
        chunk, counts = found
        if not len(chunk):
            return None, counts.tolist()
        column = BytesColumn((chunk.buffer,), chunk.starts, chunk.lengths)
        names = tuple([source.files[0] for source in sources])
        origin = Origin(names, np.arange(len(parts)).repeat(counts), chunk.offsets)
        return Block.single(column, origin), counts.tolist()


class _RecordsFile(FileReader):
    def __init__(self, name: str, reader: RecordReader) -> None:
        self._name = name
        self._reader = reader

    def read(self, max_elements: int) -> Block | None:
        chunk = self._reader.read(max_elements, _CHUNK)
        if chunk is None:
            return None
        column = BytesColumn((chunk.buffer,), chunk.starts, chunk.lengths)
        return Block.single(column, Origin.of_file(self._name, chunk.offsets))

    def place(self) -> Place:
        return self._reader.tell()

    @property
    def over(self) -> bool:
        return self._reader.over

    def close(self) -> None:
        self._reader.close()
