"""RemoteWriter: a new object, which appears completely when it is closed, and not before."""

from __future__ import annotations

import io
import tempfile
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

from penstock.errors import NotFoundError
from penstock.hints import redacted
from penstock.io.remote.retry import retrying
from penstock.io.remote.system import file_system, scheme_of

IN_MEMORY = 1 << 23  # bytes; smaller objects are sent in one request, larger ones go through a temporary file
_WHOLE = frozenset(  # services in which an object appears with its last byte
    ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "oci", "cos", "memory", "http", "https", "hf")
)


class RemoteWriter(io.RawIOBase):
    """Collects the written bytes, and sends them when it is closed. Large content goes to a temporary file.

    Requests are repeated as in reading. Some services, such as HDFS, show files that are being written. For these
    services, the file is sent under another name and renamed. `discard` closes the writer without sending.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        file_system(url)  # a missing library raises before anything is written
        self.name = url
        self._parts = io.BytesIO()
        self._file: Any = None

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return int((self._file or self._parts).tell())

    def write(self, piece: Any) -> int:
        if self.closed:
            message = f"The file {redacted(self.name)!r} is closed."
            raise ValueError(message)
        size = memoryview(piece).nbytes
        if self._file is None and self._parts.tell() + size > IN_MEMORY:
            self._file = tempfile.NamedTemporaryFile(prefix="penstock-", delete=False)  # noqa: SIM115
            self._file.write(self._parts.getbuffer())
            self._parts = io.BytesIO()
        (self._file or self._parts).write(piece)
        return size

    def close(self) -> None:
        """Send the object. Idempotent."""
        if self.closed:
            return
        super().close()
        try:
            if self._file is None:
                put(self.name, self._parts.getvalue())
            else:
                self._file.close()
                put(self.name, Path(self._file.name))
        finally:
            self._forget()

    def discard(self) -> None:
        """Close the writer without sending."""
        if not self.closed:
            super().close()
            self._forget()

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        with suppress(Exception):
            self.discard()  # the content may be incomplete

    def _forget(self) -> None:
        self._parts = io.BytesIO()
        if self._file is not None:
            self._file.close()
            with suppress(OSError):
                Path(self._file.name).unlink()


def put(url: str, content: bytes | Path) -> None:
    """Write an object with these bytes, or with the content of a local file, completely or not at all."""
    try:
        retrying(lambda: _put(url, content), url, "Writing")
    except NotFoundError as error:
        message = f"There is no place for {redacted(url)!r}: its bucket or a parent folder is missing."
        raise NotFoundError(message, hint="Create it first.", file=url) from error.__cause__


def _put(url: str, content: bytes | Path) -> None:
    system, inner = file_system(url)
    if scheme_of(url) in _WHOLE:
        _send(system, inner, content)
        return
    part = f"{inner}.{token_hex(4)}.part"
    with suppress(FileExistsError, NotImplementedError):
        system.makedirs(system._parent(inner), exist_ok=True)
    try:
        _send(system, part, content)
        if scheme_of(url) in ("hdfs", "viewfs"):
            system.mv(part, inner, overwrite=True)
            return
        if system.exists(inner):  # most services cannot rename to an existing file
            system.rm_file(inner)
        system.mv(part, inner)
    except BaseException:
        with suppress(Exception):
            system.rm_file(part)
        raise


def _send(system: Any, inner: str, content: bytes | Path) -> None:
    if isinstance(content, bytes):
        system.pipe_file(inner, content)
    else:
        system.put_file(str(content), inner)
    system.invalidate_cache(inner)
