"""Tables: the description of expected records, as arrays for the compiled parser."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from penstock.block.arena import ARENA
from penstock.io.expected import ANY_LENGTH, Entry, Expected, Output
from penstock.io.features import FixedLenFeature
from penstock.io.kernels import example as columns
from penstock.io.values import BYTES, FLOAT, INT64

_WORD = (1 << 64) - 1
_LAYOUTS = 64  # stored per description; Blocks have few sizes, except the last one of each file


@dataclass(slots=True, eq=False)
class Tables:
    """`table` has a row per entry (see the kernel's columns), without BASE and ROOM, which depend on the block.

    `density` has the highest number of values per row of each entry of any length so far. It estimates the needed room;
    threads may overwrite each other's estimates without harm. `layouts` caches layouts by the number of rows, if they
    depend only on this number. `sizes` has the sizes of the entries, and `lists` the number of entries of any length.
    `numbers` has the location of outputs that are plain arrays of numbers. `no_notes` is the initial state of the
    kernel's notes.
    """

    table: np.ndarray
    keys: np.ndarray
    places: np.ndarray
    int_defaults: np.ndarray
    float_defaults: np.ndarray
    bytes_defaults: list[list[bytes]]
    density: list[float]
    sizes: list[int]
    lists: int
    numbers: list[NumberFeature | None]
    no_notes: np.ndarray
    layouts: dict[int, ValueLayout] = field(default_factory=dict)


class NumberFeature(NamedTuple):
    """A `FixedLenFeature` of numbers: its entry and array, values per row, and the shape if it is no scalar."""

    entry: int
    floats: bool
    size: int
    shape: tuple[int, ...] | None


class ValueLayout(NamedTuple):
    """Positions of the entries' values: the table with BASE and ROOM, BASE by entry, array sizes by kind."""

    table: np.ndarray
    bases: list[int]
    sizes: dict[int, int]


def tables_of(expected: Expected) -> Tables:
    """Return the tables of `expected`, which are built on first use."""
    if not expected.tables:
        expected.tables.append(_make(expected))
    found: Tables = expected.tables[0]
    return found


def _make(expected: Expected) -> Tables:
    entries = expected.entries
    table = np.zeros((len(entries), columns.TABLE_COLUMNS), np.int64)
    ints: list[int] = []
    floats: list[np.ndarray] = []
    strings: list[list[bytes]] = []
    places = np.full(1 << math.ceil(math.log2(2 * len(entries) + 2)), -1, np.int64)
    lengths = key_at = 0
    for k, entry in enumerate(entries):
        row = table[k]
        row[columns.KIND], row[columns.SIZE], row[columns.STRIDE] = entry.kind, entry.size, entry.stride
        row[columns.KEY_SIZE], row[columns.KEY_AT] = len(entry.key), key_at
        key_at += len(entry.key)
        strings.append([])
        if entry.default is None:
            row[columns.DEFAULT] = columns.NO_DEFAULT
        elif entry.kind == INT64:
            row[columns.DEFAULT] = len(ints)
            ints += entry.default.tolist()
        elif entry.kind == FLOAT:
            row[columns.DEFAULT] = sum(map(len, floats))
            floats.append(entry.default.astype(np.float32))
        else:
            strings[-1] = entry.default.tolist()
        if entry.size == ANY_LENGTH:
            row[columns.SPLITS] = lengths
            lengths += 1
        row[columns.FIRST], row[columns.LAST] = map(_signed, _words(entry.key))
        _spell(row, entry)
        _place(places, k, entry.key)
    return Tables(
        table,
        np.frombuffer(b"".join(entry.key for entry in entries), np.uint8),
        places,
        np.array(ints, np.int64),
        np.concatenate(floats).view(np.uint32) if floats else np.empty(0, np.uint32),
        strings,
        [2.0 if entry.size == ANY_LENGTH else 0.0 for entry in entries],
        [entry.size for entry in entries],
        lengths,
        [_numbers(output) for output in expected.outputs],
        np.full((len(entries), columns.NOTES), -1, np.int64),
    )


def _numbers(output: Output) -> NumberFeature | None:
    feature = output.feature
    if not isinstance(feature, FixedLenFeature) or feature.dtype is bytes:
        return None
    return NumberFeature(output.entry, feature.dtype == np.float32, math.prod(feature.shape), feature.shape or None)


def _spell(row: np.ndarray, entry: Entry) -> None:
    """Store the usual spelling of a map entry with few values. The kernel's `expected_entry` compares with it."""
    size = len(entry.key)
    head = bytes([0x0A, size + 8 & 255, 0x0A, size & 255, *entry.key, 0x12, 4, entry.kind << 3 | 2, 2, 0x0A, 0])
    constant = np.full(len(head), 255, np.uint8)
    constant[[1, size + 5, size + 7, size + 9]] = 0
    at = min(8, len(head) - 8)
    for place, word, mask in ((0, columns.WORD_0, columns.MASK_0), (at, columns.WORD_1, columns.MASK_1)):
        row[mask] = _word(constant[place : place + 8].tobytes())
        row[word] = _word(head[place : place + 8]) & row[mask]
    row[columns.WORD_2], row[columns.AT_1], row[columns.HEAD] = _word(head[-8:]), at, len(head)
    if entry.size == 1:
        row[columns.FORM] = {INT64: columns.ONE_INT, FLOAT: columns.ONE_FLOAT, BYTES: columns.ONE_STRING}[entry.kind]
    row[columns.LONGEST] = 119 - size  # in a longer entry, the entry's length takes two bytes


def _word(eight: bytes) -> int:
    return int.from_bytes(eight, "little", signed=True)


def _signed(word: int) -> int:
    """Return the int64 with the same bits."""
    return word - (1 << 64) if word >> 63 else word


def _words(key: bytes) -> tuple[int, int]:
    """Return the first and the last eight bytes of a key. A shorter key is padded with zeros, and has no last word."""
    first = int.from_bytes(key[:8], "little")
    return first, (int.from_bytes(key[-8:], "little") if len(key) >= 8 else 0)


def _place(places: np.ndarray, k: int, key: bytes) -> None:
    """Insert a key into the hash table. The kernel's `find` searches with the same steps."""
    first, last = _words(key)
    mixed = first ^ (last * columns.M1 & _WORD) ^ (len(key) * columns.M2 & _WORD)
    at = ((mixed * columns.M3 & _WORD) >> 32) & (len(places) - 1)
    while places[at] >= 0:
        at = (at + 1) & (len(places) - 1)
    places[at] = k


def _lay_out(tables: Tables, rows: int) -> ValueLayout:
    """Return a layout for `rows` rows. Lists get as much room as the last blocks would have needed."""
    table = tables.table.copy()
    sizes = table[:, columns.SIZE]
    guess = [math.ceil(density * rows) + 8 for density in tables.density]
    table[:, columns.ROOM] = np.where(sizes >= 0, sizes * rows, guess)
    layout = ValueLayout(table, *_bases(table))
    if not tables.lists and len(tables.layouts) < _LAYOUTS:
        tables.layouts[rows] = layout
    return layout


def _bases(table: np.ndarray) -> tuple[list[int], dict[int, int]]:
    """Return BASE of every entry, 64-byte aligned in its array, and the arrays' sizes by kind.

    At least a cache line is left between two columns. A record writes to all columns, and columns at a distance of a
    power of two bytes would evict each other from the cache.
    """
    sizes = {BYTES: 0, FLOAT: 0, INT64: 0}
    bases = []
    for kind, room in table[:, (columns.KIND, columns.ROOM)].tolist():
        bases.append(sizes[kind])
        sizes[kind] += (room + 31) & ~15
    table[:, columns.BASE] = bases
    return bases, sizes


class KernelOutput:
    """The arrays of one kernel call, with the position of every entry in them."""

    __slots__ = ("_sizes", "bases", "floats", "ints", "lengths", "rows", "splits", "starts", "table")

    def __init__(self, tables: Tables, rows: int) -> None:
        self.rows = rows
        self.table, self.bases, sizes = tables.layouts.get(rows) or _lay_out(tables, rows)
        self._sizes = tables.sizes
        self.splits = np.zeros((tables.lists, rows + 1), np.int64)
        self.ints = ARENA.empty((sizes[INT64],), np.int64)
        self.floats = ARENA.empty((sizes[FLOAT],), np.float32)
        self.starts = np.empty(sizes[BYTES], np.int64)
        self.lengths = np.empty(sizes[BYTES], np.int64)

    def grow(self, entry: int, needed: int) -> None:
        """Give an entry room for twice `needed` values, and keep the values written so far."""
        old = self.table.copy()
        self.table[entry, columns.ROOM] = 2 * needed
        self.bases, sizes = _bases(self.table)
        self.ints = self._moved(self.ints, old, INT64, sizes)
        self.floats = self._moved(self.floats, old, FLOAT, sizes)
        self.starts = self._moved(self.starts, old, BYTES, sizes)
        self.lengths = self._moved(self.lengths, old, BYTES, sizes)

    def _moved(self, array: np.ndarray, old: np.ndarray, kind: int, sizes: dict[int, int]) -> np.ndarray:
        if sizes[kind] == len(array):
            return array
        found = np.empty(sizes[kind], array.dtype)
        for before, after in zip(old.tolist(), self.table.tolist(), strict=True):
            if before[columns.KIND] == kind:
                source, target, size = before[columns.BASE], after[columns.BASE], before[columns.ROOM]
                found[target : target + size] = array[source : source + size]
        return found

    def count(self, entry: int) -> int:
        """Return the number of values of an entry."""
        size = self._sizes[entry]
        if size >= 0:
            return size * self.rows
        return int(self.splits[self.table[entry, columns.SPLITS], -1])

    def part(self, array: np.ndarray, entry: int) -> np.ndarray:
        """Return the values of an entry in `array`."""
        base = self.bases[entry]
        return array[base : base + self.count(entry)]
