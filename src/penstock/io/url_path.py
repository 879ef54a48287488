"""UrlPath: a folder or file behind a URL, with the methods of `pathlib.Path` that reading takes."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator
from pathlib import PurePosixPath

from penstock.io import storage


class UrlPath(os.PathLike[str]):
    """Compares and prints as its URL.

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
        """The last part."""
        return self._url.rpartition("/")[2]

    @property
    def parent(self) -> UrlPath:
        """What it lies in."""
        return UrlPath(self._url.rpartition("/")[0])

    def relative_to(self, other: str | os.PathLike[str]) -> PurePosixPath:
        """The way from `other`, which it lies in."""
        return PurePosixPath(self._url).relative_to(PurePosixPath(os.fspath(other)))

    def resolve(self) -> UrlPath:
        """Itself: there are no links."""
        return self

    def is_file(self) -> bool:
        """Whether an object is there."""
        return storage.is_file(self._url)

    def is_dir(self) -> bool:
        """Whether anything lies in it: a store of objects has no folders beside that."""
        return bool(storage.names_in(self._url))

    def exists(self) -> bool:
        """Whether it is a file or a folder."""
        return storage.exists(self._url)

    def iterdir(self) -> Iterator[UrlPath]:
        """What lies in it."""
        return (self / name for name in storage.names_in(self._url))

    def glob(self, pattern: str) -> Iterator[UrlPath]:
        """What lies below it under names like that, `*` standing for any within one folder."""
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
        """All of it. Raises NotFoundError."""
        return storage.read_now(self._url)

    def read_text(self, encoding: str = "utf-8") -> str:
        """The same as text."""
        return self.read_bytes().decode(encoding)
