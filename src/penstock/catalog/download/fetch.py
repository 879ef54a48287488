"""The function `fetch` downloads one file over HTTP, with resumption and retries.

requests handles HTTP: connections, redirects, TLS, proxies and `~/.netrc`. This module handles ranges, checksums and
waits.
"""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from penstock.errors import DataLossError, FailedPreconditionError, NotFoundError

_CHUNK = 1 << 16  # bytes that are lost when a server stalls
_AGAIN = {408, 425, 429, 500, 502, 503, 504}
# servers report the compression of the file itself as its encoding
_PACKED = (".gz", ".tgz", ".Z", ".bz2", ".xz", ".zst")
_TOLD = 1.0  # seconds of a wait that is reported to the user
_LONGEST_WAIT = 300.0  # longest wait that a server may ask for
_TIMEOUT = (30.0, 60.0)  # seconds to connect, and between two pieces


@dataclass(frozen=True)
class Patience:
    """The number of attempts without progress, and the waits between them."""

    tries: int = 8
    first: float = 0.5
    longest: float = 60.0
    sleep: Callable[[float], None] = time.sleep
    draw: Callable[[], float] = random.random

    def pause(self, failures: int, asked: float | None) -> float:
        """Return the seconds to wait after `failures` failures. `asked` is the wait that the server asked for."""
        pause: float = min(self.first * 2 ** (failures - 1), self.longest) * (0.5 + self.draw() / 2)
        return max(pause, asked or 0.0)


@dataclass(frozen=True)
class Fetched:
    """The size of a downloaded file in bytes, and its SHA-256."""

    size: int
    sha256: str


