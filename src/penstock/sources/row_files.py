"""RowFilesSource: files whose rows have numbers, concatenated to one indexed source."""

from __future__ import annotations

import copy
import weakref
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from penstock.block.arrow_nest import column_names
from penstock.block.block import Block, concat_blocks, in_order
from penstock.block.structure import Structure, flatten
from penstock.errors import Context, DataLossError, InvalidArgumentError, InvalidTypeError, PenstockError, annotate
from penstock.forked import new_rlock
from penstock.io import storage
from penstock.sources.files import FileReader, FilesSource, Place
from penstock.sources.source import IndexedSource, before_failure

_UNKNOWN = -2  # the cardinality
_MOST_OPEN = 64  # files kept open for access by number


class RowFile(ABC):
    """An open file of `size` rows. A row that fails raises from every call that reads it.

    If damage hides the number of rows, `uncounted` is the error. Then `size` is the number of elements of an iteration,
    with failures.
    """

    size: int
    uncounted: Exception | None = None
    spec: Any  # the nest of specs of a row

    @abstractmethod
    def part(self, start: int, stop: int) -> Block:
        """Return at least one row from `start` on, up to `stop`. Only rows that are stored together are returned."""

    @abstractmethod
    def rows_at(self, rows: np.ndarray) -> Block:
        """Return the rows with these numbers, in order. Several threads may call it at once."""

    def close(self) -> None:  # noqa: B027 - many files stay open
        """Close the file. Idempotent. Returned Blocks stay valid.

        By default, leave it open: Blocks may point into its map, or another thread may read it. It is freed with its
        last user.
        """


class _Ordered(RowFile):
    """A file whose columns have another order than those of the first file."""

    def __init__(self, file: RowFile, structure: Structure) -> None:
        self._file = file
        self._structure = structure
        self.size, self.spec, self.uncounted = file.size, file.spec, file.uncounted

    def part(self, start: int, stop: int) -> Block:
        return in_order(self._file.part(start, stop), self._structure)

    def rows_at(self, rows: np.ndarray) -> Block:
        return in_order(self._file.rows_at(rows), self._structure)

    def close(self) -> None:
        self._file.close()


class RowsReader(FileReader):
    """An iteration over a RowFile. Its position is the number of the next row."""

    def __init__(self, file: RowFile, row: int) -> None:
        self._file = file
        self._row = row

    def read(self, max_elements: int) -> Block | None:
        start, stop = self._row, min(self._row + max_elements, self._file.size)
        if start >= stop:
            return None
        try:
            block = before_failure(self._file.part, start, stop)
        except Exception:
            self._row += 1
            raise
        self._row += block.size
        return block

    def place(self) -> Place:
        return self._row

    @property
    def over(self) -> bool:
        return False

    def close(self) -> None:
        self._file.close()


@dataclass(frozen=True)
class RowFilesSource(FilesSource, IndexedSource):
    """The rows of files.

    A file that cannot be opened is one failure of an iteration, and its number of rows is unknown.

    If the number of rows of one file is unknown, the total is unknown, and no row has a number. All files have the spec
    of the first file that can be opened.
    """

    chooses_columns: ClassVar[bool] = False  # True if arguments name columns of the files

    @abstractmethod
    def open_rows(self, name: str) -> RowFile:
        """Open a file. This is cheap compared to reading it."""

    def stated(self) -> Sequence[int]:
        """Return the number of rows of each file, if an index states them. Otherwise return an empty sequence."""
        return ()

    def open_file(self, name: str, place: Place) -> FileReader:
        return RowsReader(self.checked(name), place)

    def checked(self, name: str) -> RowFile:
        """Open a file, and check that its rows have the spec of the other files."""
        file = self.open_rows(name)
        expected = self.spec
        if expected is None:
            return file
        if file.spec != expected:
            file.close()
            message = f"The rows of this file differ from those of the first: {difference(file.spec, expected)}."
            raise InvalidTypeError(message, hint="All files of a data set hold the same columns.", file=name)
        structure = flatten(expected)[1]
        return file if flatten(file.spec)[1] == structure else _Ordered(file, structure)

    def check_call(self) -> None:
        """Raise an error if the first file lacks a column, if it is local. Other errors are left to an iteration."""
        if not self.chooses_columns or not self.files or storage.is_url(self.files[0]):
            return
        try:
            if Path(self.files[0]).is_file():
                file = self.open_rows(self.files[0])
                vars(self)["_first_spec"] = file.spec
                file.close()
        except (InvalidArgumentError, InvalidTypeError):
            raise
        except Exception:
            return  # an iteration reports a missing or damaged file as a failure

    @cached_property
    def _first_spec(self) -> Any:
        for name in self.files:
            try:
                file = self.open_rows(name)
            except Exception:
                continue  # an iteration reports the file as a failure
            file.close()
            return file.spec
        return None

    @property
    def spec(self) -> Any:
        return self._first_spec

    @cached_property
    def _table(self) -> _Table:
        # a proxy, so that files are closed with the source and not at a later garbage collection
        return _Table(weakref.proxy(self))

    @property
    def cardinality(self) -> int:
        return self._table.known

    def count(self) -> int:
        return self._table.size

    def rows(self, start: int, stop: int) -> Block:
        return self._table.rows(start, stop)

    def rows_at(self, indices: np.ndarray) -> Block:
        return self._table.rows_at(indices)


