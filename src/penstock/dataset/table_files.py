"""Data sets of files of tables: Arrow IPC, Parquet, numpy's, JSON Lines, CSV, and the rows of a query."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from penstock.block.leaf import as_leaf
from penstock.block.spec import as_dtype, dtype_name
from penstock.block.structure import flatten
from penstock.block.tensors import RaggedTensor
from penstock.dataset.dataset import Dataset
from penstock.dataset.files import read_files
from penstock.errors import InvalidArgumentError, InvalidTypeError, PenstockError
from penstock.io.csv_format import CsvColumn, CsvFormat
from penstock.io.storage import as_path
from penstock.plan.inputs import Scan
from penstock.plan.node import check_int
from penstock.sources.arrow import ArrowSource
from penstock.sources.arrow_pieces import as_columns
from penstock.sources.csv import CsvSource
from penstock.sources.json_kinds import Defaults
from penstock.sources.json_lines import JsonLinesSource
from penstock.sources.numpy_files import NumpySource
from penstock.sources.parquet import ParquetSource
from penstock.sources.sql import SqlSource


def ArrowDataset(
    filenames: Any,
    columns: Sequence[str] | None = None,
    num_parallel_reads: int | None = None,
    *,
    fill_null: Mapping[str, Any] | None = None,
    decimals: Any = None,
) -> Dataset:
    """The rows of Arrow IPC files (Feather V2), in the file or the stream format, as dicts of their columns.

    Local files are mapped into memory: numbers, fixed-size lists and byte strings of an uncompressed file are not
    copied. Of a file at a URL in the stream format all is read when it is opened. For everything else see
    `ParquetDataset`: columns, types, nulls and decimals are treated alike.

    >>> import pathlib, tempfile, pyarrow as pa, penstock as ps
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.arrow"
    >>> table = pa.table({"id": [1, 2], "box": pa.array([[0, 1], [2, 3]], pa.list_(pa.int32(), 2))})
    >>> with pa.ipc.new_file(path, table.schema) as writer:
    ...     writer.write_table(table)
    >>> ds = ps.ArrowDataset(path)
    >>> len(ds), next(iter(ds))
    (2, {'id': np.int64(1), 'box': array([0, 1], dtype=int32)})

    A `columns` or `fill_null` that does not fit the first file is an error of the call, where that is a local file that
    is there; so is a column whose type no tensor holds (InvalidArgumentError, InvalidTypeError). What is wrong with a
    file comes with the pass, each in the place of one element: NotFoundError for a missing file, DataLossError for a
    damaged one, InvalidTypeError for columns that differ from the first file's, InvalidArgumentError for a null. Where
    the rows of a file cannot be counted, the cardinality is unknown, and `len()`, `ds[i]` and `shuffle(ps.ALL)` raise
    what is wrong with that file.
    """
    return read_files(filenames, ArrowSource((), columns=as_columns(columns, fill_null, decimals)), num_parallel_reads)


def ParquetDataset(
    filenames: Any,
    columns: Sequence[str] | None = None,
    num_parallel_reads: int | None = None,
    *,
    fill_null: Mapping[str, Any] | None = None,
    decimals: Any = None,
) -> Dataset:
    """The rows of Parquet files, as dicts of their columns.

    `filenames` is a path or URL, a sequence of them, or a Dataset of names. Only `columns` are read, in that order, or
    all. Numbers keep their dtype, text and binaries become bytes, times datetime64; fixed-size lists are arrays of that
    shape, lists arrays of differing length, lists of lists RaggedTensors, structs dicts. A null stands for an error,
    unless `fill_null` says by what it is replaced: `{"label": -1, "meta.name": ""}`. The path of a struct of `bytes`
    and `path`, as Hugging Face writes images, is empty where it is null. Decimals become float64, with a warning;
    `decimals=np.float64` is without the warning, and `decimals=bytes` reads their text.

    The files' footers say how many rows there are: `len()` reads nothing else, and rows can be asked for by number,
    which decodes the row group they are in. With `num_parallel_reads` the files are interleaved row by row instead,
    that many at a time, AUTOTUNE meaning a fixed 16.

    >>> import pathlib, tempfile, pyarrow as pa, pyarrow.parquet, penstock as ps
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.parquet"
    >>> pyarrow.parquet.write_table(pa.table({"id": [1, 2], "text": ["one", "two"]}), path)
    >>> ds = ps.ParquetDataset(path)
    >>> len(ds), next(iter(ds))
    (2, {'id': np.int64(1), 'text': b'one'})

    A `columns` or `fill_null` that does not fit the first file is an error of the call, where that is a local file that
    is there; so is a column whose type no tensor holds (InvalidArgumentError, InvalidTypeError). What is wrong with a
    file comes with the pass, each in the place of one element: NotFoundError for a missing file, DataLossError for a
    damaged one, InvalidTypeError for columns that differ from the first file's, InvalidArgumentError for a null. Where
    the rows of a file cannot be counted, the cardinality is unknown, and `len()`, `ds[i]` and `shuffle(ps.ALL)` raise
    what is wrong with that file.
    """
    return read_files(
        filenames, ParquetSource((), columns=as_columns(columns, fill_null, decimals)), num_parallel_reads
    )


def NumpyDataset(filenames: Any, mmap: bool = True) -> Dataset:
    """The slices along the first axis of the arrays in files of np.save and np.savez, one file after the other.

    A `.npy` file gives arrays, one of a structured dtype dicts of its fields, a `.npz` file dicts of the slices of its
    arrays, which all have the same extent. Fixed-width strings become bytes; pickled objects are never loaded.
    `filenames` is a path or URL, a sequence of them, or a Dataset of names.

    Local files are mapped into memory and read where they are looked at; compressed members, files at a URL, and all
    files with `mmap=False`, are loaded when the pass comes to them. Slices can be asked for by number, and `len()`
    reads the headers only. Functions get views of the files
    that they can only read, a loop copies.

    >>> import pathlib, tempfile, numpy as np, penstock as ps
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.npz"
    >>> np.savez(path, x=np.arange(6).reshape(3, 2), y=np.array([0, 1, 0], np.int8))
    >>> ds = ps.NumpyDataset(path)
    >>> len(ds), next(iter(ds))
    (3, {'x': array([0, 1]), 'y': np.int8(0)})

    Errors come with the pass, each in the place of one element: NotFoundError for a missing file, DataLossError for a
    damaged one, InvalidTypeError for pickled objects or arrays that differ from the first file's,
    InvalidArgumentError for extents that differ. Over such files the cardinality is unknown, and `len()`, `ds[i]` and
    `shuffle(ps.ALL)` raise what is wrong with the first of them.
    """
    return read_files(filenames, NumpySource((), mmap=bool(mmap)))


def JsonLinesDataset(
    filenames: Any,
    compression_type: str | None = None,
    buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
    *,
    defaults: Mapping[str, Any] | None = None,
) -> Dataset:
    r"""The objects of JSON Lines files, one on every line, as dicts of leaves.

    Text becomes bytes (UTF-8), an integer int64, another number float32, a list one array, an object inside an object
    a dict. Nested rows are those of Parquet: a list of unequal lists is a RaggedTensor, and a list of objects a dict of
    lists: `{"messages": {"role": [...], "content": [...]}}`. Empty lines count for nothing.

    The first line says which keys there are, and the dtype and rank of each, for the whole pass; an integer may stand
    where the first line has a float. `defaults` gives keys a value where a line has none or null, and their dtype:
    `{"age": np.int32(-1), "score": 0.0}`, nested as the objects are. In lists of objects it is the value of an item.
    `ps.RaggedTensor([], [0])` is for lists that are unequal in a later line only. `filenames` and the other arguments
    are as for `TextLineDataset`.

    >>> import pathlib, tempfile, penstock as ps
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pets.jsonl"
    >>> _ = path.write_text('{"name": "Rex", "kg": 31.5}\n{"kg": 4, "name": "Tom"}\n{"name": "Ada"}\n')
    >>> for pet in ps.JsonLinesDataset(path, defaults={"kg": 0.0}):
    ...     print(pet)
    {'name': b'Rex', 'kg': np.float32(31.5)}
    {'name': b'Tom', 'kg': np.float32(4.0)}
    {'name': b'Ada', 'kg': np.float32(0.0)}

    A line that cannot be read is one element that failed, with file and byte offset: DataLossError for one that is no
    JSON object, InvalidTypeError for other keys, a null, or a value of another kind, InvalidArgumentError for an
    integer that does not fit and a list whose items differ in shape. Raises NotFoundError in the place of a missing
    file.
    """
    given = {} if defaults is None else defaults
    if not isinstance(given, Mapping):
        message = f"defaults is a dict from keys to values, got defaults={defaults!r:.60}."
        raise InvalidTypeError(message)
    source = JsonLinesSource((), compression_type, buffer_size, defaults=_leaves(given, ()))
    return read_files(filenames, source, num_parallel_reads)


def _leaves(given: Mapping[str, Any], above: tuple[str, ...]) -> Defaults:
    found: Defaults = {}
    for name, value in given.items():
        path = (*above, name)
        if not isinstance(name, str):
            message = f"The keys of JSON are text, got {name!r} in defaults."
            raise InvalidTypeError(message)
        if isinstance(value, Mapping):
            found |= _leaves(value, path)
            continue
        try:
            leaf = as_leaf(value)
        except PenstockError as error:
            message = f"The default of key {name!r}: {error.message}"
            raise type(error)(message, hint="Leave out keys without a default.") from None
        if isinstance(leaf, np.ndarray):
            leaf = leaf.copy()
            leaf.flags.writeable = False
        elif not isinstance(leaf, (bytes, np.generic, RaggedTensor)):
            message = f"A default is a number, a text or an array of them, got {type(value).__name__} for {name!r}."
            raise InvalidTypeError(message)
        found[path] = leaf
    return found


_KINDS = "biuf"


def SqlDataset(driver_name: str, data_source_name: str | os.PathLike[str], query: str, output_types: Any) -> Dataset:
    """The rows that a query gives, as tuples of scalars; `driver_name` is "sqlite".

    `data_source_name` is the path of a database file, or a URI as SQLite has them; it is opened for reading only.
    `output_types` is a tuple with a dtype for every column, or the dtype of the only one:
    integers, floats, bool or bytes. A number takes the type
    that is asked for if that holds its value; bool is whether it is not 0; an integer may become text. Anything else is
    an error, where tf.data has 0 for a NULL, the leading digits of a text, and what is left of a number that does not
    fit.

    >>> import pathlib, sqlite3, tempfile, numpy as np, penstock as ps
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pets.db"
    >>> database = sqlite3.connect(path)
    >>> _ = database.execute("CREATE TABLE pets (name TEXT, age INTEGER)")
    >>> _ = database.execute("INSERT INTO pets VALUES ('Rex', 7), ('Tom', 2)")
    >>> database.commit(), database.close()
    (None, None)
    >>> query = "SELECT name, age FROM pets ORDER BY name"
    >>> list(ps.experimental.SqlDataset("sqlite", path, query, (bytes, np.int32)))
    [(b'Rex', np.int32(7)), (b'Tom', np.int32(2))]

    Each pass runs the query, and so does going on from a checkpoint, which passes over the rows already given: only
    ORDER BY by a unique key makes their order certain. A row that cannot be converted is one element that failed, with
    InvalidTypeError or InvalidArgumentError. Raises NotFoundError, when the pass begins, for a missing database,
    InvalidArgumentError for a query that SQLite refuses or with another number of columns, DataLossError for a damaged
    database; nothing follows these.
    """
    if driver_name != "sqlite":
        message = f'driver_name is "sqlite", got driver_name={driver_name!r}.'
        raise InvalidArgumentError(message, hint="For other databases use from_generator, with the driver's cursor.")
    if not isinstance(query, str):
        message = f"query is a text of SQL, got query={query!r:.60}."
        raise InvalidTypeError(message)
    leaves, structure = flatten(output_types)
    types = tuple(as_dtype(leaf) for leaf in leaves)
    for dtype in types:
        if dtype is not bytes and dtype.kind not in _KINDS:
            message = f"The columns of a query are integers, floats, bool or bytes, got {dtype_name(dtype)}."
            raise InvalidTypeError(message, hint="For example output_types=(bytes, np.int64).")
    if not types:
        message = f"output_types is a tuple with a dtype for each column, got output_types={output_types!r:.60}."
        raise InvalidTypeError(message, hint="A tuple of one has a comma: (np.int64,).")
    source = SqlSource(as_path(data_source_name), query, types, structure)
    return Dataset._of(Scan(source=source))


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
