"""experimental.CsvDataset: the rows of CSV files."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from penstock.block.leaf import as_leaf
from penstock.block.spec import as_dtype, dtype_name
from penstock.block.structure import flatten
from penstock.dataset.dataset import Dataset
from penstock.dataset.files import read_files
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.io.csv_format import CsvColumn, CsvFormat
from penstock.plan.node import check_int
from penstock.sources.csv import CsvSource

_DTYPES = (np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int32), np.dtype(np.int64), bytes)
_WANTED = "A column is float32, float64, int32, int64 or bytes"
_HINT = (
    "Give a dtype (np.float32, bytes) for a required column, a value (np.float32(0), b'') as the default of another."
)


def CsvDataset(
    filenames: Any,
    record_defaults: Sequence[Any],
    compression_type: str | None = None,
    buffer_size: int | None = None,
    header: bool = False,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
    exclude_cols: Sequence[int] | None = None,
) -> Dataset:
    r"""The rows of CSV files (RFC 4180), as tuples of scalars.

    `record_defaults` has an item for each wanted column: a dtype (float32, float64, int32, int64, bytes) where a field
    must not be empty, else the value that stands for an empty field; a Python literal counts as everywhere (0 is int64,
    0.0 float32, tf.data takes 0 as int32). `header` leaves out the first row of every file. `field_delim` is one ASCII
    character. In quotes a field may hold delimiters, line ends and, doubled, quotes; `use_quote_delim=False` reads
    quotes as they are. `na_value` is a text that means the same as an empty field. `select_cols` numbers the fields to
    read, `exclude_cols` those not to. `filenames`, `compression_type` and `buffer_size` are as for `TextLineDataset`.

    >>> import pathlib, tempfile, numpy as np, penstock as ps
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pets.csv"
    >>> _ = path.write_text('name,kg\n"Rex, the dog",31.5\nTom,\n')
    >>> list(ps.experimental.CsvDataset(path, [bytes, np.float32(0)], header=True))
    [(b'Rex, the dog', np.float32(31.5)), (b'Tom', np.float32(0.0))]

    A row that cannot be read is one element that failed: InvalidArgumentError with file and byte offset for another
    number of fields, an empty field that is required, a number that is none or does not fit, a misplaced quote. The
    next row follows. Raises NotFoundError in the place of a file that is missing.
    """
    columns = columns_of("record_defaults", record_defaults)
    layout = CsvFormat(
        columns,
        delimiter_of(field_delim),
        CsvFormat.quote_of(use_quote_delim),
        text_of("na_value", na_value),
        _numbers("select_cols", select_cols),
        _numbers("exclude_cols", exclude_cols) or (),
    )
    if layout.select is not None and exclude_cols:
        message = "select_cols says which columns to read and exclude_cols which not to: give one of them."
        raise InvalidArgumentError(message)
    if layout.select is not None and len(layout.select) != len(columns):
        message = f"select_cols names {len(layout.select)} columns, and record_defaults has {len(columns)} items."
        raise InvalidArgumentError(message, hint="Give one item for each selected column, in the same order.")
    _, structure = flatten(tuple(range(len(columns))))
    source = CsvSource((), compression_type, buffer_size, format=layout, structure=structure, header=bool(header))
    return read_files(filenames, source)


def columns_of(name: str, defaults: Sequence[Any]) -> tuple[CsvColumn, ...]:
    """The wanted columns, from what argument `name` says of each: a dtype, or a default."""
    if isinstance(defaults, (str, bytes)) or not isinstance(defaults, Sequence):
        message = f"{name} is a list with an item for each column, got {defaults!r:.60}."
        raise InvalidTypeError(message, hint=_HINT)
    columns = tuple(_column(f"item {i} of {name}", default) for i, default in enumerate(defaults))
    if not columns:
        message = f"{name} needs an item for each column to read, got none."
        raise InvalidArgumentError(message, hint=_HINT)
    return columns


def _column(what: str, default: Any) -> CsvColumn:
    if isinstance(default, (type, np.dtype)):
        dtype = as_dtype(default)
        if dtype in _DTYPES:
            return CsvColumn(dtype)
        message = f"{_WANTED}; {what} is {dtype_name(dtype)}."
        raise InvalidTypeError(message, hint=_HINT)
    value = as_leaf(default)
    if isinstance(value, np.ndarray):
        if value.ndim > 1 or value.size > 1:
            message = f"A default is one value; {what} has shape {value.shape}."
            raise InvalidArgumentError(message, hint=_HINT)
        dtype = bytes if value.dtype == object else value.dtype
        value = value[0] if value.size else None
    else:
        dtype = value.dtype if isinstance(value, np.generic) else type(value)
    if dtype not in _DTYPES:
        message = f"{_WANTED}; {what} is {default!r:.60}."
        raise InvalidTypeError(message, hint=_HINT)
    return CsvColumn(dtype, value)


def text_of(name: str, value: Any) -> bytes:
    """A text argument as the bytes that stand for it in a file."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    message = f"{name} is a text, got {name}={value!r:.60}."
    raise InvalidTypeError(message, hint="Give it as it stands in the file.")


def delimiter_of(field_delim: Any) -> int:
    """The byte that parts fields."""
    delimiter = field_delim.encode() if isinstance(field_delim, str) else field_delim
    if not isinstance(delimiter, bytes) or len(delimiter) != 1 or delimiter in (b"\n", b"\r", b'"'):
        message = f"field_delim is one character of ASCII and no quote or line end, got field_delim={field_delim!r}."
        raise InvalidArgumentError(message, hint='For example "," or ";" or "\\t".')
    return delimiter[0]


def _numbers(name: str, columns: Sequence[int] | None) -> tuple[int, ...] | None:
    """Column numbers as a strictly ascending tuple; tf.data takes an empty list for none given."""
    if columns is None or len(columns) == 0:
        return None
    hint = "Columns are numbered from 0."
    numbers = tuple(check_int(name, column, least=0, hint=hint) for column in columns)
    if any(b <= a for a, b in pairwise(numbers)):
        message = f"{name} has to ascend, got {name}={list(numbers)}."
        raise InvalidArgumentError(message, hint="Give record_defaults in the same order.")
    return numbers
