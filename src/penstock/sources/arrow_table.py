"""The rows of an Arrow table that is in memory, or mapped into it: what pandas, polars and Hugging Face hand over."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np

from penstock.block.arrow import from_arrow
from penstock.block.block import Block, concat_blocks
from penstock.forked import new_lock
from penstock.sources.arrow_pieces import Columns
from penstock.sources.indexed import IndexedSource
from penstock.sources.row_files import gather

_PIECE_BYTES = 1 << 23  # of Arrow memory that becomes columns at a time
_MOST_ROWS = 1 << 16
_MOST_PIECES = 64  # whose columns are kept; numbers and text point into the table's memory and cost next to nothing


@dataclass(frozen=True, eq=False)
class TableSource(IndexedSource):
    """Rows of a pyarrow.Table as dicts, in the order of `numbers` where they are given.

    Numbers, fixed-size lists and byte strings without nulls are not copied: columns point into the table.
    """

    table: Any = field(repr=False)
    columns: Columns = field(default_factory=Columns)
    name: str = "from_arrow"
    numbers: np.ndarray | None = field(default=None, repr=False)
    version: str | None = None  # tells its content apart where reading all of it would take long

    @property
    def label(self) -> str:
        return self.name

    @cached_property
    def spec(self) -> Any:
        return self.columns.spec(self.table.schema)

    @property
    def cardinality(self) -> int:
        return int(self.table.num_rows) if self.numbers is None else len(self.numbers)

    @cached_property
    def _pieces(self) -> _Pieces:
        return _Pieces(self.table, self.columns)

    def rows(self, start: int, stop: int) -> Block:
        if self.numbers is not None:
            return self._pieces.rows_at(self.numbers[start:stop])
        return self._pieces.rows(start, stop)

    def rows_at(self, indices: np.ndarray) -> Block:
        return self._pieces.rows_at(indices if self.numbers is None else self.numbers[indices])

    def __getstate__(self) -> dict[str, Any]:
        """Columns that were made of the table stay here."""
        return {part.name: getattr(self, part.name) for part in fields(self)}


class _Pieces:
    """Neighbouring rows of a table, made into columns when one of them is asked for. Thread-safe."""

    def __init__(self, table: Any, columns: Columns) -> None:
        if columns.names is not None:
            table = table.select(list(columns.names))
        size = max(table.nbytes // max(table.num_rows, 1), 1)
        batches = table.to_batches(max_chunksize=min(max(_PIECE_BYTES // size, 1), _MOST_ROWS))
        self._batches = [batch for batch in batches if batch.num_rows]
        counts = [batch.num_rows for batch in self._batches]
        self._starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)
        self._fill_null = columns.fill_null
        self._kept: dict[int, Block | None] = {}
        self._lock = new_lock()

    def rows(self, start: int, stop: int) -> Block:
        parts = []
        while start < stop:
            number = int(np.searchsorted(self._starts, start, side="right")) - 1
            end = min(stop, int(self._starts[number + 1]))
            parts.append(self._slice(number, start, end))
            start = end
        return concat_blocks(parts)

    def rows_at(self, rows: np.ndarray) -> Block:
        return gather(np.searchsorted(self._starts, rows, side="right") - 1, rows, self._of_piece)

    def _slice(self, number: int, start: int, stop: int) -> Block:
        first = int(self._starts[number])
        block = self._block(number)
        return self._read(number, start, stop) if block is None else block.slice(start - first, stop - first)

    def _of_piece(self, number: int, rows: np.ndarray) -> Block:
        block = self._block(number)
        if block is None:
            return concat_blocks([self._read(number, row, row + 1) for row in rows.tolist()])
        return block.take(rows - self._starts[number])

    def _block(self, number: int) -> Block | None:
        """A piece as columns; None where one of its rows fails, which is found when that row is asked for."""
        with self._lock:
            if number not in self._kept:
                while len(self._kept) >= _MOST_PIECES:
                    del self._kept[next(iter(self._kept))]
                try:
                    self._kept[number] = self._read(number, int(self._starts[number]), int(self._starts[number + 1]))
                except Exception:
                    self._kept[number] = None
            return self._kept[number]

    def _read(self, number: int, start: int, stop: int) -> Block:
        part = self._batches[number].slice(start - int(self._starts[number]), stop - start)
        return from_arrow(part, fill_null=self._fill_null, first_row=start)
