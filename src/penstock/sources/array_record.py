"""The records of ArrayRecord files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn
from penstock.block.origin import Origin
from penstock.block.spec import TensorSpec
from penstock.errors import DataLossError, InvalidArgumentError, MissingDependencyError
from penstock.forked import new_lock
from penstock.io import storage
from penstock.sources.row_files import RowFile, RowFilesSource

_HINT = "Write or copy the file again."
_MOST = 4096  # records of one call


@dataclass(frozen=True)
class ArrayRecordSource(RowFilesSource):
    """Records of local ArrayRecord files; their number stands at the end of each file."""

    kind: ClassVar[str] = "ArrayRecordDataset"

    @property
    def spec(self) -> Any:
        return TensorSpec((), bytes)

    def open_rows(self, name: str) -> RowFile:
        return ArrayRecordRows(name)


class ArrayRecordRows(RowFile):
    """One file, read through the package array_record, which checks the hash of what it reads."""

    spec = TensorSpec((), bytes)

    def __init__(self, name: str) -> None:
        reader = reader_class()
        if storage.is_url(name):
            message = f"Only local ArrayRecord files are read, got {name!r}."
            raise InvalidArgumentError(message, hint="Copy the file to a local disk first.")
        with storage.open_read(name):  # the package takes a missing file for an empty one
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
        lengths = np.array([len(record) for record in records], np.int64)
        starts = np.cumsum(lengths) - lengths
        column = BytesColumn((np.frombuffer(b"".join(records), np.uint8),), starts, lengths)
        return Block.single(column, Origin.of_file(self._name, np.asarray(rows, np.int64)))

    def close(self) -> None:
        """The reader goes when nobody holds it."""


def reader_class() -> Any:
    try:
        from array_record.python.array_record_module import ArrayRecordReader
    except ImportError as error:
        message = "Reading ArrayRecord files needs the package array_record."
        raise MissingDependencyError(message, hint="pip install 'penstock[array_record]'") from error
    return ArrayRecordReader


def _damaged(name: str, error: object) -> DataLossError:
    what = str(error).partition("; Fai")[0].strip()
    message = f"The ArrayRecord file is damaged: {what}."
    return DataLossError(message, hint=_HINT, file=name)
