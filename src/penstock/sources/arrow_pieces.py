"""Pieces, which are neighbouring rows of a file that Arrow reads at once, and the cache of recent pieces."""

from __future__ import annotations

import copy
import weakref
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.block.arrow import from_arrow, spec_from_schema, too_little_memory, with_types
from penstock.block.block import Block, concat_blocks
from penstock.block.origin import Origin
from penstock.errors import (
    Context,
    DataLossError,
    InvalidArgumentError,
    InvalidTypeError,
    PenstockError,
    ResourceExhaustedError,
    annotate,
)
from penstock.forked import in_child, new_lock, new_rlock
from penstock.io import storage
from penstock.sources.row_files import RowFile, gather

_THREADS = "Raise the limit of threads (ulimit -u, pids.max of the container), or of the address space (ulimit -v)."


def content_of(name: str) -> tuple[np.ndarray | None, Any]:
    """Return a file for pyarrow, and its bytes if the file is mapped. Other files are read piecewise."""
    import pyarrow as pa

    whole = storage.map_file_or_none(name)
    if whole is not None:
        return whole, pa.BufferReader(whole)
    return None, storage.open_read(name) if storage.is_url(name) else pa.OSFile(name)


@dataclass(frozen=True)
class Columns:
    """The selected columns of a file, in order, and the values that replace nulls."""

    names: tuple[str, ...] | None = None
    fill_null: Mapping[str, Any] | None = None
    decimals: Any = None  # bytes or float64; None for float64 with a warning

    def schema(self, schema: Any) -> Any:
        """Return the selected part of a file's pyarrow.Schema. Raises InvalidArgumentError for a missing column."""
        import pyarrow as pa

        if len(set(schema.names)) < len(schema.names):
            message = f"Two columns have the same name: {', '.join(schema.names)}."
            raise InvalidArgumentError(message, hint="An element is a dict: every name stands for one value.")
        names = schema.names if self.names is None else self.names
        missing = [name for name in names if name not in schema.names]
        if missing:
            message = f"There is no column {missing[0]!r}; the columns are {', '.join(schema.names)}."
            raise InvalidArgumentError(message)
        fields = [schema.field(name) for name in names]
        if self.decimals is not None:
            kind = pa.string() if self.decimals is bytes else pa.float64()
            fields = [field.with_type(with_types(field.type, pa.types.is_decimal, kind)) for field in fields]
        return pa.schema(fields, metadata=schema.metadata)

    def spec(self, schema: Any) -> Any:
        return spec_from_schema(self.schema(schema), self.fill_null)

    def of(self, batch: Any) -> Any:
        batch = batch if self.names is None else batch.select(list(self.names))
        return batch if self.decimals is None else batch.cast(self.schema(batch.schema))


def as_columns(columns: Any, fill_null: Any, decimals: Any = None) -> Columns:
    """Return the selection of a user's arguments, after checks."""
    if isinstance(columns, (str, bytes)):
        message = f"columns is a sequence of names, got {columns!r:.60}."
        raise InvalidTypeError(message, hint=f"Write columns=[{columns!r:.60}].")
    names = None if columns is None else tuple(columns)
    for name in names or ():
        if not isinstance(name, str):
            message = f"columns holds names, got {name!r:.60}."
            raise InvalidTypeError(message)
    if names is not None and (not names or len(set(names)) < len(names)):
        message = f"columns names each column once, and at least one, got {list(names)!r:.60}."
        raise InvalidArgumentError(message, hint="Leave it out to read all columns.")
    if fill_null is not None and not isinstance(fill_null, Mapping):
        message = f"fill_null is a dict from columns to values, got {fill_null!r:.60}."
        raise InvalidTypeError(message, hint='For example fill_null={"label": -1}.')
    if decimals not in (None, bytes, np.float64):
        message = f"decimals is bytes or np.float64, got {decimals!r:.60}."
        raise InvalidTypeError(message, hint="bytes reads the text of decimals, np.float64 the nearest number.")
    return Columns(names, None if fill_null is None else dict(fill_null), decimals)


class Piece(ABC):
    """The rows of a file from number `first` up to `stop` (exclusive)."""

    first: int
    stop: int
    nbytes: int
    lasts = True  # reading it again gives the same rows

    @abstractmethod
    def rows(self, start: int, stop: int) -> Block: ...

    @abstractmethod
    def rows_at(self, rows: np.ndarray) -> Block: ...


