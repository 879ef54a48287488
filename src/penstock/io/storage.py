"""Functions on files at local paths and URLs.

A path is local unless it starts with `scheme://`. fsspec is imported only for URLs. This module does not know file
formats.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast

import numpy as np

from penstock.block.file_mapping import REFUSED, mapped
from penstock.errors import InvalidArgumentError, InvalidTypeError, NotFoundError, PenstockError, ResourceExhaustedError
from penstock.hints import redacted

if TYPE_CHECKING:
    from penstock.io.remote.transport import Stat

Path = str | os.PathLike[str]
Answer = TypeVar("Answer")

_URL = re.compile(r"[A-Za-z][\w+.-]*(::[A-Za-z][\w+.-]*)*://")
_READING = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)  # opening a pipe would otherwise wait for a writer
_LITTLE = 1 << 14
_MAGIC = re.compile(r"[*?\[]")
_LITERAL = re.compile(r"[^*?\[]+")
_TOO_LARGE = (
    "Its elements are asked for by number. Raise the limit of the address space (`ulimit -v`), write the data to "
    "several files, or read them in order: TFRecordDataset, ParquetDataset and ArrowDataset read such a file in pieces."
)


def as_path(path: Any) -> str:
    """Return the path as a string. A leading `~` becomes the home folder.

    Raises InvalidTypeError unless the path is a str, bytes or os.PathLike.

    >>> as_path(b"data/train.tfrecord")
    'data/train.tfrecord'
    """
    try:
        name = path if type(path) is str else os.fsdecode(path)
        return os.path.expanduser(name) if name[:1] == "~" else name
    except TypeError as error:
        message = f"A file is named by text or an os.PathLike, got {type(path).__name__}."
        raise InvalidTypeError(message, hint='Pass a path such as "data/train.tfrecord" or a URL.') from error


def is_url(path: Path) -> bool:
    """Return True if `path` is a URL, which fsspec serves.

    >>> is_url("s3://bucket/key"), is_url("data/train.tfrecord")
    (True, False)
    """
    name = as_path(path)
    return "://" in name and _URL.match(name) is not None


def glob(pattern: Path) -> list[str]:
    r"""Return the files that match `pattern` (`*`, `?`, `[...]`, `**` for any depth), sorted by name.

    A path that exists matches itself, whatever its characters. Raises NotFoundError if no file matches.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "b.txt").write_text("b"), (folder / "a.txt").write_text("a")
    >>> [pathlib.Path(name).name for name in glob(folder / "*.txt")]
    ['a.txt', 'b.txt']
    """
    name = as_path(pattern)
    if is_url(name):
        matches = _remote_glob(name)
    elif os.path.isfile(name):
        return [name]
    else:
        import glob as local_glob

        found = local_glob.glob(name, recursive=True)
        matches = [path for path in found if not os.path.isdir(path)]
    if not matches:
        message = f"No files matched pattern {redacted(name)!r}."
        raise NotFoundError(message, hint=_where_relative(name, "The pattern"))
    return sorted(matches)


def exists(path: Path) -> bool:
    """Return True if there is a file or directory at `path`."""
    name = as_path(path)
    if is_url(name):
        return _remote_exists(name)
    return os.path.exists(name)


def is_file(path: Path) -> bool:
    """Return True if there is a file at `path`."""
    name = as_path(path)
    if is_url(name):
        return _remote_exists(name, file=True)
    return os.path.isfile(name)


def size(path: Path) -> int:
    """Return the length of a file in bytes. Raises NotFoundError."""
    name = as_path(path)
    try:
        if is_url(name):
            found = _stat(name)
            if found.size is not None:
                return found.size
            with open_read(name) as file:
                return file.seek(0, 2)
        state = os.stat(name)
        if state.st_size == 0 and not stat.S_ISDIR(state.st_mode):
            return len(map_file(name))  # files of /proc have content although their size is 0
        return state.st_size
    except FileNotFoundError as error:
        raise _missing(name) from error


def version(path: Path) -> tuple[int, int | str]:
    """Return the length of a file, and its modification time in nanoseconds or the server's version.

    The server's version is its etag or time, or "" if it has neither. Raises NotFoundError.
    """
    name = as_path(path)
    try:
        if is_url(name):
            found = _stat(name, fresh=True)
            return found.size or 0, found.version
        state = os.stat(name)
        return state.st_size, state.st_mtime_ns
    except FileNotFoundError as error:
        raise _missing(name) from error


def open_read(path: Path) -> BinaryIO:
    """Open a binary file for reading. Raises NotFoundError; for URLs, see the errors in `remote.retry`."""
    name = as_path(path)
    try:
        if is_url(name):
            from penstock.io.remote.file import open_remote

            return cast(BinaryIO, open_remote(name))
        return open(name, "rb", opener=_opened)
    except FileNotFoundError as error:
        raise _missing(name) from error
    except IsADirectoryError as error:
        raise _no_file(name, stat.S_IFDIR) from error


def copied(url: str) -> str:
    """Download a URL in parallel, and return the name of a temporary local file. The caller removes it."""
    import shutil
    import tempfile

    file = tempfile.NamedTemporaryFile(prefix="penstock-", delete=False)  # noqa: SIM115 - others open it by name
    try:
        with file, open_read(url) as remote:
            shutil.copyfileobj(remote, file, 1 << 22)
    except BaseException:
        remove(file.name)
        raise
    return file.name


def read_remote(url: str) -> bytes:
    """Return all bytes of a URL, requested in parallel. The caller checks them against its own checksum."""
    from penstock.io.remote.object import RemoteObject

    found = RemoteObject(url)
    try:
        return found.read_many([(0, found.size)])[0]
    finally:
        found.close()


def read_now(path: Path) -> bytes:
    """Return all bytes of a small file in its current version.

    Others may replace it at any time. Raises NotFoundError.
    """
    name = as_path(path)
    if is_url(name):
        from penstock.io.remote.retry import retrying
        from penstock.io.remote.transport import whole

        return retrying(lambda: whole(name), name, "Reading")
    with open_read(name) as file:
        return file.read()


def open_write(path: Path) -> BinaryIO:
    """Create a binary file, or replace an existing one. Raises NotFoundError if its directory is missing.

    A file at a URL appears when it is closed, and never if its `with` block ends with an error.
    """
    name = as_path(path)
    try:
        if is_url(name):
            from penstock.io.remote.upload import RemoteWriter

            return cast(BinaryIO, RemoteWriter(name))
        return open(name, "wb")
    except FileNotFoundError as error:
        message = f"The directory of {name!r} does not exist."
        raise NotFoundError(message, hint="Create it first: pathlib.Path(...).mkdir(parents=True).") from error


def names_in(folder: Path) -> list[str]:
    """Return the names of the entries of a folder, without the folder. A missing folder has none."""
    name = as_path(folder)
    if is_url(name):
        return _remote_names(name)
    try:
        return os.listdir(name)
    except (FileNotFoundError, NotADirectoryError):
        return []


def states_below(folder: Path) -> list[tuple[int, int | None]]:
    """Return the size of each file below a folder, and its modification time in nanoseconds, or None."""
    name = as_path(folder)
    if is_url(name):
        return _remote_states(name)
    found: list[tuple[int, int | None]] = []
    for place, _, files in os.walk(name):
        for file in files:
            with suppress(FileNotFoundError, PermissionError):  # removed meanwhile, or not accessible
                state = os.lstat(os.path.join(place, file))
                found.append((state.st_size, state.st_mtime_ns))
    return found


def remove(path: Path) -> None:
    """Remove a file, or a folder with its content. A missing path is ignored."""
    name = as_path(path)
    if is_url(name):
        _remote_remove(name)
    elif os.path.isdir(name) and not os.path.islink(name):
        import shutil

        shutil.rmtree(name, ignore_errors=True)
    else:
        with suppress(FileNotFoundError):
            os.unlink(name)


def map_file(path: Path) -> np.ndarray:
    """Map a local file into memory as a read-only uint8 array of shape (bytes,). Pages are read on access.

    A file of up to 16 KiB is read instead, which is faster than mapping it.
    The array stays valid after the file is deleted. If a mapped file is truncated, its readers crash, so files must not
    be rewritten in place while a pipeline reads them. The file does not stay open.
    Raises OSError if the system refuses, such as for a file larger than the free address space; see `map_file_or_none`
    and `bytes_of`. Raises InvalidArgumentError for a directory, pipe or device.
    """
    name = as_path(path)
    try:
        descriptor = os.open(name, _READING | _AT_ONCE)
        try:
            found = os.fstat(descriptor)
            if not _is_regular(name, found.st_mode):
                raise _no_file(name, found.st_mode)
            if not found.st_size:  # files of /proc also have size 0
                return np.frombuffer(b"".join(iter(lambda: os.read(descriptor, 1 << 20), b"")), np.uint8)
            if found.st_size <= _LITTLE and len(read := os.read(descriptor, found.st_size)) == found.st_size:
                return np.frombuffer(read, np.uint8)
            return mapped(descriptor, found.st_size)
        finally:
            os.close(descriptor)
    except FileNotFoundError as error:
        raise _missing(name) from error
    except IsADirectoryError as error:
        raise _no_file(name, stat.S_IFDIR) from error


def _opened(name: str, flags: int) -> int:
    """Return a file's descriptor. Opening a pipe or device does not wait."""
    descriptor = os.open(name, flags | _AT_ONCE)
    mode = os.fstat(descriptor).st_mode
    if not _is_regular(name, mode):
        os.close(descriptor)
        raise _no_file(name, mode)
    return descriptor


