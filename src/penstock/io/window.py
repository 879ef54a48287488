"""`FileWindow`: the part of a file's content in memory, which its reader moves forward.

RecordChunk: records in it, by position. LineReader: the lines of a file, also in chunks of positions. whole_lines: the
lines of several small files.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from penstock.errors import DataLossError, InvalidArgumentError, ResourceExhaustedError
from penstock.hints import redacted
from penstock.io import storage
from penstock.io.compression import as_compression
from penstock.io.tfrecord.streams import InflatedStream, PlainStream

BUFFER_SIZE = 1 << 18
_LEAST_PIECE = 16

LONGEST = 1 << 28  # bytes; limit for a line or row of a streamed file, as one without an end would fill the memory
_NEWLINE = 10
_UNENDING = "Is the file what it is read as? A line end may be missing, or a quote that closes a field."

MARK = b"\xef\xbb\xbf"  # the byte order mark of UTF-8
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_CONVERT = 'Save it as "CSV UTF-8" or as UTF-8, or convert it: iconv -f UTF-16 -t UTF-8 old > new.'
_CTRL_Z = 26  # ends texts of DOS
_EMPTY = np.frombuffer(b"", np.uint8)


class FileWindow:
    """The decompressed content of a file, from byte `offset` on.

    `buffer` is read-only uint8 and never changes, so slices of it stay valid. `at` is the reader's position in it, and
    `base` the offset of `buffer[0]` in the content. An uncompressed local file is mapped. Other files are streamed in
    pieces of `buffer_size` bytes (256 KiB), or more for a larger record.

    With `text` the content is UTF-8 or another superset of ASCII. A byte order mark at its start and a Ctrl-Z at its
    end are left out. UTF-16 raises InvalidArgumentError. NUL bytes at the end raise DataLossError, after the text
    before them.

    If `broken` is True, the content after the buffer cannot be read, and the file counts as ended. Raises NotFoundError
    for a missing file, InvalidArgumentError for a negative offset or unknown compression.
    """

    def __init__(
        self,
        path: storage.Path,
        *,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        offset: int = 0,
        text: bool = False,
    ) -> None:
        if offset < 0 or (buffer_size is not None and buffer_size < 0):
            message = f"offset and buffer_size must not be negative, got {offset} and {buffer_size}."
            raise InvalidArgumentError(message)
        self.name = storage.as_path(path)
        self.buffer = _EMPTY
        self.base = 0
        self.at = 0
        self.begin = -1  # start of the first row of text, if the window began there
        self.broken = False
        self._error: Exception | None = None  # raised by the next `extend`, after the bytes before it were returned
        self._text = text
        self._line = 0, 1  # a byte offset, and the number of the line there
        self._piece = max(buffer_size or BUFFER_SIZE, _LEAST_PIECE)
        self._stream: PlainStream | InflatedStream | None = None
        compression = as_compression(compression_type)
        try:
            if compression:
                self._stream = InflatedStream(storage.open_read(self.name), compression, self.name)
                self._skip_to(offset)
            elif storage.is_url(self.name):
                self._open_stream(offset)
            else:
                self._open_local(offset)
            if text and not offset:
                self._pass_over_mark()
        except BaseException:
            self.close()
            raise

    def _pass_over_mark(self) -> None:
        """Check the beginning of a text, and skip its byte order mark."""
        if self._stream is not None and self.left < _LEAST_PIECE:
            self.extend(_LEAST_PIECE)
        head = self.buffer[: len(MARK)].tobytes()
        if head[:2] in _UTF16 or 0 in head[:2]:
            message = "The file begins as UTF-16 does, and text is read as UTF-8."
            raise InvalidArgumentError(message, hint=_CONVERT, file=self.name, offset=0)
        self.begin = self.at = len(MARK) if head == MARK else 0

    def _open_local(self, offset: int) -> None:
        """Open the file as a map, or as a stream if it is larger than the program may map."""
        buffer = storage.map_file_or_none(self.name)
        if buffer is None:
            self._open_stream(offset)
        else:
            self.buffer = buffer
            self.at = self._checked(offset, len(buffer))
            self._end()

    def _end(self) -> None:
        """Check the end of the content, which is now in the buffer."""
        last = self.buffer[-1] if self._text and self.left else None
        if last == 0:
            message = "The file ends with NUL bytes, as after a crash or on a full disk: text is missing."
            hint = r"Write it again, or remove them: tr -d '\000' < old > new."
            self._error = DataLossError(message, hint=hint, file=self.name, offset=self.base + len(self.buffer) - 1)
        elif last == _CTRL_Z:
            self.buffer = self.buffer[:-1]

    @property
    def left(self) -> int:
        """The number of bytes in the buffer from `at` on."""
        return len(self.buffer) - self.at

    @property
    def at_end(self) -> bool:
        """True if certainly nothing follows `at`."""
        return self.whole and not self.left

    @property
    def whole(self) -> bool:
        """True if the buffer certainly has everything up to the end of the file."""
        return self._stream is None and self._error is None

    def tell(self) -> int:
        """Return the offset of `at` in the content. A new window can continue there."""
        return self.base + self.at

    def extend(self, wanted: int) -> bool:
        """Read until there are `wanted` bytes from `at` on, or the content ends. Return True if new bytes came.

        Bytes before `at` are dropped. Raises DataLossError or OSError once, if the content cannot be read further. The
        rest is then skipped, and `broken` is set.
        """
        if self.broken:
            return False
        if self._error is not None:
            self._break(self._error)
        if self._stream is None:
            return False
        parts = [self.buffer[self.at :].tobytes()]
        have = len(parts[0])
        fresh = False
        try:
            while not fresh or have < wanted:
                # Data over several pieces is read in growing steps. A step is at most as large as the bytes that have
                # arrived.
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
        else:
            self._end()
            if self._error is not None:
                self._break(self._error)
        return fresh

    def line_at(self, offset: int) -> int | None:
        """Return the line number at a byte of the content, from 1, or None for a streamed file."""
        if self._stream is not None or len(self.buffer) < offset:
            return None
        at, number = self._line if self._line[0] <= offset else (0, 1)
        for begin in range(at, offset, BUFFER_SIZE):
            size = min(BUFFER_SIZE, offset - begin)
            part = self.buffer[begin : begin + size + 1].tobytes()
            number += part.count(b"\n", 0, size) + part.count(b"\r", 0, size) - part.count(b"\r\n")
        self._line = offset, number
        return number

    def close(self) -> None:
        """Close the file. Slices of the buffer stay valid."""
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
        """Return the error for a line or row at `at` with more than `LONGEST` bytes, and skip to its end.

        A row without an end in so many bytes ends at the next line end, whatever its quotes.
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
        except Exception as raised:  # raised after this error
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
        """Decompress up to `offset` and drop the content, because a compressed file has no random access."""
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
    """Records in a buffer. Record i is `buffer[starts[i] : starts[i] + lengths[i]]`; nothing is copied.

    `buffer` is read-only uint8 and never changes. `starts`, `lengths` and `offsets` are int64 of shape (n,). `offsets`
    has the offset of each record's header in the (uncompressed) file, for errors.
    """

    buffer: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.starts)

    def slice(self, start: int, stop: int) -> RecordChunk:
        """Return the records from number `start` up to `stop` (exclusive)."""
        return RecordChunk(self.buffer, self.starts[start:stop], self.lengths[start:stop], self.offsets[start:stop])

    def records(self) -> list[bytes]:
        """Return the records as byte strings, copied."""
        view = self.buffer.data
        spans = zip(self.starts.tolist(), self.lengths.tolist(), strict=True)
        return [bytes(view[start : start + length]) for start, length in spans]


