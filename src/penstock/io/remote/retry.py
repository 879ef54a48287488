"""Retries: the errors that may pass, the pauses between requests, and the final error."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator
from random import Random
from typing import TypeVar

from penstock.errors import InvalidArgumentError, NotFoundError, PenstockError, PermissionDeniedError, UnavailableError
from penstock.functions.code import words
from penstock.hints import redacted
from penstock.io.remote.system import scheme_of, settings

Result = TypeVar("Result")

_FIRST, _LONGEST = 0.1, 10.0  # seconds: limits of the first pause, and of any pause
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504, 509})
_REFUSED = frozenset({401, 403})
_ERRNOS = {
    getattr(errno, name)
    for name in words(
        "EAGAIN EBUSY ECONNABORTED ECONNREFUSED ECONNRESET EHOSTUNREACH EINTR EIO ENETDOWN ENETRESET ENETUNREACH EPIPE "
        "ETIMEDOUT"
    )
    if hasattr(errno, name)
}
_LIBRARIES = ("aiohttp", "aiobotocore", "botocore", "urllib3", "requests", "google", "gcsfs", "hdfs_native", "httpx")
_CONNECTION = ("Connection", "Timeout", "Disconnected", "Payload", "Incomplete", "Chunked", "Transport", "HTTPClient")
_CREDENTIALS = ("NoCredentials", "PartialCredentials", "TokenRetrieval", "UnauthorizedSSO", "DefaultCredentials")
_DIGITS = 3
_SHOWN = 300
_CHAINS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, ~/.aws, or the role of the machine; FSSPEC_S3_ANON=true for "
    "what is public",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, `gcloud auth application-default login`, or the account of the machine; "
    "FSSPEC_GS_TOKEN=anon for what is public",
    "hdfs": "HADOOP_USER_NAME, or a Kerberos ticket",
}
_random = Random()  # a separate generator, so that the user's random state does not change


class FinalAnswer(Exception):
    """A result of a request that a retry would not change. The caller handles it; it is no error for users."""


class ShortReplyError(ConnectionError):
    """Fewer bytes came than the server had announced, or than were requested."""


def retrying(call: Callable[[], Result], url: str, doing: str, offset: int | None = None) -> Result:
    """Return the result of `call`, which is repeated while its error may pass.

    Before each retry there is a pause of random length, up to a limit that doubles. Raises UnavailableError if the
    limits of the settings are reached. Raises NotFoundError and PermissionDeniedError at once. Secrets of a URL are
    removed from texts of libraries.
    """
    limits = settings()
    began = time.monotonic()
    tries = 0
    while True:
        tries += 1
        try:
            return call()
        except (PenstockError, MemoryError, FinalAnswer):
            raise
        except Exception as raised:
            error = raised
        if not passes(error):
            raise _final(error, url, doing, offset) from None
        pause = _random.uniform(0, min(_LONGEST, _FIRST * 2**tries))
        spent = time.monotonic() - began
        if tries >= limits.tries or spent + pause > limits.patience:
            raise _given_up(error, url, doing, offset, tries, spent) from None
        time.sleep(pause)


def passes(error: BaseException) -> bool:
    """Return True if a request with this error may succeed when it is repeated."""
    return any(_passes(each) for each in _chain(error)) and not any(_denied(each) for each in _chain(error))


def _passes(error: BaseException) -> bool:
    status = _status(error)
    if status is not None:
        return status in _PASSING
    if isinstance(error, (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)):
        return False
    if isinstance(error, (ConnectionError, TimeoutError, EOFError)):
        return True
    if isinstance(error, OSError) and error.errno in _ERRNOS:
        return True
    kind = type(error)
    library = kind.__module__.partition(".")[0]
    return library in _LIBRARIES and any(word in kind.__name__ for word in _CONNECTION)


def _denied(error: BaseException) -> bool:
    if isinstance(error, PermissionError) or _status(error) in _REFUSED:
        return True
    return any(word in type(error).__name__ for word in _CREDENTIALS)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its causes, because libraries wrap errors of other libraries."""
    found: BaseException | None = error
    for _ in range(8):
        if found is None:
            return
        yield found
        found = found.__cause__ or found.__context__


def _status(error: BaseException) -> int | None:
    """Return the HTTP status that an exception of any library carries, or None."""
    for name in ("status", "status_code", "code"):
        value = getattr(error, name, None)
        if isinstance(value, int) and len(str(value)) == _DIGITS:
            return value
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        value = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return value if isinstance(value, int) else None
    value = getattr(response, "status_code", None)
    return value if isinstance(value, int) else None


def _final(error: Exception, url: str, doing: str, offset: int | None) -> Exception:
    shown = redacted(url)
    if isinstance(error, FileNotFoundError) or _status(error) in (404, 410):
        hint = None
        if any(mark in url for mark in "*["):
            hint = "Readers take names; Dataset.list_files(pattern) gives the names that match a pattern."
        return NotFoundError(f"There is no file {shown!r}.", hint=hint, file=url)
    if isinstance(error, IsADirectoryError):
        message = f"{shown!r} is a directory, and a file was asked for."
        return InvalidArgumentError(message, hint='Dataset.list_files("directory/*") names its files.')
    if any(_denied(each) for each in _chain(error)):
        message = f"{doing} {shown!r} is not allowed: {_text(error)}"
        scheme = scheme_of(url)
        chain = next((text for name, text in _CHAINS.items() if scheme.startswith(name)), None)
        hint = "Give this process the credentials it needs" + (f": {chain}." if chain else ".")
        return PermissionDeniedError(message, hint=hint, file=url, offset=offset)
    message = f"{doing} {shown!r} failed, and would again: {_text(error)}"
    return UnavailableError(message, hint="The server does not take the request.", file=url, offset=offset)


def _given_up(error: Exception, url: str, doing: str, offset: int | None, tries: int, spent: float) -> UnavailableError:
    often = "once" if tries == 1 else f"{tries} times in {spent:.1f} s"
    message = f"{doing} {redacted(url)!r} was tried {often}, and failed: {_text(error)}"
    hint = (
        "The server, or the way to it, is down or overloaded. The data that was read is not lost: resume from "
        "the last state_dict(). PENSTOCK_REMOTE_TRIES and PENSTOCK_REMOTE_PATIENCE (seconds) allow more."
    )
    return UnavailableError(message, hint=hint, file=url, offset=offset)


def _text(error: Exception) -> str:
    text = " ".join(redacted(str(error)).split())
    name = type(error).__name__
    return f"{name}: {text[:_SHOWN]}" if text else name
