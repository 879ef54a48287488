"""The rows of a query to an SQLite database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn
from penstock.block.spec import DType, TensorSpec, dtype_name
from penstock.block.structure import Structure
from penstock.errors import DataLossError, InvalidArgumentError, InvalidTypeError, NotFoundError, PenstockError
from penstock.io import storage
from penstock.sources.row_files import ReadRows, RowQueue, unreadable
from penstock.sources.source import Position, Reader, Source

if TYPE_CHECKING:
    import sqlite3

_MOST_ROWS = 4096  # fetched at a time
_END = -1


@dataclass(frozen=True)
class SqlSource(Source):
    """A nest of scalars for every row of the result. A position is the number of rows read, or -1 at the end."""

    database: str
    query: str
    types: tuple[DType, ...]
    structure: Structure

    @property
    def label(self) -> str:
        return f"SqlDataset({self.query if len(self.query) <= 40 else self.query[:37] + '...'})"

    @property
    def spec(self) -> Any:
        return self.structure.build([TensorSpec((), dtype) for dtype in self.types])

    @property
    def cardinality(self) -> int:
        return -2

    def open(self, position: Position | None = None) -> Reader:
        return _SqlReader(self, position or 0)


class _SqlReader(Reader):
    """One run of the query. To resume from a position, the query runs again and skips rows."""

    def __init__(self, source: SqlSource, read: int) -> None:
        self._source = source
        self._read = read  # number of rows fetched
        self._rows = RowQueue()
        self._connection: sqlite3.Connection | None = None
        self._cursor: sqlite3.Cursor | None = None
        self._ended = read == _END
        self._error: Exception | None = None  # raised after the rows that were fetched before it

    def read(self, max_elements: int) -> Block | None:
        if not self._rows:
            found = self._fetch(min(max_elements, _MOST_ROWS))
            if not found:
                return None
            first = self._read - len(found)
            self._rows.put(np.arange(first, self._read + 1), partial(self._converted, found))
        return self._rows.take(max_elements)

    def _fetch(self, count: int) -> list[tuple[Any, ...]]:
        """Return the next rows of the result. An error of the database ends the result."""
        if self._ended:
            return []
        found: list[tuple[Any, ...]] = []
        try:
            if self._error is not None:
                raise self._error
            if self._cursor is None:
                self._cursor = self._run()
                for _ in range(self._read):
                    self._cursor.fetchone()
            # islice keeps the rows before an error; fetchmany would lose them
            found.extend(islice(self._cursor, count))
        except Exception as error:
            if not found:
                self._ended = True
                raise (error if isinstance(error, PenstockError) else self._failure(error)) from error.__cause__
            self._error = self._failure(error)
            self._error.__cause__ = error
        self._read += len(found)
        return found

    def _run(self) -> sqlite3.Cursor:
        import sqlite3

        name = self._source.database
        if not name.startswith("file:") and not storage.exists(name):
            message = f"There is no database {name!r}."
            raise NotFoundError(message, hint="data_source_name is the path of an SQLite file.", file=name)
        uri = name if name.startswith("file:") else f"{Path(name).absolute().as_uri()}?mode=ro"
        self._connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
        self._connection.text_factory = bytes
        cursor = self._connection.execute(self._source.query)
        columns, wanted = len(cursor.description or ()), len(self._source.types)
        if columns != wanted:
            message = f"The query gives {columns} columns, and output_types has {wanted}."
            raise InvalidArgumentError(message, hint="Name the columns: SELECT name, age FROM people.")
        return cursor

    def _failure(self, error: Exception) -> PenstockError:
        import sqlite3

        if isinstance(error, sqlite3.OperationalError | sqlite3.ProgrammingError | sqlite3.Warning):
            message = f"SQLite refuses the query to {self._source.database!r}: {error}."
            return InvalidArgumentError(message, hint=f"The query is {self._source.query!r:.200}.")
        message = f"SQLite cannot read {self._source.database!r}: {error}."
        return DataLossError(message, file=self._source.database)

    def _converted(self, fetched: list[tuple[Any, ...]], start: int, stop: int) -> ReadRows:
        """Return the elements of some of the last fetched rows."""
        found, first = fetched[start:stop], self._read - len(fetched) + start
        source = self._source
        failures: dict[int, Exception] = {}
        columns: list[Column | list[Any]] = []
        for number, (values, dtype) in enumerate(zip(zip(*found, strict=True), source.types, strict=True)):
            column = _column(values, dtype)
            columns.append(_one_by_one(values, dtype, number, first, failures) if column is None else column)
        good = np.array([row for row in range(len(found)) if row not in failures], np.int64)
        block = None
        if len(good):
            made = [_kept(column, dtype, good, failures) for column, dtype in zip(columns, source.types, strict=True)]
            block = Block(source.structure, made, len(good))
        return ReadRows(block, sorted(failures.items()), np.arange(first, first + len(found) + 1))

    def position(self) -> Position:
        if self._rows:
            return self._rows.place()
        return _END if self._ended else self._read

    def close(self) -> None:
        if self._connection is not None:
            self._read = self.position()
            self._rows, self._cursor = RowQueue(), None
            self._connection.close()
            self._connection = None


def _column(values: Sequence[Any], dtype: DType) -> Column | None:
    """Convert all values at once, if they have the column's type. Otherwise return None."""
    kinds = set(map(type, values))
    if dtype is bytes:
        return BytesColumn.from_values(values) if kinds == {bytes} else None
    if kinds != {float} if dtype.kind == "f" else kinds != {int}:
        return None
    with np.errstate(over="ignore"):
        array = np.array(values, np.float64 if dtype.kind == "f" else np.int64)
        if dtype.kind in "iu":
            limits = np.iinfo(dtype.name)
            if array.min() < limits.min or array.max() > limits.max:
                return None
        return DenseColumn(array.astype(dtype))


