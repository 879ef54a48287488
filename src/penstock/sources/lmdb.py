"""The entries of LMDB databases. LmdbFile reads them by number, page by page."""

from __future__ import annotations

import os
import struct
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn
from penstock.block.origin import Origin
from penstock.block.spec import TensorSpec
from penstock.block.structure import flatten
from penstock.errors import DataLossError, InvalidArgumentError, NotFoundError, UnimplementedError
from penstock.forked import new_lock
from penstock.io import storage
from penstock.sources.row_files import RowFile, RowFilesSource

# The file is a B+tree of pages of equal size. Pages 0 and 1 are the two newest meta pages. A branch page has the
# numbers of the pages below it. A leaf page has keys and values, in the order of the keys. A value that is too long for
# a leaf lies on overflow pages of its own. `docs/design/0022` explains why LMDB itself, which maps the file, is not
# used.
#
# The fields of a page are checked against its number and the size of the file before they are used.

MAGIC = 0xBEEFC0DE
_PAGE = struct.Struct("<QHHHH")  # number, unused, flags, end of the list of nodes, begin of the nodes
_OVERFLOW = struct.Struct("<QHHI")  # number, unused, flags, how many pages
_HEADING = struct.Struct("<IIQQ")  # magic, version, address, size of the map
_DATABASE = struct.Struct("<IHHQQQQQ")  # page size, flags, depth, pages of branches, leaves, overflow; entries, root
_LAST = struct.Struct("<QQ")  # last page, number of the transaction
_NODE = struct.Struct("<HHHH")  # size of the value (or number of the page), in two parts; flags, size of the key
_NUMBER = struct.Struct("<Q")
_BRANCH, _LEAF, _OVER = 1, 2, 4  # kinds of pages
_ELSEWHERE, _NAMED, _SEVERAL = 1, 2, 4  # kinds of nodes: on overflow pages, a database, several values
_EMPTY = (1 << 64) - 1  # the root of a database without entries
_DEEPEST = 32  # as in LMDB
_SORTED_VALUES = 4  # a flag of a database: several values for a key
_PIECE = 1 << 30  # bytes per read call
_KEPT = 256  # pages that are cached while one list of entries is read
_HINT = "Copy or write the database again."


class LmdbEntry(NamedTuple):
    """A key and its value, and the offset of the value in the file."""

    key: bytes
    value: bytes
    offset: int


class _Database(NamedTuple):
    flags: int
    depth: int
    leaves: int
    entries: int
    root: int


