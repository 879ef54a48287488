"""The rows of Arrow tables in memory (from pandas, polars and others) and of Arrow IPC files.

Files have the file format or the stream format.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from penstock.block.arrow import asked_for, too_little_memory
from penstock.block.block import Block, concat_blocks
from penstock.forked import new_lock
from penstock.sources.arrow_pieces import (
    RECENT,
    ArrowPiece,
    Columns,
    LostPiece,
    Piece,
    PieceRows,
    content_of,
    damaged,
    reading,
)
from penstock.sources.row_files import RowFile, RowFilesSource, gather
from penstock.sources.source import IndexedSource

_PIECE_BYTES = 1 << 25  # bytes of Arrow memory that are converted to columns at once
_MOST_ROWS = 1 << 18
_MOST_PIECES = 16  # pieces whose columns are cached; numbers and strings point into the table and need little memory


@dataclass(frozen=True, eq=False)
class TableSource(IndexedSource):
    """Rows of a pyarrow.Table as dicts, in the order of `numbers` if they are passed.

    Numbers, fixed-size lists and byte strings without nulls are not copied: columns point into the table.
    """

    table: Any = field(repr=False)
    columns: Columns = field(default_factory=Columns)
    name: str = "from_arrow"
    numbers: np.ndarray | None = field(default=None, repr=False)
    version: str | None = None  # identifies the content of a table that takes long to read

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
        """Leave out the converted columns."""
        return {part.name: getattr(self, part.name) for part in fields(self)}


class _Pieces:
    """Neighbouring rows of a table, converted to columns when one of them is needed. Thread-safe."""

    def __init__(self, table: Any, columns: Columns) -> None:
        if columns.names is not None:
            table = table.select(list(columns.names))
        size = max(table.nbytes // max(table.num_rows, 1), 1)
        batches = table.to_batches(max_chunksize=min(max(_PIECE_BYTES // size, 1), _MOST_ROWS))
        self._batches = [batch for batch in batches if batch.num_rows]
        counts = [batch.num_rows for batch in self._batches]
        self._starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)
        self._columns = columns
        self._kept: dict[int, Piece] = {}
        self._lock = new_lock()

    def rows(self, start: int, stop: int) -> Block:
        parts = []
        while start < stop:
            piece = self._piece(int(np.searchsorted(self._starts, start, side="right")) - 1)
            parts.append(piece.rows(start, min(stop, piece.stop)))
            start = piece.stop
        return concat_blocks(parts)

    def rows_at(self, rows: np.ndarray) -> Block:
        groups = np.searchsorted(self._starts, rows, side="right") - 1
        return gather(groups, rows, lambda number, some: self._piece(number).rows_at(some))

    def _piece(self, number: int) -> Piece:
        with self._lock:
            if number not in self._kept:
                while len(self._kept) >= _MOST_PIECES:
                    del self._kept[next(iter(self._kept))]
                first = int(self._starts[number])
                self._kept[number] = ArrowPiece(self._batches[number], first, self._columns, None)
            return self._kept[number]


_MAGIC = b"ARROW1"
_MAPPED = 1 << 10  # estimated bytes of a batch whose columns point into a mapped file


@dataclass(frozen=True)
class ArrowSource(RowFilesSource):
    """Rows of Arrow files as dicts. Local files are mapped, and uncompressed columns are not copied."""

    columns: Columns = field(default_factory=Columns)

    kind: ClassVar[str] = "ArrowDataset"
    chooses_columns: ClassVar[bool] = True

    def open_rows(self, name: str) -> RowFile:
        return ArrowRows(name, self.columns)


class ArrowRows(PieceRows):
    """One Arrow file. Each record batch is read when one of its rows is needed."""

    def __init__(self, name: str, columns: Columns) -> None:
        super().__init__(name, columns)
        self._map, content = content_of(name)
        with reading(name):
            self._batches = _batches(content, columns, self._map)
            self.spec = columns.spec(self._batches.schema)
        self._count(self._batches.sizes)
        lost = self._batches.lost
        self.uncounted = None if lost is None else damaged(name, lost)

    def _find(self, row: int) -> Piece:
        return self._load(int(np.searchsorted(self._starts, row, side="right")) - 1)

    def _of_group(self, group: int, rows: np.ndarray) -> Block:
        with self._lock:
            (piece,) = RECENT.get(self, group, lambda: [self._load(group)])
        return piece.rows_at(rows)

    def _load(self, number: int) -> Piece:
        first, stop = int(self._starts[number]), int(self._starts[number + 1])
        try:
            batch = self._batches.get(number)
            piece = ArrowPiece(batch, first, self._columns, self._name)
        except Exception as error:
            return LostPiece(first, stop, damaged(self._name, error))
        if self._map is not None and _points_into(batch, self._map):
            piece.nbytes = _MAPPED
        return piece


class _Batches(ABC):
    """The record batches of a file, the number of rows of each batch, and the schema.

    A batch with an unreadable number of rows counts as one row, which fails. `lost` is the error of the first such
    batch.
    """

    schema: Any
    sizes: list[int]
    lost: Exception | None = None

    @abstractmethod
    def get(self, number: int) -> Any:
        """Return the pyarrow.RecordBatch with this number."""


class _FileBatches(_Batches):
    """Batches of the file format. They are read one by one, with the selected columns only."""

    def __init__(self, content: Any, columns: Columns, mapped: np.ndarray | None) -> None:
        import pyarrow as pa

        self._content = content
        self._failed: dict[int, Exception] = {}
        self._reader = counted = pa.ipc.open_file(content)
        self.schema = self._reader.schema
        wanted = columns.schema(self.schema).names
        if mapped is None or not self._in_place(mapped):  # read or decompress only the selected columns
            self._reader = self._open(content, [self.schema.get_field_index(name) for name in wanted])
            narrow = [i for i, part in enumerate(self.schema) if not pa.types.is_nested(part.type)]
            counted = self._open(content, narrow[:1] or [0])
        self.sizes = [self._size(counted, number) for number in range(counted.num_record_batches)]

    def _in_place(self, mapped: np.ndarray) -> bool:
        """Return True if batches point into the mapped file. Selecting columns while reading would copy them."""
        try:
            return self._reader.num_record_batches == 0 or _points_into(self._reader.get_batch(0), mapped)
        except Exception:
            return False

    def _open(self, content: Any, fields: list[int]) -> Any:
        import pyarrow as pa

        return pa.ipc.open_file(content, options=pa.ipc.IpcReadOptions(included_fields=sorted(fields)))

    def _size(self, reader: Any, number: int) -> int:
        try:
            with _possible(self._content):
                batch = reader.get_batch(number)
            batch.validate()  # a damaged number of rows must not be used
            return int(batch.num_rows)
        except Exception as error:
            if too_little_memory(error):  # the number of rows stays unknown
                raise
            self._failed[number] = error
            self.lost = self.lost or error
            return 1

    def get(self, number: int) -> Any:
        if number in self._failed:
            raise self._failed[number]
        with _possible(self._content):
            return self._reader.get_batch(number)


class _StreamBatches(_Batches):
    """Batches of the stream format. It has no index, so opening the file finds all batches, without a copy."""

    def __init__(self, content: Any, columns: Columns) -> None:
        import pyarrow as pa

        reader = pa.ipc.open_stream(content)
        self.schema = reader.schema
        columns.schema(self.schema)
        self._found: list[Any] = []
        try:
            with _possible(content):
                for batch in reader:
                    batch.validate()
                    self._found.append(batch)
        except Exception as error:  # The damage becomes one failing element after the batches before it.
            if too_little_memory(error):
                raise
            self.lost = error
        self.sizes = [batch.num_rows for batch in self._found] + [1] * (self.lost is not None)

    def get(self, number: int) -> Any:
        if number == len(self._found) and self.lost is not None:
            raise self.lost
        return self._found[number]


@contextmanager
def _possible(content: Any) -> Iterator[None]:
    """Raise damage for a buffer that is larger than any compressed buffer of a local file can become.

    zstd needs at least 4 bytes for a block of 128 KiB (RFC 8878, 3.1.1.2), LZ4 needs one byte for 255.
    """
    import pyarrow as pa

    try:
        yield
    except MemoryError as error:
        nbytes = content.size() if isinstance(content, pa.NativeFile) else None  # a URL would need another request
        if nbytes is None or (asked_for(error) or 0) <= nbytes << 15:
            raise
        message = f"A compressed buffer states more than {nbytes} bytes can hold: {error}"
        raise pa.ArrowInvalid(message) from error


def _batches(content: Any, columns: Columns, mapped: np.ndarray | None) -> _Batches:
    head = content.read(len(_MAGIC))
    content.seek(0)
    return _FileBatches(content, columns, mapped) if head == _MAGIC else _StreamBatches(content, columns)


def _points_into(batch: Any, content: np.ndarray) -> bool:
    """Return True if a batch has no memory of its own."""
    first = content.ctypes.data
    buffers = [buffer for column in batch.columns for buffer in column.buffers() if buffer is not None]
    return all(first <= buffer.address <= first + len(content) for buffer in buffers)
