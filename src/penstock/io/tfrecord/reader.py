"""RecordReader: the records of one TFRecord file, in chunks of positions rather than byte strings.

`read_at` gives those at known offsets, for uncompressed local files. The walk over the framing is compiled, or in plain
Python until it is.
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
from penstock.io.window import RecordChunk, Window
from penstock.native.library import Kernels

_SCAN = Kernels("penstock.io.kernels.tfrecord.scan")
_FIND = Kernels("penstock.io.kernels.tfrecord.find_record")


def scan(
    buffer: np.ndarray, at: int, max_bytes: int, check: int, starts: np.ndarray, lengths: np.ndarray
) -> tuple[int, int, int]:
    """Fill `starts` and `lengths` with records from `at` on; returns (records, next position, status).

    Stops when the arrays are full, at the end, after `max_bytes` of data, or in front of the first damaged record.
    """
    kernels = _SCAN.loaded()
    walk = plain_scan if kernels is None else kernels.scan
    found: tuple[int, int, int] = walk(buffer, at, max_bytes, check, starts, lengths)
    return found


def find_record(buffer: np.ndarray, at: int) -> tuple[int, int]:
    """Where the next record begins, from `at` on, and its status.

    FINE is a record whose both checksums match, SHORT_BODY one with a good header that the buffer does not hold to its
    end. SHORT_HEADER stands for none, at the first place where a header would not fit.
    """
    kernels = _FIND.loaded()
    find = plain_find if kernels is None else kernels.find_record
    found: tuple[int, int] = find(buffer, at)
    return found


def gather(
    buffer: np.ndarray, offsets: np.ndarray, check: int, starts: np.ndarray, lengths: np.ndarray
) -> tuple[int, int]:
    """The records whose headers begin at `offsets`; returns (records before the first damaged one, its status)."""
    kernels = _SCAN.loaded()
    take = plain_gather if kernels is None else kernels.gather
    found: tuple[int, int] = take(buffer, offsets, check, starts, lengths)
    return found


_INSIDE = (WRONG_LENGTH, WRONG_DATA)  # damages that no further bytes can mend


class RecordReader:
    """Reads chunks of neighbouring records, verified, from `offset` on.

    An uncompressed local file is mapped: chunks point into the map and nothing is copied. Anything else is streamed by
    pieces of `buffer_size` bytes (256 KiB), more where one record needs it; memory grows only with bytes that arrived,
    never by what a length says. Records in front of a damage are delivered, then `read` raises DataLossError with the
    file and the offset of the record, once. Asked again it goes on: behind a record whose data is damaged; at the next
    whole record where the length is, or where the file ends too early for it; nowhere behind damaged compression.

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
        self._next: Exception | None = None  # a failure met while looking for what follows another
        self._window = Window(path, compression_type=compression_type, buffer_size=buffer_size, offset=offset)

    def read(self, max_records: int, max_bytes: int = 1 << 22) -> RecordChunk | None:
        """The next records, or None at the end of the file.

        At most `max_records` of them; the data stops short of `max_bytes` or passes it with the last record, and at
        least one record is given. Raises DataLossError.
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
        if window.whole and not window.left:
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
        """Offset of the next record's header in the (uncompressed) file: `offset` of a reader that continues here."""
        return self._window.tell()

    @property
    def over(self) -> bool:
        """Whether nothing more comes, although the file was not read to its end."""
        return self._window.broken and self._next is None

    def close(self) -> None:
        """Let go of the file. Chunks that were handed out stay valid."""
        self._closed = True
        self._window.close()

    def __enter__(self) -> RecordReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _wanted(self) -> int:
        """How many bytes the record at the window's place needs, as far as its header is there."""
        header = self._window.buffer[self._window.at : self._window.at + 8].tobytes()
        return HEADER if len(header) < 8 else HEADER + FOOTER + int.from_bytes(header, "little")

    def _damage(self, status: int) -> DataLossError:
        """The error for the record at the window's place, which then is that of what can be read behind it."""
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
        """Go to the next place where a whole record begins, its checksums right; to the end if there is none."""
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
        """Read on from a place where a header does not fit; the next search begins at that place."""
        window = self._window
        if window.extend(HEADER):
            window.at -= 1
            return True
        window.at = len(window.buffer)
        return False


def whole_files(buffer: np.ndarray, sizes: Sequence[int]) -> tuple[RecordChunk, np.ndarray] | None:
    """The records of files that lie one behind the other in a buffer, each so many bytes, and how many each has.

    Their offsets count from the start of their file. None where one is damaged, or does not end with a record.
    """
    room = len(buffer) // (HEADER + FOOTER) + 1
    starts, lengths = np.empty(room, np.int64), np.empty(room, np.int64)
    count, at, status = scan(buffer, 0, len(buffer) + 1, EVERYTHING, starts, lengths)
    if status != FINE or at != len(buffer):
        return None
    starts, lengths = starts[:count].copy(), lengths[:count].copy()  # there was room for empty records
    borders = np.cumsum(sizes)
    heads = starts - HEADER
    first_behind = np.searchsorted(heads, borders)  # the first record that begins behind a file
    ends = np.append(heads, at)
    if (ends[first_behind] != borders).any():
        return None
    counts = np.diff(first_behind, prepend=0)
    offsets = heads - (borders - sizes).repeat(counts)
    return RecordChunk(buffer, starts, lengths, offsets), counts


def read_at(path: storage.Path, offsets: np.ndarray, *, buffer: np.ndarray | None = None) -> RecordChunk:
    """The records whose headers begin at `offsets`, in that order, without copying.

    `buffer` is the mapped file (`storage.bytes_of`), for callers that read from it many times.
    Raises DataLossError at the first damaged record, or at an offset where no record begins.
    """
    name = storage.as_path(path)
    mapped = storage.bytes_of(name) if buffer is None else buffer
    places = np.array(offsets, np.int64)  # a copy: the chunk keeps it
    starts, lengths = np.empty(len(places), np.int64), np.empty(len(places), np.int64)
    count, status = gather(mapped, places, EVERYTHING, starts, lengths)
    if status != FINE:
        at = int(places[count])
        rest = mapped[at:] if at >= 0 else mapped[:0]
        raise damaged_record(status, name, at, rest[:16], len(rest), at_start=False)
    return RecordChunk(mapped, starts, lengths, places)
