"""CsvReader: the rows of one CSV file, in chunks that end with one."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from penstock.io import storage
from penstock.io.csv_rows import Row, plain_row, sound_rows
from penstock.io.window import LONGEST, Window

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


class CsvReader:
    """Reads rows from byte `offset` on, which has to be the start of one.

    Raises NotFoundError for a missing file. For one thread at a time; chunks may go to others.
    """

    def __init__(
        self,
        path: storage.Path,
        delimiter: int,
        quote: int,
        *,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        offset: int = 0,
    ) -> None:
        self._window = Window(path, compression_type=compression_type, buffer_size=buffer_size, offset=offset)
        self._delimiter = delimiter
        self._quote = quote
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

    def tell(self) -> int:
        """Offset of the next row in the (uncompressed) file: `offset` of a reader that continues here."""
        return self._window.tell()

    @property
    def over(self) -> bool:
        """Whether nothing more comes, although the file was not read to its end."""
        return self._window.broken

    def close(self) -> None:
        """Let go of the file. Chunks that were handed out stay valid."""
        self._window.close()
