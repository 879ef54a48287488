"""writing, reading, local: errors about a location that the user chose, with the name of the setting."""

from __future__ import annotations

import errno
import fnmatch
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import cast

from penstock.errors import FailedPreconditionError, InvalidArgumentError, PenstockError
from penstock.hints import redacted
from penstock.io import storage
from penstock.io.storage import is_url


class UrlPath(os.PathLike[str]):
    """A path that compares and prints as its URL.

    >>> (UrlPath("gs://bucket/sets/") / "mnist" / "3.0.1").name
    '3.0.1'
    >>> str(UrlPath("gs://bucket/sets/mnist").parent)
    'gs://bucket/sets'
    """

    def __init__(self, url: str | os.PathLike[str]) -> None:
        self._url = os.fspath(url).rstrip("/")

    def __truediv__(self, below: str | os.PathLike[str]) -> UrlPath:
        return UrlPath(f"{self._url}/{os.fspath(below).strip('/')}")

    def __fspath__(self) -> str:
        return self._url

    def __str__(self) -> str:
        return self._url

    def __repr__(self) -> str:
        return f"UrlPath({self._url!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UrlPath) and self._url == other._url

    def __lt__(self, other: UrlPath) -> bool:
        return self._url < other._url

    def __hash__(self) -> int:
        return hash(self._url)

    @property
    def name(self) -> str:
        """The last component of the URL."""
        return self._url.rpartition("/")[2]

    @property
    def parent(self) -> UrlPath:
        """The URL of the folder that contains it."""
        return UrlPath(self._url.rpartition("/")[0])

    def relative_to(self, other: str | os.PathLike[str]) -> PurePosixPath:
        """Return the path relative to the folder `other`."""
        return PurePosixPath(self._url).relative_to(PurePosixPath(os.fspath(other)))

    def resolve(self) -> UrlPath:
        """Return the path itself, because URLs have no links."""
        return self

    def is_file(self) -> bool:
        """Return True if there is an object at the URL."""
        return storage.is_file(self._url)

    def is_dir(self) -> bool:
        """Return True if there are objects below the URL. A store of objects has no other folders."""
        return bool(storage.names_in(self._url))

    def exists(self) -> bool:
        """Return True if it is a file or a folder."""
        return storage.exists(self._url)

    def iterdir(self) -> Iterator[UrlPath]:
        """Yield the paths in the folder."""
        return (self / name for name in storage.names_in(self._url))

    def glob(self, pattern: str) -> Iterator[UrlPath]:
        """Yield the paths below the folder that match `pattern`. `*` matches within one component."""
        first, _, rest = pattern.partition("/")
        if "*" not in first:
            found = [self / first] if (self / first).exists() else []
        else:
            found = [each for each in self.iterdir() if fnmatch.fnmatchcase(each.name, first)]
        for each in found:
            if rest:
                yield from each.glob(rest)
            else:
                yield each

    def read_bytes(self) -> bytes:
        """Return the content. Raises NotFoundError."""
        return storage.read_now(self._url)

    def read_text(self, encoding: str = "utf-8") -> str:
        """Return the content as a string."""
        return self.read_bytes().decode(encoding)


FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
_OF_FILES_ALONE = {errno.EROFS, errno.EFBIG}  # writes raise these errors without a file name, and only for files


@contextmanager
def writing(folder: str | os.PathLike[str], what: str, hint: str) -> Iterator[None]:
    """Convert the system's errors about `folder`, or about creating it, to errors with its name and a hint.

    The error of a full disk is raised with the name of the file, because its hint depends on the content. An error
    about another file is raised unchanged.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp(), "file")
    >>> file.touch()
    >>> with writing(file / "inner", "data_dir 'inner'", "Choose another data_dir."):
    ...     (file / "inner").mkdir()
    Traceback (most recent call last):
    ...
    penstock.errors.FailedPreconditionError: data_dir 'inner' cannot be written to: Not a directory.
    ...
      Choose another data_dir.

    Raises:
        FailedPreconditionError: there can be no such folder, it is read-only, a file would be larger than is allowed.
    """
    try:
        yield
    except PenstockError:
        raise
    except OSError as error:
        if error.errno in FULL and error.filename is None:
            error.filename = str(folder)
        if error.errno in FULL or not (error.errno in _OF_FILES_ALONE or _belongs(error.filename, Path(folder))):
            raise
        message = f"{what} cannot be written to: {error.strerror}."
        file = str(folder if error.filename is None else error.filename)
        raise FailedPreconditionError(message, hint=hint, file=file) from error


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Convert the error about a folder or file without read permission to an error with its name.

    >>> with reading("data_dir 'secret'"):
    ...     raise PermissionError(13, "Permission denied", "secret/mnist")
    Traceback (most recent call last):
    ...
    penstock.errors.FailedPreconditionError: data_dir 'secret' cannot be read: Permission denied.
      in file secret/mnist
      Ask for the permission, or name another place.

    Raises:
        FailedPreconditionError: the permission is missing.
    """
    try:
        yield
    except PermissionError as error:
        message = f"{what} cannot be read: {error.strerror}."
        hint = "Ask for the permission, or name another place."
        raise FailedPreconditionError(message, hint=hint, file=str(error.filename or "")) from error


def _belongs(name: object, folder: Path) -> bool:
    """Return True if a file lies in the folder, or is one of the folder's parents."""
    if not isinstance(name, str | os.PathLike):
        return False
    path = Path(name)
    return path == folder or folder in path.parents or path in folder.parents


def place(path: str | os.PathLike[str]) -> Path:
    """Return `path` as a readable path, local or a URL. `~` is the home folder.

    >>> place("gs://bucket/sets")
    UrlPath('gs://bucket/sets')
    """
    given = os.fspath(path)
    return cast(Path, UrlPath(given)) if is_url(given) else Path(given).expanduser()


def local(path: str | os.PathLike[str], what: str) -> Path:
    """Return `path` as a local path. `~` is the home folder, and `what` is the name in the error.

    >>> local("s3://bucket/sets", "data_dir")
    Traceback (most recent call last):
    ...
    penstock.errors.InvalidArgumentError: data_dir must lie on this machine, got 's3://bucket/sets'.
    ...

    Raises:
        InvalidArgumentError: it is a URL, of which a `Path` would make a folder called "s3:".
    """
    given = os.fspath(path)
    if is_url(given):
        message = f"{what} must lie on this machine, got {redacted(given)!r}."
        raise InvalidArgumentError(message, hint="Copy the files (with fsspec, say), or mount where they are.")
    return Path(given).expanduser()
