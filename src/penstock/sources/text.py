"""The lines of text files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn
from penstock.block.origin import Origin
from penstock.block.spec import TensorSpec
from penstock.io.window import LineReader, RecordChunk, whole_lines
from penstock.sources.files import FileReader, Place, StringsSource


@dataclass(frozen=True)
class TextLineSource(StringsSource):
    """Byte strings without their line ends, each with its file and offset."""

    kind: ClassVar[str] = "TextLineDataset"

    @property
    def spec(self) -> Any:
        return TensorSpec((), bytes)

    def open_file(self, name: str, place: Place) -> FileReader:
        lines = LineReader(name, compression_type=self.compression_type, buffer_size=self.buffer_size, offset=place)
        return _TextFile(name, lines)

    @classmethod
    def whole(cls, contents: Sequence[bytes]) -> tuple[RecordChunk, np.ndarray] | None:
        return whole_lines(contents)


class _TextFile(FileReader):
    def __init__(self, name: str, lines: LineReader) -> None:
        self._name = name
        self._lines = lines

    def read(self, max_elements: int) -> Block | None:
        chunk = self._lines.read(max_elements)
        if chunk is None:
            return None
        column = BytesColumn((chunk.buffer,), chunk.starts, chunk.lengths)
        return Block.single(column, Origin.of_file(self._name, chunk.offsets))

    def place(self) -> Place:
        return self._lines.tell()

    @property
    def over(self) -> bool:
        return self._lines.over

    def close(self) -> None:
        self._lines.close()
