"""RecordReader: the records of one TFRecord file, in chunks of positions rather than byte strings."""

from __future__ import annotations

from types import TracebackType

import numpy as np

from penstock.errors import DataLossError, FailedPreconditionError, InvalidArgumentError
from penstock.io import storage
from penstock.io.tfrecord.chunk import RecordChunk
from penstock.io.tfrecord.damage import damaged_record
from penstock.io.tfrecord.framing import EVERYTHING, FINE, FOOTER, HEADER, NOTHING, plain_scan
from penstock.io.tfrecord.index import KERNELS
from penstock.io.tfrecord.options import as_compression
from penstock.io.tfrecord.streams import InflatedStream, PlainStream

BUFFER_SIZE = 1 << 18

_EMPTY = np.frombuffer(b"", np.uint8)


class RecordReader:
    """Reads chunks of neighbouring records, verified, from `offset` on.

    An uncompressed local file is mapped: chunks point into the map and nothing is copied. Anything else is streamed by
    pieces of `buffer_size` bytes (256 KiB), more where one record needs it; memory grows only with bytes that arrived,
    never by what a length says. Records in front of a damage are delivered, then `read` raises DataLossError with the
    file and the offset of the record, again and again.

    >>> import pathlib, tempfile
    >>> from penstock.io.tfrecord.writer import TFRecordWriter
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "two.tfrecord"
    >>> with TFRecordWriter(path) as writer:
    ...     writer.write(b"one")
    ...     writer.write(b"two")
    >>> with RecordReader(path) as reader:
    ...     reader.read(max_records=1, max_bytes=1000).records(), reader.tell()
    ([b'one'], 19)
    >>> RecordReader(path, offset=19).read(max_records=10, max_bytes=1000).records()
    [b'two']

    Raises NotFoundError for a missing file, InvalidArgumentError for a negative offset or unknown compression. Chunks
    may be handed to other threads; the reader itself is for one thread at a time.
    """

    def __init__(
        self,
        path: storage.Path,
        *,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        verify: bool = True,
        offset: int = 0,
    ) -> None:
        if offset < 0 or (buffer_size is not None and buffer_size < 0):
            message = f"offset and buffer_size must not be negative, got {offset} and {buffer_size}."
            raise InvalidArgumentError(message)
        self._name = storage.as_path(path)
        self._check = EVERYTHING if verify else NOTHING
        self._piece = max(buffer_size or BUFFER_SIZE, HEADER + FOOTER)
        self._buffer = _EMPTY
        self._base = 0  # where in the uncompressed stream the buffer begins
        self._at = 0  # next record header in the buffer
        self._closed = False
        self._stream: PlainStream | InflatedStream | None = None
        compression = as_compression(compression_type)
        if compression:
            self._stream = InflatedStream(storage.open_read(self._name), compression, self._name)
            try:
                self._skip_to(offset)
            except BaseException:
                self._stream.close()
                raise
        elif storage.is_url(self._name):
            self._open_url(offset)
        else:
            self._buffer = storage.map_file(self._name)
            self._at = self._checked(offset, len(self._buffer))

    def read(self, max_records: int, max_bytes: int) -> RecordChunk | None:
        """The next records, or None at the end of the file.

        At most `max_records` of them; the data stops short of `max_bytes` or passes it with the last record, and at
        least one record is given. Raises DataLossError.
        """
        if max_records < 1:
            message = f"max_records must be at least 1, got {max_records}."
            raise InvalidArgumentError(message)
        if self._closed:
            message = f"The reader of {self._name!r} is closed."
            raise FailedPreconditionError(message)
        while True:
            room = min(max_records, (len(self._buffer) - self._at) // (HEADER + FOOTER) + 1)
            starts, lengths = np.empty(room, np.int64), np.empty(room, np.int64)
            kernels = KERNELS.ready()
            scan = plain_scan if kernels is None else kernels.scan
            count, self._at, status = scan(self._buffer, self._at, max_bytes, self._check, starts, lengths)
            if count:
                starts = starts[:count]
                return RecordChunk(self._buffer, starts, lengths[:count], starts + (self._base - HEADER))
            if not self._extend(self._wanted()):
                if status == FINE:
                    return None
                raise self._damage(status)

    def tell(self) -> int:
        """Offset of the next record's header in the (uncompressed) file: `offset` of a reader that continues here."""
        return self._base + self._at

    def close(self) -> None:
        """Let go of the file. Chunks that were handed out stay valid."""
        self._closed = True
        self._buffer = _EMPTY
        if self._stream is not None:
            self._stream.close()

    def __enter__(self) -> RecordReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _wanted(self) -> int:
        """How many bytes the record at `_at` needs, as far as its header is there."""
        header = self._buffer[self._at : self._at + 8].tobytes()
        return HEADER if len(header) < 8 else HEADER + FOOTER + int.from_bytes(header, "little")

    def _extend(self, wanted: int) -> bool:
        """Read on until `wanted` bytes stand from `_at` on or the stream ends; whether there are any new ones."""
        if self._stream is None:
            return False
        parts = [self._buffer[self._at :].tobytes()]
        have = len(parts[0])
        fresh = False
        while not fresh or have < wanted:
            # A record that spans pieces is fetched in growing steps; a piece is kept only once its bytes are there.
            part = self._stream.read(max(self._piece, min(wanted - have, have)))
            if not part:
                break
            fresh = True
            have += len(part)
            parts.append(part)
        if fresh:
            self._base += self._at
            self._at = 0
            self._buffer = np.frombuffer(b"".join(parts), np.uint8)
        elif self._stream.failure is not None:
            raise self._stream.failure
        return fresh

    def _damage(self, status: int) -> DataLossError:
        rest = self._buffer[self._at :]
        return damaged_record(status, self._name, self.tell(), rest[:16], len(rest), at_start=self.tell() == 0)

    def _open_url(self, offset: int) -> None:
        if offset:
            self._checked(offset, storage.size(self._name))
        file = storage.open_read(self._name)
        if offset:
            file.seek(offset)
        self._stream = PlainStream(file)
        self._base = offset

    def _skip_to(self, offset: int) -> None:
        """Decompress up to `offset` and throw it away: a compressed file has no other way to get there."""
        assert self._stream is not None
        while self._base < offset:
            part = self._stream.read(min(self._piece, offset - self._base))
            if not part:
                if self._stream.failure is not None:
                    raise self._stream.failure
                self._checked(offset, self._base)
            self._base += len(part)

    def _checked(self, offset: int, size: int) -> int:
        if offset <= size:
            return offset
        message = f"Reading was to continue at byte {offset}, and the file has {size}."
        hint = "The file is not the one that was read before; start again, or restore it."
        raise DataLossError(message, hint=hint, file=self._name, offset=offset)
