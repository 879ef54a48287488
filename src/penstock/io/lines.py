"""LineReader: the lines of one file, in chunks of positions rather than byte strings."""

from __future__ import annotations

import numpy as np

from penstock.errors import DataLossError
from penstock.io import storage
from penstock.io.window import LONGEST, RecordChunk, Window

_NEWLINE, _RETURN = 10, 13
_LEAST_SEARCH, _MOST_SEARCH = 1 << 12, 1 << 20  # bytes looked through for newlines at a time
_GUESS = 7  # log2 of the length a line is taken to have

_NONE = np.empty(0, np.int64)


class LineReader:
    r"""Reads chunks of neighbouring lines from byte `offset` on, which has to be the start of one.

    A line ends behind `\n`; it is given without that, and without the `\r` of `\r\n`. The last one needs no end.
    An uncompressed local file is mapped, and nothing is copied.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "two.txt"
    >>> _ = path.write_bytes(b"one\r\ntwo\n")
    >>> LineReader(path).read(max_lines=10).records()
    [b'one', b'two']

    Raises NotFoundError for a missing file. For one thread at a time; chunks may go to others.
    """

    def __init__(
        self,
        path: storage.Path,
        *,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        offset: int = 0,
    ) -> None:
        self._window = Window(path, compression_type=compression_type, buffer_size=buffer_size, offset=offset)
        self._ends = _NONE  # newlines in the buffer from the window's place on, as far as it was searched
        self._searched = self._window.at

    def read(self, max_lines: int) -> RecordChunk | None:
        """The next 1 to `max_lines` lines, or None at the end of the file.

        Raises DataLossError, once, where compressed data cannot be read on, and for a line of more than 256 MiB in a
        file that is streamed; the lines before it come first.
        """
        window = self._window
        while not len(self._ends) and self._search(max_lines << _GUESS):
            pass
        ends = self._ends[:max_lines]
        if not len(ends):
            if not window.left:
                return None
            ends = np.array([len(window.buffer)], np.int64)
        starts = np.empty_like(ends)
        starts[0] = window.at
        starts[1:] = ends[:-1] + 1
        lengths = ends - starts
        if not window.whole and lengths.max() > LONGEST:  # as where its end was not in the buffer yet
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
        """Look for newlines a bit further on; False at the end of the content."""
        window = self._window
        if self._searched == len(window.buffer):
            before = window.at
            if window.left > LONGEST and not window.whole:
                raise self._too_long()
            if not window.extend(min(window.left * 2, LONGEST) + 1):
                return False
            self._searched -= before
        stop = self._searched + min(max(size, _LEAST_SEARCH), _MOST_SEARCH)
        self._ends = np.flatnonzero(window.buffer[self._searched : stop] == _NEWLINE) + self._searched
        self._searched = min(stop, len(window.buffer))
        return True

    def _too_long(self) -> DataLossError:
        error = self._window.too_long("line")
        self._ends, self._searched = _NONE, self._window.at
        return error

    def tell(self) -> int:
        """Offset of the next line in the (uncompressed) file: `offset` of a reader that continues here."""
        return self._window.tell()

    @property
    def over(self) -> bool:
        """Whether nothing more comes, although the file was not read to its end."""
        return self._window.broken

    def close(self) -> None:
        """Let go of the file. Chunks that were handed out stay valid."""
        self._window.close()
