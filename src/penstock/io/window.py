"""Window: the part of a file's content that is in memory, which its reader moves forward.

RecordChunk: records in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from penstock.errors import DataLossError, InvalidArgumentError, ResourceExhaustedError
from penstock.io import storage
from penstock.io.compression import as_compression
from penstock.io.tfrecord.streams import InflatedStream, PlainStream

BUFFER_SIZE = 1 << 18
_LEAST_PIECE = 16

LONGEST = 1 << 28  # bytes of a line or row of a file that is streamed: one without an end would take all memory
_NEWLINE = 10
_UNENDING = "Is the file what it is read as? A line end may be missing, or a quote that closes a field."

_EMPTY = np.frombuffer(b"", np.uint8)


class Window:
    """The content of a file, decompressed, from byte `offset` on.

    `buffer` is read-only uint8 and never written to again: what was cut out of it stays valid. `at` is the reader's
    place in it, `base` the offset of `buffer[0]` in the content. An uncompressed local file is mapped whole; anything
    else is streamed by pieces of `buffer_size` bytes (256 KiB), more where one record needs it.

    `broken` says that the content behind the buffer cannot be read: the file is over, whatever it should have held.
    Raises NotFoundError for a missing file, InvalidArgumentError for a negative offset or unknown compression.
    """

    def __init__(
        self,
        path: storage.Path,
        *,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        offset: int = 0,
    ) -> None:
        if offset < 0 or (buffer_size is not None and buffer_size < 0):
            message = f"offset and buffer_size must not be negative, got {offset} and {buffer_size}."
            raise InvalidArgumentError(message)
        self.name = storage.as_path(path)
        self.buffer = _EMPTY
        self.base = 0
        self.at = 0
        self.broken = False
        self._error: Exception | None = None  # for the next `extend`: bytes that came before it are given first
        self._piece = max(buffer_size or BUFFER_SIZE, _LEAST_PIECE)
        self._stream: PlainStream | InflatedStream | None = None
        compression = as_compression(compression_type)
        if compression:
            self._stream = InflatedStream(storage.open_read(self.name), compression, self.name)
            try:
                self._skip_to(offset)
            except BaseException:
                self._stream.close()
                raise
        elif storage.is_url(self.name):
            self._open_stream(offset)
        else:
            self._open_local(offset)

    def _open_local(self, offset: int) -> None:
        """The file as it lies there; in pieces where it is larger than what the program may have mapped."""
        buffer = storage.map_file_or_none(self.name)
        if buffer is None:
            self._open_stream(offset)
        else:
            self.buffer = buffer
            self.at = self._checked(offset, len(buffer))

    @property
    def left(self) -> int:
        """Bytes in the buffer from `at` on."""
        return len(self.buffer) - self.at

    @property
    def whole(self) -> bool:
        """Whether everything up to the end of the file is in the buffer for certain."""
        return self._stream is None

    def tell(self) -> int:
        """The offset of `at` in the content: where a window begins that continues here."""
        return self.base + self.at

    def extend(self, wanted: int) -> bool:
        """Read on until `wanted` bytes stand from `at` on or the content ends; whether there are any new ones.

        What stood before `at` is dropped. Raises DataLossError or OSError where the content cannot be read on, once:
        then what was left of it is passed over and `broken` is set.
        """
        if self._stream is None or self.broken:
            return False
        if self._error is not None:
            self._break(self._error)
        parts = [self.buffer[self.at :].tobytes()]
        have = len(parts[0])
        fresh = False
        try:
            while not fresh or have < wanted:
                # What spans pieces is fetched in growing steps; a piece is kept only once its bytes are there.
                part = self._stream.read(max(self._piece, min(wanted - have, have)))
                if not part:
                    break
                fresh = True
                have += len(part)
                parts.append(part)
            joined = b"".join(parts) if fresh else b""
        except MemoryError as error:
            del parts
            self._break(self._too_large(have, error))
        except Exception as error:
            if not fresh:
                self._break(error)
            self._error = error
            joined = b"".join(parts)
        if fresh:
            self.base += self.at
            self.at = 0
            self.buffer = np.frombuffer(joined, np.uint8)
        elif self._stream.failure is not None:
            self._break(self._stream.failure)
        return fresh

    def close(self) -> None:
        """Let go of the file. What was cut out of the buffer stays valid."""
        self.base = self.tell()
        self.at = 0
        self.buffer = _EMPTY
        if self._stream is not None:
            self._stream.close()

    def _break(self, error: Exception) -> NoReturn:
        self.at = len(self.buffer)
        self.broken = True
        raise error

    def _too_large(self, have: int, error: MemoryError) -> ResourceExhaustedError:
        message = f"There is no memory for a record or line that has {have} bytes so far; the rest of the file is lost."
        found = ResourceExhaustedError(message, hint=_UNENDING, file=self.name, offset=self.tell())
        found.__cause__ = error
        return found

    def too_long(self, what: str) -> DataLossError:
        """The error for a line or row at `at` that has more than `LONGEST` bytes; goes behind its end, keeping nothing.

        A row of which no end was found in so many bytes ends at the next line end, whatever quotes it has.
        """
        message = f"A {what} has more than {LONGEST >> 20} MiB, which are passed over."
        error = DataLossError(message, hint=_UNENDING, file=self.name, offset=self.tell())
        self.at += LONGEST
        try:
            while not len(ends := np.flatnonzero(self.buffer[self.at :] == _NEWLINE)):
                self.at = len(self.buffer)
                if not self.extend(1):
                    return error
            self.at += int(ends[0]) + 1
        except Exception as raised:  # comes behind this one
            self._error, self.broken = raised, False
        return error

    def _open_stream(self, offset: int) -> None:
        if offset:
            self._checked(offset, storage.size(self.name))
        file = storage.open_read(self.name)
        if offset:
            file.seek(offset)
        self._stream = PlainStream(file)
        self.base = offset

    def _skip_to(self, offset: int) -> None:
        """Decompress up to `offset` and throw it away: a compressed file has no other way to get there."""
        assert self._stream is not None
        while self.base < offset:
            part = self._stream.read(min(self._piece, offset - self.base))
            if not part:
                if self._stream.failure is not None:
                    raise self._stream.failure
                self._checked(offset, self.base)
            self.base += len(part)

    def _checked(self, offset: int, size: int) -> int:
        if offset <= size:
            return offset
        message = f"Reading was to continue at byte {offset}, and the file has {size}."
        hint = "The file is not the one that was read before; start again, or restore it."
        raise DataLossError(message, hint=hint, file=self.name, offset=offset)


@dataclass(frozen=True, slots=True, eq=False)
class RecordChunk:
    """Record i is `buffer[starts[i] : starts[i] + lengths[i]]`; nothing is copied out of the buffer.

    `buffer` is read-only uint8 and never changes afterwards; `starts`, `lengths` and `offsets` are int64 of shape (n,).
    `offsets` says where each record's header begins in the file (in its uncompressed content), for error messages.
    """

    buffer: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.starts)

    def slice(self, start: int, stop: int) -> RecordChunk:
        """The records from number `start` up to, not including, number `stop`."""
        return RecordChunk(self.buffer, self.starts[start:stop], self.lengths[start:stop], self.offsets[start:stop])

    def records(self) -> list[bytes]:
        """The records as byte strings, copied."""
        view = self.buffer.data
        spans = zip(self.starts.tolist(), self.lengths.tolist(), strict=True)
        return [bytes(view[start : start + length]) for start, length in spans]
