"""Transports: single requests to a server for the description or some bytes of an object.

`fsspec` supports all services. For three of them, this module sends requests through fsspec's sessions, so that every
reply is compared with the opened version. For other services, the version is requested again after the last bytes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from penstock.forked import new_lock
from penstock.io.remote.retry import FinalAnswer, ShortReplyError
from penstock.io.remote.system import file_system, settings

VERSIONS = (  # fields of fsspec's file descriptions that change with the content
    "generation",  # Google's storage
    "ETag",
    "etag",
    "e_tag",
    "LastModified",
    "Last-Modified",
    "last_modified",
    "mtime",
    "modification_time",
    "modificationTime",
    "updated",
    "created",
)
_MOST_LISTED = 1 << 16


class OtherVersionError(FinalAnswer):
    """The object is not the version that was opened."""


class NoRangesError(FinalAnswer):
    """The server sends only whole objects."""


@dataclass(frozen=True)
class Stat:
    """A server's description of an object: its size (None if unknown), and an identifier of its version, or ""."""

    size: int | None
    version: str
    ranges: bool = True
    listed: bool = False  # from a listing, which may be older than the object


def stat_of(info: Mapping[str, Any]) -> Stat:
    """Return the Stat of a file in fsspec's description."""
    told = next((info[key] for key in VERSIONS if info.get(key) is not None), "")
    size = info.get("size")
    return Stat(None if size is None else int(size), str(told), info.get("partial") is not False)


_TIMES = ("LastModified", "updated", "last_modified", "modificationTime", "modification_time", "mtime", "created")
_YEAR_3000 = 3.2e10  # seconds; larger numbers are milliseconds, as in HDFS


def written_at(info: Mapping[str, Any]) -> int | None:
    """Return the time of the last write in nanoseconds, from fsspec's description of a file. None if it is unknown."""
    told = next((info[key] for key in _TIMES if info.get(key) is not None), None)
    if isinstance(told, str):
        try:
            told = datetime.fromisoformat(told)
        except ValueError:
            return None
    if isinstance(told, datetime):
        told = (told if told.tzinfo else told.replace(tzinfo=UTC)).timestamp()
    if not isinstance(told, (int, float)):
        return None
    return int((told / 1e3 if told > _YEAR_3000 else told) * 1e9)


_LISTED: OrderedDict[str, Stat] = OrderedDict()
_LISTED_LOCK = new_lock()


def remember(url: str, info: Mapping[str, Any]) -> None:
    """Store an object's description from a listing, so that opening it needs no request."""
    found = stat_of(info)
    if found.size is None or not found.version:
        return
    with _LISTED_LOCK:
        _LISTED[url] = Stat(found.size, found.version, listed=True)
        while len(_LISTED) > _MOST_LISTED:
            _LISTED.popitem(last=False)


def head(url: str, *, fresh: bool = False) -> Stat:
    """Return the server's description of an object. Without `fresh` it may come from a listing.

    Raises FileNotFoundError, IsADirectoryError.
    """
    system, inner = file_system(url)
    if fresh:
        with _LISTED_LOCK:
            _LISTED.pop(url, None)
        system.invalidate_cache(inner)
    elif _checks_replies(system):  # otherwise an outdated description would stay unnoticed
        with _LISTED_LOCK:
            found = _LISTED.get(url)
        if found is not None:
            return found
    info = _described(system, inner)
    if info.get("type") == "directory":
        raise IsADirectoryError(url)
    return stat_of(info)


def fetch(url: str, stat: Stat, start: int, stop: int) -> tuple[bytes, bool]:
    """Return the bytes from `start` up to `stop`, and True if the reply states that they are of the opened version.

    Raises OtherVersionError, NoRangesError, ShortReplyError, and the errors of libraries.
    """
    system, inner = file_system(url)
    ranged = {"s3": _s3_range, "http": _http_range, "gcs": _gcs_range}.get(_kind(system))
    if ranged is None:
        content, checked = _any(system, inner, start, stop), False
    else:
        content, checked = _sync(system, ranged, system, inner, stat, start, stop)
    if len(content) > stop - start:
        raise NoRangesError
    if len(content) < stop - start:
        message = f"{len(content)} of {stop - start} bytes came"
        raise ShortReplyError(message)
    return content, checked


def whole(url: str) -> bytes:
    """Return all bytes of an object, in its current version, with one request."""
    system, inner = file_system(url)
    if getattr(system, "async_impl", False):
        return bytes(_sync(system, _cat, system, inner, None, None))
    return bytes(system.cat_file(inner))


def verify(url: str, stat: Stat) -> None:
    """Raise OtherVersionError if the object has been replaced since it was opened."""
    now = head(url, fresh=True)
    if (now.size, now.version) != (stat.size, stat.version):
        raise OtherVersionError


