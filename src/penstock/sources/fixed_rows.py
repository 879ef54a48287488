"""The records of files in which all records have one length, by number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from penstock.block.block import Block
from penstock.block.spec import TensorSpec
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
        self._content = storage.map_file(name)
        self.size = layout.records_in(name, len(self._content))

    def part(self, start: int, stop: int) -> Block:
        return self.rows_at(np.arange(start, stop))

    def rows_at(self, rows: np.ndarray) -> Block:
        starts = rows * self._layout.record_bytes + self._layout.header_bytes
        return self._layout.block(self._name, self._content, starts)

    def close(self) -> None:
        """Blocks point into the map: it goes when nobody holds it."""
