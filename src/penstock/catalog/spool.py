"""Spool: waiting examples, sorted by the hash of their keys or by the keys. They survive a kill of the process.

The folder has 32 pairs of files. The first bits of the hash choose the pair, so that each pair can be sorted in memory.
`records` has the key and the record of each example, and `index` an entry of 48 bytes for each. Records are written
before their entries. After a kill, the files are truncated to the last complete example.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, Self

import numpy as np

from penstock.errors import DataLossError, InvalidArgumentError, InvalidTypeError

Key = str | bytes | int

_BUCKETS = 32
_ENTRY = np.dtype(
    [
        ("hash", ">u8"),
        ("rest", ">u8"),
        ("offset", "<u8"),
        ("size", "<u8"),
        ("number", "<u8"),
        ("key", "<u4"),
        ("crc", "<u4"),
    ]
)
_MOST_WAITING, _LONGEST_WAITING = 1 << 22, 1.0  # limits of unwritten data: bytes and seconds
_READ_WHOLE = 1 << 26  # bytes of a bucket that is read as a whole, if at least half of it is needed


class BucketEntries(NamedTuple):
    """The entries of one bucket in the order of their hashes."""

    bucket: int
    entries: Any


class Spool:
    """Stores examples in any order, and returns them in the order of md5(salt + key), as tfds does.

    If not `shuffled`, the order is that of the keys, which must be numbers. All examples are then in one pair of files.
    `numbers` are those of the examples at the time of opening. Memory use is at most 4 MiB of unwritten data, and after
    the sort 48 bytes per example. Only one thread may add.
    """

    def __init__(self, folder: Path, salt: str, *, shuffled: bool = True) -> None:
        import crc32c

        folder.mkdir(parents=True, exist_ok=True)
        self._crc = crc32c.crc32c
        self._salt, self._salted = salt, hashlib.md5(salt.encode(), usedforsecurity=False)
        self._shuffled = shuffled
        self._files = [_Bucket(folder, number) for number in range(_BUCKETS)]
        self._waiting, self._since = 0, time.monotonic()
        self.num_bytes = sum(file.num_bytes for file in self._files)
        self.count = sum(file.count for file in self._files)

    def numbers(self) -> np.ndarray:
        """Return the numbers of the added examples."""
        return np.concatenate([file.entries()["number"] for file in self._files]).astype(np.int64)

    def hashes(self) -> set[bytes]:
        """Return the hashes of the added keys."""
        parts = [file.entries()[["hash", "rest"]] for file in self._files]
        return {bytes(entry) for part in parts for entry in np.ascontiguousarray(part).view("V16")}

    def hash_of(self, key: Key) -> bytes:
        """Return the 16 bytes that determine the place of an example."""
        name = key_bytes(key)
        if not self._shuffled:
            return _in_order(key)
        salted = self._salted.copy()
        salted.update(name)
        return salted.digest()

    def add(self, key: Key, record: bytes, number: int) -> None:
        """Store an example. A later run uses `number` to find out which examples are done."""
        digest, name = self.hash_of(key), key_bytes(key)
        file = self._files[digest[0] * _BUCKETS >> 8]
        file.add(digest, name, record, number, self._crc(record))
        self.num_bytes += len(record)
        self.count += 1
        self._waiting += len(record)
        if self._waiting >= _MOST_WAITING or time.monotonic() > self._since + _LONGEST_WAITING:
            self.flush()

    def flush(self) -> None:
        """Write the added examples to the system. They then survive the end of the process."""
        for file in self._files:
            file.flush()
        self._waiting, self._since = 0, time.monotonic()

    def places(self) -> list[BucketEntries]:
        """Return the places of all examples in order. Raises InvalidArgumentError for a key that came twice."""
        self.flush()
        found = []
        for number, file in enumerate(self._files):
            entries = np.sort(file.entries(), order=("hash", "rest"))
            same = (entries["hash"][1:] == entries["hash"][:-1]) & (entries["rest"][1:] == entries["rest"][:-1])
            if same.any():
                key = file.key(entries[int(np.flatnonzero(same)[0])])
                message = f"the key {key} came twice in split {self._salt!r}."
                hint = "_generate_examples() must yield a unique key with each example."
                raise InvalidArgumentError(message, hint=hint)
            if len(entries):
                found.append(BucketEntries(number, entries))
        return found

    def records(self, bucket: int, entries: Any) -> Iterator[bytes]:
        """Yield the records of `entries`, in their order."""
        for record, entry in zip(self._files[bucket].records(entries), entries, strict=True):
            if self._crc(record) != int(entry["crc"]):
                message = "an example that waited to be written has changed on the disk."
                raise DataLossError(message, hint="Delete the folder and prepare again.", file=str(self._files[bucket]))
            yield record

    def close(self) -> None:
        for file in self._files:
            file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None or not isinstance(error, OSError):
                self.flush()
        finally:
            self.close()


class _Bucket:
    """One pair of files."""

    def __init__(self, folder: Path, number: int) -> None:
        self._records_path, self._index_path = (folder / f"{number:02d}.{kind}" for kind in ("records", "index"))
        self._records, self._index = _appended(self._records_path), _appended(self._index_path)
        self._parts: list[bytes] = []
        self._entries: list[tuple[Any, ...]] = []
        self._cut_back()

    def __str__(self) -> str:
        return str(self._records_path)

    def _cut_back(self) -> None:
        """Truncate the files to the last complete example."""
        size = self._records.seek(0, os.SEEK_END)
        entries = np.fromfile(self._index_path, _ENTRY)
        ends = entries["offset"] + entries["key"] + entries["size"]
        whole = int(np.searchsorted(ends, size, side="right")) if len(ends) else 0
        entries = entries[:whole]
        self._end = int(ends[whole - 1]) if whole else 0
        # Only if needed: ext4 writes a truncated file to disk when it is closed.
        for file, length in ((self._records, self._end), (self._index, whole * _ENTRY.itemsize)):
            if file.seek(0, os.SEEK_END) > length:
                file.truncate(length)
        self.count, self.num_bytes = whole, int(entries["size"].sum())

    def add(self, digest: bytes, key: bytes, record: bytes, number: int, crc: int) -> None:
        high, low = int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")
        self._parts += (key, record)
        self._entries.append((high, low, self._end, len(record), number, len(key), crc))
        self._end += len(key) + len(record)

    def flush(self) -> None:
        if not self._entries:
            return
        _write_whole(self._records, b"".join(self._parts))
        self._parts.clear()
        _write_whole(self._index, np.array(self._entries, _ENTRY).tobytes())
        self._entries.clear()

    def entries(self) -> Any:
        return np.fromfile(self._index_path, _ENTRY)

    def key(self, entry: Any) -> str:
        found = os.pread(self._records.fileno(), int(entry["key"]), int(entry["offset"]))
        return repr(found.decode(errors="backslashreplace"))

    def records(self, entries: Any) -> Iterator[bytes]:
        handle = self._records.fileno()
        size = os.fstat(handle).st_size
        if size <= _READ_WHOLE and 2 * int(entries["size"].sum()) >= size:
            content = _read_at(handle, size, 0)
            for entry in entries:
                start = int(entry["offset"]) + int(entry["key"])
                yield content[start : start + int(entry["size"])]
            return
        for entry in entries:
            yield _read_at(handle, int(entry["size"]), int(entry["offset"]) + int(entry["key"]))

    def close(self) -> None:
        self._records.close()
        self._index.close()


def _in_order(key: Key) -> bytes:
    """Return 16 bytes in the order of the numbers, including negative ones."""
    try:
        number = int(key) if not isinstance(key, str) else None
        if number is not None:
            return (number + (1 << 127)).to_bytes(16, "big")
    except (ValueError, OverflowError):
        pass
    message = f"with disable_shuffling a key must be a number, by which examples are ordered, got {key!r:.60}."
    raise InvalidTypeError(message, hint="A running number does well; or leave disable_shuffling out of _info().")


def key_bytes(key: Key) -> bytes:
    """Return the bytes of a key for the hash: text as UTF-8 with slashes, a number as decimal digits."""
    if isinstance(key, bytes):
        return key
    if isinstance(key, bool) or not isinstance(key, str | int | np.integer):
        message = f"a key must be a str, bytes or an int, got {type(key).__name__}."
        raise InvalidTypeError(message, hint="A file name or a running number does well.")
    text = key.replace("\\", "/") if isinstance(key, str) else str(int(key))
    return text.encode(errors="surrogateescape")  # file names that are not UTF-8 keep their bytes


def _appended(path: Path) -> BinaryIO:
    return path.open("a+b", buffering=0)


def _write_whole(file: BinaryIO, content: bytes) -> None:
    """Write all bytes. A disk that becomes full accepts a part first, and the next write raises the error."""
    left = memoryview(content)
    while left:
        left = left[file.write(left) :]


def _read_at(handle: int, size: int, offset: int) -> bytes:
    parts = []
    while size:
        part = os.pread(handle, min(size, 1 << 30), offset)
        if not part:
            message = "an example that waited to be written has gone from the disk."
            raise DataLossError(message, hint="Delete the folder and prepare again.")
        parts.append(part)
        size, offset = size - len(part), offset + len(part)
    return b"".join(parts)
