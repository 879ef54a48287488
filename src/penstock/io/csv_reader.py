"""CsvReader: the rows of one CSV file, in chunks of positions of their fields.

The plain scanner that defines what a row is (RFC 4180).
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

# A row is a list of fields; it ends with `\n`, `\r` or `\r\n`, or with the file. A field that begins with a quote ends
# with one: between them stand delimiters and line ends as they are, and two quotes for one. Two things are wrong in a
# row and yet leave its end certain: a quote in an unquoted field, and text behind the quote that closes one, which is
# read to the next delimiter. A quote that nothing closes takes the rest of the file.

# What a scan says about a row: the first thing that is wrong with it.
FINE, QUOTE_INSIDE, TEXT_BEHIND, UNCLOSED = 0, 1, 2, 3

NO_QUOTE = -1  # quotes are characters like any other
_QUOTE = re.compile(b'"')
_SEP = re.compile(rb'"?sep=(.)"?(\r\n?|\n)')  # a first line of Excel's, which says what separates fields
_LF, _CR = 10, 13


class Row(NamedTuple):
    """The values of a row's fields, what is wrong with it, where the next one begins, and if a line end says so."""

    fields: list[bytes]
    status: int
    stop: int
    ended: bool


def plain_row(content: memoryview, at: int, delimiter: int, quote: int, *, final: bool) -> Row | None:
    """The row that begins at `at`; None where it may go on behind the content, which is not `final`."""
    row = whole_row(content, at, delimiter, quote)
    return row if final or row.ended else None


def whole_row(content: memoryview, at: int, delimiter: int, quote: int) -> Row:
    """The row that begins at `at` of all content there is."""
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
    return Row(fields, worst, min(at, len(content)), ended)


def _field(content: memoryview, at: int, delimiter: int, quote: int) -> tuple[bytes, int, int]:
    """The field that begins at `at`: (value, status, where the delimiter or line end behind it is)."""
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
    """Where rows begin from 0 on, and where the last of them ends, up to the first one with a quote where none may be.

    Empty where there is none that ends in the content, and is sound.
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
        begins = np.concatenate([begins, [size]])  # the last one needs no line end
    return begins if len(begins) > 1 else begins[:0]


def _first_wrong(content: np.ndarray, quotes: np.ndarray, delimiter: int) -> int:
    """Where the first of the quotes stands that neither opens nor closes a field; the content's size if none does."""
    may_stand = np.zeros(256, bool)
    may_stand[[delimiter, _LF, _CR, content[quotes[0]]]] = True
    places = quotes.copy()
    places[::2] -= 1  # what opens a field has something in front, what closes it something behind
    places[1::2] += 1
    good = may_stand[content.take(places, mode="clip")]
    good[0] |= places[0] < 0
    good[-1] |= places[-1] == len(content)
    return len(content) if good.all() else int(quotes[np.argmin(good)])


_LEAST_PIECE, _MOST_PIECE = 1 << 14, 1 << 20  # bytes looked at, more with each chunk
_NEAR, _MOST_PLAIN = 1 << 12, 64  # bytes between two wrong rows, and then rows that are scanned one by one


@dataclass(frozen=True, slots=True, eq=False)
class CsvChunk:
    """Neighbouring rows: number i begins at `buffer[offsets[i]]`, and the one behind the last at the last of them.

    `base` is the offset of `buffer[0]`. `rows` has what the plain scanner read of some, by their numbers, ascending: of
    all in which a quote stands where none may, and some next to them.
    """

    buffer: np.ndarray
    base: int
    offsets: np.ndarray
    rows: dict[int, Row] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def content(self) -> np.ndarray:
        return self.buffer[self.offsets[0] : self.offsets[-1]]

    def part(self, start: int, stop: int) -> CsvChunk:
        """Some of the rows."""
        rows = {i - start: self.rows[i] for i in range(start, stop) if i in self.rows} if self.rows else {}
        return CsvChunk(self.buffer, self.base, self.offsets[start : stop + 1], rows)


class CsvReader(TextReader):
    """Reads rows from byte `offset` on, which has to be the start of one; `how` are the arguments of a TextReader.

    A first line `sep=,` is left out; InvalidArgumentError for one that names another delimiter.
    Raises NotFoundError for a missing file. For one thread at a time; chunks may go to others.
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
        self._wrong = -_NEAR  # where the last rows ended that were scanned one by one
        self._plain = 1  # how many those were at most

    def read(self, most: int | None = None) -> CsvChunk | None:
        """The next rows, whatever is wrong with them, at most that many, or None at the end of the file.

        Raises DataLossError, once, where compressed data cannot be read on, and for a row of more than 256 MiB in a
        file that is streamed; the rows before it come first.
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
        """The rows that come before one of more than `LONGEST` bytes; raises where that comes first."""
        long = np.diff(chunk.offsets) - 1 > LONGEST if chunk is not None else np.zeros(0, bool)  # without the line end
        count = int(np.argmax(long)) if long.any() else len(long)
        if (len(long) and not count) or (not len(long) and self._window.left > LONGEST + 1):
            error = self._window.too_long("row")
            raise error
        return chunk if chunk is None or count == len(chunk) else chunk.part(0, count)

    def _scan(self, *, final: bool) -> CsvChunk | None:
        """The rows that lie in the next piece of the buffer, more or less, or the one that is longer."""
        window = self._window
        at, enough = window.at, window.at + self._chunk // 2
        self._chunk = min(self._chunk * 4, _MOST_PIECE)
        offsets = [np.array([at])]
        rows: dict[int, Row] = {}
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

    def _stretch(self, at: int, *, final: bool) -> tuple[np.ndarray, list[Row]]:
        """Where rows from `at` on end that are sound, or some of which the first is not, and those.

        Empty where the first goes on behind the buffer.
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

    def _plain_rows(self, piece: np.ndarray, begin: int, *, final: bool) -> list[Row]:
        """The first rows of a piece of which the first one is wrong: the more, the nearer the last wrong one is."""
        rows: list[Row] = []
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
            self._piece = min(max(2 * apart, _LEAST_PIECE), _MOST_PIECE)  # the next one may come as soon
        return rows
