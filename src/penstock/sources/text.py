"""The lines of text files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from penstock.block.spec import TensorSpec
from penstock.io.window import LineReader, RecordChunk, whole_lines
from penstock.sources.files import FileReader, Place, StringsFile, StringsSource


@dataclass(frozen=True)
class TextLineSource(StringsSource):
    """Byte strings without their line ends, each with its file and offset."""

    kind: ClassVar[str] = "TextLineDataset"
    spec: ClassVar[TensorSpec] = TensorSpec((), bytes)

    def open_file(self, name: str, place: Place) -> FileReader:
        lines = LineReader(name, compression_type=self.compression_type, buffer_size=self.buffer_size, offset=place)
        return StringsFile(name, lines)

    @classmethod
    def whole(cls, contents: Sequence[bytes]) -> tuple[RecordChunk, np.ndarray] | None:
        return whole_lines(contents)