class BlockPiece(Piece):
    """The elements of a Block."""

    def __init__(self, block: Block, first: int, nbytes: int) -> None:
        self._block = block
        self.first = first
        self.stop = first + block.size
        self.nbytes = nbytes

    def rows(self, start: int, stop: int) -> Block:
        return self._block.slice(start - self.first, stop - self.first)

    def rows_at(self, rows: np.ndarray) -> Block:
        return self._block.take(rows - self.first)


class ArrowPiece(Piece):
    """Rows of a record batch. They are converted at once, or row by row if one of them fails."""

    def __init__(self, batch: Any, first: int, columns: Columns, file: str | None) -> None:
        self.first = first
        self.stop = first + batch.num_rows
        check_places(batch)
        self.nbytes = batch.nbytes
        self.batch = columns.of(batch)
        self._columns = columns
        self._file = file
        self._block: Block | None = None
        if batch.num_rows:
            try:
                self._block = self._read(first, self.stop)
            except Exception:
                self._block = None  # each failing row raises its error when it is requested

    def rows(self, start: int, stop: int) -> Block:
        if self._block is None:
            return self._read(start, stop)
        return self._block.slice(start - self.first, stop - self.first)

    def rows_at(self, rows: np.ndarray) -> Block:
        if self._block is None:
            return concat_blocks([self._read(row, row + 1) for row in rows.tolist()])
        return self._block.take(rows - self.first)

    def _read(self, start: int, stop: int) -> Block:
        part = self.batch.slice(start - self.first, stop - start)
        if self._file is None:
            return from_arrow(part, fill_null=self._columns.fill_null, first_row=start)
        with reading(self._file):
            found = from_arrow(part, fill_null=self._columns.fill_null, first_row=start)
        origin = Origin.of_file(self._file, np.full(found.size, -1))  # a row of a columnar file has no byte offset
        return Block(found.structure, found.columns, found.size, origin)


class LostPiece(Piece):
    """Rows that cannot be read."""

    nbytes = 0

    def __init__(self, first: int, stop: int, error: Exception) -> None:
        self.first = first
        self.stop = stop
        self._error = error.with_traceback(None)
        self.lasts = not isinstance(error, MemoryError)  # more memory may be free next time

    def rows(self, start: int, stop: int) -> Block:
        raise copy.copy(self._error)

    def rows_at(self, rows: np.ndarray) -> Block:
        raise copy.copy(self._error)


class PieceRows(RowFile):
    """An open file that is read in pieces. An iteration has one of them in memory."""

    def __init__(self, name: str, columns: Columns) -> None:
        self._name = name
        self._columns = columns
        self._lock = new_lock()
        self._piece: Piece | None = None

    def _count(self, sizes: Sequence[int]) -> None:
        """Set the number of rows of each group of pieces."""
        self._starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
        self.size = int(self._starts[-1])

    @abstractmethod
    def _find(self, row: int) -> Piece:
        """Return the piece with a row, for an iteration."""

    @abstractmethod
    def _of_group(self, group: int, rows: np.ndarray) -> Block:
        """Return rows of one group of pieces."""

    def part(self, start: int, stop: int) -> Block:
        with self._lock:
            if self._piece is None or not self._piece.first <= start < self._piece.stop:
                self._piece = self._find(start)
                RECENT.at(self, self._piece.nbytes)
            piece = self._piece
        return piece.rows(start, min(stop, piece.stop))

    def rows_at(self, rows: np.ndarray) -> Block:
        return gather(np.searchsorted(self._starts, rows, side="right") - 1, rows, self._of_group)

    def close(self) -> None:
        self._piece = None
        RECENT.at(self, 0)


def gather_pieces(pieces: list[Piece], rows: np.ndarray) -> Block:
    """Return the rows with these numbers from consecutive pieces."""
    firsts = np.array([piece.first for piece in pieces], np.int64)
    groups = np.searchsorted(firsts, rows, side="right") - 1
    return gather(groups, rows, lambda number, part: pieces[number].rows_at(part))


def damaged(file: str, error: Exception) -> Exception:
    """Return the error for a file that Arrow cannot read. A lack of memory or threads is not reported as damage."""
    if too_little_memory(error):
        annotate(error, Context(file=file))
        return error
    found: PenstockError = DataLossError(f"The file cannot be read: {error}", file=file)
    if "launch worker thread" in str(error):
        found = ResourceExhaustedError("The system starts no thread for Arrow to read with.", hint=_THREADS, file=file)
    found.__cause__ = error
    return found


