"""Tables: what is expected of a record, as the arrays the compiled parser takes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from penstock.block.arena import ARENA
from penstock.io.expected import ANY_LENGTH, Expected
from penstock.io.kernels import example as kernel
from penstock.io.values import BYTES, FLOAT, INT64

_WORD = (1 << 64) - 1


@dataclass(slots=True, eq=False)
class Tables:
    """`table` has a row per entry (see the kernel's columns) without BASE and ROOM, which depend on the block.

    `density` is the most values per row that entries of any length had so far; a guess of the room they need, which
    several threads may overwrite for each other without harm.
    """

    table: np.ndarray
    words: np.ndarray
    keys: np.ndarray
    places: np.ndarray
    int_defaults: np.ndarray
    float_defaults: np.ndarray
    bytes_defaults: list[list[bytes]]
    density: list[float]


def tables_of(expected: Expected) -> Tables:
    """The tables of `expected`, made on first use."""
    if not expected.tables:
        expected.tables.append(_make(expected))
    found: Tables = expected.tables[0]
    return found


def _make(expected: Expected) -> Tables:
    entries = expected.entries
    table = np.zeros((len(entries), kernel.TABLE_COLUMNS), np.int64)
    words = np.zeros((len(entries), 2), np.uint64)
    ints: list[int] = []
    floats: list[np.ndarray] = []
    strings: list[list[bytes]] = []
    places = np.full(1 << math.ceil(math.log2(2 * len(entries) + 2)), -1, np.int64)
    lengths = key_at = 0
    for k, entry in enumerate(entries):
        row = table[k]
        row[kernel.KIND], row[kernel.SIZE], row[kernel.STRIDE] = entry.kind, entry.size, entry.stride
        row[kernel.KEY_SIZE], row[kernel.KEY_AT] = len(entry.key), key_at
        key_at += len(entry.key)
        strings.append([])
        if entry.default is None:
            row[kernel.DEFAULT] = kernel.NO_DEFAULT
        elif entry.kind == INT64:
            row[kernel.DEFAULT] = len(ints)
            ints += entry.default.tolist()
        elif entry.kind == FLOAT:
            row[kernel.DEFAULT] = sum(map(len, floats))
            floats.append(entry.default.astype(np.float32))
        else:
            strings[-1] = entry.default.tolist()
        if entry.size == ANY_LENGTH:
            row[kernel.SPLITS] = lengths
            lengths += 1
        words[k] = _words(entry.key)
        _place(places, k, entry.key)
    return Tables(
        table,
        words,
        np.frombuffer(b"".join(entry.key for entry in entries), np.uint8),
        places,
        np.array(ints, np.int64),
        np.concatenate(floats).view(np.uint32) if floats else np.empty(0, np.uint32),
        strings,
        [2.0 if entry.size == ANY_LENGTH else 0.0 for entry in entries],
    )


def _words(key: bytes) -> tuple[int, int]:
    """The first and the last eight bytes; a shorter key is its own first, filled up with zeros."""
    first = int.from_bytes(key[:8], "little")
    return first, (int.from_bytes(key[-8:], "little") if len(key) >= 8 else 0)


def _place(places: np.ndarray, k: int, key: bytes) -> None:
    """Enter a key into the hash table; the kernel's `_find` searches by the same steps."""
    first, last = _words(key)
    mixed = first ^ (last * kernel.M1 & _WORD) ^ (len(key) * kernel.M2 & _WORD)
    at = ((mixed * kernel.M3 & _WORD) >> 32) & (len(places) - 1)
    while places[at] >= 0:
        at = (at + 1) & (len(places) - 1)
    places[at] = k


class Output:
    """The arrays one call of the kernel writes into, with the place of every entry in them."""

    __slots__ = ("_bases", "_sizes", "floats", "ints", "lengths", "rows", "splits", "starts", "table")

    def __init__(self, tables: Tables, rows: int) -> None:
        self.rows = rows
        self.table = tables.table.copy()
        self._sizes: list[int] = self.table[:, kernel.SIZE].tolist()
        self._bases: list[int] = []
        fixed = self.table[:, kernel.SIZE] >= 0
        guess = np.array([math.ceil(density * rows) + 8 for density in tables.density], np.int64)
        self.table[:, kernel.ROOM] = np.where(fixed, self.table[:, kernel.SIZE] * rows, guess)
        self.splits = np.zeros((int((~fixed).sum()), rows + 1), np.int64)
        sizes = self._lay_out()
        self.ints = ARENA.empty((sizes[INT64],), np.int64)
        self.floats = ARENA.empty((sizes[FLOAT],), np.float32)
        self.starts = np.empty(sizes[BYTES], np.int64)
        self.lengths = np.empty(sizes[BYTES], np.int64)

    def _lay_out(self) -> dict[int, int]:
        """Give every entry its BASE, 64-byte aligned within its array; the arrays' sizes by kind."""
        sizes = {BYTES: 0, FLOAT: 0, INT64: 0}
        self._bases = []
        for kind, room in self.table[:, (kernel.KIND, kernel.ROOM)].tolist():
            self._bases.append(sizes[kind])
            sizes[kind] += (room + 15) & ~15
        self.table[:, kernel.BASE] = self._bases
        return sizes

    def grow(self, entry: int, needed: int) -> None:
        """Give entry `entry` room for `needed` values and as many again, keeping what has been written."""
        old = self.table.copy()
        self.table[entry, kernel.ROOM] = 2 * needed
        sizes = self._lay_out()
        self.ints = self._moved(self.ints, old, INT64, sizes)
        self.floats = self._moved(self.floats, old, FLOAT, sizes)
        self.starts = self._moved(self.starts, old, BYTES, sizes)
        self.lengths = self._moved(self.lengths, old, BYTES, sizes)

    def _moved(self, array: np.ndarray, old: np.ndarray, kind: int, sizes: dict[int, int]) -> np.ndarray:
        if sizes[kind] == len(array):
            return array
        found = np.empty(sizes[kind], array.dtype)
        for before, after in zip(old.tolist(), self.table.tolist(), strict=True):
            if before[kernel.KIND] == kind:
                source, target, size = before[kernel.BASE], after[kernel.BASE], before[kernel.ROOM]
                found[target : target + size] = array[source : source + size]
        return found

    def count(self, entry: int) -> int:
        """How many values an entry has."""
        size = self._sizes[entry]
        if size >= 0:
            return size * self.rows
        return int(self.splits[self.table[entry, kernel.SPLITS], -1])

    def part(self, array: np.ndarray, entry: int) -> np.ndarray:
        """The values of an entry in `array`."""
        base = self._bases[entry]
        return array[base : base + self.count(entry)]