def difference(found: Any, expected: Any) -> str:
    """Return a description of the difference between two specs."""
    leaves = [dict(zip(column_names(flatten(spec)[1]), flatten(spec)[0], strict=True)) for spec in (found, expected)]
    for name in {**leaves[1], **leaves[0]}:
        here, there = (part.get(name, "missing") for part in leaves)
        if here != there:
            return f"{name} is {here} here and {there} there"
    return f"they are {found} here and {expected} there"


class OpenRowFiles:
    """Files that are open for access by number. `open_file` opens the file of a key. Thread-safe."""

    def __init__(self, open_file: Callable[[Any], RowFile]) -> None:
        self._open_file = open_file
        self._lock = new_rlock()
        self._files: OrderedDict[Any, RowFile] = OrderedDict()

    def __getitem__(self, key: Any) -> RowFile:
        with self._lock:
            file = self._files.get(key)
            if file is None:
                file = self._files[key] = self._open_file(key)
                if len(self._files) > _MOST_OPEN:
                    self._files.popitem(last=False)  # the file is closed after its last reader
            self._files.move_to_end(key)
            return file


class _Table:
    """The number of each file's first row, and the files that are open for access by number. Thread-safe."""

    def __init__(self, source: RowFilesSource) -> None:
        self._source = source
        self._lock = new_rlock()
        self._files = OpenRowFiles(lambda number: source.checked(source.files[number]))
        self._sizes: dict[int, int] = dict(enumerate(source.stated()))
        self._starts: np.ndarray | None = None
        self._lost = False  # True if a file could not be counted in the last attempt

    @property
    def size(self) -> int:
        """The number of all rows. A file that could not be counted is tried again, and its error is raised."""
        return int(self._begins()[-1])

    @property
    def known(self) -> int:
        """The number of all rows, or UNKNOWN_CARDINALITY. Each file is counted once."""
        with self._lock:
            if self._starts is None and self._lost:
                return _UNKNOWN
            try:
                return self.size
            except Exception:
                return _UNKNOWN

    def _begins(self) -> np.ndarray:
        """Return the number of each file's first row, and the number of all rows."""
        with self._lock:
            if self._starts is None:
                self._lost = True
                sizes = [self._size(number) for number in range(len(self._source.files))]
                self._lost = False
                self._starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
            return self._starts

    def _size(self, number: int) -> int:
        if number not in self._sizes:
            file = self._files[number]
            if file.uncounted is not None:
                raise copy.copy(file.uncounted)
            self._sizes[number] = file.size
        return self._sizes[number]

    def rows(self, start: int, stop: int) -> Block:
        begins = self._begins()
        parts = []
        while start < stop:
            number = int(np.searchsorted(begins, start, side="right")) - 1
            first = int(begins[number])
            parts.append(self._files[number].part(start - first, min(stop, int(begins[number + 1])) - first))
            start += parts[-1].size
        return concat_blocks(parts)

    def rows_at(self, indices: np.ndarray) -> Block:
        begins = self._begins()
        return gather(
            np.searchsorted(begins, indices, side="right") - 1,
            indices,
            lambda number, found: self._files[number].rows_at(found - begins[number]),
        )