_LOG = logging.getLogger("penstock.io")
_LINE_END, _RETURN = 10, 13
_LEAST_SEARCH, _MOST_SEARCH = 1 << 12, 1 << 20  # bytes per search for newlines
_MOST_READ = 1 << 21  # bytes of lines per read
_GUESS = 7  # log2 of the assumed length of a line

_NONE = np.empty(0, np.int64)


class TextReader:
    """The rows of a text file. `how` are the arguments of a `FileWindow`. Its offset must be the start of a row.

    Raises NotFoundError for a missing file. One thread at a time may use it.
    """

    def __init__(self, path: storage.Path, **how: Any) -> None:
        self._window = FileWindow(path, text=True, **how)

    def tell(self) -> int:
        """Return the offset of the next row in the (uncompressed) file. A new reader can continue there."""
        return self._window.tell()

    def line_at(self, offset: int) -> int | None:
        """Return the line number at a byte of the file, from 1, or None for a streamed file."""
        return self._window.line_at(offset)

    @property
    def over(self) -> bool:
        """True if no more rows can be read, although the end of the file was not reached."""
        return self._window.broken

    @property
    def at_end(self) -> bool:
        """True if certainly no row follows."""
        return self._window.at_end

    def close(self) -> None:
        """Close the file. Returned chunks stay valid."""
        self._window.close()


