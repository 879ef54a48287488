"""The records of TFRecord files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from penstock.block.spec import TensorSpec
from penstock.sources.files import FileReader, Place, StringsFile, StringsSource

if TYPE_CHECKING:
    from penstock.io.window import RecordChunk


@dataclass(frozen=True)
class RecordsSource(StringsSource):
    """Byte strings, each with its file and offset."""

    kind: ClassVar[str] = "TFRecordDataset"
    spec: ClassVar[TensorSpec] = TensorSpec((), bytes)
    index_hint: ClassVar[str] = "IndexedTFRecordDataset reads uncompressed TFRecord files by number."

    def open_file(self, name: str, place: Place) -> FileReader:
        from penstock.io.tfrecord.reader import RecordReader

        reader = RecordReader(name, compression_type=self.compression_type, buffer_size=self.buffer_size, offset=place)
        return StringsFile(name, reader)

    @classmethod
    def whole(cls, contents: Sequence[bytes]) -> tuple[RecordChunk, np.ndarray] | None:
        """Scan all files in one call. Each file must end with the end of a record."""
        from penstock.io.tfrecord.reader import whole_files

        return whole_files(np.frombuffer(b"".join(contents), np.uint8), [len(content) for content in contents])
