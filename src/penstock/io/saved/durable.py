"""Files that are whole or not there, also after a power cut, and objects behind URLs.

DiskFile writes through the system's cache of files, or past it from memory of ours. `is_as_written` knows the files
that this process has written through it.
"""

from __future__ import annotations

import errno
import os
from collections import OrderedDict
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
from penstock.io.saved.chunk import PAGE


def write_whole(path: str | Path, content: bytes | memoryview, *, replace: bool = True) -> bool:
    """Write a file under a temporary name, bring it to the disk, and give it its name; or make an object of a URL.

    With `replace=False` a file that is there already stays, and the result is False.
    """
    if storage.is_url(path):
        if not replace and storage.exists(path):
            return False
        with storage.open_write(path) as sent:
            sent.write(content)
        return True
    path = Path(path)
    with _part(path) as part:
        with writing_to(path), part.open("xb") as file:  # new: never through a symbolic link
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            part.replace(path)
        else:
            try:
                os.link(part, path)
            except OSError:  # it is there, or this file system has no links
                if path.exists():
                    return False
                part.replace(path)
    _sync_folder(path.parent)
    return True


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """The temporary name of a file, which is written and brought to the disk inside, and gets its name behind."""
    with _part(path) as part:
        yield part
        part.replace(path)
    _sync_folder(path.parent)


@contextmanager
def _part(path: Path) -> Iterator[Path]:
    part = path.with_name(f"{path.name}.{token_hex(4)}.part")  # processes of two machines may have one number
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows opens no folders
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


ROOM = 8 * PAGE  # bytes that are written at once past the system's cache of files
_ALIGNED = 1 << 12  # bytes: what disks write as a whole, and pages of memory are multiples of
_SMALL = 1 << 16  # bytes of a piece that is put beside others before it is written into the system's cache
_READ_AT_ONCE = 1 << 17
_DIRECT = getattr(os, "O_DIRECT", 0)
_SECOND = 10**9  # ns
_MARK = -1  # ns behind the second in which a file was written: a time that the system gives to no later change
_MOST_KNOWN = 1 << 14  # files: a long run may write a small one every five seconds
_WRITTEN: OrderedDict[tuple[int, ...], tuple[int, ...]] = OrderedDict()  # checksums by identity, the oldest first
_REFUSED = errno.EINVAL, errno.EOPNOTSUPP  # by file systems that have no such files, or write other pieces only


class DiskFile:
    """A file that pieces are written to, one behind the other, which is on the disk when it is finished.

    With `cached` it is written into the system's cache of files, where the next reader finds it: a MiB at a time, while
    this is in the processor's cache; in pieces of 8 MiB that costs several times as much. Without, pieces are put side
    by side in memory of ours and go from there to the disk, where the system lets them; `keep` has the system read it
    back into its cache while we go on. `crcs` are the CRC32Cs of what was written, one for every MiB; `copying` is the
    CPU time that copies into the system's cache took. All methods raise OSError where the disk, or its owner, does not
    let them.
    """

    def __init__(self, path: Path, *, cached: bool) -> None:
        self._path = path
        self._cached = cached or not _DIRECT
        self._file = _created(path, 0 if self._cached else _DIRECT)
        self._room = _room(PAGE if self._cached else ROOM)
        self._filled = 0
        self._crc = 0  # of what is there of the last MiB
        self.size = 0  # bytes of all pieces
        self.crcs: list[int] = []
        self.copying = 0.0  # seconds
        self.closed = False

    def __enter__(self) -> DiskFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def write(self, piece: Any) -> int:
        """Add the bytes of a buffer, and tell how many they are."""
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
        """Bring all to the disk."""
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
        """Give the file a time of its last change that nobody's later change gives it."""
        found = os.fstat(self._file)
        with suppress(OSError, TypeError, NotImplementedError):  # not each system does that of an open file
            os.utime(self._file, ns=(found.st_atime_ns, found.st_mtime_ns // _SECOND * _SECOND + _MARK))

    def keep(self) -> None:
        """Have the system read what was written past its cache into it, while we go on."""
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
        """Idempotent."""
        if not self.closed:
            self.closed = True
            os.close(self._file)


def note_as_written(path: str | Path, crcs: tuple[int, ...]) -> None:
    """Remember that a DiskFile which is finished has these checksums, as the system's cache of files holds it."""
    with suppress(OSError):
        found = Path(path).stat()
        if found.st_mtime_ns % _SECOND == _MARK % _SECOND:  # else this file system rounds: later changes may look alike
            _WRITTEN[_identity(found)] = crcs
            if len(_WRITTEN) > _MOST_KNOWN:
                _WRITTEN.popitem(last=False)


def is_as_written(path: str, crcs: tuple[int, ...]) -> bool:
    """Whether a file is one with these checksums that this process has written and found in the system's cache.

    Nobody has changed it since by way of the system. What is read now comes from the same memory, for as long as the
    system keeps it there; False where that is not known.
    """
    try:
        found = Path(path).stat()
    except OSError:
        return False
    return _WRITTEN.get(_identity(found)) == crcs


def _identity(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _room(size: int) -> np.ndarray:
    """Memory that pieces are put side by side in; the next file may have it when this one is closed."""
    memory = ARENA.empty((size + _ALIGNED,), np.uint8)
    begin = -memory.ctypes.data % _ALIGNED
    return memory[begin : begin + size]


def ask_for(file: int, size: int) -> None:
    """Have the system read so many bytes of an open file into its cache of files, while we go on.

    Linux reads no more for one such request than it reads ahead of a reader of the device, 128 KiB unless somebody has
    set it, and passes over the rest.
    """
    with suppress(AttributeError, OSError):  # not each system, nor each file system, does
        for begin in range(0, size, _READ_AT_ONCE):
            os.posix_fadvise(file, begin, min(size - begin, _READ_AT_ONCE), os.POSIX_FADV_WILLNEED)


def _created(path: Path, direct: int) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    flags |= getattr(os, "O_NOFOLLOW", 0)  # through a symbolic link we would write into whatever file it names
    try:
        return os.open(path, flags | direct, 0o666)
    except OSError as error:
        if error.errno not in _REFUSED or not direct:
            raise
    return os.open(path, flags, 0o666)


def _made_indirect(file: int) -> bool:
    """Have the system copy what is written from now on; False if it did before."""
    if not _DIRECT:
        return False
    import fcntl

    flags = fcntl.fcntl(file, fcntl.F_GETFL)
    if not flags & _DIRECT:
        return False
    fcntl.fcntl(file, fcntl.F_SETFL, flags & ~_DIRECT)
    return True
