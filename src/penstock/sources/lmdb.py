"""The entries of LMDB databases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn
from penstock.block.origin import Origin
from penstock.block.spec import TensorSpec
from penstock.block.structure import flatten
from penstock.errors import InvalidArgumentError
from penstock.io import storage
from penstock.io.lmdb import Entry, LmdbFile
from penstock.sources.row_files import RowFile, RowFilesSource

_PAIR = (TensorSpec((), bytes), TensorSpec((), bytes))
_STRUCTURE = flatten((0, 0))[1]
_ENOUGH = 1 << 22  # bytes of one Block


@dataclass(frozen=True)
class LmdbSource(RowFilesSource):
    """Keys and values of local LMDB databases; how many there are, the heading of each says."""

    database: bytes | None = None

    kind: ClassVar[str] = "LmdbDataset"

    @property
    def spec(self) -> Any:
        return _PAIR

    def open_rows(self, name: str) -> RowFile:
        return LmdbRows(name, self.database)


class LmdbRows(RowFile):
    """One database, opened. A damaged entry fails alone; damage in the tree is one failure of the whole."""

    spec = _PAIR

    def __init__(self, name: str, database: bytes | None) -> None:
        if storage.is_url(name):
            message = f"Only local LMDB databases are read, got {name!r}."
            raise InvalidArgumentError(message, hint="Copy the file to a local disk first.")
        self._file = LmdbFile(name, database)
        self.size = self._file.size

    def part(self, start: int, stop: int) -> Block:
        return self._block(self._file.read(range(start, stop), _ENOUGH))

    def rows_at(self, rows: np.ndarray) -> Block:
        return self._block(self._file.read(rows.tolist()))

    def _block(self, entries: list[Entry]) -> Block:
        columns = [_column([entry.key for entry in entries]), _column([entry.value for entry in entries])]
        places = np.array([entry.offset for entry in entries], np.int64)
        return Block(_STRUCTURE, columns, len(entries), Origin.of_file(self._file.name, places))

    def close(self) -> None:
        """The file is closed when nobody holds it: another thread may be reading."""


def _column(values: list[bytes]) -> BytesColumn:
    lengths = np.array([len(value) for value in values], np.int64)
    return BytesColumn((np.frombuffer(b"".join(values), np.uint8),), np.cumsum(lengths) - lengths, lengths)
