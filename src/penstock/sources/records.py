"""The records of TFRecord files, one file after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.block.block import Block
from penstock.block.column import BytesColumn
from penstock.block.origin import Origin
from penstock.block.spec import TensorSpec
from penstock.io.tfrecord.reader import RecordReader
from penstock.sources.source import Reader, Source

_CHUNK = 1 << 22  # bytes of records read at a time


@dataclass(frozen=True)
class RecordsSource(Source):
    """Byte strings, each with its file and offset. A position is (number of the file, byte offset in it)."""

    files: tuple[str, ...]
    compression_type: str | None = None
    buffer_size: int | None = None

    @property
    def label(self) -> str:
        named = self.files[0] if len(self.files) == 1 else f"{len(self.files)} files"
        return f"TFRecordDataset({named})"

    @property
    def spec(self) -> Any:
        return TensorSpec((), bytes)

    @property
    def cardinality(self) -> int:
        return -2 if self.files else 0

    def open(self, position: Any = None) -> Reader:
        file, offset = position or (0, 0)
        return _Reader(self, file, offset)


class _Reader(Reader):
    def __init__(self, source: RecordsSource, file: int, offset: int) -> None:
        self._source = source
        self._file = file
        self._offset = offset
        self._open: RecordReader | None = None

    def read(self, max_elements: int) -> Block | None:
        source = self._source
        while self._file < len(source.files):
            name = source.files[self._file]
            if self._open is None:
                self._open = RecordReader(
                    name,
                    compression_type=source.compression_type,
                    buffer_size=source.buffer_size,
                    offset=self._offset,
                )
            chunk = self._open.read(max_elements, _CHUNK)
            if chunk is not None:
                column = BytesColumn((chunk.buffer,), chunk.starts, chunk.lengths)
                return Block.single(column, Origin.of_file(name, chunk.offsets))
            self.close()
            self._file, self._offset = self._file + 1, 0
        return None

    def position(self) -> list[int]:
        offset = self._offset if self._open is None else self._open.tell()
        return [self._file, offset]

    def close(self) -> None:
        if self._open is not None:
            self._offset = self._open.tell()
            self._open.close()
            self._open = None
