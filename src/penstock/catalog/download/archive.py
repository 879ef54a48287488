"""Archives: their files as a stream, or unpacked into a folder. A member that leaves the folder is an error."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import posixpath
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from penstock.errors import DataLossError, InvalidArgumentError

_CHUNK = 1 << 20
_TAR = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz", ".tbz2", ".tar.xz", ".txz")
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, gzip.BadGzipFile)
_ENCRYPTED = 1  # flag of an encrypted member of a zip
_AGAIN = "Delete it: the next call downloads it again."


@dataclass(frozen=True)
class Limits:
    """The limits of an archive: `ratio` times its own size, or `free` bytes if that is more, and `members` files."""

    ratio: int = 200
    free: int = 1 << 30
    members: int = 50_000_000


def kind_of(path: Path) -> str:
    """Return the kind of an archive by its name and its first bytes: "zip", "tar", "gz", or "" for another file.

    >>> kind_of(Path("images.tar.gz")), kind_of(Path("train-images-idx3-ubyte.gz")), kind_of(Path("setid.mat"))
    ('tar', 'gz', '')
    """
    name = path.name.lower()
    if name.endswith(_TAR):
        return "tar"
    if name.endswith(".zip"):
        return "zip"
    if name.endswith(".gz"):
        return "gz"
    try:
        with path.open("rb") as file:
            first = file.read(512)
    except OSError:
        return ""
    if first.startswith(b"PK\x03\x04"):
        return "zip"
    if first[257:262] == b"ustar":
        return "tar"
    return "gz" if first.startswith(b"\x1f\x8b") else ""


def iter_archive(path: str | os.PathLike[str], limits: Limits = Limits()) -> Iterator[tuple[str, BinaryIO]]:
    """Yield the name and the content of each file in an archive, in order. The archive is not unpacked to disk.

    Read each content before the next step of the iteration. Names have no "./" parts. As in tfds, links, devices,
    hidden files and files that end in "~" are skipped.

    Raises:
        DataLossError: If the archive is damaged or too large when unpacked. A read of a content may raise it too.
        InvalidArgumentError: If the file is no archive, or needs a password.
    """
    path = Path(path)
    guard = _Guard(path, limits)
    with _told(path):
        for name, file, _ in _members(path, guard, links=None):
            name = posixpath.normpath(name)
            if not name.endswith("~") and not posixpath.basename(name).startswith("."):
                yield name, file


def extract(
    path: str | os.PathLike[str],
    to: str | os.PathLike[str],
    *,
    advance: Callable[[int], None] = lambda count: None,
    limits: Limits = Limits(),
) -> None:
    """Unpack an archive into the folder `to`, which appears when it is complete. `advance` gets the written bytes.

    Raises:
        InvalidArgumentError: If a name or a link leads out of the folder, or if the file is no archive or needs a
            password.
        DataLossError: If the archive is damaged, or too large when unpacked.
    """
    path, to = Path(path), Path(to)
    work = to.with_name(f"{to.name}.incomplete")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    guard = _Guard(path, limits)
    try:
        with _told(path):
            if kind_of(path) == "gz":
                with gzip.open(path) as content:
                    _write(work / (path.name.removesuffix(".gz") or "content"), guard.counted(content), advance)
            for name, file, mode in _members(path, guard, links=work):
                target = work / safe(name, path)
                try:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    _write(target, file, advance)
                except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
                    message = f"the archive holds {name!r}, and a file and a folder of one name on the way to it."
                    raise DataLossError(message, hint=_AGAIN, file=str(path)) from error
                if mode & 0o111:
                    target.chmod(target.stat().st_mode | 0o111)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    shutil.rmtree(to, ignore_errors=True)
    work.rename(to)


def safe(name: str, archive: Path) -> PurePosixPath:
    """Return the relative path of a member. Raises InvalidArgumentError if the path leads out of the folder.

    >>> safe("images/cat.jpg", Path("a.zip")).name
    'cat.jpg'
    """
    parts = PurePosixPath(name.replace("\\", "/"))
    first = parts.parts[0] if parts.parts else ""
    if parts.is_absolute() or ".." in parts.parts or not first or first.endswith(":") or "\0" in name:
        message = f"the archive holds {name!r}, which leads out of the folder that it is unpacked into."
        hint = "No honest archive does. Nothing of it was kept."
        raise InvalidArgumentError(message, hint=hint, file=str(archive))
    return parts


def _members(path: Path, guard: _Guard, links: Path | None) -> Iterator[tuple[str, Any, int]]:
    """Yield (name, content, mode) of each file. Links are made below `links`, or skipped."""
    kind = kind_of(path)
    if kind == "zip":
        yield from _of_zip(path, guard)
    elif kind == "tar":
        yield from _of_tar(path, guard, links)
    elif kind != "gz" or links is None:
        message = f"{path.name} is not an archive."
        raise InvalidArgumentError(message, hint="zip, tar, tar.gz, tar.bz2 and tar.xz are.", file=str(path))


def _of_zip(path: Path, guard: _Guard) -> Iterator[tuple[str, Any, int]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            guard.member(member.filename)
            mode = member.external_attr >> 16
            if member.is_dir() or stat.S_ISLNK(mode):
                continue
            if member.flag_bits & _ENCRYPTED:
                message = f"the archive holds {member.filename!r} behind a password."
                hint = "Unpack it yourself, and give the builder what was in it (DownloadManager.manual)."
                raise InvalidArgumentError(message, hint=hint, file=str(path))
            with archive.open(member) as content:
                yield member.filename, guard.counted(content, member.file_size), mode


def _of_tar(path: Path, guard: _Guard, links: Path | None) -> Iterator[tuple[str, Any, int]]:
    with ExitStack() as stack:
        plain = stack.enter_context(_unpacked(path))
        archive = stack.enter_context(tarfile.open(fileobj=plain, mode="r|"))
        for member in archive:
            guard.member(member.name)
            if member.isfile():
                content = archive.extractfile(member)
                assert content is not None
                with closing(content):
                    yield member.name, guard.counted(content, member.size), member.mode
            elif (member.issym() or member.islnk()) and links is not None:
                _link(member, links, path)
        while rest := plain.read(_CHUNK):  # read the rest too, because the checksum comes after the end of the tar data
            guard.add(len(rest))


def _unpacked(path: Path) -> Any:
    """Open a tar file without its compression. tarfile's own decompression of a tar.gz ignores the checksum."""
    with path.open("rb") as file:
        first = file.read(6)
    if first.startswith(b"\x1f\x8b"):
        return gzip.open(path)
    if first.startswith(b"BZh"):
        return bz2.open(path)
    return lzma.open(path) if first.startswith((b"\xfd7zXZ\x00", b"\x5d\x00\x00")) else path.open("rb")


