"""The rows of Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from penstock.block.block import Block
from penstock.sources.arrow_pieces import (
    RECENT,
    ArrowPiece,
    Columns,
    LostPiece,
    Piece,
    PieceRows,
    content_of,
    damaged,
    gather_pieces,
    reading,
)
from penstock.sources.row_files import RowFile, RowFilesSource

_PIECE = 1 << 23  # bytes of decoded rows at a time
_MOST_ROWS = 1 << 16


@dataclass(frozen=True)
class ParquetSource(RowFilesSource):
    """Rows of Parquet files as dicts. The footer of each file states the number of rows."""

    columns: Columns = field(default_factory=Columns)

    kind: ClassVar[str] = "ParquetDataset"
    chooses_columns: ClassVar[bool] = True
    costly_by_number: ClassVar[str | None] = "decodes a whole row group for one row"

    def open_rows(self, name: str) -> RowFile:
        return ParquetRows(name, self.columns)


def _sizes(meta: Any) -> list[int]:
    """Return the number of rows of each group. Raises ValueError if a footer contradicts itself."""
    groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
    sizes = [int(group.num_rows) for group in groups]
    if min(sizes, default=0) < 0 or sum(sizes) != meta.num_rows:
        message = f"its footer states {meta.num_rows} rows in all, and {sizes!s:.60} in its row groups"
        raise ValueError(message)
    return sizes


class ParquetRows(PieceRows):
    """One Parquet file.

    An iteration decodes some megabytes at a time. Access by number decodes whole row groups, and caches recent ones.
    """

    def __init__(self, name: str, columns: Columns) -> None:
        import pyarrow.parquet

        super().__init__(name, columns)
        self._stream: Iterator[Piece] = iter(())
        self._group = -1
        content = content_of(name)[1]
        try:
            with reading(name):
                self._file = pyarrow.parquet.ParquetFile(content, page_checksum_verification=True)
                self.spec = columns.spec(self._file.schema_arrow)
                sizes = _sizes(self._file.metadata)
        except BaseException:
            content.close()
            raise
        self._count(sizes)

    def _find(self, row: int) -> Piece:
        """Return the piece with a row: a later piece of the current group, or a piece read from the group's start."""
        group = int(np.searchsorted(self._starts, row, side="right")) - 1
        if group != self._group or (self._piece is not None and row < self._piece.first):
            self._group, self._stream = group, self._pieces(group)
        return next(piece for piece in self._stream if row < piece.stop)

    def _pieces(self, group: int) -> Iterator[Piece]:
        first, stop = int(self._starts[group]), int(self._starts[group + 1])
        size = max(self._file.metadata.row_group(group).total_byte_size // (stop - first), 1)
        names = None if self._columns.names is None else list(self._columns.names)
        try:
            count = min(max(_PIECE // size, 1), _MOST_ROWS)
            for batch in self._file.iter_batches(count, row_groups=[group], columns=names):
                if batch.num_rows > stop - first:
                    message = f"row group {group} holds more rows than its footer states"
                    raise ValueError(message)
                yield ArrowPiece(batch, first, self._columns, self._name)
                first += batch.num_rows
            if first < stop:
                message = f"row group {group} ends {stop - first} rows before its footer says"
                raise ValueError(message)
        except Exception as error:
            yield LostPiece(first, stop, damaged(self._name, error))

    def _of_group(self, group: int, rows: np.ndarray) -> Block:
        with self._lock:
            pieces = RECENT.get(self, group, lambda: list(self._pieces(group)))
        return gather_pieces(pieces, rows)

    def close(self) -> None:
        super().close()
        self._stream, self._group = iter(()), -1
        self._file.close()