def _kind(system: Any) -> str:
    protocol = system.protocol if isinstance(system.protocol, str) else system.protocol[0]
    if protocol in ("s3", "s3a") and hasattr(system, "_call_s3"):
        return "s3"
    if protocol in ("http", "https") and hasattr(system, "set_session"):
        return "http"
    if protocol in ("gs", "gcs") and hasattr(system, "_call"):
        return "gcs"
    return protocol


def _checks_replies(system: Any) -> bool:
    return _kind(system) in ("s3", "http")


def _sync(system: Any, coroutine: Any, *args: Any) -> Any:
    from fsspec.asyn import sync

    return sync(system.loop, coroutine, *args, timeout=settings().timeout)


def _described(system: Any, inner: str) -> Mapping[str, Any]:
    if getattr(system, "async_impl", False) and hasattr(system, "_info"):
        found: Mapping[str, Any] = _sync(system, system._info, inner)
    else:
        found = system.info(inner)
    return found


def _any(system: Any, inner: str, start: int, stop: int) -> bytes:
    from fsspec.spec import AbstractFileSystem

    if getattr(system, "async_impl", False):
        return bytes(_sync(system, _cat, system, inner, start, stop))
    if type(system).cat_file is not AbstractFileSystem.cat_file:
        return bytes(system.cat_file(inner, start=start, end=stop))
    with system.open(inner, "rb", cache_type="none") as file:  # fsspec would read megabytes ahead
        file.seek(start)
        parts = [file.read(stop - start)]
        have = len(parts[0])
        while have < stop - start and parts[-1]:
            parts.append(file.read(stop - start - have))
            have += len(parts[-1])
    return b"".join(parts)


async def _cat(system: Any, inner: str, start: int | None, stop: int | None) -> Any:
    return await system._cat_file(inner, start=start, end=stop)


async def _s3_range(system: Any, inner: str, stat: Stat, start: int, stop: int) -> tuple[bytes, bool]:
    bucket, key, version = system.split_path(inner)
    more = {"VersionId": version} if version else {}
    if stat.version.startswith('"'):
        more["IfMatch"] = stat.version
    try:
        reply = await system._call_s3("get_object", Bucket=bucket, Key=key, Range=f"bytes={start}-{stop - 1}", **more)
    except Exception as error:
        if _says(error, ("412", "PreconditionFailed", "416", "InvalidRange", "requested range", "pre-conditions")):
            raise OtherVersionError from None
        raise
    body = reply["Body"]
    try:
        if stat.version.startswith('"') and reply.get("ETag", stat.version) != stat.version:
            raise OtherVersionError
        content: bytes = await body.read()
    finally:
        body.close()
    return content, bool(stat.version)


def _says(error: BaseException, words: tuple[str, ...]) -> bool:
    found: BaseException | None = error
    while found is not None:
        response = getattr(found, "response", None)
        told = str(response.get("Error", {})) if isinstance(response, dict) else ""
        if any(word in told or word in str(found) for word in words):
            return True
        found = found.__cause__
    return False


async def _http_range(system: Any, url: str, stat: Stat, start: int, stop: int) -> tuple[bytes, bool]:
    options = dict(system.kwargs)
    headers = dict(options.pop("headers", {}))
    headers |= {"Range": f"bytes={start}-{stop - 1}", "Accept-Encoding": "identity"}
    session = await system.set_session()
    async with session.get(system.encode_url(url), headers=headers, **options) as reply:
        system._raise_not_found_for_status(reply, url)
        if reply.status == 416:
            raise OtherVersionError
        reply.raise_for_status()
        checked = _checked(stat, reply.headers, whole=reply.status == 200)
        if reply.status != 206 and (start, stop) != (0, stat.size):
            raise NoRangesError
        content: bytes = await reply.read()
    return content, checked


def _checked(stat: Stat, headers: Mapping[str, str], *, whole: bool) -> bool:
    """Return True if a reply states its version. Raises OtherVersionError if it is not the opened version."""
    told = next((headers[key] for key in ("ETag", "Last-Modified") if headers.get(key)), "")
    if stat.version and told and told != stat.version:
        raise OtherVersionError
    size = headers.get("Content-Length") if whole else headers.get("Content-Range", "/*").rpartition("/")[2]
    if stat.size is not None and size and size.isdigit() and int(size) != stat.size:
        raise OtherVersionError
    return bool(told)


async def _gcs_range(system: Any, inner: str, stat: Stat, start: int, stop: int) -> tuple[bytes, bool]:
    headers, content = await system._call("GET", system.url(inner), headers={"Range": f"bytes={start}-{stop - 1}"})
    told = headers.get("x-goog-generation")
    if told and stat.version and str(told) != stat.version:
        raise OtherVersionError
    return bytes(content), bool(told)
