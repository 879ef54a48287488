"""From rows of CSV text to columns of values.

By Arrow's parser where it reads them as the plain one does, or by that.

Arrow takes more for right than TensorFlow, and says of a whole chunk that something is wrong. So it gets rows whose
quotes are sound, and the numbers it makes of them count only where no field can have been one that it reads otherwise.
Elsewhere it is asked for them as text: what is written as numbers usually are it converts, the rest the plain parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from penstock.block.arrow_leaf import decode
from penstock.block.column import BytesColumn, Column, DenseColumn, concat
from penstock.block.spec import TensorSpec
from penstock.io.csv_format import CsvColumn, CsvFormat
from penstock.io.csv_reader import FINE, CsvChunk, Row, whole_row
from penstock.io.window import MARK

# Spaces (also `\t\n\v\f\r`) around a number are allowed, a plus sign too. Floats are decimal, or one of inf, infinity
# and nan in any case. As absl's SimpleAtoi, SimpleAtof and SimpleAtod, with which TensorFlow reads them.

_SPACE = b" \t\n\v\f\r"
_INT = re.compile(rb"[+-]?[0-9]+")
_FLOAT_FIELD = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NAMED = re.compile(rb"[+-]?(inf|infinity|nan)", re.IGNORECASE)
_MOST_DIGITS = 4000  # fewer than Python converts at once; a longer integer that fits begins with zeros


def plain_int(text: bytes, low: int, high: int) -> int | None:
    """The integer that `text` is, if it is one from `low` to `high`.

    >>> plain_int(b" +7 ", -128, 127), plain_int(b"128", -128, 127), plain_int(b"7.0", -128, 127)
    (7, None, None)
    """
    text = text.strip(_SPACE)
    if not _INT.fullmatch(text):
        return None
    digits = text.lstrip(b"+-").lstrip(b"0") or b"0"
    if len(digits) > _MOST_DIGITS:
        return None
    value = -int(digits) if text[:1] == b"-" else int(digits)
    return value if low <= value <= high else None


def plain_float(text: bytes, *, single: bool) -> float | None:
    """The number nearest to `text` among the floats, or with `single` among those that are float32.

    >>> plain_float(b"1e3", single=False), plain_float(b".5", single=True), plain_float(b"1_0", single=False)
    (1000.0, 0.5, None)
    """
    text = text.strip(_SPACE)
    if _NAMED.fullmatch(text):
        return float(text)
    if not _FLOAT_FIELD.fullmatch(text):
        return None
    return _nearest_single(text) if single else float(text)


def _nearest_single(text: bytes) -> float:
    """Rounded once: rounding to float64 first goes wrong for numbers close to the middle of two float32."""
    double = float(text)
    with np.errstate(over="ignore", under="ignore"):
        near = np.float32(double)
    if not _is_between(double):
        return float(near)
    exact, middle = Decimal(text.decode()), Decimal(double)
    if exact == middle:
        return float(near)
    with np.errstate(over="ignore", under="ignore"):
        if exact > middle:
            return float(near if float(near) > double else np.nextafter(near, np.float32(np.inf)))
        return float(near if float(near) < double else np.nextafter(near, np.float32(-np.inf)))


def _is_between(double: float) -> bool:
    """Whether `double` lies exactly between two neighbouring float32."""
    if abs(double) < 2.0**-126:  # where float32 are 2**-149 apart
        return (double * 2.0**150) % 2 == 1
    return int(np.float64(double).view(np.uint64)) & 0x1FFFFFFF == 0x10000000


LEAST = 1 << 10  # bytes: fewer take Arrow longer than the plain parser
_MARKS = {"i": (b"x", b"X"), "f": (b"(",)}  # in what may be a number to Arrow alone
_FLOAT = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_USUAL = {  # how numbers are written that Arrow is sure to read as the plain parser does
    "int32": r"^[+-]?[01]?[0-9]{1,9}$",  # not all that fit, but none that does not
    "int64": r"^[+-]?[0-8]?[0-9]{1,18}$",
    "float32": _FLOAT,
    "float64": _FLOAT,
}


class CsvColumns(NamedTuple):
    """The wanted columns of the rows that have them, by their numbers, and in which rows of these a field is wrong.

    `unread` are the others: (number, what is wrong with the row, how many fields it has). With `odd_numbers` some were
    written as Arrow does not read them.
    """

    rows: np.ndarray
    columns: list[Column]
    wrong: list[np.ndarray]
    unread: list[tuple[int, int, int]]
    odd_numbers: bool = False


def rows_of(chunk: CsvChunk, layout: CsvFormat, numbers: Iterable[int] | None = None) -> list[Row]:
    """The rows of a chunk, or those of these numbers, by the plain scanner."""
    content, begin = chunk.content.data, int(chunk.offsets[0])
    return [
        chunk.rows.get(i) or whole_row(content, int(chunk.offsets[i]) - begin, layout.delimiter, layout.quote)
        for i in (range(len(chunk)) if numbers is None else numbers)
    ]


def plain_columns(chunk: CsvChunk, layout: CsvFormat, numbers: np.ndarray | None = None) -> CsvColumns:
    """The definition: field by field. With `numbers` of these rows alone."""
    numbers = np.arange(len(chunk)) if numbers is None else numbers
    rows = rows_of(chunk, layout, numbers.tolist())
    counts = np.array([len(row.fields) for row in rows])
    good = (np.array([row.status for row in rows]) == FINE) & layout.admits(counts)
    unread = [(int(numbers[i]), rows[i].status, len(rows[i].fields)) for i in np.flatnonzero(~good)]
    fine = np.flatnonzero(good).tolist()
    columns, wrong = [], []
    for column, place in zip(layout.columns, layout.places, strict=True):
        values, bad = _plain_column([rows[i].fields[place] for i in fine], column, layout.na_value)
        columns.append(values)
        wrong.append(bad)
    return CsvColumns(numbers[good], columns, wrong, unread)


def _plain_column(fields: list[bytes], column: CsvColumn, na_value: bytes) -> tuple[Column, np.ndarray]:
    missing = np.array([field in (b"", na_value) for field in fields], bool)
    if column.dtype is bytes:
        default = column.default or b""
        values = [default if none else field for field, none in zip(fields, missing, strict=True)]
        return BytesColumn.from_values(values), missing & (column.default is None)
    dtype = np.dtype(column.dtype)
    numbers = np.zeros(len(fields), dtype)
    bad = np.zeros(len(fields), bool)
    limits = np.iinfo(dtype.name) if dtype.kind == "i" else None
    for i, field in enumerate(fields):
        if missing[i]:
            found = column.default
        elif limits is not None:
            found = plain_int(field, int(limits.min), int(limits.max))
        else:
            found = plain_float(field, single=dtype == np.float32)
        bad[i] = found is None
        if found is not None:
            with np.errstate(over="ignore"):
                numbers[i] = found
    return DenseColumn(numbers), bad


def arrow_columns(chunk: CsvChunk, layout: CsvFormat, *, odd_numbers: bool = False) -> CsvColumns | None:
    """What `plain_columns` gives, or None where that has to be asked. It is quicker to know of `odd_numbers` before."""
    import pyarrow as pa

    if b'"' in layout.na_value:
        return None
    raw, sound = _sound(chunk)
    width = len(layout.columns) + len(layout.exclude)
    if layout.select is not None:  # nobody has said how many there are
        width = len(whole_row(memoryview(raw), 0, layout.delimiter, layout.quote).fields)
    if width < layout.width or raw.startswith(MARK):
        return None
    try:
        table, others = _table(raw, width, layout, odd_numbers=odd_numbers)
    except (pa.ArrowException, UnicodeDecodeError):  # the latter for an na_value that is no text
        return None
    if table.num_rows + len(others) != len(sound):
        return None
    numbers = np.delete(sound, [row for row, _ in others])
    others = [(int(sound[row]), count) for row, count in others]
    if not layout.admits(np.array([1]))[0]:
        ends = chunk.buffer[chunk.offsets[:-1]]
        empty = ((ends == 10) | (ends == 13))[numbers]  # a row of one field, of which Arrow makes one of nulls
        others += [(row, 1) for row in numbers[empty].tolist()]
        if empty.any():
            numbers, table = numbers[~empty], table.filter(pa.array(~empty))
    columns, wrong, odd = [], [], False
    for column, chunks in zip(layout.columns, table.columns, strict=True):
        array = chunks.chunk(0) if chunks.num_chunks == 1 else chunks.combine_chunks()
        values, bad, written_oddly = _arrow_column(array, column)
        columns.append(values)
        wrong.append(bad)
        odd |= written_oddly
    found = CsvColumns(numbers, columns, wrong, [(row, FINE, count) for row, count in others], odd)
    longer = [row for row, count in others if count >= layout.width] if layout.select is not None else []
    return _with_plain_rows(found, chunk, layout, sorted([*longer, *chunk.rows]))


def _sound(chunk: CsvChunk) -> tuple[bytes, np.ndarray]:
    """The rows that the plain scanner has not read, which are sound, and their numbers."""
    begins, ends = [0, *(i + 1 for i in chunk.rows)], [*chunk.rows, len(chunk)]
    parts = [chunk.buffer[chunk.offsets[i] : chunk.offsets[j]].data for i, j in zip(begins, ends, strict=True)]
    return b"".join(parts), np.delete(np.arange(len(chunk)), list(chunk.rows))


def _with_plain_rows(found: CsvColumns, chunk: CsvChunk, layout: CsvFormat, numbers: list[int]) -> CsvColumns:
    """Together with the rows of these numbers by the plain parser."""
    if not numbers:
        return found
    plain = plain_columns(chunk, layout, np.array(numbers))
    apart = set(numbers)
    unread = [item for item in found.unread if item[0] not in apart] + plain.unread
    if not len(plain.rows):
        return found._replace(unread=unread)
    rows = np.concatenate([found.rows, plain.rows])
    order = np.argsort(rows)
    columns = [concat(pair).take(order) for pair in zip(found.columns, plain.columns, strict=True)]
    wrong = [np.concatenate(pair)[order] for pair in zip(found.wrong, plain.wrong, strict=True)]
    return CsvColumns(rows[order], columns, wrong, unread, found.odd_numbers)


def _table(raw: bytes, width: int, layout: CsvFormat, *, odd_numbers: bool) -> tuple[Any, list[tuple[int, int]]]:
    """As `_by_arrow`, with numbers as such where all of them are sure to be what they are to the plain parser."""
    import pyarrow as pa

    if not odd_numbers:
        try:
            table, others = _by_arrow(raw, width, layout, as_text=False)
            if not _may_hold_other_numbers(raw, table):
                return table, others
        except pa.ArrowInvalid:  # says nothing of the other fields
            pass
    return _by_arrow(raw, width, layout, as_text=True)


def _by_arrow(raw: bytes, width: int, layout: CsvFormat, *, as_text: bool) -> tuple[Any, list[tuple[int, int]]]:
    """The wanted columns of the rows of `width` fields, and the numbers of the others with those of their fields.

    With `as_text` numbers are still what was written, but for missing ones.
    """
    import pyarrow as pa
    from pyarrow import csv

    others: list[tuple[int, int]] = []

    def pass_over(row: Any) -> str:
        others.append((row.number - 1, row.actual_columns))
        return "skip"

    is_utf8 = raw.isascii() or len(raw.decode(errors="ignore").encode()) == len(raw)
    names = [str(i) for i in range(width)]
    wanted = [names[place] for place in layout.places]
    dtypes = [bytes if as_text else column.dtype for column in layout.columns]
    types = [pa.binary() if dtype is bytes else pa.from_numpy_dtype(np.dtype(dtype)) for dtype in dtypes]
    table = csv.read_csv(
        pa.BufferReader(raw),
        csv.ReadOptions(use_threads=False, block_size=len(raw) + 1, column_names=names),
        csv.ParseOptions(
            delimiter=chr(layout.delimiter),
            quote_char=chr(layout.quote) if layout.quote >= 0 else False,
            newlines_in_values=not raw.endswith(b"\n"),  # else there is one block, which ends with a row
            ignore_empty_lines=False,
            # Arrow prints what it cannot decode for the handler; without one it raises, and the plain scanner reads on
            invalid_row_handler=pass_over if is_utf8 else None,
        ),
        csv.ConvertOptions(
            column_types=dict(zip(wanted, types, strict=True)),
            include_columns=wanted,
            null_values=["", layout.na_value.decode()] if layout.na_value else [""],
            strings_can_be_null=as_text or any(_needs_nulls(column, layout) for column in layout.columns),
        ),
    )
    return table, others


def _needs_nulls(column: CsvColumn, layout: CsvFormat) -> bool:
    """Whether an empty text is not just that: to look for it costs Arrow as much as to read it."""
    return column.dtype is bytes and (column.default != b"" or bool(layout.na_value))


def _arrow_column(array: Any, column: CsvColumn) -> tuple[Column, np.ndarray, bool]:
    """The values of a column, where it has none but needs one, and whether numbers in it were written oddly."""
    import pyarrow as pa

    kind = None if column.dtype is bytes else np.dtype(column.dtype)
    missing = np.asarray(array.is_null()) if array.null_count else np.zeros(len(array), bool)
    wrong = missing & (column.default is None)
    fields, strange = array, None
    if kind is not None and pa.types.is_binary(array.type):
        array, strange = _numbers(array, kind)
    if array.null_count:
        empty = b"" if kind is None else kind.type(0)
        array = array.fill_null(pa.scalar(empty if column.default is None else column.default, array.type))
    if kind is None:
        return decode(array, TensorSpec((), bytes)), wrong, False
    values = array.to_numpy(zero_copy_only=False)
    if strange is not None and len(strange):
        plain, wrong[strange] = _plain_column(fields.take(pa.array(strange)).to_pylist(), column, b"")
        values = values.copy()
        assert isinstance(plain, DenseColumn)
        values[strange] = plain.array
    return DenseColumn(values), wrong, strange is not None


def _numbers(fields: Any, dtype: np.dtype[Any]) -> tuple[Any, np.ndarray | None]:
    """Fields as numbers, and the places of those not written as numbers usually are, which are null.

    The places are None where Arrow reads all fields as they are.
    """
    import pyarrow as pa
    from pyarrow import compute

    text, kind = compute.ascii_trim_whitespace(fields.view(pa.string())), pa.from_numpy_dtype(dtype)
    valid, offsets, buffer = text.buffers()
    content = b"" if buffer is None else buffer.to_pybytes()
    signs = dtype.kind == "i" and b"+" in content  # a sign that says nothing, which Arrow takes in no integer
    if not signs and not any(mark in content for mark in _MARKS[dtype.kind]):
        try:
            return compute.cast(text, kind), None
        except pa.ArrowInvalid:
            pass
    usual = compute.match_substring_regex(text.view(pa.binary()), _USUAL[dtype.name])
    if signs:
        buffers = [valid, offsets, pa.py_buffer(content.replace(b"+", b"0"))]
        text = pa.Array.from_buffers(text.type, len(text), buffers, text.null_count, text.offset)
    strange = np.flatnonzero(~np.asarray(usual.fill_null(True)))
    return compute.cast(compute.if_else(usual, text, None), kind), strange


def _may_hold_other_numbers(raw: bytes, table: Any) -> bool:
    """Whether a field may be a number to Arrow alone: an integer in hexadecimal, or a float written "nan(…)"."""
    import pyarrow as pa

    if any(mark in raw for mark in _MARKS["i"]) and any(pa.types.is_integer(kind) for kind in table.schema.types):
        content = np.frombuffer(raw, np.uint8)
        if (content[np.flatnonzero(content[1:] & 0xDF == ord("X"))] == ord("0")).any():
            return True
    if not any(mark in raw for mark in _MARKS["f"]):
        return False
    floats = [column for column in table.columns if pa.types.is_floating(column.type)]
    return any(np.isnan(column.drop_null().to_numpy()).any() for column in floats)
