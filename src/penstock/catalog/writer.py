"""SplitWriter: the examples of one split into shards, in an order that depends on their keys alone."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.catalog.info import SplitInfo, shard_name
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.io.tfrecord import TFRecordWriter

Key = str | bytes | int

_MIB = 1 << 20
_RECORD_OVERHEAD = 16  # length and two checksums
_MIN_SHARD, _MAX_SHARD, _PREFERRED_SHARDS = 64 * _MIB, 1024 * _MIB, 1024


class SplitWriter:
    """Takes examples in any order and writes them ordered by the hash of their keys, salted with the split's name.

    Whoever generates the examples, in whatever order, gets the same files: and each stretch of them is a fair sample.
    The hash is TFDS's (md5), so its files hold the same order. Records wait in one file in `folder`; memory holds
    about 150 bytes per example.
    """

    def __init__(self, folder: Path, dataset: str, split: str, num_shards: int | None = None) -> None:
        self._folder, self._dataset, self._split, self._num_shards = folder, dataset, split, num_shards
        self._salted = hashlib.md5(split.encode(), usedforsecurity=False)
        self._places: dict[bytes, tuple[int, int]] = {}
        self._size = 0
        self._spool_path = folder / f"{dataset}-{split}.spool"
        self._spool = self._spool_path.open("w+b")

    def write(self, key: Key, record: bytes) -> None:
        """Add the example `record`; `key` tells it from all others of the split.

        Raises:
            InvalidArgumentError: an example with this key has been written before.
        """
        digest = self._hash(key)
        if digest in self._places:
            message = f"the key {key!r} came twice in split {self._split!r}."
            raise InvalidArgumentError(message, hint="_generate_examples() must yield a unique key with each example.")
        self._places[digest] = (self._size, len(record))
        self._spool.write(record)
        self._size += len(record)

    def finish(self) -> SplitInfo:
        """Write the shards and say what is in them."""
        order = sorted(self._places)
        count = self._num_shards or default_shards(self._size, len(order))
        count = max(min(count, len(order)), 1)
        edges = [round(number * len(order) / count) for number in range(count + 1)]
        for number in range(count):
            name = shard_name(self._dataset, self._split, number, count)
            with TFRecordWriter(str(self._folder / name)) as shard:
                for digest in order[edges[number] : edges[number + 1]]:
                    start, length = self._places[digest]
                    self._spool.seek(start)
                    shard.write(self._spool.read(length))
        lengths = tuple(after - before for before, after in pairwise(edges))
        return SplitInfo(self._split, lengths, self._size)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._spool.close()
        self._spool_path.unlink()

    def _hash(self, key: Key) -> bytes:
        if isinstance(key, bool) or not isinstance(key, str | bytes | int):
            message = f"a key must be a str, bytes or an int, got {type(key).__name__}."
            raise InvalidTypeError(message, hint="A file name or a running number does well.")
        salted = self._salted.copy()
        salted.update(key if isinstance(key, bytes) else str(key).encode())
        return salted.digest()


def default_shards(num_bytes: int, num_examples: int) -> int:
    """How many shards TFDS would write: of 64 MiB to 1 GiB each, 1024 of them where that allows.

    >>> default_shards(num_bytes=10 * 2**20, num_examples=1000)
    1
    >>> default_shards(num_bytes=2**39, num_examples=10**7)
    1024
    """
    total = num_bytes + _RECORD_OVERHEAD * num_examples
    most, least = max(total // _MIN_SHARD, 1), -(-total // _MAX_SHARD)
    if least > _PREFERRED_SHARDS:
        return -(-least // _PREFERRED_SHARDS) * _PREFERRED_SHARDS
    return min(most, _PREFERRED_SHARDS, max(num_examples, 1))
