"""CsvReader: the rows of one CSV file, in chunks of row offsets.

The plain scanner in this module defines a row (RFC 4180).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from penstock.errors import InvalidArgumentError
from penstock.io import storage
from penstock.io.window import LONGEST, TextReader

# A row is a list of fields. It ends with `\n`, `\r`, `\r\n` or the end of the file. A field that begins with a quote
# ends with a quote. Delimiters and line ends between the quotes belong to the field, and two quotes mean one. Two
# errors leave the end of a row certain: a quote in an unquoted field, and text after a closing quote. This text is read
# up to the next delimiter. An unclosed quote extends to the end of the file.

# The status of a row is its first error.
FINE, QUOTE_INSIDE, TEXT_BEHIND, UNCLOSED = 0, 1, 2, 3

NO_QUOTE = -1  # quotes are ordinary characters
_QUOTE = re.compile(b'"')
_SEP = re.compile(rb'"?sep=(.)"?(\r\n?|\n)')  # a first line that Excel writes to declare the delimiter
_LF, _CR = 10, 13


class CsvRow(NamedTuple):
    """The values of a row's fields, its status, the start of the next row, and True if a line end follows."""

    fields: list[bytes]
    status: int
    stop: int
    ended: bool


def plain_row(content: memoryview, at: int, delimiter: int, quote: int, *, final: bool) -> CsvRow | None:
    """Return the row at `at`, or None if it may continue after the content. `final` content is the end of the file."""
    row = whole_row(content, at, delimiter, quote)
    return row if final or row.ended else None


def whole_row(content: memoryview, at: int, delimiter: int, quote: int) -> CsvRow:
    """Return the row that begins at `at`. The content ends with the file."""
    fields: list[bytes] = []
    worst = FINE
    while True:
        field, status, at = _field(content, at, delimiter, quote)
        fields.append(field)
        worst = worst or status
        if at == len(content) or content[at] != delimiter:
            break
        at += 1
    ended = at < len(content) and not (content[at] == _CR and at + 1 == len(content))
    at += 2 if content[at : at + 2].tobytes() == b"\r\n" else 1
    return CsvRow(fields, worst, min(at, len(content)), ended)


def _field(content: memoryview, at: int, delimiter: int, quote: int) -> tuple[bytes, int, int]:
    """Return the field at `at`: (value, status, position of the delimiter or line end after it)."""
    size = len(content)
    if at == size or content[at] != quote:
        end = _end(content, at, delimiter)
        value = content[at:end].tobytes()
        return value, QUOTE_INSIDE if quote >= 0 and quote in value else FINE, end
    start = at = at + 1
    doubled = False
    while True:
        found = _QUOTE.search(content, at)
        if found is None:
            return content[start:].tobytes(), UNCLOSED, size
        at = found.end()
        if at == size or content[at] != quote:
            break
        doubled = True
        at += 1
    value = content[start : at - 1].tobytes()
    end = _end(content, at, delimiter)
    return value.replace(b'""', b'"') if doubled else value, TEXT_BEHIND if end > at else FINE, end


def _end(content: memoryview, at: int, delimiter: int) -> int:
    found = _ends(delimiter).search(content, at)
    return len(content) if found is None else found.start()


@cache
def _ends(delimiter: int) -> re.Pattern[bytes]:
    return re.compile(b"[\n\r" + re.escape(bytes([delimiter])) + b"]")


def sound_rows(content: np.ndarray, delimiter: int, quote: int, *, final: bool) -> np.ndarray:
    """Return the starts of rows from 0 on, and the end of the last one, up to the first row with a misplaced quote.

    The result is empty if no valid row ends in the content.
    """
    size = len(content)
    line_ends, quotes = content == _LF, np.zeros(0, np.int64)
    quoted = content == quote if quote >= 0 else np.zeros(0, bool)
    if quoted.any():
        found = np.flatnonzero(line_ends | quoted)
        is_quote = quoted[found]
        inside = np.bitwise_xor.accumulate(is_quote.view(np.uint8)).view(bool)
        quotes, ends = found[is_quote], found[~(is_quote | inside)]
    else:
        ends = np.flatnonzero(line_ends)
    returns = np.flatnonzero(content == _CR)
    if len(returns):
        behind = content[np.minimum(returns + 1, size - 1)]
        alone = returns[(behind != _LF) & ((returns + 1 < size) | final)]
        alone = alone[np.searchsorted(quotes, alone) % 2 == 0]
        ends = np.sort(np.concatenate([ends, alone]))
    stop = _first_wrong(content, quotes, delimiter) if len(quotes) else size
    begins = np.concatenate([[0], ends[ends < stop] + 1])
    if final and stop == size and begins[-1] < size and len(quotes) % 2 == 0:
        begins = np.concatenate([begins, [size]])  # the last row needs no line end
    return begins if len(begins) > 1 else begins[:0]


def _first_wrong(content: np.ndarray, quotes: np.ndarray, delimiter: int) -> int:
    """Return the position of the first quote that neither opens nor closes a field, or the size of the content."""
    may_stand = np.zeros(256, bool)
    may_stand[[delimiter, _LF, _CR, content[quotes[0]]]] = True
    places = quotes.copy()
    places[::2] -= 1  # check the byte before an opening quote, and the byte after a closing quote
    places[1::2] += 1
    good = may_stand[content.take(places, mode="clip")]
    good[0] |= places[0] < 0
    good[-1] |= places[-1] == len(content)
    return len(content) if good.all() else int(quotes[np.argmin(good)])


_LEAST_PIECE, _MOST_PIECE = 1 << 14, 1 << 20  # bytes per search, growing with each chunk
# bytes between two invalid rows, below which up to so many rows are scanned one by one
_NEAR, _MOST_PLAIN = 1 << 12, 64