def _is_regular(name: str, mode: int) -> bool:
    return stat.S_ISREG(mode) or name == os.devnull  # os.devnull serves as an empty file


def little_of(name: str) -> bytes | None:
    """Return the content of a local file of up to 16 KiB. None for other files, unreadable files and empty files."""
    if is_url(name):
        return None
    try:
        descriptor = os.open(name, _READING | _AT_ONCE)
        try:
            size = os.lseek(descriptor, 0, os.SEEK_END)
            if size > _LITTLE or not size:  # files of /proc seem empty
                return None
            os.lseek(descriptor, 0, os.SEEK_SET)
            read = os.read(descriptor, size)
        finally:
            os.close(descriptor)
    except (OSError, ValueError):
        return None
    return read if len(read) == size else None


def map_file_or_none(path: Path) -> np.ndarray | None:
    """Map a file like `map_file`. Return None for a URL, or if the system cannot map it; then it is read in pieces."""
    if is_url(path):
        return None
    try:
        return map_file(path)
    except OSError as error:
        if isinstance(error, PenstockError) or error.errno not in REFUSED:
            raise
        return None


def bytes_of(path: Path) -> np.ndarray:
    """Return all bytes of a local file as a read-only uint8 array. The file is mapped, or read if mapping fails.

    Raises ResourceExhaustedError if the address space and the memory are too small.
    """
    found = map_file_or_none(path)
    if found is not None:
        return found
    name = as_path(path)
    with open_read(name) as file:
        try:
            return np.frombuffer(file.read(), np.uint8)
        except MemoryError as error:
            message = f"The file has {size(name)} bytes, which the system neither maps nor has memory for."
            raise ResourceExhaustedError(message, hint=_TOO_LARGE, file=name) from error


