"""Records of one length, in the order of the file and by number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn
from penstock.block.origin import Origin
from penstock.block.spec import TensorSpec
from penstock.errors import DataLossError, InvalidArgumentError
from penstock.io import storage
from penstock.io.window import FileWindow
from penstock.sources.files import FileReader, FilesSource, Place
from penstock.sources.row_files import RowFile, RowFilesSource

_CHUNK = 1 << 22  # bytes of records read at a time
_HINT = "Is record_bytes right? Else the file was cut short, or something was added to it."


@dataclass(frozen=True)
class FixedLayout:
    """The layout of a file: records of `record_bytes` between a header and a footer."""

    record_bytes: int
    header_bytes: int = 0
    footer_bytes: int = 0

    def records_in(self, name: str, size: int) -> int:
        """Return the number of records in a file of `size` bytes.

        Raises InvalidArgumentError for an impossible size.
        """
        body = size - self.header_bytes - self.footer_bytes
        if body < 0:
            message = (
                f"The file has {size} bytes, fewer than its header_bytes={self.header_bytes} and "
                f"footer_bytes={self.footer_bytes}."
            )
            raise InvalidArgumentError(message, file=name)
        whole, more = divmod(body, self.record_bytes)
        if more:
            message = (
                f"A file holds a whole number of records: {body} bytes between header and footer are {whole} times "
                f"record_bytes={self.record_bytes} and {more} more."
            )
            offset = self.header_bytes + whole * self.record_bytes
            raise InvalidArgumentError(message, hint=_HINT, file=name, offset=offset)
        return whole

    def block(self, name: str, buffer: np.ndarray, starts: np.ndarray, base: int = 0) -> Block:
        """Return the records that begin at `starts` in a buffer. The buffer begins at byte `base` of the file."""
        column = BytesColumn((buffer,), starts, np.full(len(starts), self.record_bytes, np.int64))
        return Block.single(column, Origin.of_file(name, starts + base))


@dataclass(frozen=True, kw_only=True)
class FixedLengthSource(FilesSource):
    """The records of files that are read as streams, with any compression and from any storage."""

    layout: FixedLayout

    kind: ClassVar[str] = "FixedLengthRecordDataset"
    spec: ClassVar[TensorSpec] = TensorSpec((), bytes)

    def open_file(self, name: str, place: Place) -> FileReader:
        stop = None
        if not self.compression_type:
            size = storage.size(name)
            self.layout.records_in(name, size)
            stop = size - self.layout.footer_bytes
        window = FileWindow(name, compression_type=self.compression_type, buffer_size=self.buffer_size, offset=place)
        return _FixedLengthFile(self.layout, window, stop)


class _FixedLengthFile(FileReader):
    """A file of records. `stop` is the start of the footer, or None for compressed files, whose size is not known."""

    def __init__(self, layout: FixedLayout, window: FileWindow, stop: int | None) -> None:
        super().__init__(window.name, window)
        self._layout = layout
        self._window = window
        self._stop = stop
        self._over = False

    def read(self, max_elements: int) -> Block | None:
        layout, window = self._layout, self._window
        if self._over:
            return None
        size = layout.record_bytes
        ahead = layout.header_bytes if window.tell() < layout.header_bytes else 0
        needed = ahead + size + layout.footer_bytes
        while window.left < needed:
            if not window.extend(needed):
                self._check_end(ahead)
                return None
        if ahead:
            window.at += ahead
        if self._stop is None:
            room = window.left - layout.footer_bytes
        else:
            room = min(window.left, self._stop - window.tell())
        count = min(max_elements, room // size, max(_CHUNK // size, 1))
        if not count:
            return None
        starts = window.at + np.arange(count, dtype=np.int64) * size
        window.at += count * size
        return layout.block(window.name, window.buffer, starts, window.base)

    def _check_end(self, ahead: int) -> None:
        """Check that exactly a footer is left, after the header if it was not read yet."""
        self._over = True
        window, footer = self._window, self._layout.footer_bytes
        if window.left == ahead + footer:
            return
        offset, more = window.tell() + ahead, window.left - ahead - footer
        window.at = len(window.buffer)
        if more < 0:
            message = f"The decompressed file ends {-more} bytes before its header and footer do."
        else:
            message = (
                f"A file holds a whole number of records: {more} bytes are left before the footer, fewer than "
                f"record_bytes={self._layout.record_bytes}."
            )
        raise DataLossError(message, hint=_HINT, file=window.name, offset=offset)

    @property
    def over(self) -> bool:
        return self._over or self._window.broken


@dataclass(frozen=True, kw_only=True)
class FixedLengthRowsSource(RowFilesSource):
    """The records of uncompressed local files. Files are mapped, so each record can be read on its own."""

    layout: FixedLayout

    kind: ClassVar[str] = "FixedLengthRecordDataset"
    spec: ClassVar[TensorSpec] = TensorSpec((), bytes)

    def open_rows(self, name: str) -> RowFile:
        return _FixedLengthRows(name, self.layout)


class _FixedLengthRows(RowFile):
    spec = TensorSpec((), bytes)

    def __init__(self, name: str, layout: FixedLayout) -> None:
        self._name = name
        self._layout = layout
        self._content = storage.map_file_or_none(name)
        self.size = layout.records_in(name, storage.size(name) if self._content is None else len(self._content))

    def part(self, start: int, stop: int) -> Block:
        return self.rows_at(np.arange(start, stop))

    def rows_at(self, rows: np.ndarray) -> Block:
        starts = rows * self._layout.record_bytes + self._layout.header_bytes
        if self._content is None:
            return self._read(starts)
        return self._layout.block(self._name, self._content, starts)

    def _read(self, starts: np.ndarray) -> Block:
        """Read rows of a file that is not mapped. Neighbouring rows are read in one piece."""
        size = self._layout.record_bytes
        first = np.flatnonzero(np.diff(starts, prepend=-1 - size) != size)
        parts: list[bytes] = []
        with storage.open_read(self._name) as file:
            for at, stop in zip(first.tolist(), [*first[1:].tolist(), len(starts)], strict=True):
                file.seek(int(starts[at]))
                parts.append(file.read((stop - at) * size))
        content = np.frombuffer(b"".join(parts), np.uint8)
        if len(content) < len(starts) * size:
            message = f"The file has become shorter than the {self.size} records that it had."
            raise DataLossError(message, hint="Files must not be written to while they are read.", file=self._name)
        column = BytesColumn((content,), np.arange(len(starts)) * size, np.full(len(starts), size, np.int64))
        return Block.single(column, Origin.of_file(self._name, starts))
