"""CsvReader: the rows of one CSV file, in chunks of positions of their fields."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.compiled import Compiled
from penstock.io import storage
from penstock.io.csv_rows import plain_rows
from penstock.io.window import LONGEST, Window

KERNELS = Compiled("penstock.io.kernels.csv")
_MOST_FIELDS = 1 << 17  # looked for at a time


@dataclass(frozen=True, slots=True, eq=False)
class CsvChunk:
    """Neighbouring rows; `csv_rows.plain_rows` says what the arrays hold. `base` is the offset of `buffer[0]`."""

    buffer: np.ndarray
    base: int
    starts: np.ndarray
    lengths: np.ndarray
    offsets: np.ndarray
    counts: np.ndarray
    statuses: np.ndarray

    def __len__(self) -> int:
        return len(self.counts)

    def part(self, start: int, stop: int) -> CsvChunk:
        """Some of the rows."""
        return CsvChunk(
            *(self.buffer, self.base, self.starts[:, start:stop], self.lengths[:, start:stop]),
            *(self.offsets[start : stop + 1], self.counts[start:stop], self.statuses[start:stop]),
        )


class CsvReader:
    """Reads rows from byte `offset` on, which has to be the start of one, and looks at `width` fields of each.

    Raises NotFoundError for a missing file. For one thread at a time; chunks may go to others.
    """

    def __init__(
        self,
        path: storage.Path,
        delimiter: int,
        quote: int,
        width: int,
        *,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        offset: int = 0,
    ) -> None:
        self._window = Window(path, compression_type=compression_type, buffer_size=buffer_size, offset=offset)
        self._delimiter = delimiter
        self._quote = quote
        self._width = width

    def read(self, max_rows: int) -> CsvChunk | None:
        """The next 1 to `max_rows` rows, whatever is wrong with them, or None at the end of the file.

        Raises DataLossError, once, where compressed data cannot be read on, and for a row of more than 256 MiB in a
        file that is streamed; the rows before it come first.
        """
        window = self._window
        final = window.whole
        while True:
            chunk = self._scan(max_rows, final)
            if not window.whole:
                chunk = self._in_front_of_a_long_one(chunk)
            if len(chunk):
                window.at = int(chunk.offsets[-1])
                return chunk
            if final and not window.left:
                return None
            final = not window.extend(min(window.left * 2, LONGEST) + 1)

    def _in_front_of_a_long_one(self, chunk: CsvChunk) -> CsvChunk:
        """The rows that come before one of more than `LONGEST` bytes; raises where that comes first."""
        long = np.diff(chunk.offsets) - 1 > LONGEST  # without the line end
        count = int(np.argmax(long)) if long.any() else len(chunk)
        if (len(chunk) and not count) or (not len(chunk) and self._window.left > LONGEST + 1):
            error = self._window.too_long("row")
            raise error
        return chunk if count == len(chunk) else chunk.part(0, count)

    def _scan(self, max_rows: int, final: bool) -> CsvChunk:
        window = self._window
        room = max(min(max_rows, _MOST_FIELDS // max(self._width, 1), window.left), 1)
        starts, lengths = np.zeros((self._width, room), np.int64), np.zeros((self._width, room), np.int64)
        offsets, counts = np.empty(room + 1, np.int64), np.empty(room, np.int64)
        statuses = np.empty(room, np.uint8)
        kernels = KERNELS.ready()
        rows = plain_rows if kernels is None else kernels.rows
        found = rows(
            *(window.buffer, window.at, final, self._delimiter, self._quote),
            *(starts, lengths, offsets, counts, statuses),
        )
        return CsvChunk(
            window.buffer,
            window.base,
            starts[:, :found],
            lengths[:, :found],
            offsets[: found + 1],
            counts[:found],
            statuses[:found],
        )

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
