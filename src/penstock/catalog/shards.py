"""ShardsSource: records of prepared shards by number. A shard is opened when one of its records is needed."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from penstock.block.block import Block, concat_blocks
from penstock.block.column import BytesColumn
from penstock.block.origin import Origin
from penstock.block.spec import TensorSpec
from penstock.errors import DataLossError, NotFoundError, PenstockError, UnimplementedError
from penstock.forked import new_rlock, when_gone
from penstock.io import storage
from penstock.sources.indexed_records import ArrayRecordRows, RecordRows
from penstock.sources.row_files import gather
from penstock.sources.source import IndexedSource

_MOST_OPEN = 64


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
    def _files(self) -> _OpenFiles:
        return _OpenFiles(self.stretches, self.file_format)

    def rows(self, start: int, stop: int) -> Block:
        order, parts = self._order, []
        while start < stop:
            shard, row, left = order.run_at(start)
            taken = min(left, stop - start)
            parts.append(self._files.rows(shard, row, row + taken))
            start += taken
        return concat_blocks(parts)

    def rows_at(self, indices: np.ndarray) -> Block:
        shards, rows = self._order.places(indices)
        return gather(shards, rows, self._files.rows_at)

    def places(self) -> Iterator[tuple[str, int]]:
        """Yield the file of each record, and its number there."""
        for shard, row in zip(*self._order.places(np.arange(self.cardinality)), strict=True):
            yield self.stretches[shard].file, self.stretches[shard].start + int(row)

    def check_shard(self, number: int) -> None:
        """Raise an error if a shard is missing, or has another number of records than expected."""
        self._files.check(number)

    def __getstate__(self) -> dict[str, Any]:
        """Drop the open files."""
        return {part.name: getattr(self, part.name) for part in fields(self)}


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


class _OpenFiles:
    """The files of the shards. The most recently used ones stay open. Thread-safe."""

    def __init__(self, stretches: tuple[Stretch, ...], file_format: str) -> None:
        self._stretches, self._format = stretches, file_format
        self._lock = new_rlock()
        self._open: OrderedDict[str, ShardFile] = OrderedDict()

    def rows(self, shard: int, start: int, stop: int) -> Block:
        first = self._stretches[shard].start
        return self._file(shard).part(first + start, first + stop)

    def rows_at(self, shard: int, rows: np.ndarray) -> Block:
        return self._file(shard).rows_at(self._stretches[shard].start + rows)

    def check(self, shard: int) -> None:
        self._file(shard)

    def _file(self, shard: int) -> ShardFile:
        stretch = self._stretches[shard]
        with self._lock:
            file = self._open.get(stretch.file)
            if file is None:
                file = self._open[stretch.file] = _opened(stretch, self._format)
                if len(self._open) > _MOST_OPEN:
                    self._open.popitem(last=False)
            self._open.move_to_end(stretch.file)
            return file


class ShardFile(ABC):
    """An open shard. `copy` is a local copy of a shard at a URL. Several threads may use it at once."""

    size: int

    @abstractmethod
    def part(self, start: int, stop: int) -> Block:
        """Return the rows `start` to `stop`."""

    @abstractmethod
    def rows_at(self, rows: np.ndarray) -> Block:
        """Return the rows with these numbers."""


class _TFRecordShard(ShardFile):
    def __init__(self, name: str, copy: str | None) -> None:
        self._rows = RecordRows(name, None if copy is None else storage.bytes_of(copy))
        self.size = self._rows.size

    def part(self, start: int, stop: int) -> Block:
        return self._rows.part(start, stop)

    def rows_at(self, rows: np.ndarray) -> Block:
        return self._rows.rows_at(rows)


class _ParquetShard(ShardFile):
    """A shard in tfds's Parquet format, with one column of records, `data`. Row groups are read on demand."""

    def __init__(self, name: str, copy: str | None) -> None:
        import pyarrow.parquet as pq

        self._name, self._file, self._lock = name, pq.ParquetFile(copy or name), new_rlock()
        counts = [self._file.metadata.row_group(number).num_rows for number in range(self._file.num_row_groups)]
        self._begins = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.size = int(self._begins[-1])
        self._groups: OrderedDict[int, list[bytes]] = OrderedDict()

    def part(self, start: int, stop: int) -> Block:
        return self.rows_at(np.arange(start, stop))

    def rows_at(self, rows: np.ndarray) -> Block:
        groups = np.searchsorted(self._begins, rows, side="right") - 1
        found = [
            self._group(int(group))[int(row - self._begins[group])] for group, row in zip(groups, rows, strict=True)
        ]
        return _block(found, self._name, rows)

    def _group(self, number: int) -> list[bytes]:
        with self._lock:
            if number not in self._groups:
                self._groups[number] = self._file.read_row_group(number, columns=["data"]).column(0).to_pylist()
                if len(self._groups) > 4:
                    self._groups.popitem(last=False)
            return self._groups[number]


class _ArrayRecordShard(ShardFile):
    def __init__(self, name: str, copy: str | None) -> None:
        self._rows = ArrayRecordRows(copy or name)
        self.size = self._rows.size

    def part(self, start: int, stop: int) -> Block:
        return self._rows.rows_at(np.arange(start, stop))

    def rows_at(self, rows: np.ndarray) -> Block:
        return self._rows.rows_at(rows)


def _block(records: list[bytes], name: str, rows: np.ndarray) -> Block:
    lengths = np.array([len(record) for record in records], np.int64)
    starts = np.cumsum(lengths) - lengths
    column = BytesColumn((np.frombuffer(b"".join(records), np.uint8),), starts, lengths)
    return Block.single(column, Origin.of_file(name, np.asarray(rows, np.int64)))


_FORMATS: dict[str, type[ShardFile]] = {
    "tfrecord": _TFRecordShard,
    "parquet": _ParquetShard,
    "array_record": _ArrayRecordShard,
}


def check_format(file_format: str) -> None:
    """Raise UnimplementedError for a format of shards that cannot be read."""
    if file_format not in _FORMATS:
        message = f"shards of format {file_format!r} are not read."
        hint = f"Formats that are read: {', '.join(_FORMATS)}; tfds's convert_format writes them."
        raise UnimplementedError(message, hint=hint)


def _made(name: str, make: Any) -> ShardFile:
    """Return the open shard. Access by number needs a local file, so a shard at a URL is copied first."""
    if not storage.is_url(name):
        return make(name, None)
    copy_of = storage.copied(name)
    try:
        file: ShardFile = make(name, copy_of)
    except BaseException:
        storage.remove(copy_of)
        raise
    when_gone(file, storage.remove, copy_of)
    return file


def _opened(stretch: Stretch, file_format: str) -> ShardFile:
    try:
        file = _made(stretch.file, _FORMATS[file_format])
    except PenstockError as error:
        raise copy.copy(error).with_traceback(None) from None
    except FileNotFoundError:
        message = "a shard of the data set is missing."
        raise NotFoundError(message, hint="Prepare the data set again.", file=stretch.file) from None
    if file.size != stretch.length:
        message = f"the shard holds {file.size} records, and the metadata says {stretch.length}."
        raise DataLossError(message, hint="Delete the folder and prepare again.", file=stretch.file)
    return file
