"""Pieces: neighbouring rows of a file that Arrow reads in one go, and the store of those read last."""

from __future__ import annotations

import copy
import weakref
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
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
from penstock.forked import in_child, new_rlock
from penstock.io import storage
from penstock.sources.row_files import gather

_THREADS = "Raise the limit of threads (ulimit -u, pids.max of the container), or of the address space (ulimit -v)."


def content_of(name: str) -> tuple[np.ndarray | None, Any]:
    """A file for pyarrow, and its bytes where it is mapped. One that the system does not map is read in parts."""
    import pyarrow as pa

    whole = storage.map_file_or_none(name)
    if whole is not None:
        return whole, pa.BufferReader(whole)
    return None, storage.open_read(name) if storage.is_url(name) else pa.OSFile(name)


@dataclass(frozen=True)
class Columns:
    """What of a file is wanted: which columns, in which order, and what stands in the place of nulls."""

    names: tuple[str, ...] | None = None
    fill_null: Mapping[str, Any] | None = None
    decimals: Any = None  # bytes or float64; None for float64 with a warning

    def schema(self, schema: Any) -> Any:
        """The part of a file's pyarrow.Schema that is wanted. Raises InvalidArgumentError for a missing column."""
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
    """What of a file is wanted, checked."""
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
    """The rows of a file from number `first` up to, not including, number `stop`."""

    first: int
    stop: int
    nbytes: int
    lasts = True  # it is the same whenever it is read

    @abstractmethod
    def rows(self, start: int, stop: int) -> Block: ...

    @abstractmethod
    def rows_at(self, rows: np.ndarray) -> Block: ...


class ArrowPiece(Piece):
    """Rows of a record batch; made into columns at once, or row by row where one of them cannot be."""

    def __init__(self, batch: Any, first: int, columns: Columns, file: str) -> None:
        self.first = first
        self.stop = first + batch.num_rows
        check_places(batch)
        self.nbytes = batch.nbytes
        self._batch = columns.of(batch)
        self._columns = columns
        self._file = file
        self._block: Block | None = None
        if batch.num_rows:
            try:
                self._block = self._read(first, self.stop)
            except Exception:
                self._block = None  # the rows that fail are found, and say why, when they are asked for

    def rows(self, start: int, stop: int) -> Block:
        if self._block is None:
            return self._read(start, stop)
        return self._block.slice(start - self.first, stop - self.first)

    def rows_at(self, rows: np.ndarray) -> Block:
        if self._block is None:
            return concat_blocks([self._read(row, row + 1) for row in rows.tolist()])
        return self._block.take(rows - self.first)

    def _read(self, start: int, stop: int) -> Block:
        part = self._batch.slice(start - self.first, stop - start)
        with reading(self._file):
            found = from_arrow(part, fill_null=self._columns.fill_null, first_row=start)
        origin = Origin.of_file(self._file, np.full(found.size, -1))  # rows lie in columns, at no byte of their own
        return Block(found.structure, found.columns, found.size, origin)


class LostPiece(Piece):
    """Rows that cannot be read."""

    nbytes = 0

    def __init__(self, first: int, stop: int, error: Exception) -> None:
        self.first = first
        self.stop = stop
        self._error = error.with_traceback(None)
        self.lasts = not isinstance(error, MemoryError)  # there may be more of it the next time

    def rows(self, start: int, stop: int) -> Block:
        raise copy.copy(self._error)

    def rows_at(self, rows: np.ndarray) -> Block:
        raise copy.copy(self._error)


def gather_pieces(pieces: list[Piece], rows: np.ndarray) -> Block:
    """Rows out of pieces that follow each other."""
    firsts = np.array([piece.first for piece in pieces], np.int64)
    groups = np.searchsorted(firsts, rows, side="right") - 1
    return gather(groups, rows, lambda number, part: pieces[number].rows_at(part))


def damaged(file: str, error: Exception) -> Exception:
    """The error for a file that Arrow cannot read. That memory or threads do not suffice is no damage."""
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
    """Errors from here say which file they are about; those of libraries, that it cannot be read.

    What a damaged file makes a library raise is of any kind.
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
    """Raise an exception of Arrow's unless what a pyarrow.RecordBatch says of its own memory can be.

    Sizes of all buffers; of those places in them that nobody else looks at, all. Whether a text is UTF-8 is not asked.
    """
    batch.validate()
    for column in batch.columns:
        if _has_places(column.type):
            column.validate(full=True)


def _has_places(kind: Any) -> bool:
    """Whether values of an Arrow type, or inside it, are found by numbers that decoding it takes as they are."""
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
    """What was read last, up to a number of bytes, for as long as its owners live. Thread-safe.

    The parts that passes are at are counted, too, though their readers keep them.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._changed: Callable[[int], None] = lambda nbytes: None
        self._kept: OrderedDict[tuple[int, int], tuple[list[Piece], int]] = OrderedDict()
        self._owners: set[int] = set()
        self._read_now: dict[int, int] = {}  # bytes, by owner
        self._lock = new_rlock()  # an owner may die inside our own critical section, during garbage collection
        in_child(self._begin_anew)

    def get(self, owner: Any, number: int, load: Callable[[], list[Piece]]) -> list[Piece]:
        """Part `number` of what an owner reads."""
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
        """The part that an owner's pass is at has so many bytes."""
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
        """Keep no more than so many bytes. Never waits: what another thread is busy with goes with the next part."""
        self._most = nbytes
        if self._lock.acquire(blocking=False):
            try:
                self._trim()
            finally:
                self._lock.release()

    def watch(self, changed: Callable[[int], None]) -> None:
        """Call `changed` with the bytes kept whenever these change, from any thread; it must be quick."""
        self._changed = changed
        self._tell()

    def _begin_anew(self) -> None:
        """In a forked child: another thread of the parent may have been changing it."""
        self._bytes = sum(cost for _, cost in self._kept.values())

    def _forget(self, owner: int) -> None:
        with self._lock:
            self._owners.discard(owner)
            for key in [key for key in self._kept if key[0] == owner]:
                self._bytes -= self._kept.pop(key)[1]
            self._read_now.pop(owner, None)
            self._tell()


RECENT = Recent(1 << 28)