@dataclass(frozen=True, slots=True, eq=False)
class CsvChunk:
    """Neighbouring rows. Row i begins at `buffer[offsets[i]]`; the last offset is the end of the last row.

    `base` is the offset of `buffer[0]`. `rows` has the rows that the plain scanner read, by number, ascending. These
    are all rows with a misplaced quote, and some neighbours.
    """

    buffer: np.ndarray
    base: int
    offsets: np.ndarray
    rows: dict[int, CsvRow] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def content(self) -> np.ndarray:
        return self.buffer[self.offsets[0] : self.offsets[-1]]

    def part(self, start: int, stop: int) -> CsvChunk:
        """Return the rows from `start` to `stop`."""
        rows = {i - start: self.rows[i] for i in range(start, stop) if i in self.rows} if self.rows else {}
        return CsvChunk(self.buffer, self.base, self.offsets[start : stop + 1], rows)


class CsvReader(TextReader):
    """Reads rows from byte `offset` on, the start of a row. `how` are the arguments of a TextReader.

    A first line `sep=,` is skipped. If it names another delimiter, InvalidArgumentError is raised. Raises NotFoundError
    for a missing file. One thread at a time may use the reader; other threads may use its chunks.
    """

    def __init__(self, path: storage.Path, delimiter: int, quote: int, *, offset: int = 0, **how: Any) -> None:
        super().__init__(path, offset=offset, **how)
        self._delimiter = delimiter
        self._quote = quote
        said = None if offset else _SEP.match(self._window.buffer.data, self._window.at)
        if said is not None:
            if said[1][0] != delimiter:
                self.close()
                message = f"The first line says that {said[1].decode('latin-1')!r} separates the fields."
                hint = f"Pass field_delim={said[1].decode('latin-1')!r}."
                raise InvalidArgumentError(message, hint=hint, file=self._window.name, offset=0)
            self._window.at = said.end()
        self._chunk = self._piece = _LEAST_PIECE
        self._wrong = -_NEAR  # end of the last rows that were scanned one by one
        self._plain = 1  # limit of rows in that scan

    def read(self, most: int | None = None) -> CsvChunk | None:
        """Return the next rows, valid or not, at most `most`, or None at the end of the file.

        Raises DataLossError once, if compressed data is damaged, or for a row of more than 256 MiB in a streamed file.
        The rows before the damage are returned first.
        """
        window = self._window
        final = window.whole
        while True:
            chunk = self._scan(final=final)
            if not window.whole:
                chunk = self._in_front_of_a_long_one(chunk)
            if chunk is not None:
                chunk = chunk if most is None else chunk.part(0, most)
                window.at = int(chunk.offsets[-1])
                return chunk
            if final and not window.left:
                return None
            final = not window.extend(min(window.left * 2, LONGEST) + 1)

    def _in_front_of_a_long_one(self, chunk: CsvChunk | None) -> CsvChunk | None:
        """Return the rows before a row of more than `LONGEST` bytes. Raises if that row is the first."""
        long = np.diff(chunk.offsets) - 1 > LONGEST if chunk is not None else np.zeros(0, bool)  # without the line end
        count = int(np.argmax(long)) if long.any() else len(long)
        if (len(long) and not count) or (not len(long) and self._window.left > LONGEST + 1):
            error = self._window.too_long("row")
            raise error
        return chunk if chunk is None or count == len(chunk) else chunk.part(0, count)

    def _scan(self, *, final: bool) -> CsvChunk | None:
        """Return the rows in about the next piece of the buffer, or one longer row."""
        window = self._window
        at, enough = window.at, window.at + self._chunk // 2
        self._chunk = min(self._chunk * 4, _MOST_PIECE)
        offsets = [np.array([at])]
        rows: dict[int, CsvRow] = {}
        count = 0
        while at < min(enough, len(window.buffer)):
            fresh, plain = self._stretch(at, final=final)
            rows.update(enumerate(plain, count))
            offsets.append(fresh)
            if not len(fresh):
                break
            count += len(fresh)
            at = int(fresh[-1])
        return CsvChunk(window.buffer, window.base, np.concatenate(offsets), rows) if count else None

    def _stretch(self, at: int, *, final: bool) -> tuple[np.ndarray, list[CsvRow]]:
        """Return the offsets of valid rows from `at` on, or of some rows of which the first is invalid, and these rows.

        The result is empty if the first row continues after the buffer.
        """
        size = self._piece
        self._piece = min(size * 4, _MOST_PIECE)
        while True:
            piece = self._window.buffer[at : at + size]
            last = at + size >= len(self._window.buffer)
            begins = sound_rows(piece, self._delimiter, self._quote, final=final and last)
            if len(begins):
                return begins[1:] + at, []
            rows = self._plain_rows(piece, self._window.base + at, final=final and last)
            if rows or last:
                return np.array([row.stop for row in rows], np.int64) + at, rows
            size *= 2

    def _plain_rows(self, piece: np.ndarray, begin: int, *, final: bool) -> list[CsvRow]:
        """Return the first rows of a piece that begins with an invalid row.

        It scans more rows if invalid rows are close.
        """
        rows: list[CsvRow] = []
        at, apart = 0, begin - self._wrong
        most = min(self._plain * 2, _MOST_PLAIN) if apart < _NEAR else 1
        while len(rows) < most and at < len(piece):
            row = plain_row(piece.data, at, self._delimiter, self._quote, final=final)
            if row is None:
                break
            rows.append(row)
            at = row.stop
        if rows:
            self._plain, self._wrong = most, begin + at
            self._piece = min(max(2 * apart, _LEAST_PIECE), _MOST_PIECE)  # the next invalid row may be as close
        return rows
