"""TFRecordWriter: writes records to a file, byte for byte like TensorFlow."""

from __future__ import annotations

import zlib
from types import TracebackType
from typing import Any

from penstock.errors import FailedPreconditionError, InvalidTypeError, writing_to
from penstock.io import storage
from penstock.io.compression import WINDOW_BITS, TFRecordOptions, as_compression
from penstock.io.remote.upload import RemoteWriter
from penstock.io.tfrecord.framing import frame

_GATHER = 1 << 18  # small records are joined to writes of about this size


class TFRecordWriter:
    """Writer of byte strings as the records of a new TFRecord file.

    Equal records give equal bytes. The file is complete when the writer is closed, at the end of the `with` block. A
    file at a URL appears only then, and not at all if the block ends with an error. A writer is not thread-safe.

    Args:
        path: Path or URL of the file.
        options: A `TFRecordOptions` object, or the name of a compression: `"GZIP"` or `"ZLIB"`.

    Raises:
        NotFoundError: If the directory does not exist.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "two.tfrecord"
        >>> with TFRecordWriter(path) as writer:
        ...     writer.write(b"one")
        ...     writer.write(b"two")
        >>> path.stat().st_size
        38
    """

    def __init__(self, path: storage.Path, options: TFRecordOptions | str | None = None) -> None:
        import crc32c

        chosen = TFRecordOptions.of(options)
        compression = as_compression(chosen.compression_type)
        level = zlib.Z_DEFAULT_COMPRESSION if chosen.compression_level is None else chosen.compression_level
        self._crc = crc32c.crc32c
        self._path = storage.as_path(path)
        self._deflate = zlib.compressobj(level, zlib.DEFLATED, WINDOW_BITS[compression]) if compression else None
        self._file = storage.open_write(self._path)
        self._parts: list[bytes] = []
        self._gathered = 0

    def write(self, record: bytes | bytearray | memoryview) -> None:
        """Append one record. Raises InvalidTypeError unless it is bytes."""
        if not isinstance(record, bytes):
            record = _as_bytes(record)
        self._check_open()
        header, footer = frame(len(record), self._crc(record))
        self._parts += (header, record, footer)
        self._gathered += len(record) + 16
        if self._gathered >= _GATHER:
            self._drain()

    def flush(self) -> None:
        """Pass everything written so far to the operating system."""
        self._check_open()
        with writing_to(self._path):
            self._drain()
            if self._deflate is not None:
                self._file.write(self._deflate.flush(zlib.Z_SYNC_FLUSH))
            self._file.flush()

    def close(self) -> None:
        """Complete the file. Further calls do nothing."""
        if self._file.closed:
            return
        with writing_to(self._path):
            try:
                self._drain()
                if self._deflate is not None:
                    self._file.write(self._deflate.flush(zlib.Z_FINISH))
            finally:
                self._file.close()

    def _check_open(self) -> None:
        if self._file.closed:
            message = f"The writer of {self._path!r} is closed."
            raise FailedPreconditionError(message, hint="Write inside its `with` block.")

    def _drain(self) -> None:
        joined = b"".join(self._parts)
        self._parts.clear()
        self._gathered = 0
        with writing_to(self._path):
            self._file.write(joined if self._deflate is None else self._deflate.compress(joined))

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None and isinstance(self._file, RemoteWriter):
            self._file.discard()
        self.close()


def _as_bytes(record: Any) -> bytes:
    if isinstance(record, (bytearray, memoryview)):
        return bytes(record)
    message = f"A record is bytes, got {type(record).__name__}."
    hint = "Encode text with .encode(), a dict of features with io.encode_example, an array with .tobytes()."
    raise InvalidTypeError(message, hint=hint)
