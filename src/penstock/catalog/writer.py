"""Shards of a split: their number, and their content from a Spool."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

from penstock.catalog.info import SplitInfo, shard_name
from penstock.catalog.progress import ProgressStep
from penstock.catalog.spool import BucketEntries, Spool
from penstock.io.tfrecord.writer import TFRecordWriter

_MIB = 1 << 20
_RECORD_OVERHEAD = 16  # length and two checksums
_MIN_SHARD, _MAX_SHARD, _PREFERRED_SHARDS = 64 * _MIB, 1024 * _MIB, 1024
_WRITERS = 4


def write_shards(
    spool: Spool, folder: Path, dataset: str, split: str, step: ProgressStep, num_shards: int | None = None
) -> SplitInfo:
    """Write all examples of `spool` into shards in `folder`. Existing shards are kept.

    The content depends only on keys and records.
    """
    places = spool.places()
    total = sum(len(place.entries) for place in places)
    count = max(min(num_shards or default_shards(spool.num_bytes, total), total), 1)
    edges = [round(number * total / count) for number in range(count + 1)]

    def write(number: int) -> None:
        path = folder / shard_name(dataset, split, number, count)
        start, stop = edges[number], edges[number + 1]
        if not path.exists():
            part = path.with_name(f"{path.name}.part")
            with TFRecordWriter(str(part)) as shard:
                for record in _records(spool, places, start, stop):
                    shard.write(record)
            part.rename(path)
        step.advance(stop - start)

    with ThreadPoolExecutor(_WRITERS) as pool:
        for _ in pool.map(write, range(count)):
            pass
    return SplitInfo(split, tuple(after - before for before, after in pairwise(edges)), spool.num_bytes)


def _records(spool: Spool, places: list[BucketEntries], start: int, stop: int) -> Iterator[bytes]:
    """Yield the records at positions `start` to `stop` of the whole order."""
    begin = 0
    for place in places:
        first, last = max(start - begin, 0), min(stop - begin, len(place.entries))
        if first < last:
            yield from spool.records(place.bucket, place.entries[first:last])
        begin += len(place.entries)


def default_shards(num_bytes: int, num_examples: int) -> int:
    """Return the number of shards that tfds writes.

    The result is 1024, or the largest of 512, 256 … 1 for which each shard has 64 MiB to 1 GiB.

    >>> default_shards(num_bytes=10 * 2**20, num_examples=1000)
    1
    >>> default_shards(num_bytes=824 * 2**20, num_examples=23262)
    8
    >>> default_shards(num_bytes=2**39, num_examples=10**7)
    1024
    """
    total = num_bytes + _RECORD_OVERHEAD * num_examples
    most, least = total // _MIN_SHARD, total // _MAX_SHARD
    if least > _PREFERRED_SHARDS:
        shards = 2 * _PREFERRED_SHARDS
        while shards < least:
            shards += _PREFERRED_SHARDS
        return min(shards, num_examples)
    for shards in (1024, 512, 256, 128, 64, 32, 16, 8, 4, 2):
        if least <= shards <= most and num_examples >= shards:
            return shards
    return 1
