"""The records of files in which all records have one length, by number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn
from penstock.block.origin import Origin
from penstock.block.spec import TensorSpec
from penstock.errors import DataLossError
from penstock.io import storage
from penstock.sources.fixed import FixedLayout
from penstock.sources.row_files import RowFile, RowFilesSource


@dataclass(frozen=True, kw_only=True)
class FixedLengthRowsSource(RowFilesSource):
    """The records of uncompressed local files, which are mapped: every one can be read on its own."""

    layout: FixedLayout

    kind: ClassVar[str] = "FixedLengthRecordDataset"

    @property
    def spec(self) -> TensorSpec:
        return TensorSpec((), bytes)

    def open_rows(self, name: str) -> RowFile:
        return _FixedLengthRows(name, self.layout)


class _FixedLengthRows(RowFile):
    spec = TensorSpec((), bytes)

    def __init__(self, name: str, layout: FixedLayout) -> None:
        self._name = name
        self._layout = layout
        self._content = storage.map_file_or_none(name)
        self.size = layout.records_in(name, storage.size(name) if self._content is None else len(self._content))

    def part(self, start: int, stop: int) -> Block:
        return self.rows_at(np.arange(start, stop))

    def rows_at(self, rows: np.ndarray) -> Block:
        starts = rows * self._layout.record_bytes + self._layout.header_bytes
        if self._content is None:
            return self._read(starts)
        return self._layout.block(self._name, self._content, starts)

    def _read(self, starts: np.ndarray) -> Block:
        """Read rows of a file that the system does not map: neighbours in one piece, others one by one."""
        size = self._layout.record_bytes
        first = np.flatnonzero(np.diff(starts, prepend=-1 - size) != size)
        parts: list[bytes] = []
        with storage.open_read(self._name) as file:
            for at, stop in zip(first.tolist(), [*first[1:].tolist(), len(starts)], strict=True):
                file.seek(int(starts[at]))
                parts.append(file.read((stop - at) * size))
        content = np.frombuffer(b"".join(parts), np.uint8)
        if len(content) < len(starts) * size:
            message = f"The file has become shorter than the {self.size} records that it had."
            raise DataLossError(message, hint="Files must not be written to while they are read.", file=self._name)
        column = BytesColumn((content,), np.arange(len(starts)) * size, np.full(len(starts), size, np.int64))
        return Block.single(column, Origin.of_file(self._name, starts))

    def close(self) -> None:
        """Blocks point into the map: it goes when nobody holds it."""
