"""ShardsSource: records of prepared shards by number. A shard is opened when one of its records is needed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from penstock.block.block import Block, concat_blocks
from penstock.block.origin import Origin
from penstock.block.spec import TensorSpec
from penstock.errors import DataLossError, NotFoundError, PenstockError, UnimplementedError
from penstock.forked import when_gone
from penstock.io import storage
from penstock.sources.arrow_pieces import Columns
from penstock.sources.indexed_records import ArrayRecordRows, RecordRows
from penstock.sources.parquet import ParquetRows
from penstock.sources.row_files import OpenRowFiles, RowFile, gather
from penstock.sources.source import IndexedSource


class Stretch(NamedTuple):
    """The rows `start` to `stop` of a shard with `length` rows.

    The name of this class is part of fingerprints and cache keys.
    """

    file: str
    start: int
    stop: int
    length: int


@dataclass(frozen=True)
class ShardsSource(IndexedSource):
    """The records of `stretches`. Several shards are read in turn, `block` records of each, `cycle` shards at a time.

    This is the order of tfds. The number of records is known from the metadata. A shard without needed records is never
    opened.
    """

    stretches: tuple[Stretch, ...]
    file_format: str = "tfrecord"
    cycle: int = 16
    block: int = 16

    @property
    def label(self) -> str:
        count = len(self.stretches)
        return f"catalog({count} shard{'' if count == 1 else 's'})"

    @property
    def spec(self) -> Any:
        return TensorSpec((), bytes)

    @property
    def cardinality(self) -> int:
        return sum(stretch.stop - stretch.start for stretch in self.stretches)

    @cached_property
    def _order(self) -> _Order:
        lengths = [stretch.stop - stretch.start for stretch in self.stretches]
        return _Order.of(lengths, self.cycle, self.block)

    @cached_property
    def _files(self) -> OpenRowFiles:
        lengths, file_format = {stretch.file: stretch.length for stretch in self.stretches}, self.file_format
        return OpenRowFiles(lambda name: _opened(name, lengths[name], file_format))

    def rows(self, start: int, stop: int) -> Block:
        order, parts = self._order, []
        while start < stop:
            shard, row, left = order.run_at(start)
            stretch = self.stretches[shard]
            first = stretch.start + row
            parts.append(self._files[stretch.file].part(first, first + min(left, stop - start)))
            start += parts[-1].size
        return concat_blocks(parts)

    def rows_at(self, indices: np.ndarray) -> Block:
        shards, rows = self._order.places(indices)
        return gather(shards, rows, self._rows_of)

    def _rows_of(self, shard: int, rows: np.ndarray) -> Block:
        stretch = self.stretches[shard]
        return self._files[stretch.file].rows_at(stretch.start + rows)

    def places(self) -> Iterator[tuple[str, int]]:
        """Yield the file of each record, and its number there."""
        for shard, row in zip(*self._order.places(np.arange(self.cardinality)), strict=True):
            yield self.stretches[shard].file, self.stretches[shard].start + int(row)

    def check_shard(self, number: int) -> None:
        """Raise an error if a shard is missing, or has another number of records than expected."""
        _ = self._files[self.stretches[number].file]


@dataclass(frozen=True)
class _Order:
    """Runs of neighbouring rows: run i begins at position `begins[i]`, with rows `rows[i]`… of shard `shards[i]`."""

    begins: np.ndarray
    shards: np.ndarray
    rows: np.ndarray

    @classmethod
    def of(cls, lengths: list[int], cycle: int, block: int) -> _Order:
        runs = _in_turn(lengths, cycle, block) if cycle > 1 else [(i, 0, n) for i, n in enumerate(lengths) if n]
        shards, rows, sizes = (np.array([run[part] for run in runs], np.int64) for part in range(3))
        return cls(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), shards, rows)

    def run_at(self, position: int) -> tuple[int, int, int]:
        """Return the shard and the row at a position, and the number of consecutive rows of this shard from there."""
        run = int(np.searchsorted(self.begins, position, side="right")) - 1
        ahead = position - int(self.begins[run])
        return int(self.shards[run]), int(self.rows[run]) + ahead, int(self.begins[run + 1]) - position

    def places(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        runs = np.searchsorted(self.begins, positions, side="right") - 1
        return self.shards[runs], self.rows[runs] + positions - self.begins[runs]


def _in_turn(lengths: list[int], cycle: int, block: int) -> list[tuple[int, int, int]]:
    """Return (shard, first row, number of rows) of each run of `interleave(cycle_length, block_length)` over shards."""
    runs: list[tuple[int, int, int]] = []
    waiting = iter(range(len(lengths)))
    slots: list[list[int] | None] = [_next(waiting) for _ in range(min(cycle, len(lengths)))]
    while any(slot is not None for slot in slots):
        for number, slot in enumerate(slots):
            if slot is None:
                continue
            shard, row = slot
            taken = min(block, lengths[shard] - row)
            if taken:
                runs.append((shard, row, taken))
            # A shard that ends within its turn frees its slot at once, and the next shard begins with the next turn.
            # The end of a shard that ends exactly with its turn is found in its next turn.
            slots[number] = [shard, row + taken] if taken == block else _next(waiting)
    return runs


def _next(waiting: Any) -> list[int] | None:
    shard = next(waiting, None)
    return None if shard is None else [shard, 0]


class _ParquetShard(ParquetRows):
    """A shard in tfds's Parquet format, with one column of records, `data`."""

    def __init__(self, name: str, copy: str | None) -> None:
        super().__init__(copy or name, Columns(("data",)))
        self._name = name

    def part(self, start: int, stop: int) -> Block:
        found = super().part(start, stop)
        return self._records(found, np.arange(start, start + found.size))

    def rows_at(self, rows: np.ndarray) -> Block:
        return self._records(super().rows_at(rows), rows)

    def _records(self, found: Block, rows: np.ndarray) -> Block:
        return Block.single(found.columns[0], Origin.of_file(self._name, rows))


# Each function opens a shard by its name, or the local copy of a shard at a URL.
_FORMATS: dict[str, Callable[[str, str | None], RowFile]] = {
    "tfrecord": lambda name, copy: RecordRows(name, None if copy is None else storage.bytes_of(copy)),
    "parquet": _ParquetShard,
    "array_record": lambda name, copy: ArrayRecordRows(copy or name),
}


def check_format(file_format: str) -> None:
    """Raise UnimplementedError for a format of shards that cannot be read."""
    if file_format not in _FORMATS:
        message = f"shards of format {file_format!r} are not read."
        hint = f"Formats that are read: {', '.join(_FORMATS)}; tfds's convert_format writes them."
        raise UnimplementedError(message, hint=hint)


def _made(name: str, make: Callable[[str, str | None], RowFile]) -> RowFile:
    """Return the open shard. Access by number needs a local file, so a shard at a URL is copied first."""
    if not storage.is_url(name):
        return make(name, None)
    copy_of = storage.copied(name)
    try:
        file = make(name, copy_of)
    except BaseException:
        storage.remove(copy_of)
        raise
    when_gone(file, storage.remove, copy_of)
    return file


def _opened(name: str, length: int, file_format: str) -> RowFile:
    try:
        file = _made(name, _FORMATS[file_format])
    except PenstockError as error:
        raise copy.copy(error).with_traceback(None) from None
    except FileNotFoundError:
        message = "a shard of the data set is missing."
        raise NotFoundError(message, hint="Prepare the data set again.", file=name) from None
    if file.size != length:
        message = f"the shard holds {file.size} records, and the metadata says {length}."
        raise DataLossError(message, hint="Delete the folder and prepare again.", file=name)
    return file
