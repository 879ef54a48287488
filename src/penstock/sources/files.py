"""FilesSource and FilesReader: files that are read one after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from penstock.block.block import Block, concat_blocks
from penstock.block.column import BytesColumn
from penstock.block.origin import Origin
from penstock.hints import redacted
from penstock.io.storage import is_url, little_of
from penstock.sources.source import Position, Reader, Source

if TYPE_CHECKING:
    from penstock.io.remote.file import FilesAhead
    from penstock.io.window import RecordChunk

_OF_A_BUFFER = 1 << 16  # bytes

Place = Any  # a position in a file: a byte offset, or a list that begins with one


class FileReader(ABC):
    """The elements of one file. An error from `read` stands for one element, and the next `read` continues after it.

    `reader` reads the file itself. It has `tell`, `over` and `close`.
    """

    def __init__(self, name: str, reader: Any) -> None:
        self._name = name
        self._reader = reader

    @abstractmethod
    def read(self, max_elements: int) -> Block | None:
        """Return the next 1 to `max_elements` elements, or None at the end of the file."""

    def place(self) -> Place:
        """Return the position after the last element, for `FilesSource.open_file`."""
        return self._reader.tell()

    @property
    def over(self) -> bool:
        """Return True if the rest of the file cannot be read. Use it after an error."""
        return bool(self._reader.over)

    @property
    def at_end(self) -> bool:
        """True if certainly no element of the file follows."""
        return False

    def following(self) -> Place:
        """Return the position at which the next file begins."""
        return 0

    def close(self) -> None:
        """Close the file. Idempotent. Returned Blocks stay valid."""
        self._reader.close()


class StringsFile(FileReader):
    """The byte strings of one file."""

    def read(self, max_elements: int) -> Block | None:
        chunk = self._reader.read(max_elements)
        if chunk is None:
            return None
        column = BytesColumn((chunk.buffer,), chunk.starts, chunk.lengths)
        return Block.single(column, Origin.of_file(self._name, chunk.offsets))

    @property
    def at_end(self) -> bool:
        return bool(self._reader.at_end)


@dataclass(frozen=True)
class FilesSource(Source):
    """Files that are read one after the other. A position is (number of the file, position in it)."""

    files: tuple[str, ...]
    compression_type: str | None = None
    buffer_size: int | None = None

    kind: ClassVar[str]

    @abstractmethod
    def open_file(self, name: str, place: Place) -> FileReader:
        """Open one file at a position; 0 is the start."""

    def check_call(self) -> None:
        """Raise an error if arguments do not fit the first file."""

    @property
    def label(self) -> str:
        named = redacted(self.files[0]) if len(self.files) == 1 else f"{len(self.files)} files"
        return f"{self.kind}({named})"

    @property
    def cardinality(self) -> int:
        return -2 if self.files else 0

    def open(self, position: Position | None = None) -> Reader:
        file, place = position or (0, 0)
        return FilesReader(self, file, place)


class StringsSource(FilesSource):
    """Files whose byte strings are stored as they are. Small files are read together."""

    @classmethod
    @abstractmethod
    def whole(cls, contents: Sequence[bytes]) -> tuple[RecordChunk, np.ndarray] | None:
        """Return the strings of several files, their offsets and the count per file.

        The method returns None if the files must be read one by one.
        """

    def small(self) -> tuple[bytes, int] | None:
        if len(self.files) != 1 or self.compression_type:
            return None
        content = little_of(self.files[0])
        return None if content is None else (content, len(content))

    @classmethod
    def together(
        cls, sources: Sequence[StringsSource], parts: Sequence[bytes]
    ) -> tuple[Block | None, list[int]] | None:
        """Each buffer has few files, because one stored string keeps its whole buffer alive."""
        if len(parts) > 1 and sum(map(len, parts)) > _OF_A_BUFFER:
            middle = len(parts) // 2
            halves = [cls.together(sources[:middle], parts[:middle]), cls.together(sources[middle:], parts[middle:])]
            made = [half for half in halves if half is not None]
            blocks = [block for block, _ in made if block is not None]
            if len(made) < 2:
                return None
            return concat_blocks(blocks) if blocks else None, [count for _, counts in made for count in counts]
        found = cls.whole(parts)
        if found is None:
            return None
        chunk, counts = found
        if not len(chunk):
            return None, counts.tolist()
        column = BytesColumn((chunk.buffer,), chunk.starts, chunk.lengths)
        names = tuple([source.files[0] for source in sources])
        origin = Origin(names, np.arange(len(parts)).repeat(counts), chunk.offsets)
        return Block.single(column, origin), counts.tolist()


class FilesReader(Reader):
    """One iteration over the files of a source. A file that cannot be opened is one failed element."""

    def __init__(self, source: FilesSource, file: int, place: Place) -> None:
        self._source = source
        self._file = file
        self._place = place
        self._open: FileReader | None = None
        self._ahead: FilesAhead | None = None
        if len(source.files) > file + 1 and is_url(source.files[file]):
            from penstock.io.remote.file import FilesAhead

            self._ahead = FilesAhead(source.files)

    def read(self, max_elements: int) -> Block | None:
        while self._file < len(self._source.files):
            try:
                if self._open is None:
                    if self._ahead is not None:
                        self._ahead.reading(self._file)
                    self._open = self._source.open_file(self._source.files[self._file], self._place)
                block = self._open.read(max_elements)
            except Exception:
                if self._open is None or self._open.over:
                    self._next_file()
                raise
            if block is not None:
                return block
            self._next_file()
        return None

    def _next_file(self) -> None:
        if self._open is not None:
            self._place = self._open.following()
            self._open.close()
            self._open = None
        elif not isinstance(self._place, int):
            self._place = [0, *self._place[1:]]
        else:
            self._place = 0
        self._file += 1

    def position(self) -> Position:
        return [self._file, self._place if self._open is None else self._open.place()]

    @property
    def at_end(self) -> bool:
        return self._open is not None and self._file == len(self._source.files) - 1 and self._open.at_end

    def close(self) -> None:
        if self._ahead is not None:
            self._ahead.close()
        if self._open is not None:
            self._place = self._open.place()
            self._open.close()
            self._open = None