def _one_by_one(
    values: Sequence[Any], dtype: DType, number: int, first: int, failures: dict[int, Exception]
) -> list[Any]:
    """Return the values, with 0 for an invalid one. The first error of each row is stored in `failures`."""
    convert: Callable[[Any, DType], Any] = _text if dtype is bytes else _number
    found = []
    for row, value in enumerate(values):
        try:
            found.append(convert(value, dtype))
        except Exception as raised:  # an error of any kind in one row must not affect the others
            failures.setdefault(row, _in_row(first + row, number, unreadable("The value", raised)))
            found.append(0)
    return found


def _in_row(row: int, column: int, error: Exception) -> Exception:
    """Return the error for a value, with its row and column. A lack of memory gets no position."""
    if not isinstance(error, PenstockError):
        return error
    message = f"Row {row} of the result, column {column}: {error.message}"
    return type(error)(message, hint=error.hint)


def _kept(column: Column | list[Any], dtype: DType, good: np.ndarray, failures: dict[int, Exception]) -> Column:
    if not isinstance(column, list):
        return column.take(good) if failures else column
    values = [column[row] for row in good.tolist()]
    return BytesColumn.from_values(values) if dtype is bytes else DenseColumn(np.array(values, dtype))


def _text(value: Any, dtype: DType) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, int):
        return str(value).encode()
    raise _unfit(value, dtype, "CAST(column AS TEXT)")


def _number(value: Any, dtype: DType) -> Any:
    """Return a number of the column's type with the same value: 3.0 is a valid integer, 3.5 is not."""
    if value is None or isinstance(value, bytes):
        raise _unfit(value, dtype, f"CAST(column AS {'REAL' if dtype.kind == 'f' else 'INTEGER'})")
    with np.errstate(over="ignore"):
        if dtype.kind in "fb":
            return dtype.type(value)
    if not np.isfinite(value) or value != int(value):
        raise _unfit(value, dtype, "CAST(column AS INTEGER)")
    limits = np.iinfo(dtype.name)
    if not limits.min <= value <= limits.max:
        message = f"{value} does not fit {dtype_name(dtype)}."
        raise InvalidArgumentError(message, hint="Ask for a wider type in output_types.")
    return dtype.type(int(value))


def _unfit(value: Any, dtype: DType, cast: str) -> InvalidTypeError:
    if value is None:
        message = f"NULL is no {dtype_name(dtype)}."
        return InvalidTypeError(message, hint="Let the query say what stands in: COALESCE(column, 0).")
    message = f"{value!r:.60} is no {dtype_name(dtype)}."
    return InvalidTypeError(message, hint=f"Let the query convert it: {cast}.")
