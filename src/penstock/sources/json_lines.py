"""The objects of JSON Lines files."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from penstock.block.block import Block
from penstock.block.origin import Origin
from penstock.errors import Context, DataLossError, annotate
from penstock.io.lines import LineReader
from penstock.io.tfrecord.chunk import RecordChunk
from penstock.sources.files import FileReader, FilesSource, Place
from penstock.sources.json_arrow import LEAST, ArrowLines
from penstock.sources.json_kinds import Defaults, JsonKinds
from penstock.sources.rows import ReadRows, RowQueue, unreadable

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MANY = 10_000  # lines, which take about as long one by one as importing Arrow's parser
_AT_ONCE = 4096  # lines, of which Arrow parses many in little more time than few
_MOST_SLOWLY = 256  # lines that are read one by one where one of them is the reason
_decode = json.JSONDecoder().raw_decode


class _OneOfThem(Exception):
    """Fewer lines at a time may be read quickly, without the one that is not."""


@dataclass(frozen=True, kw_only=True, eq=False)
class JsonLinesSource(FilesSource):
    """A nest of dicts for every line, each with its file and offset.

    The first line of the pass says which keys there are and of which kind. A place in a file is [offset, those kinds].
    """

    defaults: Defaults = field(default_factory=dict)

    kind: ClassVar[str] = "JsonLinesDataset"

    @property
    def spec(self) -> None:
        return None

    def open_file(self, name: str, place: Place) -> FileReader:
        offset, state = place or (0, None)
        kinds = None if state is None else JsonKinds.restored(state, self.defaults)
        lines = LineReader(name, compression_type=self.compression_type, buffer_size=self.buffer_size, offset=offset)
        return _JsonFile(self, name, lines, kinds, state)


class _JsonFile(FileReader):
    def __init__(
        self, source: JsonLinesSource, name: str, lines: LineReader, kinds: JsonKinds | None, state: Any
    ) -> None:
        self._source = source
        self._name = name
        self._lines = lines
        self._kinds = kinds
        self._state = state
        self._rows = RowQueue(name)
        self._read = 0  # lines
        self._arrow: ArrowLines | None = None

    def read(self, max_elements: int) -> Block | None:
        while not self._rows:
            at_once = self._arrow is not None and self._arrow.helps
            chunk = self._lines.read(max(max_elements, _AT_ONCE) if at_once else max_elements)
            if chunk is None:
                return None
            offsets = np.append(chunk.offsets, self._lines.tell())
            self._rows.put(offsets, partial(self._parsed, chunk, offsets))
            self._read += len(chunk)
        return self._rows.take(max_elements)

    def _parsed(self, chunk: RecordChunk, offsets: np.ndarray, start: int, stop: int) -> ReadRows:
        """The objects of some lines of a chunk, of which line i begins at byte `offsets[i]`."""
        part = chunk.slice(start, stop)
        if len(part) >= LEAST and self._arrow_helps():
            assert self._arrow is not None
            block = self._arrow.block(part)
            if block is not None:
                return ReadRows(block, [], offsets[start : stop + 1])
            if len(part) > _MOST_SLOWLY and self._arrow.helps:
                raise _OneOfThem
        return self._one_by_one(part.records(), offsets[start : stop + 1].tolist())

    def _arrow_helps(self) -> bool:
        if self._arrow is None and self._kinds is not None and (self._read >= _MANY or "pyarrow.json" in sys.modules):
            self._arrow = ArrowLines(self._kinds, self._name)
        return self._arrow is not None and self._arrow.helps

    def _one_by_one(self, lines: list[bytes], offsets: list[int]) -> ReadRows:
        rows: list[list[Any]] = []
        begins: list[int] = []  # of those rows
        failures: list[tuple[int, Exception]] = []
        for line, offset in zip(lines, offsets[:-1], strict=True):
            try:
                found = self._object(line, offset)
                if found is not None:
                    rows.append(self._known(found).values(found))
                    begins.append(offset)
            except Exception as raised:
                failures.append((offset, unreadable("The line", raised)))
        block = None
        if rows:
            kinds = self._known({})
            columns, wrong = kinds.columns(rows)
            failures += [(begins[number], error) for number, error in wrong]
            refused = {number for number, _ in wrong}
            good = np.array([begin for i, begin in enumerate(begins) if i not in refused], np.int64)
            if len(good):
                block = Block(kinds.structure, columns, len(good), Origin.of_file(self._name, good))
        for offset, error in failures:
            annotate(error, Context(file=self._name, offset=offset))
        failures.sort(key=lambda failure: failure[0])
        every = sorted({*begins, *(offset for offset, _ in failures)})
        numbered = {offset: number for number, offset in enumerate(every)}
        ends = np.array([*every, offsets[-1]], np.int64)
        return ReadRows(block, [(numbered[offset], error) for offset, error in failures], ends)

    def _known(self, found: dict[str, Any]) -> JsonKinds:
        """The kinds of all lines, as the first one has them."""
        if self._kinds is None:
            self._kinds = JsonKinds.of(found, self._source.defaults)
            self._state = self._kinds.state()
        return self._kinds

    def _object(self, line: bytes, offset: int) -> dict[str, Any] | None:
        """The object of one line, None for an empty one. Raises DataLossError."""
        if not offset:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        try:
            text = line.decode().strip(" \t\r")
            if not text:
                return None
            found, end = _decode(text)
        except UnicodeDecodeError as error:
            message = f"The line is no UTF-8: {error.reason} at its byte {error.start}."
            raise DataLossError(message) from error
        except json.JSONDecodeError as error:
            message = f"The line is no JSON: {error.msg} at its character {error.pos}: {_around(text, error.pos)}."
            raise DataLossError(message, hint=_hint(offset, text)) from error
        except RecursionError as error:
            message = "The line nests objects or lists too deeply."
            raise DataLossError(message) from error
        except ValueError as error:  # what Python refuses to convert: that takes the longer, the more digits there are
            message = f"The line holds a number of more than {sys.get_int_max_str_digits()} digits."
            raise DataLossError(message, hint="Write it as a text, or as a floating-point number.") from error
        if end != len(text):
            message = f"More stands behind the JSON of the line, at its character {end}: {_around(text, end)}."
            raise DataLossError(message, hint="A file of JSON Lines has one object on every line.")
        if not isinstance(found, dict):
            message = f"A line is a JSON object, and this one is {_around(text, 0)}."
            raise DataLossError(message, hint=_hint(offset, text))
        return found

    def place(self) -> Place:
        return [self._rows.place() if self._rows else self._lines.tell(), self._state]

    def following(self) -> Place:
        return [0, self._state]

    @property
    def over(self) -> bool:
        return self._lines.over and not self._rows

    def close(self) -> None:
        self._lines.close()


def _around(text: str, at: int) -> str:
    part = text[at : at + 30]
    return f"{part!r}" if part else "the end of the line"


def _hint(offset: int, text: str) -> str:
    if not offset and text[:1] in "[{":
        return "Is it one JSON text over several lines? A file of JSON Lines has one object on every line."
    return "A file of JSON Lines has one object on every line."
