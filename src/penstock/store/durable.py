"""Files that are complete or absent, even after a power failure, and objects at URLs.

DiskFile writes through the system's cache of files, or past it from its own memory. `is_as_written` knows the files
that this process has written through the cache.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from time import thread_time
from types import TracebackType
from typing import Any

import numpy as np

from penstock.block.arena import ARENA
from penstock.errors import writing_to
from penstock.io import storage
from penstock.store.chunk import PAGE


def write_whole(path: str | Path, content: bytes | memoryview, *, replace: bool = True) -> bool:
    """Write a file under a temporary name, sync it to the disk, and rename it. For a URL, write an object.

    With `replace=False`, an existing file stays, and the result is False.
    """
    if storage.is_url(path):
        if not replace and storage.exists(path):
            return False
        with storage.open_write(path) as sent:
            sent.write(content)
        return True
    path = Path(path)
    with _part(path) as part:
        with writing_to(path), part.open("xb") as file:  # "x": never write through a symbolic link
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            part.replace(path)
        else:
            try:
                os.link(part, path)
            except OSError:  # the file exists, or this file system has no links
                if path.exists():
                    return False
                part.replace(path)
    _sync_folder(path.parent)
    return True


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary name for a file. The file is renamed after the block has written and synced it."""
    with _part(path) as part:
        yield part
        part.replace(path)
    _sync_folder(path.parent)


@contextmanager
def _part(path: Path) -> Iterator[Path]:
    part = path.with_name(f"{path.name}.{token_hex(4)}.part")  # processes of two machines may have equal ids
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Sync the names in a folder to the disk, if the system supports it."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows cannot open folders
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


ROOM = 8 * PAGE  # bytes per write past the system's cache of files
_ALIGNED = 1 << 12  # bytes: alignment that disks require, and that memory pages have
_SMALL = 1 << 16  # bytes; smaller pieces are merged before they are written into the system's cache
_READ_AT_ONCE = 1 << 17
_DIRECT = getattr(os, "O_DIRECT", 0)
_SECOND = 10**9  # ns
_MARK = -1  # ns relative to the second of the write; no later change sets such a time
_MOST_KNOWN = 1 << 14  # files; a long run may write a small one every five seconds
_WRITTEN: dict[tuple[int, ...], tuple[int, ...]] = {}  # checksums by identity, the oldest first; no lock
# errors of file systems that do not support direct writes, or need other sizes
_REFUSED = errno.EINVAL, errno.EOPNOTSUPP


