"""The records of TFRecord files by number, through an index made of their headers."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn
from penstock.block.origin import Origin
from penstock.block.spec import TensorSpec
from penstock.errors import DataLossError
from penstock.io import storage
from penstock.io.tfrecord.framing import FINE, HEADER, LENGTHS
from penstock.io.tfrecord.index import read_at
from penstock.io.tfrecord.reader import RecordReader
from penstock.io.tfrecord.walk import scan
from penstock.sources.row_files import RowFile, RowFilesSource

_STEP = 1 << 16  # records per call of the kernel


@dataclass(frozen=True)
class IndexedRecordsSource(RowFilesSource):
    """Records of uncompressed local TFRecord files; a file's index is made when the file is first opened."""

    kind: ClassVar[str] = "IndexedTFRecordDataset"

    @property
    def spec(self) -> Any:
        return TensorSpec((), bytes)

    def open_rows(self, name: str) -> RowFile:
        return RecordRows(name)


class RecordRows(RowFile):
    """One mapped file, and where its records begin. Records and damages have the numbers that a pass gives them.

    Raises the DataLossError of a file in which there is no record at all, only damage.
    """

    spec = TensorSpec((), bytes)

    def __init__(self, name: str, content: np.ndarray | None = None) -> None:
        self._name = name
        self._content = storage.bytes_of(name) if content is None else content
        self._damages: dict[int, DataLossError] = {}
        self._offsets = self._index()
        self.size = len(self._offsets)
        if self._damages and self.size == 1:
            raise copy.copy(self._damages[0])

    def _index(self) -> np.ndarray:
        content, at, found = self._content, 0, [np.empty(0, np.int64)]
        size = 0
        while at < len(content):
            starts, lengths = np.empty(_STEP, np.int64), np.empty(_STEP, np.int64)
            count, stopped, status = scan(content, at, np.iinfo(np.int64).max, LENGTHS, starts, lengths)
            found.append(starts[:count] - HEADER)
            size += count
            at = stopped
            if status != FINE:
                found.append(np.array([at]))
                self._damages[size], at = self._damage(at)
                size += 1
        return np.concatenate(found)

    def _damage(self, at: int) -> tuple[DataLossError, int]:
        """What a pass says about the damage at byte `at`, and where it goes on."""
        with RecordReader(self._name, offset=at) as reader:
            try:
                reader.read(1, 1)
            except DataLossError as error:
                return error.with_traceback(None), reader.tell()
        raise AssertionError

    def part(self, start: int, stop: int) -> Block:
        return self._read(self._offsets[start:stop], [row for row in self._damages if start <= row < stop])

    def rows_at(self, rows: np.ndarray) -> Block:
        return self._read(self._offsets[rows], [row for row in self._damages if (rows == row).any()])

    def _read(self, offsets: np.ndarray, damages: list[int]) -> Block:
        if damages:
            raise copy.copy(self._damages[damages[0]])
        chunk = read_at(self._name, offsets, buffer=self._content)
        column = BytesColumn((chunk.buffer,), chunk.starts, chunk.lengths)
        return Block.single(column, Origin.of_file(self._name, chunk.offsets))

    def close(self) -> None:
        """Blocks point into the map: it goes when nobody holds it."""