class LmdbFile:
    """An open file. Entry `i` has the i-th key in LMDB's order. Threads and forked processes may share it.

    `name` is the file, or the folder that contains it as data.mdb. `database` names one of several databases in the
    file.
    """

    def __init__(self, name: str, database: bytes | None = None) -> None:
        self.name = os.path.join(name, "data.mdb") if os.path.isdir(name) else name  # noqa: PTH112, PTH118
        try:
            self._handle = os.open(self.name, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
        except FileNotFoundError:
            message = f"There is no LMDB database {name!r}."
            raise NotFoundError(
                message, hint="It is a folder with data.mdb in it, or such a file.", file=name
            ) from None
        weakref.finalize(self, os.close, self._handle)
        self._lock = new_lock()
        self.size = 0
        self._leaves: list[int] = []
        self._starts = np.zeros(0, np.int64)
        self.bytes = os.fstat(self._handle).st_size
        self._page_size, main = self._heading()
        chosen = main if database is None else self._named(main, database)
        if chosen.flags & _SORTED_VALUES:
            message = "This database holds several values for a key (MDB_DUPSORT), which is not read."
            hint = "Read it with the package lmdb in a generator: ps.Dataset.from_generator."
            raise UnimplementedError(message, hint=hint, file=self.name)
        self._enter(chosen)

    # -- entries ------------------------------------------------------------------------------------------------------

    def read(self, rows: Iterable[int], most: int | None = None) -> list[LmdbEntry]:
        """Return the entries with these numbers in order.

        With `most`, return at least one, up to this number of bytes.
        """
        found: list[LmdbEntry] = []
        pages: dict[int, bytes] = {}
        size = 0
        for row in rows:
            number, slot = self._place(row)
            if number not in pages:
                if len(pages) >= _KEPT:
                    pages.clear()
                pages[number] = self._page(number, _LEAF)
            entry = self._entry(number, pages[number], slot)
            size += len(entry.value)
            if found and most is not None and size > most:
                break
            found.append(entry)
        return found

    def _place(self, row: int) -> tuple[int, int]:
        """Return the page of an entry, and its index on the page."""
        leaf = int(np.searchsorted(self._starts, row, side="right")) - 1
        return self._leaves[leaf], row - int(self._starts[leaf])

    def _entry(self, number: int, page: bytes, slot: int) -> LmdbEntry:
        flags, size, key, start = self._node(number, page, slot)
        if flags & (_NAMED | _SEVERAL):
            if flags & _NAMED and not flags & _SEVERAL:
                message = f"{key!r} is a database of its own in this one."
                hint = f"Name it: database={key.decode('utf-8', 'replace')!r}."
                raise InvalidArgumentError(message, hint=hint, file=self.name)
            raise self._damaged(number, "an entry has several values, and its database has none such")
        if flags & _ELSEWHERE:
            if start + 8 > len(page):
                raise self._damaged(number, "a node does not lie in its page")
            (over,) = _NUMBER.unpack_from(page, start)
            offset = self._overflow(over, size)
            return LmdbEntry(key, self._bytes(offset, size), offset)
        if start + size > len(page):
            raise self._damaged(number, "a value does not lie in its page")
        return LmdbEntry(key, page[start : start + size], number * self._page_size + start)

    def _node(self, number: int, page: bytes, slot: int) -> tuple[int, int, bytes, int]:
        """Return the flags, the size of the value, the key, and the start of the value in the page."""
        (place,) = struct.unpack_from("<H", page, _PAGE.size + 2 * slot)
        if not _PAGE.size <= place <= len(page) - _NODE.size:
            raise self._damaged(number, "a node does not lie in its page")
        low, high, flags, length = _NODE.unpack_from(page, place)
        start = place + _NODE.size + length
        if start > len(page):
            raise self._damaged(number, "a key does not lie in its page")
        return flags, low | high << 16, page[place + _NODE.size : start], start

    def _overflow(self, number: int, size: int) -> int:
        """Return the offset of a value of this size on overflow pages."""
        begin = number * self._page_size
        if begin + _OVERFLOW.size + size > self.bytes:
            raise self._damaged(number, f"a value of {size} bytes would end after its end")
        stated, _, flags, pages = _OVERFLOW.unpack(self._bytes(begin, _OVERFLOW.size))
        if stated != number or not flags & _OVER or _OVERFLOW.size + size > pages * self._page_size:
            raise self._damaged(number, "there is no value where there should be one")
        return begin + _OVERFLOW.size

    # -- the tree -----------------------------------------------------------------------------------------------------

    def _enter(self, database: _Database) -> None:
        """Read the page heads of a database: its leaves, and the first entry of each leaf."""
        leaves: list[int] = []
        if database.root != _EMPTY:
            if not 1 <= database.depth <= _DEEPEST:
                raise self._damaged(0, f"its heading says that its tree is {database.depth} pages deep")
            self._walk(database.root, database.depth, leaves, set())
        counts = np.fromiter(map(self._count, leaves), np.int64, len(leaves))
        if counts.sum() != database.entries:
            message = f"its pages hold {counts.sum()} entries, and its heading says {database.entries}"
            raise self._damaged(0, message)
        self.size = database.entries
        self._leaves, self._starts = leaves, np.cumsum(counts) - counts

    def _walk(self, number: int, level: int, leaves: list[int], branches: set[int]) -> None:
        """Collect the leaf pages below a page that is `level` levels above the leaves."""
        if number in branches or len(leaves) > self.bytes // self._page_size:
            raise self._damaged(number, "its pages lead in a circle")
        if level == 1:
            leaves.append(number)
            return
        branches.add(number)
        page = self._page(number, _BRANCH)
        for slot in range(_slots(page)):
            flags, size, _, _ = self._node(number, page, slot)
            self._walk(size | flags << 32, level - 1, leaves, branches)

    def _count(self, leaf: int) -> int:
        begin = leaf * self._page_size
        if begin + self._page_size > self.bytes:
            raise self._damaged(leaf, "a page lies after its end")
        number, _, flags, lower, upper = _PAGE.unpack(self._bytes(begin, _PAGE.size))
        self._check(leaf, number, flags, lower, upper, _LEAF)
        return int(lower - _PAGE.size) // 2

    def _page(self, number: int, kind: int) -> bytes:
        """Return a page, after a check of its head."""
        begin = number * self._page_size
        if begin + self._page_size > self.bytes:
            raise self._damaged(number, "a page lies after its end")
        page = self._bytes(begin, self._page_size)
        stated, _, flags, lower, upper = _PAGE.unpack_from(page)
        self._check(number, stated, flags, lower, upper, kind)
        return page

    def _check(self, number: int, stated: int, flags: int, lower: int, upper: int, kind: int) -> None:
        sound = _PAGE.size <= lower <= upper <= self._page_size and not lower % 2
        if stated != number or flags & 0x2F not in {_BRANCH, _LEAF} or not flags & kind or not sound:
            raise self._damaged(number, "a page is not what its place in the tree says")

    # -- headings -----------------------------------------------------------------------------------------------------

    def _heading(self) -> tuple[int, _Database]:
        """Return the page size, and the unnamed database, from the newer of the two meta pages."""
        first = self._heading_at(0)
        if first is None:
            message = "This is no LMDB database, or one of a machine with another order of bytes."
            raise DataLossError(message, hint="An LMDB database is a folder with data.mdb in it.", file=self.name)
        second = self._heading_at(first[1])
        if second is None or second[1] != first[1]:  # the older page alone would silently lack entries
            message = "The LMDB database is damaged: it has one heading in place of two."
            raise DataLossError(message, hint=_HINT, file=self.name, offset=first[1])
        return max(first, second)[1:]

    def _heading_at(self, begin: int) -> tuple[int, int, _Database] | None:
        """Return the transaction number, the page size and the database of the meta page at `begin`."""
        at = begin + _PAGE.size
        length = _HEADING.size + 2 * _DATABASE.size + _LAST.size
        if at + length > self.bytes:
            return None
        content = self._bytes(at, length)
        magic, version, _, _ = _HEADING.unpack_from(content)
        page_size = _DATABASE.unpack_from(content, _HEADING.size)[0]
        if magic != MAGIC or version != 1 or page_size not in (1 << bits for bits in range(9, 17)):
            return None
        transaction = _LAST.unpack_from(content, _HEADING.size + 2 * _DATABASE.size)[1]
        return transaction, page_size, _database(content[_HEADING.size + _DATABASE.size :])

    def _named(self, main: _Database, name: bytes) -> _Database:
        self._enter(main)
        names = []
        for row in range(main.entries):
            number, slot = self._place(row)
            page = self._page(number, _LEAF)
            flags, size, key, start = self._node(number, page, slot)
            if flags & _NAMED and size == _DATABASE.size and start + size <= len(page):
                names.append(key)
                if key == name:
                    return _database(page[start:])
        message = f"There is no database {name.decode('utf-8', 'replace')!r} in this file."
        listed = ", ".join(repr(one.decode("utf-8", "replace")) for one in names[:20])
        hint = f"There is {listed}." if names else "None of its entries is a database: leave database out."
        raise InvalidArgumentError(message, hint=hint, file=self.name)

    # -- bytes --------------------------------------------------------------------------------------------------------

    def _bytes(self, offset: int, size: int) -> bytes:
        parts = []
        while size > 0:
            part = self._read_at(offset, min(size, _PIECE))
            if not part:
                message = "The LMDB database ends before its time."
                raise DataLossError(message, hint=_HINT, file=self.name, offset=offset)
            parts.append(part)
            offset, size = offset + len(part), size - len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _read_at(self, offset: int, size: int) -> bytes:
        if hasattr(os, "pread"):
            return os.pread(self._handle, size, offset)
        with self._lock:
            os.lseek(self._handle, offset, os.SEEK_SET)
            return os.read(self._handle, size)

    def _damaged(self, page: int, what: str) -> DataLossError:
        message = f"The LMDB database is damaged: {what}."
        return DataLossError(message, hint=_HINT, file=self.name, offset=min(page * self._page_size, self.bytes))


def _slots(page: bytes) -> int:
    return int(_PAGE.unpack_from(page)[3] - _PAGE.size) // 2


def _database(content: bytes) -> _Database:
    _, flags, depth, _, leaves, _, entries, root = _DATABASE.unpack_from(content)
    return _Database(flags, depth, leaves, entries, root)


_PAIR = (TensorSpec((), bytes), TensorSpec((), bytes))
_STRUCTURE = flatten((0, 0))[1]
_ENOUGH = 1 << 22  # bytes of one Block


@dataclass(frozen=True)
class LmdbSource(RowFilesSource):
    """Keys and values of local LMDB databases. The meta page of each database states the number of entries."""

    database: bytes | None = None

    kind: ClassVar[str] = "LmdbDataset"
    spec: ClassVar[Any] = _PAIR

    def open_rows(self, name: str) -> RowFile:
        return LmdbRows(name, self.database)


class LmdbRows(RowFile):
    """One open database. A damaged entry fails alone. Damage in the tree is one failure of the whole database."""

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

    def _block(self, entries: list[LmdbEntry]) -> Block:
        columns = [
            BytesColumn.from_values([entry.key for entry in entries]),
            BytesColumn.from_values([entry.value for entry in entries]),
        ]
        places = np.array([entry.offset for entry in entries], np.int64)
        return Block(_STRUCTURE, columns, len(entries), Origin.of_file(self._file.name, places))