def all_bytes(path: Path) -> np.ndarray:
    """Return all bytes of a file as a read-only uint8 array: mapped, or read if it is not local."""
    if not is_url(path):
        return bytes_of(path)
    with open_read(path) as file:
        return np.frombuffer(file.read(), np.uint8)


def _stat(name: str, *, fresh: bool = False) -> Stat:
    from penstock.io.remote.retry import retrying
    from penstock.io.remote.transport import head

    return retrying(lambda: head(name, fresh=fresh), name, "Looking at")


def _ask(name: str, doing: str, question: Callable[[Any, str], Answer]) -> Answer:
    """Return `question(file system, path in it)` of a URL, which is asked again after errors that may pass."""
    from penstock.io.remote.retry import retrying
    from penstock.io.remote.system import file_system

    return retrying(lambda: question(*file_system(name)), name, doing)


def _remote_exists(name: str, *, file: bool = False) -> bool:
    def found(system: Any, inner: str) -> bool:
        system.invalidate_cache(inner)
        try:
            info = system.info(inner)  # `exists` also returns False when the server does not answer
        except FileNotFoundError:
            return False
        return not file or info.get("type") != "directory"

    try:
        return _ask(name, "Looking for", found)
    except NotFoundError:
        return False


def _remote_names(folder: str) -> list[str]:
    def names(system: Any, inner: str) -> list[str]:
        system.invalidate_cache(inner)
        try:
            found = system.ls(inner, detail=False)
        except (FileNotFoundError, NotADirectoryError):
            return []
        paths = {str(path).rstrip("/") for path in found} - {inner.rstrip("/")}
        return sorted(path.rpartition("/")[2] for path in paths)

    return _ask(folder.rstrip("/"), "Listing", names)


