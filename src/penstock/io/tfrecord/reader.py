"""RecordReader: the records of one TFRecord file, in chunks of positions instead of byte strings.

`read_at` reads the records at known offsets of uncompressed local files. The loops are compiled; plain Python replaces
missing kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

import numpy as np

from penstock.errors import DataLossError, FailedPreconditionError, InvalidArgumentError
from penstock.io import storage
from penstock.io.tfrecord.framing import (
    EVERYTHING,
    FINE,
    FOOTER,
    HEADER,
    NOTHING,
    SHORT_BODY,
    SHORT_HEADER,
    WRONG_DATA,
    WRONG_LENGTH,
    damaged_record,
    other_format,
    passed_over,
    plain_find,
    plain_gather,
    plain_scan,
)
from penstock.io.window import FileWindow, RecordChunk
from penstock.native.library import Kernels

_SCAN = Kernels("penstock.io.kernels.tfrecord.scan")
_FIND = Kernels("penstock.io.kernels.tfrecord.find_record")


def scan(
    buffer: np.ndarray, at: int, max_bytes: int, check: int, starts: np.ndarray, lengths: np.ndarray
) -> tuple[int, int, int]:
    """Fill `starts` and `lengths` with records from `at` on. Return (records, next position, status).

    The scan stops when the arrays are full, at the end, after `max_bytes` of data, or before the first damaged record.
    """
    kernels = _SCAN.loaded()
    walk = plain_scan if kernels is None else kernels.scan
    found: tuple[int, int, int] = walk(buffer, at, max_bytes, check, starts, lengths)
    return found


def find_record(buffer: np.ndarray, at: int) -> tuple[int, int]:
    """Return the start of the next record, from `at` on, and its status.

    FINE is a record with two valid checksums. SHORT_BODY is a record with a valid header that ends after the buffer.
    SHORT_HEADER means that no record was found; the position is the first one without space for a header.
    """
    kernels = _FIND.loaded()
    find = plain_find if kernels is None else kernels.find_record
    found: tuple[int, int] = find(buffer, at)
    return found


def gather(
    buffer: np.ndarray, offsets: np.ndarray, check: int, starts: np.ndarray, lengths: np.ndarray
) -> tuple[int, int]:
    """Read the records whose headers begin at `offsets`. Return (records before the first damaged one, its status)."""
    kernels = _SCAN.loaded()
    take = plain_gather if kernels is None else kernels.gather
    found: tuple[int, int] = take(buffer, offsets, check, starts, lengths)
    return found


_INSIDE = (WRONG_LENGTH, WRONG_DATA)  # damage that more bytes cannot repair


class RecordReader:
    """Reads chunks of neighbouring, verified records from `offset` on.

    An uncompressed local file is mapped: chunks point into the map, and nothing is copied. Other files are streamed in
    pieces of `buffer_size` bytes (256 KiB), or more for a larger record. Memory grows only with bytes that have
    arrived, never with a stated length.
    Records before damage are returned first. Then `read` raises DataLossError once, with the file and the offset of the
    record. The next call continues after a record with damaged data. After a damaged length or a truncated record, it
    continues at the next valid record. After damaged compression, there are no more records.

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
        self._check = EVERYTHING if verify else NOTHING
        self._closed = False
        self._next: Exception | None = None  # an error that was found while searching for the record after damage
        self._window = FileWindow(path, compression_type=compression_type, buffer_size=buffer_size, offset=offset)

    def read(self, max_records: int, max_bytes: int = 1 << 22) -> RecordChunk | None:
        """Return the next records, or None at the end of the file.

        It returns at least one record and at most `max_records`. It stops at the record that reaches `max_bytes` of
        data. Raises DataLossError.
        """
        if max_records < 1:
            message = f"max_records must be at least 1, got {max_records}."
            raise InvalidArgumentError(message)
        if self._closed:
            message = f"The reader of {self._window.name!r} is closed."
            raise FailedPreconditionError(message)
        if self._next is not None:
            error, self._next = self._next, None
            raise error
        window = self._window
        if window.at_end:
            return None
        while True:
            room = min(max_records, window.left // (HEADER + FOOTER) + 1)
            starts, lengths = np.empty(room, np.int64), np.empty(room, np.int64)
            count, window.at, status = scan(window.buffer, window.at, max_bytes, self._check, starts, lengths)
            if count:
                starts = starts[:count]
                return RecordChunk(window.buffer, starts, lengths[:count], starts + (window.base - HEADER))
            if status in _INSIDE or not window.extend(self._wanted()):
                if status == FINE:
                    return None
                raise self._damage(status)

    def tell(self) -> int:
        """Return the offset of the next record's header in the (uncompressed) file. A new reader can continue there."""
        return self._window.tell()

    @property
    def over(self) -> bool:
        """True if no more records can be read, although the end of the file was not reached."""
        return self._window.broken and self._next is None

    @property
    def at_end(self) -> bool:
        """True if certainly no record follows."""
        return self._window.at_end and self._next is None

    def close(self) -> None:
        """Close the file. Returned chunks stay valid."""
        self._closed = True
        self._window.close()

    def __enter__(self) -> RecordReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _wanted(self) -> int:
        """Return the number of bytes of the record at the window's position, as far as its header is there."""
        header = self._window.buffer[self._window.at : self._window.at + 8].tobytes()
        return HEADER if len(header) < 8 else HEADER + FOOTER + int.from_bytes(header, "little")

    def _damage(self, status: int) -> DataLossError:
        """Return the error for the record at the window's position, and move to the next readable record."""
        window = self._window
        rest, offset = window.buffer[window.at :], window.tell()
        at_start = offset == 0
        passed = ""
        if at_start and other_format(rest):
            window.at = len(window.buffer)
        elif status == WRONG_DATA:
            window.at += self._wanted()
        elif status == SHORT_HEADER:
            window.at = len(window.buffer)
        else:
            found = self._find_next()
            passed = passed_over(offset, window.tell(), found=found)
        return damaged_record(status, window.name, offset, rest[:16], len(rest), at_start=at_start, passed=passed)

    def _find_next(self) -> bool:
        """Move to the next position of a record with valid checksums, or to the end."""
        window = self._window
        try:
            while True:
                window.at, status = find_record(window.buffer, window.at + 1)
                while status == SHORT_BODY and window.extend(self._wanted()):
                    window.at, status = find_record(window.buffer, window.at)
                if status == FINE:
                    return True
                if status == SHORT_HEADER and not self._more():
                    return False
        except Exception as error:
            self._next = error
            return False

    def _more(self) -> bool:
        """Read more bytes after a position without space for a header. The next search begins at this position."""
        window = self._window
        if window.extend(HEADER):
            window.at -= 1
            return True
        window.at = len(window.buffer)
        return False


def whole_files(buffer: np.ndarray, sizes: Sequence[int]) -> tuple[RecordChunk, np.ndarray] | None:
    """Return the records of files that are concatenated in a buffer, and the number of records per file.

    Offsets count from the start of each file. Return None if a file is damaged or does not end with a record.
    """
    room = len(buffer) // (HEADER + FOOTER) + 1
    starts, lengths = np.empty(room, np.int64), np.empty(room, np.int64)
    count, at, status = scan(buffer, 0, len(buffer) + 1, EVERYTHING, starts, lengths)
    if status != FINE or at != len(buffer):
        return None
    starts, lengths = starts[:count].copy(), lengths[:count].copy()  # the arrays had room for empty records
    borders = np.cumsum(sizes)
    heads = starts - HEADER
    first_behind = np.searchsorted(heads, borders)  # the first record after the end of each file
    ends = np.append(heads, at)
    if (ends[first_behind] != borders).any():
        return None
    counts = np.diff(first_behind, prepend=0)
    offsets = heads - (borders - sizes).repeat(counts)
    return RecordChunk(buffer, starts, lengths, offsets), counts


def read_at(path: storage.Path, offsets: np.ndarray, *, buffer: np.ndarray | None = None) -> RecordChunk:
    """Return the records whose headers begin at `offsets`, in this order, without copying.

    `buffer` is the mapped file (`storage.bytes_of`), for callers with many reads.
    Raises DataLossError at the first damaged record, or at an offset where no record begins.
    """
    name = storage.as_path(path)
    mapped = storage.bytes_of(name) if buffer is None else buffer
    places = np.array(offsets, np.int64)  # a copy for the chunk
    starts, lengths = np.empty(len(places), np.int64), np.empty(len(places), np.int64)
    count, status = gather(mapped, places, EVERYTHING, starts, lengths)
    if status != FINE:
        at = int(places[count])
        rest = mapped[at:] if at >= 0 else mapped[:0]
        raise damaged_record(status, name, at, rest[:16], len(rest), at_start=False)
    return RecordChunk(mapped, starts, lengths, places)
