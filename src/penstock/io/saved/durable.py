"""Files that are whole or not there, also after a power cut, and objects behind URLs.

DirectFile writes from memory of ours without a copy in the system's cache.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Any

import numpy as np

from penstock.block.arena import ARENA
from penstock.errors import writing_to
from penstock.io import storage
from penstock.io.saved.chunk import PAGE, checksums


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


ROOM = 8 * PAGE  # bytes that are written at once
_ALIGNED = 1 << 12  # bytes: what disks write as a whole, and pages of memory are multiples of
_READ_AT_ONCE = 1 << 17
_DIRECT = getattr(os, "O_DIRECT", 0)
_REFUSED = errno.EINVAL, errno.EOPNOTSUPP  # by file systems that have no such files, or write other pieces only


def room() -> np.ndarray:
    """Memory for a DirectFile; the next one may have it when the file is closed."""
    memory = ARENA.empty((ROOM + _ALIGNED,), np.uint8)
    begin = -memory.ctypes.data % _ALIGNED
    return memory[begin : begin + ROOM]


class DirectFile:
    """A file that pieces are written to, one behind the other, which is on the disk when it is finished.

    The pieces are put side by side in `room`, and go from there to the disk. To write through the system's cache of
    files costs ten times as much; `keep` has the system read the file into it instead, while we go on. Where the
    system cannot do without its copy, it is made at once. `crcs` are the CRC32Cs of what was written, one for
    every MiB. All methods raise OSError where the disk, or its owner, does not let them.
    """

    def __init__(self, path: Path, room: np.ndarray) -> None:
        self._path = path
        self._file = _created(path)
        self._room = room
        self._filled = 0
        self.size = 0  # bytes of all pieces
        self.crcs: list[int] = []
        self.closed = False

    def __enter__(self) -> DirectFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def write(self, piece: Any) -> int:
        """Add the bytes of a buffer, and tell how many they are."""
        left = np.frombuffer(piece, np.uint8)
        size = len(left)
        self.size += size
        while len(left):
            begin = self._filled
            stop = min(begin + len(left), begin - begin % PAGE + PAGE)
            self._room[begin:stop] = left[: stop - begin]
            left = left[stop - begin :]
            self._filled = stop
            if stop % PAGE == 0:
                self.crcs += checksums(self._room[stop - PAGE : stop].data)  # while it is in the processor's cache
            if stop == ROOM:
                self._flush(ROOM)
        return size

    def finish(self) -> None:
        """Bring all to the disk."""
        last = self._filled - self._filled % PAGE
        self.crcs += checksums(self._room[last : self._filled].data)
        padded = -(-self._filled // _ALIGNED) * _ALIGNED
        self._room[self._filled : padded] = 0
        self._flush(padded)
        with writing_to(self._path):
            os.ftruncate(self._file, self.size)
            os.fsync(self._file)

    def keep(self) -> None:
        """Have the system read what was finished into its cache of files meanwhile, where the next reader finds it."""
        ask_for(self._file, self.size)

    def _flush(self, stop: int) -> None:
        left = self._room[:stop].data
        while left:
            try:
                done = os.write(self._file, left)
            except OSError as error:
                if error.errno not in _REFUSED or not _made_indirect(self._file):
                    with writing_to(self._path):
                        raise
                continue
            left = left[done:]
        self._filled = 0

    def close(self) -> None:
        """Idempotent."""
        if not self.closed:
            self.closed = True
            os.close(self._file)


def ask_for(file: int, size: int) -> None:
    """Have the system read so many bytes of an open file into its cache of files, while we go on.

    Linux reads no more for one such request than it reads ahead of a reader of the device, 128 KiB unless somebody has
    set it, and passes over the rest.
    """
    with suppress(AttributeError, OSError):  # not each system, nor each file system, does
        for begin in range(0, size, _READ_AT_ONCE):
            os.posix_fadvise(file, begin, min(size - begin, _READ_AT_ONCE), os.POSIX_FADV_WILLNEED)


def _created(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    flags |= getattr(os, "O_NOFOLLOW", 0)  # through a symbolic link we would write into whatever file it names
    try:
        return os.open(path, flags | _DIRECT, 0o666)
    except OSError as error:
        if error.errno not in _REFUSED or not _DIRECT:
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