class DiskFile:
    """A file that takes pieces one after the other, and is on the disk when it is finished.

    With `cached` it is written through the system's cache of files, where the next reader finds it. Pieces of 1 MiB are
    written while they are in the processor's cache; pieces of 8 MiB cost several times as much.
    Otherwise, pieces are collected in memory and written directly to the disk, if the system supports it. `keep` makes
    the system read the file back into its cache in the background.
    `crcs` are the CRC32Cs of the content, one for every MiB. `copying` is the CPU time of copies into the system's
    cache. All methods raise OSError if the disk or its permissions refuse the file.
    """

    def __init__(self, path: Path, *, cached: bool) -> None:
        self._path = path
        self._cached = cached or not _DIRECT
        self._file = _created(path, 0 if self._cached else _DIRECT)
        self._room = _room(PAGE if self._cached else ROOM)
        self._filled = 0
        self._crc = 0  # checksum of the last, incomplete MiB
        self.size = 0  # bytes of all pieces
        self.crcs: list[int] = []
        self.copying = 0.0  # seconds
        self.closed = False

    def __enter__(self) -> DiskFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def write(self, piece: Any) -> int:
        """Add the bytes of a buffer, and return their number."""
        import crc32c

        left = np.frombuffer(piece, np.uint8)
        size = len(left)
        while len(left):
            part = left[: PAGE - self.size % PAGE]
            left = left[len(part) :]
            self._crc = crc32c.crc32c(part.data, self._crc)
            self._put(part)
            self.size += len(part)
            if self.size % PAGE == 0:
                self._end_page()
        return size

    def _put(self, part: np.ndarray) -> None:
        begin, large = self._filled, self._cached and len(part) >= _SMALL
        if large or begin + len(part) > len(self._room):
            self._flush(begin)
            begin = 0
        if large:
            self._write(part.data)
            return
        self._filled = begin + len(part)
        self._room[begin : self._filled] = part
        if self._filled == len(self._room):
            self._flush(self._filled)

    def _end_page(self) -> None:
        self.crcs.append(self._crc)
        self._crc = 0

    def finish(self) -> None:
        """Sync everything to the disk."""
        if self.size % PAGE:
            self._end_page()
        padded = self._filled if self._cached else -(-self._filled // _ALIGNED) * _ALIGNED
        self._room[self._filled : padded] = 0
        self._flush(padded)
        with writing_to(self._path):
            os.ftruncate(self._file, self.size)
            self._mark()
            os.fsync(self._file)
        if self._cached:
            note_as_written(self._path, tuple(self.crcs))

    def _mark(self) -> None:
        """Set a modification time that no later change of the file produces."""
        found = os.fstat(self._file)
        with suppress(OSError, TypeError, NotImplementedError):  # not every system supports this for an open file
            os.utime(self._file, ns=(found.st_atime_ns, found.st_mtime_ns // _SECOND * _SECOND + _MARK))

    def keep(self) -> None:
        """Make the system read the content that was written past its cache, in the background."""
        if not self._cached:
            ask_for(self._file, self.size)

    def _flush(self, stop: int) -> None:
        self._write(self._room[:stop].data)
        self._filled = 0

    def _write(self, left: memoryview) -> None:
        begun = thread_time()
        while left:
            try:
                done = os.write(self._file, left)
            except OSError as error:
                if error.errno not in _REFUSED or not _made_indirect(self._file):
                    with writing_to(self._path):
                        raise
                continue
            left = left[done:]
        if self._cached:
            self.copying += thread_time() - begun

    def close(self) -> None:
        """Close the file. Idempotent."""
        if not self.closed:
            self.closed = True
            os.close(self._file)


def note_as_written(path: str | Path, crcs: tuple[int, ...]) -> None:
    """Remember the checksums of a finished DiskFile that is in the system's cache of files."""
    with suppress(OSError, RuntimeError):  # RuntimeError: another thread has changed the dict, and removes the oldest
        found = Path(path).stat()
        # otherwise this file system rounds times, and later changes may look equal
        if found.st_mtime_ns % _SECOND == _MARK % _SECOND:
            _WRITTEN[_identity(found)] = crcs
            if len(_WRITTEN) > _MOST_KNOWN:
                _WRITTEN.pop(next(iter(_WRITTEN)), None)


def is_as_written(path: str, crcs: tuple[int, ...]) -> bool:
    """Return True if this process wrote the file with these checksums through the system's cache, and it is unchanged.

    Reading it now uses the same memory, as long as the system caches it. The result is False if this is not known.
    """
    try:
        found = Path(path).stat()
    except OSError:
        return False
    return _WRITTEN.get(_identity(found)) == crcs


def _identity(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _room(size: int) -> np.ndarray:
    """Return memory for collecting pieces. The next file may reuse it after this one is closed."""
    memory = ARENA.empty((size + _ALIGNED,), np.uint8)
    begin = -memory.ctypes.data % _ALIGNED
    return memory[begin : begin + size]


def ask_for(file: int, size: int) -> None:
    """Make the system read `size` bytes of an open file into its cache, in the background.

    For one request, Linux reads at most the read-ahead size of the device, 128 KiB by default, and ignores the rest.
    """
    with suppress(AttributeError, OSError):  # not every system or file system supports it
        for begin in range(0, size, _READ_AT_ONCE):
            os.posix_fadvise(file, begin, min(size - begin, _READ_AT_ONCE), os.POSIX_FADV_WILLNEED)


def _created(path: Path, direct: int) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    flags |= getattr(os, "O_NOFOLLOW", 0)  # never write through a symbolic link to another file
    try:
        return os.open(path, flags | direct, 0o666)
    except OSError as error:
        if error.errno not in _REFUSED or not direct:
            raise
    return os.open(path, flags, 0o666)


def _made_indirect(file: int) -> bool:
    """Switch to writes through the system's cache. Return False if the file used it before."""
    if not _DIRECT:
        return False
    import fcntl

    flags = fcntl.fcntl(file, fcntl.F_GETFL)
    if not flags & _DIRECT:
        return False
    fcntl.fcntl(file, fcntl.F_SETFL, flags & ~_DIRECT)
    return True
