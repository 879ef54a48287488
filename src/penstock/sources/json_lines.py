"""The objects of JSON Lines files.

Arrow's parser takes many lines at once, where nobody can tell the result from that of `json.loads`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from penstock.block.arrow_values import Array, lists_of, numbers_of, objects_of, strings_of
from penstock.block.block import Block
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn
from penstock.block.origin import Origin
from penstock.block.spec import DType
from penstock.errors import Context, DataLossError, annotate
from penstock.io.window import LineReader, RecordChunk
from penstock.sources.files import FileReader, FilesSource, Place
from penstock.sources.json_kinds import EXACT, Defaults, JsonKinds, JsonLeaf
from penstock.sources.row_files import ReadRows, RowQueue, unreadable

# Arrow parses a chunk several times as quickly as `json` does its lines. It says less of what is wrong, and takes more
# for right, so a chunk counts only where none of that can have happened: one object on each line, every key of the kind
# it has, no number that two parsers might read differently. All else is given back to the reader that names line and
# byte.

LEAST = 64  # lines: fewer take longer than one by one
_TRIES = 8  # chunks in a row given back before a file is taken to be one of those that Arrow does not help with
_OPEN, _CLOSE = b"{}"  # as bytes' numbers


class ArrowLines:
    """Parses the lines of one file whose keys and kinds are known. For one thread at a time."""

    def __init__(self, kinds: JsonKinds, file: str) -> None:
        self._kinds = kinds
        self._file = file
        self._schema = _schema(kinds.leaves)
        self._tries = _TRIES

    @property
    def helps(self) -> bool:
        """Whether to try it with further chunks."""
        return self._schema is not None and self._tries > 0

    def block(self, chunk: RecordChunk) -> Block | None:
        """The elements of neighbouring lines, exactly as they are one by one; None asks for that."""
        columns = self._columns(chunk)
        if columns is None:
            self._tries -= 1
            return None
        self._tries = _TRIES
        origin = Origin.of_file(self._file, chunk.offsets)
        return Block(self._kinds.structure, columns, len(chunk), origin)

    def _columns(self, chunk: RecordChunk) -> list[Column] | None:
        """One object on each line: one that ends on a later line than it begins on would have a `{` behind a `}`."""
        import pyarrow as pa

        buffer, first = chunk.buffer, chunk.starts
        last = first + chunk.lengths - 1
        if (last < first).any() or (buffer[first] != _OPEN).any() or (buffer[last] != _CLOSE).any():
            return None
        try:
            table = self._table(buffer[first[0] : last[-1] + 1])
            if table.num_rows != len(chunk):
                return None
            return [_column(leaf, _array(table, leaf)) for leaf in self._kinds.leaves]
        except (pa.ArrowException, UnicodeDecodeError, _Unsure):
            return None

    def _table(self, content: np.ndarray) -> Any:
        import pyarrow as pa
        from pyarrow import json

        return json.read_json(
            pa.BufferReader(pa.py_buffer(content)),
            read_options=json.ReadOptions(use_threads=False, block_size=len(content)),
            parse_options=json.ParseOptions(explicit_schema=self._schema, unexpected_field_behavior="error"),
        )


class _Unsure(Exception):
    """Arrow's values need not be those of `json`, or some line is in error."""


def _schema(leaves: Sequence[JsonLeaf]) -> Any:
    """The pyarrow.Schema of the objects; None where Arrow cannot have a part of them."""
    import pyarrow as pa

    nest: dict[str, Any] = {}
    for leaf in leaves:
        kind = _scalar(leaf.dtype)
        if kind is None or leaf.rank > 1:
            return None
        inner = nest
        for name in leaf.path[:-1]:
            inner = inner.setdefault(name, {})
        inner[leaf.path[-1]] = pa.list_(kind) if leaf.rank else kind
    try:
        return pa.schema(_fields(nest))
    except UnicodeEncodeError:  # a key with half of a surrogate pair
        return None


def _fields(nest: dict[str, Any]) -> list[tuple[str, Any]]:
    import pyarrow as pa

    return [(name, pa.struct(_fields(kind)) if isinstance(kind, dict) else kind) for name, kind in nest.items()]


def _scalar(dtype: DType) -> Any:
    """The Arrow type as which a value is parsed, which may be wider; None where rounding it would not be the same."""
    import pyarrow as pa

    if dtype is bytes:
        return pa.string()
    if dtype in (np.float32, np.float64):
        return pa.float64()
    return {"i": pa.int64(), "u": pa.int64(), "b": pa.bool_()}.get(np.dtype(dtype).kind)


def _array(table: Any, leaf: JsonLeaf) -> Array:
    """The array of a leaf, in one piece. Where an object is null, so are the values of its keys."""
    import pyarrow as pa

    found = table.column(leaf.path[0]).combine_chunks()
    for name in leaf.path[1:]:
        found = dict(zip((part.name for part in found.type), found.flatten(), strict=True))[name]
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found


def _column(leaf: JsonLeaf, array: Array) -> Column:
    if not leaf.rank:
        return _scalars(leaf, array)
    if array.null_count:
        raise _Unsure
    offsets, items = lists_of(array)
    if items.null_count:
        raise _Unsure
    return _lists(offsets, _values(leaf, items))


def _scalars(leaf: JsonLeaf, array: Array) -> Column:
    """With the default where there is none."""
    if not array.null_count:
        return _values(leaf, array)
    if leaf.default is None:
        raise _Unsure
    if leaf.dtype is bytes:
        return _values(leaf, array.fill_null(leaf.default.decode()))
    missing = np.asarray(array.is_null())
    numbers = _numbers(numbers_of(array.fill_null(False if leaf.dtype == np.bool_ else 0)), np.dtype(leaf.dtype))
    numbers[missing] = leaf.default
    return DenseColumn(numbers)


def _values(leaf: JsonLeaf, array: Array) -> DenseColumn | BytesColumn:
    """The values of the array as the leaf's dtype. There are no nulls among them."""
    if leaf.dtype is bytes:
        array.validate(full=True)  # Arrow's parser does not ask whether a text is UTF-8
        return strings_of(array)
    return DenseColumn(_numbers(numbers_of(array), np.dtype(leaf.dtype)))


def _numbers(found: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """As that dtype, in memory of their own. What is not finite may have been written in a way that is no JSON."""
    if found.dtype.kind == "f":
        if not (np.abs(found) < EXACT).all():  # an integer that large is no float64 to `json`, before it becomes one
            raise _Unsure
    elif found.dtype.kind == "i" and dtype != np.int64:
        limits = np.iinfo(dtype.name)
        if found.min(initial=0) < limits.min or found.max(initial=0) > limits.max:
            raise _Unsure
    with np.errstate(over="ignore"):
        return found.astype(dtype)


def _lists(offsets: np.ndarray, items: DenseColumn | BytesColumn) -> Column:
    sizes = np.diff(offsets)
    if (sizes == sizes[0]).all() and sizes[0]:
        return items.batched(int(sizes[0]))
    whole = objects_of(items) if isinstance(items, BytesColumn) else items.array
    return ListColumn(np.split(whole, offsets[1:-1]))


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