def gather(groups: np.ndarray, rows: np.ndarray, read: Callable[[int, np.ndarray], Block]) -> Block:
    """Return `rows` in order. `read(g, rows of group g)` returns the rows of one group, and groups rise with rows.

    The rows are read in rising order, so that neighbours share lines of the processor's cache.
    """
    if (groups == groups[0]).all():
        return read(int(groups[0]), rows)
    order = np.argsort(rows)
    cuts = np.flatnonzero(np.diff(groups[order])) + 1
    parts = [read(int(groups[part[0]]), rows[part]) for part in np.split(order, cuts)]
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return concat_blocks(parts).take(back)


class ReadRows:
    """Parsed rows. `block` has the valid rows, `failures` has the others: (row number, error), ascending.

    Row i begins at byte `offsets[i]`. The last offset is the end of the last row.
    """

    def __init__(self, block: Block | None, failures: Sequence[tuple[int, Exception]], offsets: np.ndarray) -> None:
        self._block = block
        self._failures = list(reversed(failures))
        self._offsets = offsets
        self._row = 0  # number of the next row, with failures
        self._taken = 0  # number of rows taken from the block

    @property
    def size(self) -> int:
        """The number of rows that are left."""
        return len(self._offsets) - 1 - self._row

    def take(self, most: int) -> Block:
        """Return up to `most` rows before the next failure, or raise that failure. At least one row must be left."""
        stop = self._failures[-1][0] if self._failures else len(self._offsets) - 1
        if stop == self._row:
            self._row += 1
            raise self._failures.pop()[1]
        assert self._block is not None
        count = min(most, stop - self._row)
        block = self._block.slice(self._taken, self._taken + count)
        self._row += count
        self._taken += count
        return block

    def place(self) -> int:
        """Return the byte at which the next row begins."""
        return int(self._offsets[self._row])


class RowQueue:
    """Rows that were parsed and not returned yet. `file` is the file for errors, if offsets are bytes of a file."""

    def __init__(self, file: str | None = None) -> None:
        self._file = file
        self._waiting: deque[ReadRows] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def take(self, most: int) -> Block:
        """Return rows like `ReadRows.take`, from the first stretch. At least one row must be left."""
        first = self._waiting[0]
        try:
            return first.take(most)
        finally:
            if not first.size:
                self._waiting.popleft()

    def place(self) -> int:
        """Return the byte at which the next row begins."""
        return self._waiting[0].place()

    def put(self, offsets: np.ndarray, parse: Callable[[int, int], ReadRows]) -> None:
        """Add the result of `parse(start, stop)` for neighbouring rows. Row i begins at byte `offsets[i]`.

        If `parse` raises, it is called for fewer rows, until only the failing row is left. So an unexpected exception
        affects only one row.
        """
        self._put(0, len(offsets) - 1, offsets, parse)

    def _put(self, start: int, stop: int, offsets: np.ndarray, parse: Callable[[int, int], ReadRows]) -> None:
        try:
            found = parse(start, stop)
        except Exception as raised:
            if stop > start + 1:
                middle = (start + stop) // 2
                self._put(start, middle, offsets, parse)
                self._put(middle, stop, offsets, parse)
                return
            error = unreadable("The row", raised)
            if self._file is not None:
                annotate(error, Context(file=self._file, offset=int(offsets[start])))
            found = ReadRows(None, [(0, error)], offsets[start : stop + 1])
        if found.size:
            self._waiting.append(found)


def unreadable(what: str, raised: Exception) -> Exception:
    """Return the error for a row that could not be read. A lack of memory is not reported as damage."""
    if isinstance(raised, (PenstockError, MemoryError)):
        return raised
    message = f"{what} cannot be read: {type(raised).__name__}: {raised!s:.200}"
    error = DataLossError(message)
    error.__cause__ = raised
    return error