@contextmanager
def reading(file: str) -> Iterator[None]:
    """Add the file to errors of the block. Exceptions of libraries become errors that the file cannot be read.

    A damaged file can make a library raise any exception.
    """
    try:
        yield
    except PenstockError as error:
        annotate(error, Context(file=file))
        raise
    except Exception as error:
        found = damaged(file, error)
        if found is error:
            raise
        raise found from error


def check_places(batch: Any) -> None:
    """Raise an Arrow exception if the buffers of a pyarrow.RecordBatch contradict each other.

    The check covers the sizes of all buffers, and those positions that no later code checks. It does not check that
    strings are UTF-8.
    """
    batch.validate()
    for column in batch.columns:
        if _has_places(column.type):
            column.validate(full=True)


def _has_places(kind: Any) -> bool:
    """Return True if an Arrow type contains positions that decoding uses without a check."""
    from pyarrow import types

    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return True
    if types.is_string_view(kind) or types.is_binary_view(kind) or types.is_list_view(kind):
        return True
    if types.is_large_list_view(kind) or types.is_union(kind):
        return True
    inner = getattr(kind, "storage_type", None)
    if inner is not None:
        return _has_places(inner)
    return types.is_nested(kind) and any(_has_places(kind.field(i).type) for i in range(kind.num_fields))


class Recent:
    """A cache of recent pieces, limited in bytes. It drops pieces of dead owners. Thread-safe.

    Pieces in use by iterations count too, although their readers hold them.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._changed: Callable[[int], None] = lambda nbytes: None
        self._kept: OrderedDict[tuple[int, int], tuple[list[Piece], int]] = OrderedDict()
        self._owners: set[int] = set()
        self._read_now: dict[int, int] = {}  # bytes in use, by owner
        self._lock = new_rlock()  # garbage collection may run an owner's finaliser inside this class's critical section
        in_child(self._begin_anew)

    def get(self, owner: Any, number: int, load: Callable[[], list[Piece]]) -> list[Piece]:
        """Return part `number` of an owner. `load` reads it if it is not cached."""
        key = id(owner), number
        with self._lock:
            found = self._kept.pop(key, None)
            if found is not None:
                self._kept[key] = found
                return found[0]
            self._know(owner)
        pieces = load()
        with self._lock:
            if key not in self._kept and all(piece.lasts for piece in pieces):
                cost = sum(piece.nbytes for piece in pieces)
                self._kept[key] = pieces, cost
                self._bytes += cost
            self._trim()
        return pieces

    def _trim(self) -> None:
        while self._bytes > self._most and len(self._kept) > 1:
            self._bytes -= self._kept.popitem(last=False)[1][1]
        self._tell()

    def at(self, owner: Any, nbytes: int) -> None:
        """Set the bytes of the part that an owner's iteration uses."""
        with self._lock:
            self._know(owner)
            self._read_now[id(owner)] = nbytes
            self._tell()

    def _know(self, owner: Any) -> None:
        if id(owner) not in self._owners:
            self._owners.add(id(owner))
            weakref.finalize(owner, self._forget, id(owner))

    def _tell(self) -> None:
        self._changed(self._bytes + sum(self._read_now.values()))

    def bound(self, nbytes: int) -> None:
        """Set the limit in bytes. The call never waits: if the lock is taken, the next part applies the limit."""
        self._most = nbytes
        if self._lock.acquire(blocking=False):
            try:
                self._trim()
            finally:
                self._lock.release()

    def watch(self, changed: Callable[[int], None]) -> None:
        """Call `changed` with the cached bytes after each change. It is called from any thread and must be quick."""
        self._changed = changed
        self._tell()

    def _begin_anew(self) -> None:
        """Reset the state in a forked child, because a thread of the parent may have been changing it."""
        self._bytes = sum(cost for _, cost in self._kept.values())

    def _forget(self, owner: int) -> None:
        with self._lock:
            self._owners.discard(owner)
            for key in [key for key in self._kept if key[0] == owner]:
                self._bytes -= self._kept.pop(key)[1]
            self._read_now.pop(owner, None)
            self._tell()


RECENT = Recent(1 << 28)