class LineReader(TextReader):
    r"""Reads chunks of neighbouring lines from byte `offset` on, the start of a line.

    A line ends after `\n`. It is returned without the `\n`, and without the `\r` of `\r\n`. The last line needs no end.
    An uncompressed local file is mapped, and nothing is copied.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "two.txt"
    >>> _ = path.write_bytes(b"one\r\ntwo\n")
    >>> LineReader(path).read(max_lines=10).records()
    [b'one', b'two']

    Raises NotFoundError for a missing file. For one thread at a time; chunks may go to others.
    """

    _ends = _NONE  # newlines in the buffer from the window's position on, as far as it was searched
    _searched = 0

    def read(self, max_lines: int) -> RecordChunk | None:
        """Return the next 1 to `max_lines` lines, or None at the end of the file.

        Raises DataLossError once, if compressed data is damaged, or for a line of more than 256 MiB in a streamed file.
        The lines before the damage are returned first.
        """
        window = self._window
        while not len(self._ends) and self._search(max_lines << _GUESS):
            pass
        last = min(len(window.buffer), window.at + _MOST_READ)
        # search only bytes that are already in the buffer
        while self._searched < last and (missing := max_lines - len(self._ends)) > 0:
            self._search(missing << _GUESS)
        ends = self._ends[:max_lines]
        if not len(ends):
            if not window.left:
                return None
            ends = np.array([len(window.buffer)], np.int64)
            if window.tell() == window.begin and _RETURN in window.buffer[window.at :]:
                _LOG.warning(
                    "%s has carriage returns and no line feed, and is read as one line. If it is a text of an old "
                    "Macintosh, convert it: tr '\\r' '\\n' < old > new.",
                    redacted(window.name),
                )
        starts = np.empty_like(ends)
        starts[0] = window.at
        starts[1:] = ends[:-1] + 1
        lengths = ends - starts
        # the same limit as for a line whose end is not in the buffer yet
        if not window.whole and lengths.max() > LONGEST:
            count = int(np.argmax(lengths > LONGEST))
            if not count:
                raise self._too_long()
            starts, lengths, ends = starts[:count], lengths[:count], ends[:count]
        self._ends = self._ends[len(ends) :]
        window.at = min(int(ends[-1]) + 1, len(window.buffer))
        if int(ends[-1]) < len(window.buffer):
            lengths -= (lengths > 0) & (window.buffer[ends - 1] == _RETURN)
        return RecordChunk(window.buffer, starts, lengths, starts + window.base)

    def _search(self, size: int) -> bool:
        """Search for newlines in more bytes. Return False at the end of the content."""
        window = self._window
        if self._searched == len(window.buffer):
            before = window.at
            if window.left > LONGEST and not window.whole:
                raise self._too_long()
            if not window.extend(min(window.left * 2, LONGEST) + 1):
                return False
            self._searched -= before
        start = max(self._searched, window.at)
        stop = start + min(max(size, _LEAST_SEARCH), _MOST_SEARCH)
        found = np.flatnonzero(window.buffer[start:stop] == _LINE_END) + start
        self._ends = np.concatenate([self._ends, found]) if len(self._ends) else found
        self._searched = min(stop, len(window.buffer))
        return True

    def _too_long(self) -> DataLossError:
        error = self._window.too_long("line")
        self._ends, self._searched = _NONE, self._window.at
        return error

    @property
    def left(self) -> int:
        """The number of bytes known to come. For a mapped file these are all unread bytes."""
        return self._window.left


def whole_lines(contents: Sequence[bytes]) -> tuple[RecordChunk, np.ndarray] | None:
    r"""Return the lines of files, as `LineReader` reads them, with their offsets in each file and the count per file.

    Return None if a `FileWindow` may remove bytes of a file or raise an error.

    >>> chunk, counts = whole_lines([b"one\r\ntwo", b"", b"three\n"])
    >>> chunk.records(), chunk.offsets.tolist(), counts.tolist()
    ([b'one', b'two', b'three'], [0, 5, 0], [2, 0, 1])
    """
    if any(map(_is_special, contents)):
        return None
    unended = np.array([bool(content) and not content.endswith(b"\n") for content in contents])
    ended = [content + b"\n" if more else content for content, more in zip(contents, unended, strict=True)]
    buffer = np.frombuffer(b"".join(ended), np.uint8)
    ends = np.flatnonzero(buffer == _LINE_END)
    starts = np.append(0, ends[:-1] + 1)[: len(ends)]
    lengths = ends - starts
    sizes = np.array([len(content) for content in ended])
    borders = np.cumsum(sizes)
    behind = np.searchsorted(ends, borders)
    counts = np.diff(behind, prepend=0)
    returns = (lengths > 0) & (buffer[ends - 1] == _RETURN)
    returns[behind[unended] - 1] = False  # the byte belongs to no line end
    return RecordChunk(buffer, starts, lengths - returns, starts - (borders - sizes).repeat(counts)), counts


def _is_special(content: bytes) -> bool:
    ends = content[:1] in (b"\xef", b"\xfe", b"\xff"), 0 in content[:2], content[-1:] in (b"\0", b"\x1a")
    return any(ends) or (b"\r" in content and b"\n" not in content)
