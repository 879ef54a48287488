"""A keyed permutation of [0, n): any part of a random order of n numbers, without computing the rest.

Up to `SMALL` numbers it is a Fisher-Yates shuffle: all orders are equally likely. For more numbers it is a Feistel
network of `ROUNDS` rounds over a grid of about sqrt(n) by sqrt(n) numbers (Black and Rogaway, "Ciphers with arbitrary
finite domains", 2002). A number outside of [0, n) goes through the network again until it is inside. The number of
rounds is that of the FF1 cipher on such domains (NIST SP 800-38G). Each round adds a draw of `penstock.keys`.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from penstock.keys import draw, draws, fold
from penstock.native.library import Kernels

SMALL = 1 << 16
ROUNDS = 10
MOST = 1 << 63

_TABLES = 1 << 32  # largest n with precomputed draws of all rounds, of at most 2.6 MB
_CHUNK = 1 << 14  # numbers at a time, so that they stay in the processor's cache
_NATIVE = Kernels("penstock.permutation_native")
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


class Permutation:
    """The permutation of [0, size) with the key `key`."""

    def __init__(self, key: int, size: int) -> None:
        self.size = size
        self._order = _shuffled(key, size) if size <= SMALL else None
        self._network = None if size <= SMALL else _Network(key, size)

    def at(self, positions: np.ndarray) -> np.ndarray:
        """Return the numbers at int64 positions in [0, size), as int64."""
        if self._order is not None:
            return self._order.take(positions)
        assert self._network is not None
        return self._network.at(positions)

    def part(self, start: int, stop: int) -> np.ndarray:
        """Return the numbers at the positions from `start` to `stop` - 1."""
        if self._order is not None:
            return self._order[start:stop]
        return self.at(np.arange(start, stop, dtype=np.int64))


@lru_cache(maxsize=4)
def permutation(key: int, size: int) -> Permutation:
    """Return `Permutation(key, size)`, cached."""
    return Permutation(key, size)


def permuted(position: int, key: int, size: int) -> int:
    """Return one number of a permutation, by its definition. `Permutation.at` is the fast version.

    >>> sorted(permuted(i, 7, 5) for i in range(5))
    [0, 1, 2, 3, 4]
    """
    if size <= SMALL:
        return int(_shuffled(key, size)[position])
    rows, columns = _grid(size)
    while True:
        row, column = divmod(position, columns)
        for number in range(ROUNDS):
            round_key = fold(key, number)
            if number % 2:
                column = (column + draw(round_key, row, columns)) % columns
            else:
                row = (row + draw(round_key, column, rows)) % rows
        position = row * columns + column
        if position < size:
            return position


def _shuffled(key: int, size: int) -> np.ndarray:
    """Return [0, size) in the order of a Fisher-Yates shuffle, the last draw first."""
    return drain(draws(key, 0, size, np.arange(size, 0, -1)))[::-1].copy()


def drain(picks: np.ndarray) -> np.ndarray:
    """Return the order in which slots empty. Pick i is an index of a full slot; the last full slot takes its place.

    >>> drain(np.array([1, 1, 0]))
    array([1, 2, 0])
    """
    order = np.empty(len(picks), np.int64)
    native = _NATIVE.loaded()
    if native is None:
        _drain(picks, order)
    else:
        native.drain(np.require(picks, np.int64, ["C", "A"]), np.empty_like(order), order)
    return order


def _drain(picks: np.ndarray, order: np.ndarray) -> None:
    slots = list(range(len(picks)))
    for i, pick in enumerate(picks.tolist()):
        order[i] = slots[pick]
        slots[pick] = slots[-1]
        slots.pop()


def _grid(size: int) -> tuple[int, int]:
    """Return rows and columns of a grid for `size` numbers. The columns are a power of two; no row is superfluous."""
    columns = 1 << (size - 1).bit_length() // 2
    return -(-size // columns), columns


class _Network:
    """The Feistel network, for arrays of positions."""

    def __init__(self, key: int, size: int) -> None:
        self._size = size
        self._rows, self._columns = _grid(size)
        self._shift = self._columns.bit_length() - 1
        self._keys = [fold(key, number) for number in range(ROUNDS)]
        self._tables: list[np.ndarray] | None = None
        if size <= _TABLES:
            self._tables = [self._table(number) for number in range(ROUNDS)]

    def _table(self, number: int) -> np.ndarray:
        rows, columns = self._rows, self._columns
        return draws(self._keys[number], 0, *((rows, columns) if number % 2 else (columns, rows)))

    def at(self, positions: np.ndarray) -> np.ndarray:
        found = np.empty(len(positions), np.int64)
        for start in range(0, len(positions), _CHUNK):
            part = self._once(positions[start : start + _CHUNK])
            while len(outside := np.flatnonzero(part >= self._size)):
                part[outside] = self._once(part[outside])
            found[start : start + _CHUNK] = part
        return found

    def _once(self, positions: np.ndarray) -> np.ndarray:
        mask = self._columns - 1
        row, column = positions >> self._shift, positions & mask
        for number in range(ROUNDS):
            if number % 2:
                column += self._drawn(number, row, self._columns)
                column &= mask
            else:
                row += self._drawn(number, column, self._rows)
                row -= self._rows * (row >= self._rows)
        row <<= self._shift
        row |= column
        return row

    def _drawn(self, number: int, counters: np.ndarray, bound: int) -> np.ndarray:
        if self._tables is not None:
            return self._tables[number].take(counters)
        return _draws_at(self._keys[number], counters, bound)


def _draws_at(key: int, counters: np.ndarray, bound: int) -> np.ndarray:
    """Return `draw(key, counter, bound)` for each counter."""
    value = np.uint64(key) + (counters.astype(np.uint64) + np.uint64(1)) * _GOLDEN
    value = (value ^ (value >> np.uint64(30))) * _FIRST
    value = (value ^ (value >> np.uint64(27))) * _SECOND
    value ^= value >> np.uint64(31)
    scaled: np.ndarray = (value >> np.uint64(32)) * np.uint64(bound) >> np.uint64(32)
    return scaled.astype(np.int64)
