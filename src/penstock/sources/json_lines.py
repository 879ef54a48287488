"""The objects of JSON Lines files.

`json.loads` per line is the reference and defines the results. A kernel reads many lines at once. It leaves lines that
are unknown to it or have errors to the reference.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from functools import cache, partial
from json.encoder import encode_basestring, encode_basestring_ascii
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from penstock.block.arena import ARENA
from penstock.block.arrow_values import objects_of
from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn, concat
from penstock.block.origin import Origin
from penstock.block.spec import DType
from penstock.errors import Context, DataLossError, annotate
from penstock.io.window import LineReader, RecordChunk
from penstock.native.library import Kernels
from penstock.sources import json_tables
from penstock.sources.files import FileReader, FilesSource, Place
from penstock.sources.json_kinds import Defaults, JsonKinds, JsonLeaf
from penstock.sources.row_files import ReadRows, RowQueue, unreadable

_NATIVE = Kernels("penstock.sources.json_native")
_BEHIND = 64  # bytes after the last line that the kernel may read
_LINE_END = 10
_NONE = np.empty(0, np.int64)


class _KernelLines:
    """Reads lines with known keys and kinds, with the kernel `parse`."""

    def __init__(self, kinds: JsonKinds, native: ModuleType) -> None:
        self._kinds = kinds
        self._native = native
        self._lists = any(leaf.rank for leaf in kinds.leaves)
        defaults = [leaf.default if isinstance(leaf.default, bytes) else b"" for leaf in kinds.leaves]
        self._texts = np.frombuffer(b"".join(defaults), np.uint8)  # the defaults come before the strings of the lines
        self._text_ends = np.cumsum([len(text) for text in defaults])
        keys, slots, objects = b"", list[list[int]](), list[tuple[int, int]]()
        for inside in _objects(kinds):
            objects.append((len(slots), len(slots) + len(inside)))
            for name, to, leaf in inside:
                slots.append([json_tables.OBJECT if leaf is None else self._kind(leaf), to])
                plain, ascii_only = encode_basestring(name).encode(), encode_basestring_ascii(name).encode()
                for spelling in (plain[1:], ascii_only[1:] if ascii_only != plain else b""):
                    slots[-1] += [len(keys), len(spelling)]
                    keys += spelling
                slots[-1] += [False, 0, 0] if leaf is None else [leaf.default is not None, *_limits(leaf.dtype)]
        self._keys = np.frombuffer(keys + bytes(8), np.uint8)
        self._slots, self._objects = np.array(slots, np.int64), np.array(objects, np.int64)

    @classmethod
    def of(cls, kinds: JsonKinds, native: ModuleType) -> _KernelLines | None:
        """Return a reader, or None if the kernel does not support a kind or key."""
        if not all(_is_known(leaf.dtype) and leaf.rank < 2 and not leaf.ragged for leaf in kinds.leaves):
            return None
        try:
            return cls(kinds, native)
        except UnicodeEncodeError:  # a key has half of a surrogate pair
            return None

    def _kind(self, leaf: JsonLeaf) -> int:
        kinds = {"f": json_tables.FLOAT, "b": json_tables.BOOL}
        kind = json_tables.TEXT if leaf.dtype is bytes else kinds.get(np.dtype(leaf.dtype).kind, json_tables.INT)
        return int(kind | json_tables.LIST if leaf.rank else kind)

    def columns(self, chunk: RecordChunk) -> tuple[list[Column], np.ndarray]:
        """Return (columns of neighbouring lines, numbers of the lines that are missing in them)."""
        native, count = self._native, len(chunk)
        first, stop = int(chunk.starts[0]), int(chunk.starts[-1] + chunk.lengths[-1])
        content = ARENA.empty((stop - first + _BEHIND,), np.uint8)  # a copy, which no other thread can change
        content[: stop - first] = chunk.buffer[first:stop]
        content[stop - first :] = _LINE_END
        texts = ARENA.empty((len(self._texts) + len(content),), np.uint8)
        texts[: len(self._texts)] = self._texts
        # an item of `"",` needs two words
        items = ARENA.empty((len(content) * 2 // 3 if self._lists else 0,), np.int64)
        shape = len(self._kinds.leaves), count
        values, sizes = ARENA.empty(shape, np.int64), ARENA.empty(shape, np.int64)
        missing, odd = np.zeros(shape, np.uint8), np.zeros(count, np.uint8)
        seen, outer = np.zeros(len(self._slots), np.int64), np.zeros((len(self._objects), 2), np.int64)
        taken = np.zeros(3, np.int64)
        taken[json_tables.TEXTS] = len(self._texts)
        tables = self._keys, self._slots, self._objects, seen, outer, json_tables.powers_of_ten()
        native.parse(content, chunk.starts - first, *tables, values, sizes, missing, texts, items, taken, odd)
        left = np.flatnonzero(odd)
        if len(left) == count:
            return [], left
        texts = texts[: taken[json_tables.TEXTS]].copy()
        fine = np.flatnonzero(odd == 0) if len(left) else slice(None)
        columns: list[Column] = []
        for number, leaf in enumerate(self._kinds.leaves):
            found, size = values[number, fine], sizes[number, fine]
            absent = np.flatnonzero(missing[number, fine]) if taken[json_tables.MISSING] else _NONE
            if leaf.rank:
                columns.append(_lists(leaf, found, size, absent, items, texts))
            elif leaf.dtype is bytes:
                if len(absent):
                    size[absent] = len(leaf.default)
                    found[absent] = self._text_ends[number] - len(leaf.default)
                columns.append(BytesColumn((texts,), found.copy(), size.copy()))
            else:
                numbers = _numbers(leaf, found)
                if len(absent):
                    numbers[absent] = leaf.default
                columns.append(DenseColumn(numbers))
        return columns, left


def _objects(kinds: JsonKinds) -> list[list[tuple[str, int, JsonLeaf | None]]]:
    """Return the keys of each object: (name, number of the leaf, leaf) or (name, number of the object, None)."""
    found: list[list[tuple[str, int, JsonLeaf | None]]] = [[]]
    numbers: dict[tuple[str, ...], int] = {(): 0}
    for number, leaf in enumerate(kinds.leaves):
        for i in range(1, len(leaf.path)):
            path = leaf.path[:i]
            if path not in numbers:
                numbers[path] = len(found)
                found[numbers[path[:-1]]].append((path[-1], len(found), None))
                found.append([])
        found[numbers[leaf.path[:-1]]].append((leaf.path[-1], number, leaf))
    return found


@cache
def _is_known(dtype: DType) -> bool:
    return dtype is bytes or dtype in (np.float32, np.float64) or np.dtype(dtype).kind in "iub"


@cache
def _limits(dtype: DType) -> tuple[int, int]:
    """Return the least and the greatest integer of a dtype."""
    if dtype is bytes or np.dtype(dtype).kind not in "iu":
        return 0, 0
    limits, widest = np.iinfo(np.dtype(dtype).name), np.iinfo(np.int64)
    return max(limits.min, widest.min), min(limits.max, widest.max)


def _numbers(leaf: JsonLeaf, words: np.ndarray) -> np.ndarray:
    """Return the words converted to the leaf's dtype, as a copy. A missing value has an arbitrary word."""
    dtype = np.dtype(leaf.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        return (words.view(np.float64) if dtype.kind == "f" else words).astype(dtype)


def _lists(
    leaf: JsonLeaf, begins: np.ndarray, sizes: np.ndarray, absent: np.ndarray, items: np.ndarray, texts: np.ndarray
) -> Column:
    """Return a column of lists of words, which begin at positions in `items`."""
    sizes[absent] = 0
    ends = np.cumsum(sizes)
    gaps = begins - ends + sizes
    words = items[gaps[0] : gaps[0] + ends[-1]]
    if (gaps != gaps[0]).any():
        words = items[np.arange(ends[-1]) + np.repeat(gaps, sizes)]
    column: Column
    if leaf.dtype is bytes:
        sizes, ends = sizes // 2, ends // 2
        column = BytesColumn((texts,), words[::2].copy(), words[1::2].copy())
    else:
        column = DenseColumn(_numbers(leaf, words))
    if (sizes == sizes[0]).all() and sizes[0] and not len(absent):
        return column.batched(int(sizes[0]))
    whole = objects_of(column) if isinstance(column, BytesColumn) else column.array
    lists = np.split(whole, ends[:-1])
    for number in absent.tolist():
        lists[number] = leaf.default
    return ListColumn(lists)


_AT_ONCE = 4096  # lines; the kernel reads many in little more time than few
_decode = json.JSONDecoder().raw_decode


@dataclass(frozen=True, kw_only=True, eq=False)
class JsonLinesSource(FilesSource):
    """A nest of dicts for every line, each with its file and offset.

    The first line of an iteration defines the keys and kinds. A position in a file is [offset, these kinds].
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
        super().__init__(name, lines)
        self._source = source
        self._kinds = kinds
        self._state = state
        self._rows = RowQueue(name)
        self._kernel: _KernelLines | None = None
        self._asks = True  # True until the kernel was looked for

    def read(self, max_elements: int) -> Block | None:
        while not self._rows:
            chunk = self._reader.read(self._at_once(max_elements))
            if chunk is None:
                return None
            offsets = np.append(chunk.offsets, self._reader.tell())
            self._rows.put(offsets, partial(self._parsed, chunk, offsets))
        return self._rows.take(max_elements)

    def _at_once(self, max_elements: int) -> int:
        """Return the number of lines to read: one until the kinds are known, many for the kernel."""
        if self._kinds is None:
            return 1
        if self._asks:
            native = _NATIVE.loaded()
            if native is not None:
                self._kernel = _KernelLines.of(self._kinds, native)
                self._asks = False
        return max_elements if self._kernel is None else max(max_elements, _AT_ONCE)

    def _parsed(self, chunk: RecordChunk, offsets: np.ndarray, start: int, stop: int) -> ReadRows:
        """Return the objects of some lines of a chunk. Line i begins at byte `offsets[i]`."""
        part = chunk.slice(start, stop)
        if self._kernel is None:
            return self._rows_of(*self._one_by_one(part), offsets[stop])
        columns, left = self._kernel.columns(part)
        if not len(left):
            return ReadRows(self._block(columns, part.offsets), [], offsets[start : stop + 1])
        others = RecordChunk(part.buffer, part.starts[left], part.lengths[left], part.offsets[left])
        slowly, good, failures = self._one_by_one(others)
        if columns:
            begins = np.concatenate([np.delete(part.offsets, left), good])
            order = np.argsort(begins)
            if slowly:
                columns = [concat([a, b]).take(order) for a, b in zip(columns, slowly, strict=True)]
            return self._rows_of(columns, begins[order], failures, offsets[stop])
        return self._rows_of(slowly, good, failures, offsets[stop])

    def _one_by_one(self, lines: RecordChunk) -> tuple[list[Column], np.ndarray, list[tuple[int, Exception]]]:
        """Return (columns of valid lines, their offsets, offsets and errors of the other lines)."""
        rows: list[list[Any]] = []
        begins: list[int] = []  # offsets of these rows
        failures: list[tuple[int, Exception]] = []
        for line, offset in zip(lines.records(), lines.offsets.tolist(), strict=True):
            try:
                found = self._object(line, offset)
                if found is not None:
                    rows.append(self._known(found).values(found))
                    begins.append(offset)
            except Exception as raised:
                failures.append((offset, unreadable("The line", raised)))
        columns: list[Column] = []
        if rows:
            columns, wrong = self._known({}).columns(rows)
            failures += [(begins[number], error) for number, error in wrong]
            refused = {number for number, _ in wrong}
            begins = [begin for number, begin in enumerate(begins) if number not in refused]
        return columns, np.array(begins, np.int64), failures

    def _rows_of(
        self, columns: list[Column], begins: np.ndarray, failures: list[tuple[int, Exception]], stop: int
    ) -> ReadRows:
        """Return rows that begin at `begins`, and the failures between them, up to byte `stop`."""
        failures.sort(key=lambda failure: failure[0])
        failed = [offset for offset, _ in failures]
        for offset, error in failures:
            annotate(error, Context(file=self._name, offset=offset, line=self._reader.line_at(offset)))
        offsets = np.sort(np.concatenate([begins, np.array([*failed, stop], np.int64)]))
        numbers = np.searchsorted(offsets, failed).tolist()
        block = self._block(columns, begins) if columns else None
        return ReadRows(block, list(zip(numbers, [error for _, error in failures], strict=True)), offsets)

    def _block(self, columns: list[Column], begins: np.ndarray) -> Block:
        return Block(self._known({}).structure, columns, len(begins), Origin.of_file(self._name, begins))

    def _known(self, found: dict[str, Any]) -> JsonKinds:
        """Return the kinds of all lines, which the first line defines."""
        if self._kinds is None:
            self._kinds = JsonKinds.of(found, self._source.defaults)
            self._state = self._kinds.state()
        return self._kinds

    def _object(self, line: bytes, offset: int) -> dict[str, Any] | None:
        """Return the object of one line, or None for an empty line. Raises DataLossError."""
        try:
            text = line.decode().strip(" \t\r")
            if not text:
                return None
            found, end = _decode(text)
        except UnicodeDecodeError as error:
            message = f"The line is no UTF-8: {error.reason} at its byte {error.start}."
            raise DataLossError(message, hint="Convert the file: iconv -f CP1252 -t UTF-8 old > new.") from error
        except json.JSONDecodeError as error:
            message = f"The line is no JSON: {error.msg} at its character {error.pos}: {_around(text, error.pos)}."
            raise DataLossError(message, hint=_hint(offset, text)) from error
        except RecursionError as error:
            message = "The line nests objects or lists too deeply."
            raise DataLossError(message) from error
        except ValueError as error:  # Python refuses long numbers because their conversion takes quadratic time
            message = f"The line holds a number of more than {sys.get_int_max_str_digits()} digits."
            raise DataLossError(message, hint="Write it as a text, or as a floating-point number.") from error
        if end != len(text):
            message = f"The line continues after its JSON, at character {end}: {_around(text, end)}."
            raise DataLossError(message, hint="A file of JSON Lines has one object on every line.")
        if not isinstance(found, dict):
            message = f"A line is a JSON object, and this one is {_around(text, 0)}."
            raise DataLossError(message, hint=_hint(offset, text))
        return found

    def place(self) -> Place:
        return [self._rows.place() if self._rows else self._reader.tell(), self._state]

    def following(self) -> Place:
        return [0, self._state]

    @property
    def over(self) -> bool:
        return self._reader.over and not self._rows


def _around(text: str, at: int) -> str:
    part = text[at : at + 30]
    return f"{part!r}" if part else "the end of the line"


def _hint(offset: int, text: str) -> str:
    if not offset and text[:1] in "[{":
        return "Is it one JSON text over several lines? A file of JSON Lines has one object on every line."
    return "A file of JSON Lines has one object on every line."