def _remote_states(folder: str) -> list[tuple[int, int | None]]:
    from penstock.io.remote.transport import written_at

    def states(system: Any, inner: str) -> list[tuple[int, int | None]]:
        system.invalidate_cache(inner)
        found = system.find(inner, detail=True).values()
        return [(int(info.get("size") or 0), written_at(info)) for info in found]

    return _ask(folder.rstrip("/"), "Listing", states)


def _remote_remove(name: str) -> None:
    def removed(system: Any, inner: str) -> None:
        with suppress(FileNotFoundError):
            system.rm(inner, recursive=True)
        system.invalidate_cache(inner)

    _ask(name.rstrip("/"), "Removing", removed)


def _remote_glob(pattern: str) -> list[str]:
    """Return the matching names from one listing. The listing is stored for later opening of the files."""
    from penstock.io.remote.system import full_name
    from penstock.io.remote.transport import remember

    def matching(system: Any, inner: str) -> list[str]:
        literal = _LITERAL.match(inner)
        system.invalidate_cache(literal.group().rpartition("/")[0] if literal else inner)
        if not _MAGIC.search(inner):
            return [full_name(system, inner, pattern, inner)] if system.isfile(inner) else []
        found = system.glob(inner, detail=True)
        if not found and system.isfile(inner):
            return [full_name(system, inner, pattern, inner)]
        files = ((path, info) for path, info in found.items() if info.get("type") != "directory")
        names = {full_name(system, path, pattern, inner): info for path, info in files}
        for name, info in names.items():
            remember(name, info)
        return list(names)

    return _ask(pattern, "Listing", matching)


def _missing(name: str) -> NotFoundError:
    message = f"There is no file {redacted(name)!r}."
    hint = _where_relative(name, "The path")
    if any(mark in name for mark in "*?["):
        hint = "Readers take names; Dataset.list_files(pattern) gives the names that match a pattern."
    return NotFoundError(message, hint=hint, file=name)


def _no_file(name: str, mode: int) -> InvalidArgumentError:
    if stat.S_ISDIR(mode):
        message = f"{name!r} is a directory, and a file was asked for."
        return InvalidArgumentError(message, hint='Dataset.list_files("directory/*") names its files.')
    kind = "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
    message = f"{name!r} is {kind}, which gives what it has once: a file is read again for each pass and to go on."
    hint = (
        "Write it to a file first. For one pass, without going on after a stop: "
        f"Dataset.from_generator(lambda: open({name!r}, 'rb')) gives its lines."
    )
    return InvalidArgumentError(message, hint=hint, file=name)


def _where_relative(name: str, what: str) -> str | None:
    if is_url(name) or os.path.isabs(name):
        return None
    return f"{what} is relative to the current directory, {os.getcwd()}."
