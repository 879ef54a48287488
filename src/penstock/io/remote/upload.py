"""RemoteWriter: a new object, which is there as a whole when it is closed, and not at all before."""

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

IN_MEMORY = 1 << 23  # bytes of what is sent as one request; more goes through a temporary file
_WHOLE = frozenset(  # services in which an object appears when its last byte has come
    ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "oci", "cos", "memory", "http", "https", "hf")
)


class RemoteWriter(io.RawIOBase):
    """Gathers what is written, beyond some megabytes in a temporary file, and sends it when it is closed.

    Sending is tried again like reading. Where a service shows files that are being written, such as HDFS, it is sent
    under another name and renamed. `discard` closes it without sending anything.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        file_system(url)  # what is missing is said before anything is written
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
        """Send it. Idempotent."""
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
        """Close it, and send nothing."""
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
            self.discard()  # nobody said that it is whole

    def _forget(self) -> None:
        self._parts = io.BytesIO()
        if self._file is not None:
            self._file.close()
            with suppress(OSError):
                Path(self._file.name).unlink()


def put(url: str, content: bytes | Path) -> None:
    """Make an object of bytes, or of the content of a local file, whole or not at all."""
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
        if system.exists(inner):  # most services do not rename onto a file
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
