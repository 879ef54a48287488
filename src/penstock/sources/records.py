"""The records of TFRecord files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn
from penstock.block.origin import Origin
from penstock.block.spec import TensorSpec
from penstock.sources.files import FileReader, Place, StringsSource

if TYPE_CHECKING:
    from penstock.io.tfrecord.reader import RecordReader
    from penstock.io.window import RecordChunk

_CHUNK = 1 << 22  # bytes of records read at a time


@dataclass(frozen=True)
class RecordsSource(StringsSource):
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

    @classmethod
    def whole(cls, contents: Sequence[bytes]) -> tuple[RecordChunk, np.ndarray] | None:
        """One walk over all of them; at the end of each a record has to end."""
        from penstock.io.tfrecord.reader import whole_files

        return whole_files(np.frombuffer(b"".join(contents), np.uint8), [len(content) for content in contents])


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