def _link(member: tarfile.TarInfo, folder: Path, archive: Path) -> None:
    target = folder / safe(member.name, archive)
    base = target.parent if member.issym() else folder
    leads_to = Path(os.path.normpath(base / member.linkname))
    if (
        PurePosixPath(member.linkname).is_absolute()
        or not leads_to.is_relative_to(folder)
        or _through_link(target, folder)
    ):
        message = f"the archive holds a link {member.name!r} to {member.linkname!r}, which leads out of its folder."
        raise InvalidArgumentError(message, hint="No honest archive does. Nothing of it was kept.", file=str(archive))
    target.parent.mkdir(parents=True, exist_ok=True)
    # An existing target of a link is copied. A link itself could later be used to write outside the folder.
    if leads_to.is_file() and not leads_to.is_symlink():
        shutil.copyfile(leads_to, target)


def _through_link(target: Path, folder: Path) -> bool:
    return any(parent.is_symlink() for parent in target.parents if parent.is_relative_to(folder))


class _Guard:
    """Counts the unpacked bytes and files of an archive."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self.path, self._limits = path, limits
        self._most = max(path.stat().st_size * limits.ratio, limits.free)
        self._size = self._count = 0

    def member(self, name: str) -> None:
        self._count += 1
        safe(name.removesuffix("/") or ".", self.path) if name not in (".", "./") else None
        if self._count > self._limits.members:
            message = f"the archive claims more than {self._limits.members} files."
            raise DataLossError(message, hint="It is not what it should be.", file=str(self.path))

    def counted(self, content: Any, size: int | None = None) -> Any:
        if size is not None and self._size + size > self._most:
            raise self._too_much()
        return _CountedFile(content, self)

    def add(self, count: int) -> None:
        self._size += count
        if self._size > self._most:
            raise self._too_much()

    def _too_much(self) -> DataLossError:
        message = f"the archive unpacks to more than {self._most} bytes, {self._limits.ratio} times what it is."
        hint = "Such an archive is made to fill disks. Nothing of it was kept."
        return DataLossError(message, hint=hint, file=str(self.path))


class _CountedFile:
    """A file whose reads are counted."""

    def __init__(self, content: Any, guard: _Guard) -> None:
        self._content, self._guard = content, guard

    def read(self, size: int = -1) -> bytes:
        if size is not None and size >= 0:
            with _told(self._guard.path):  # the reader is outside the loop over the archive
                found: bytes = self._content.read(size)
            self._guard.add(len(found))
            return found
        parts = []
        while part := self.read(_CHUNK):
            parts.append(part)
        return b"".join(parts)

    def readable(self) -> bool:
        return True


def _write(target: Path, content: Any, advance: Callable[[int], None]) -> None:
    with target.open("wb") as file:
        while chunk := content.read(_CHUNK):
            file.write(chunk)
            advance(len(chunk))


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except _BROKEN as error:
        raise _damaged(error, path) from error
    except OSError as error:
        if error.errno is not None:  # an error of the file system; bz2 raises OSError without errno for damaged data
            raise
        raise _damaged(error, path) from error
    except NotImplementedError as error:
        message = f"the archive is compressed in a way that Python's zipfile does not know ({error})."
        raise InvalidArgumentError(message, hint="Pack it again, by deflate for example.", file=str(path)) from error


def _damaged(error: Exception, path: Path) -> DataLossError:
    return DataLossError(f"the archive is damaged ({type(error).__name__}: {error}).", hint=_AGAIN, file=str(path))