class Interrupted(Exception):
    """The connection ended early, or the server asks for another attempt later."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


def fetch(
    url: str,
    part: Path,
    *,
    size: int | None = None,
    advance: Callable[[int], None] = lambda count: None,
    expect: Callable[[int], None] = lambda count: None,
    note: Callable[[str], None] = lambda line: None,
    patience: Patience = Patience(),
    session: Any = None,
) -> Fetched:
    """Download `url` to the file `part`, and resume after its present content.

    Args:
        url: Address of the file.
        part: File to write.
        size: Expected number of bytes, if it is known.
        advance: Called with the number of new bytes.
        expect: Called with the total number of bytes.
        note: Called with a message about a wait.
        patience: Number of attempts and waits.
        session: A session of requests. Default: a new one.

    Raises:
        NotFoundError: If the server has no such file.
        FailedPreconditionError: If the server refuses, or cannot be reached.
        DataLossError: If the file has another size than expected.
    """
    own = session is None
    session = new_session() if own else session
    download = _Download(url, part, size, advance, expect)
    failures = 0
    try:
        while True:
            before = download.size
            try:
                download.go_on(session)
            except Interrupted as error:
                failures = 1 if download.size > before else failures + 1
                if failures >= patience.tries:
                    message = f"{url} cannot be downloaded: {error} ({failures} times in a row)."
                    hint = "Is the network there? What came is kept, and the next call goes on with it."
                    raise FailedPreconditionError(message, hint=hint) from error
                pause = patience.pause(failures, error.wait)
                if pause >= _TOLD:
                    note(f"{url}: {error}; trying again in {pause:.0f} s")
                patience.sleep(pause)
            else:
                return Fetched(download.size, download.digest.hexdigest())
    finally:
        if own:
            session.close()


def new_session() -> Any:
    """Return a session of requests."""
    import requests

    made = requests.Session()
    made.headers["Accept-Encoding"] = "identity"  # checksums and ranges relate to the file as it is on the server
    made.headers["User-Agent"] = "penstock"
    return made


class _Download:
    """The state of one download: the content so far, and the server's identifier of this version."""

    def __init__(
        self, url: str, part: Path, expected: int | None, advance: Callable[[int], None], expect: Callable[[int], None]
    ) -> None:
        self._url, self._part, self._expected = url, part, expected
        self._advance, self._expect = advance, expect
        self._note = part.with_name(f"{part.name}.json")
        self.digest, self.size = hashlib.sha256(), 0
        self._version: dict[str, Any] = {}  # version of the file on the server, by its headers
        self._take_up()

    def _take_up(self) -> None:
        try:
            note = json.loads(self._note.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            note = {}
        if note.get("url") != self._url or not self._part.is_file():
            self._part.unlink(missing_ok=True)
            return
        self._version = note.get("version", {})
        with self._part.open("rb") as file:
            while chunk := file.read(_CHUNK):
                self._count(chunk)

    def _count(self, chunk: bytes) -> None:
        self.digest.update(chunk)
        self.size += len(chunk)
        self._advance(len(chunk))

    def _begin_anew(self) -> None:
        self._advance(-self.size)
        self._part.unlink(missing_ok=True)
        self.digest, self.size = hashlib.sha256(), 0

    def go_on(self, session: Any) -> None:
        """Make one request. Returns when the file is complete."""
        import requests

        if self._expected is not None and self.size == self._expected:
            return
        headers = {}
        if self.size:
            headers["Range"] = f"bytes={self.size}-"
        try:
            response = session.get(self._url, headers=headers, stream=True, timeout=_TIMEOUT)
        except (requests.ConnectionError, requests.Timeout) as error:
            raise Interrupted(f"the connection failed ({type(error).__name__})") from error
        except requests.RequestException as error:
            message = f"{self._url} cannot be asked for ({error})."
            raise FailedPreconditionError(message, hint="Is the address right?") from error
        with response:
            self._receive(response)

    def _receive(self, response: Any) -> None:
        status = response.status_code
        if status in _AGAIN:
            reason = f"the server answered {status} {response.reason}"
            raise Interrupted(reason, _retry_after(response.headers.get("Retry-After")))
        # nothing comes after the present content: it is complete, or of another version
        if status == 416 and self.size:
            if _total(response.headers.get("Content-Range")) == self.size:
                return
            self._has_changed()
        self._check(response)
        going_on = status == 206 and _start(response.headers.get("Content-Range")) == self.size
        if going_on:
            total = _total(response.headers.get("Content-Range"))
        else:
            if self.size:
                self._begin_anew()  # the server ignored the range, or the file has changed
            length = response.headers.get("Content-Length")
            total = int(length) if length is not None else None
        if self._expected is not None and total is not None and total != self._expected:
            raise wrong_size(self._url, self._expected, total)
        if total is not None:
            self._expect(total)
        version = {"ETag": response.headers.get("ETag"), "Last-Modified": response.headers.get("Last-Modified")}
        version["total"] = total
        if going_on and any(value != self._version.get(name, value) for name, value in version.items()):
            self._has_changed()
        self._version = version
        self._note.write_text(json.dumps({"url": self._url, "version": version}), encoding="utf-8")
        with self._part.open("ab", buffering=0) as file:
            self._copy(response, file)
        if total is not None and self.size < total:
            raise Interrupted(f"the connection ended after {self.size} of {total} bytes")

    def _check(self, response: Any) -> None:
        status = response.status_code
        if status in (404, 410):
            message = f"there is no {self._url} (the server answered {status})."
            hint = (
                "The data set may have moved: look at its home page, and put the file where the builder looks for it."
            )
            raise NotFoundError(message, hint=hint)
        if status >= 400:
            message = f"{self._url} was refused: the server answered {status} {response.reason}."
            hint = "Does it need a login (~/.netrc), or a proxy (HTTPS_PROXY)?"
            raise FailedPreconditionError(message, hint=hint)
        if response.headers.get("Content-Encoding", "identity") != "identity" and not self._url.endswith(_PACKED):
            message = f"{self._url} came packed ({response.headers['Content-Encoding']}), which was not asked for."
            raise FailedPreconditionError(message, hint="Download the file by other means, and put it in its place.")

    def _has_changed(self) -> NoReturn:
        self._begin_anew()
        raise Interrupted("the file on the server has changed")

    def _copy(self, response: Any, file: BinaryIO) -> None:
        from urllib3.exceptions import HTTPError

        try:
            for chunk in response.raw.stream(_CHUNK, decode_content=False):
                file.write(chunk)
                self._count(chunk)
                if self._expected is not None and self.size > self._expected:
                    raise wrong_size(self._url, self._expected, self.size)
        except (HTTPError, ConnectionError, TimeoutError) as error:
            raise Interrupted(f"the connection ended after {self.size} bytes") from error


def wrong_size(url: str, expected: int, found: int) -> DataLossError:
    message = f"{url} should have {expected} bytes, and has {found}."
    hint = "The file was changed by those who publish it, or something between answers in its place."
    return DataLossError(message, hint=hint)


def _retry_after(text: str | None) -> float | None:
    """Return the seconds to wait, from a header with seconds or a date."""
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds()
        except (TypeError, ValueError):
            return None
    return min(max(seconds, 0.0), _LONGEST_WAIT)


def _start(content_range: str | None) -> int | None:
    """Return the first byte of a range such as "bytes 100-199/1000"."""
    found = (content_range or "").removeprefix("bytes ").partition("-")[0]
    return int(found) if found.isdecimal() else None


def _total(content_range: str | None) -> int | None:
    """Return the total number of bytes of a range such as "bytes 100-199/1000" or "bytes */1000"."""
    found = (content_range or "").rpartition("/")[2]
    return int(found) if found.isdecimal() else None
