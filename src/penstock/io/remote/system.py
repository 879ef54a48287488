"""The fsspec file system behind a URL, and the limits of reading there.

It is asked for anew each time: it knows what a forked process has to make again. The environment sets the limits, which
workers of this machine share.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from typing import Any

from penstock.errors import InvalidArgumentError, MissingDependencyError, PenstockError
from penstock.hints import redacted

_EXTRAS = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gcs",
    "gcs": "gcs",
    "hdfs": "hdfs",
    "viewfs": "hdfs",
    "http": "http",
    "https": "http",
}
_JAVA = ("ARROW_LIBHDFS_DIR", "HADOOP_HOME")  # who sets one of them has the library that fsspec's own needs
_NATIVE = ("hdfs", "viewfs")  # read through hdfs-native: fsspec's own needs a Java installation


def scheme_of(url: str) -> str:
    """What stands in front of the `://` of a URL, without what fsspec wraps around it.

    >>> scheme_of("gs://bucket/key"), scheme_of("simplecache::s3://bucket/key")
    ('gs', 's3')
    """
    return url.split("://", 1)[0].split("::")[-1].lower()


def file_system(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the URL's path in it.

    Credentials are found by the library of each service, in the places where it always looks; none pass through here.
    """
    import fsspec

    scheme = scheme_of(url)
    try:
        if scheme in _NATIVE:
            _use_native(scheme)
        system, inner = fsspec.core.url_to_fs(url)
    except ImportError as error:
        extra = _EXTRAS.get(scheme)
        hint = f"Install penstock[{extra}]: pip install 'penstock[{extra}]'" if extra else str(error)
        message = f"Reading {scheme}:// needs a package that is not installed."
        raise MissingDependencyError(message, hint=hint) from error
    except PenstockError:
        raise
    except ValueError as error:
        if scheme in fsspec.available_protocols():  # what is wrong is another part of it
            message = f"{redacted(url)!r} cannot be opened: {redacted(str(error))}"
        else:
            message = f"{redacted(url)!r} names a protocol that fsspec does not know: {redacted(str(error))}"
        raise InvalidArgumentError(message) from None
    return system, inner


def _use_native(scheme: str) -> None:
    import fsspec

    if fsspec.registry.get(scheme) is not None:  # the user's choice, or ours of before
        return
    try:
        from hdfs_native.fsspec import HdfsFileSystem, ViewfsFileSystem
    except ImportError:
        if any(os.environ.get(name) for name in _JAVA):
            return
        raise
    fsspec.register_implementation(scheme, HdfsFileSystem if scheme == "hdfs" else ViewfsFileSystem, clobber=True)


def full_name(system: Any, path: str, url: str, inner: str) -> str:
    """The URL of a path in the file system of `url`, which stands there for `inner`.

    Some do not tell their host again, as WebHDFS: `inner` is then what stands behind it, without a bucket or container.
    """
    found = str(system.unstrip_protocol(path))
    scheme, _, rest = url.partition("://")
    place, _, behind = rest.partition("/")
    told = found.startswith((f"{scheme}://{place}/", f"{scheme}://{place.rpartition('@')[2]}/"))
    if told or "::" in scheme or not place or inner.strip("/") != behind.strip("/"):
        return found
    return f"{scheme}://{place}/{found.partition('://')[2].lstrip('/')}"


_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_NAMES = {
    "tries": "PENSTOCK_REMOTE_TRIES",
    "timeout": "PENSTOCK_REMOTE_TIMEOUT",
    "patience": "PENSTOCK_REMOTE_PATIENCE",
    "buffer": "PENSTOCK_REMOTE_BUFFER",
    "cache": "PENSTOCK_REMOTE_CACHE",
    "cache_bytes": "PENSTOCK_REMOTE_CACHE_BYTES",
}


@dataclass(frozen=True)
class RemoteSettings:
    """How often and how long a request is tried, what is read ahead, and where blocks are kept."""

    tries: int = 8  # of one request
    timeout: float = 60.0  # seconds for one try
    patience: float = 300.0  # seconds for all tries of one request
    buffer: int = 1 << 28  # bytes that all files of a process together read ahead
    cache: str | None = None  # a local folder
    cache_bytes: int = 10 << 30


def settings() -> RemoteSettings:
    """Read the settings from the environment as it is now. Raises InvalidArgumentError for a value that is none."""
    return _parsed(tuple(os.environ.get(name) for name in _NAMES.values()))


@cache
def _parsed(values: tuple[str | None, ...]) -> RemoteSettings:
    given = {field: text for field, text in zip(_NAMES, values, strict=True) if text}
    found: dict[str, int | float | str] = {}
    for field, text in given.items():
        found[field] = text if field == "cache" else _number(field, text)
    return RemoteSettings(**found)  # type: ignore[arg-type]


def _number(field: str, text: str) -> int | float:
    seconds = field in ("timeout", "patience")
    unit = text[-1:].upper()
    scale = 1 if seconds or unit not in _UNITS else _UNITS[unit]
    try:
        number = float(text) if seconds else int(text[:-1] if unit in _UNITS else text) * scale
    except ValueError:
        number = 0
    if not 0 < number < float("inf"):
        what = "a number of seconds" if seconds else "a positive number, with K, M, G or T behind it for a larger one"
        message = f"{_NAMES[field]} is {what}, got {text!r:.40}."
        raise InvalidArgumentError(message, hint="Correct the environment variable, or leave it out.")
    return number
