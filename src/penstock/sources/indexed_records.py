"""Records by number: TFRecord files with an index of their headers, and ArrayRecord files."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn
from penstock.block.origin import Origin
from penstock.block.spec import TensorSpec
from penstock.errors import DataLossError, InvalidArgumentError, optional_package
from penstock.forked import new_lock
from penstock.io import storage
from penstock.io.tfrecord.framing import FINE, HEADER, LENGTHS
from penstock.io.tfrecord.reader import RecordReader, read_at, scan
from penstock.sources.row_files import RowFile, RowFilesSource

_STEP = 1 << 16  # records per call of the kernel


@dataclass(frozen=True)
class IndexedRecordsSource(RowFilesSource):
    """Records of uncompressed local TFRecord files. A file is indexed when it is first opened."""

    kind: ClassVar[str] = "IndexedTFRecordDataset"
    spec: ClassVar[TensorSpec] = TensorSpec((), bytes)

    def open_rows(self, name: str) -> RowFile:
        return RecordRows(name)


class RecordRows(RowFile):
    """One mapped file, and the offsets of its records. Records and damaged places are numbered as in an iteration.

    Raises the DataLossError of a file that has no record at all.
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
        """Return the error of an iteration for the damage at byte `at`, and the byte at which it continues."""
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


_HINT = "Write or copy the file again."
_MOST = 4096  # records per call


@dataclass(frozen=True)
class ArrayRecordSource(RowFilesSource):
    """Records of local ArrayRecord files. The end of each file states their number."""

    kind: ClassVar[str] = "ArrayRecordDataset"
    spec: ClassVar[TensorSpec] = TensorSpec((), bytes)

    def open_rows(self, name: str) -> RowFile:
        return ArrayRecordRows(name)


class ArrayRecordRows(RowFile):
    """One file, read by the package array_record, which verifies the hash of the data."""

    spec = TensorSpec((), bytes)

    def __init__(self, name: str) -> None:
        reader = reader_class()
        if storage.is_url(name):
            message = f"Only local ArrayRecord files are read, got {name!r}."
            raise InvalidArgumentError(message, hint="Copy the file to a local disk first.")
        with storage.open_read(name):  # the package treats a missing file as an empty one
            pass
        self._name, self._lock = name, new_lock()
        try:
            self._reader = reader(name)
            whole = self._reader.ok()
            self.size = self._reader.num_records()
        except RuntimeError as error:
            raise _damaged(name, error) from error
        if not whole:
            raise _damaged(name, "its end is missing")

    def part(self, start: int, stop: int) -> Block:
        return self.rows_at(np.arange(start, min(stop, start + _MOST)))

    def rows_at(self, rows: np.ndarray) -> Block:
        try:
            with self._lock:
                records = self._reader.read(rows.tolist())
        except RuntimeError as error:
            raise _damaged(self._name, error) from error
        return Block.single(BytesColumn.from_values(records), Origin.of_file(self._name, np.asarray(rows, np.int64)))


def reader_class() -> Any:
    package = "array_record.python.array_record_module"
    return optional_package(package, "Reading ArrayRecord files", "array_record").ArrayRecordReader


def _damaged(name: str, error: object) -> DataLossError:
    what = str(error).partition("; Fai")[0].strip()
    message = f"The ArrayRecord file is damaged: {what}."
    return DataLossError(message, hint=_HINT, file=name)
