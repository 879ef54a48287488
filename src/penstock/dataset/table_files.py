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
    """Create a data set of the rows of Arrow IPC files (Feather V2), in the file or the stream format.

    Local files are mapped into memory: numbers, fixed-size lists and byte strings of an uncompressed file are not
    copied. A remote file in the stream format is read completely when it is opened. Columns, types, nulls and decimals
    are treated as by `ParquetDataset`.

    Args:
        filenames: A path or URL, a sequence of them, or a data set of file names.
        columns: Names of the columns to read. Default: all columns.
        num_parallel_reads: Number of files that are read at the same time. Their rows alternate. `ps.AUTOTUNE` means
            16. By default, one file is read after another.
        fill_null: Value that replaces nulls, by column. A null in another column is an error.
        decimals: As in `ParquetDataset`.

    Returns:
        A data set of dicts with one value for each column. Its elements have an index if the files are read one after
        another.

    Raises:
        InvalidArgumentError: If there is no column of a given name, or, during the iteration, if a value is null.
        InvalidTypeError: If an array cannot hold the values of a column, or, during the iteration, if a file has other
            columns than the first one.
        NotFoundError: If, during the iteration, a file is missing.
        DataLossError: If, during the iteration, a file is damaged.

    Example:
        >>> import pathlib, tempfile, pyarrow as pa, penstock as ps
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.arrow"
        >>> table = pa.table({"id": [1, 2], "box": pa.array([[0, 1], [2, 3]], pa.list_(pa.int32(), 2))})
        >>> with pa.ipc.new_file(path, table.schema) as writer:
        ...     writer.write_table(table)
        >>> ds = ps.ArrowDataset(path)
        >>> len(ds), next(iter(ds))
        (2, {'id': np.int64(1), 'box': array([0, 1], dtype=int32)})
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
    """Create a data set of the rows of Parquet files.

    Numbers keep their dtype. Strings and binaries become byte strings, times datetime64, fixed-size lists arrays of
    that shape, lists arrays of different lengths, lists of lists RaggedTensors, and structs dicts. A null `path` in a
    struct of `bytes` and `path`, as Hugging Face writes images, becomes empty.

    `len(ds)` reads only the footers of the files. `ds[i]` decodes the row group of the row.

    Args:
        filenames: A path or URL, a sequence of them, or a data set of file names.
        columns: Names of the columns to read, in this order. Default: all columns.
        num_parallel_reads: Number of files that are read at the same time. Their rows alternate. `ps.AUTOTUNE` means
            16. By default, one file is read after another.
        fill_null: Value that replaces nulls, by column: `{"label": -1, "meta.name": ""}`. A null in another column is
            an error.
        decimals: Type of decimals: `np.float64`, or `bytes` for their text. Default: float64, with a warning.

    Returns:
        A data set of dicts with one value for each column. Its elements have an index if the files are read one after
        another.

    Raises:
        InvalidArgumentError: If there is no column of a given name, or, during the iteration, if a value is null.
        InvalidTypeError: If an array cannot hold the values of a column, or, during the iteration, if a file has other
            columns than the first one.
        NotFoundError: If, during the iteration, a file is missing.
        DataLossError: If, during the iteration, a file is damaged. `len(ds)`, `ds[i]` and `shuffle(ps.ALL)` raise the
            error too.

    Example:
        >>> import pathlib, tempfile, pyarrow as pa, pyarrow.parquet, penstock as ps
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.parquet"
        >>> pyarrow.parquet.write_table(pa.table({"id": [1, 2], "text": ["one", "two"]}), path)
        >>> ds = ps.ParquetDataset(path)
        >>> len(ds), next(iter(ds))
        (2, {'id': np.int64(1), 'text': b'one'})
    """
    return read_files(
        filenames, ParquetSource((), columns=as_columns(columns, fill_null, decimals)), num_parallel_reads
    )


def NumpyDataset(filenames: Any, mmap: bool = True) -> Dataset:
    """Create a data set of the slices along the first axis of the arrays in `.npy` and `.npz` files.

    A `.npy` file gives arrays, or dicts of the fields of a structured dtype. A `.npz` file gives dicts of the slices of
    its arrays, whose first axes have the same length. Fixed-width strings become byte strings. Pickled objects are
    never loaded. Functions receive read-only views of mapped files; the consumer receives copies.

    Args:
        filenames: A path or URL, a sequence of them, or a data set of file names. One file is read after another.
        mmap: If True, local files are mapped into memory. Compressed members, remote files, and all files with False,
            are loaded when the iteration reaches them. Default: True.

    Returns:
        A data set of the slices. Its elements have an index.

    Raises:
        NotFoundError: If a file is missing.
        DataLossError: If a file is damaged.
        InvalidTypeError: If a file contains pickled objects, or other arrays than the first file.
        InvalidArgumentError: If the first axes of the arrays of a file differ in length. During an iteration, a file
            with an error is one element that fails. `len(ds)`, `ds[i]` and `shuffle(ps.ALL)` raise the error.

    Example:
        >>> import pathlib, tempfile, numpy as np, penstock as ps
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.npz"
        >>> np.savez(path, x=np.arange(6).reshape(3, 2), y=np.array([0, 1, 0], np.int8))
        >>> ds = ps.NumpyDataset(path)
        >>> len(ds), next(iter(ds))
        (3, {'x': array([0, 1]), 'y': np.int8(0)})
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
    r"""Create a data set of the objects of JSON Lines files, one for each line.

    Strings become byte strings (UTF-8), integers int64, other numbers float32, lists arrays, and nested objects dicts.
    As in Parquet, a list of lists of different lengths becomes a RaggedTensor, and a list of objects becomes a dict of
    lists. Empty lines are ignored. The first line defines the keys, and the dtype and rank of each. An integer may
    stand where the first line has a float.

    Args:
        filenames: A path or URL, a sequence of them, or a data set of file names.
        compression_type: Compression of the whole file: `"GZIP"`, `"ZLIB"` or `""`. Default: no compression.
        buffer_size: Number of bytes that are read at a time. Default: 256 KiB. Local uncompressed files are mapped into
            memory instead.
        num_parallel_reads: Number of files that are read at the same time. Their lines alternate. `ps.AUTOTUNE` means
            16. By default, one file is read after another.
        defaults: Value for keys that a line lacks or has as null, nested as the objects are: `{"age": np.int32(-1)}`.
            Its dtype is the dtype of the key. In a list of objects, it is the value of an item. Pass
            `ps.RaggedTensor([], [0])` for a list of lists whose lengths differ in a later line only.

    Returns:
        A data set of dicts.

    Raises:
        InvalidTypeError: If `defaults` is not a dict of values, or, during the iteration, if a line has other keys, a
            null, or a value of another type.
        NotFoundError: If, during the iteration, a file is missing.
        DataLossError: If, during the iteration, a line is not a JSON object. The error names the file and the
            byte offset.
        InvalidArgumentError: If, during the iteration, an integer is out of range, or if the items of a list differ in
            shape.

    Example:
        >>> import pathlib, tempfile, penstock as ps
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "pets.jsonl"
        >>> _ = path.write_text('{"name": "Rex", "kg": 31.5}\n{"kg": 4, "name": "Tom"}\n{"name": "Ada"}\n')
        >>> for pet in ps.JsonLinesDataset(path, defaults={"kg": 0.0}):
        ...     print(pet)
        {'name': b'Rex', 'kg': np.float32(31.5)}
        {'name': b'Tom', 'kg': np.float32(4.0)}
        {'name': b'Ada', 'kg': np.float32(0.0)}
    """
    given = {} if defaults is None else defaults
    if not isinstance(given, Mapping):
        raise InvalidTypeError(f"defaults is a dict from keys to values, got defaults={defaults!r:.60}.")
    source = JsonLinesSource((), compression_type, buffer_size, defaults=_leaves(given, ()))
    return read_files(filenames, source, num_parallel_reads)


def _leaves(given: Mapping[str, Any], above: tuple[str, ...]) -> Defaults:
    found: Defaults = {}
    for name, value in given.items():
        path = (*above, name)
        if not isinstance(name, str):
            raise InvalidTypeError(f"The keys of JSON are text, got {name!r} in defaults.")
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
    """Create a data set of the rows that an SQL query returns.

    A number is converted to the type of its column if this type holds its value. For bool, it is True unless it is 0.
    An integer may become a byte string. Other conversions are errors. (tf.data instead returns 0 for NULL, the leading
    digits of a string, and truncated numbers.)

    Each iteration runs the query. A resumed iterator runs the query again and skips the rows that the consumer has
    already received, so it is exact only if ORDER BY has a unique key.

    Args:
        driver_name: `"sqlite"`.
        data_source_name: Path of the database file, or an SQLite URI. It is opened for reading only.
        query: The query.
        output_types: A tuple with a dtype for each column, or the dtype of the only column: integers, floats, bool or
            bytes.

    Returns:
        A data set of tuples of scalars.

    Raises:
        InvalidArgumentError: If `driver_name` is another string; during the iteration, if SQLite refuses the query, if
            the number of columns differs, or if a number is out of range.
        InvalidTypeError: If `query` is not a string, or if `output_types` has another dtype; during the iteration, if a
            value cannot be converted.
        NotFoundError: If, during the iteration, the database is missing.
        DataLossError: If, during the iteration, the database is damaged.

    Example:
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
    """
    if driver_name != "sqlite":
        message = f'driver_name is "sqlite", got driver_name={driver_name!r}.'
        raise InvalidArgumentError(message, hint="For other databases use from_generator, with the driver's cursor.")
    if not isinstance(query, str):
        raise InvalidTypeError(f"query is a text of SQL, got query={query!r:.60}.")
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
    r"""Create a data set of the rows of CSV files (RFC 4180), as tuples of scalars.

    Args:
        filenames: A path or URL, a sequence of them, or a data set of file names. One file is read after another.
        record_defaults: One item for each column to read: a dtype (float32, float64, int32, int64 or bytes) for a
            required column, or the value of an empty field. 0 means int64 (int32 in tf.data), 0.0 means float32.
        compression_type: Compression of the whole file: `"GZIP"`, `"ZLIB"` or `""`. Default: no compression.
        buffer_size: Number of bytes that are read at a time. Default: 256 KiB. Local uncompressed files are mapped into
            memory instead.
        header: If True, the first row of each file is skipped. Default: False.
        field_delim: Delimiter of fields: one ASCII character. Default: `","`.
        use_quote_delim: If True, a field in quotes may contain delimiters, line ends and doubled quotes. If False,
            quotes are part of the field. Default: True.
        na_value: String that means the same as an empty field.
        select_cols: Numbers of the columns to read, from 0 and ascending. Default: the first columns.
        exclude_cols: Numbers of the columns to skip. Pass either this or `select_cols`.

    Returns:
        A data set of tuples with one scalar for each column.

    Raises:
        InvalidArgumentError: If an argument is invalid. During the iteration: if a row has another number of fields, an
            empty field that is required, an invalid number or a misplaced quote. The error names the file and the byte
            offset. The next row follows.
        InvalidTypeError: If an item of `record_defaults` has another dtype.
        NotFoundError: If, during the iteration, a file is missing.

    Example:
        >>> import pathlib, tempfile, numpy as np, penstock as ps
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "pets.csv"
        >>> _ = path.write_text('name,kg\n"Rex, the dog",31.5\nTom,\n')
        >>> list(ps.experimental.CsvDataset(path, [bytes, np.float32(0)], header=True))
        [(b'Rex, the dog', np.float32(31.5)), (b'Tom', np.float32(0.0))]
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
    """Return the columns for the items of argument `name`: each is a dtype or a default."""
    if isinstance(defaults, (str, bytes)) or not isinstance(defaults, Sequence):
        raise InvalidTypeError(f"{name} is a list with an item for each column, got {defaults!r:.60}.", hint=_HINT)
    columns = tuple(_column(f"item {i} of {name}", default) for i, default in enumerate(defaults))
    if not columns:
        raise InvalidArgumentError(f"{name} needs an item for each column to read, got none.", hint=_HINT)
    return columns


def _column(what: str, default: Any) -> CsvColumn:
    if isinstance(default, (type, np.dtype)):
        dtype = as_dtype(default)
        if dtype in _DTYPES:
            return CsvColumn(dtype)
        raise InvalidTypeError(f"{_WANTED}; {what} is {dtype_name(dtype)}.", hint=_HINT)
    value = as_leaf(default)
    if isinstance(value, np.ndarray):
        if value.ndim > 1 or value.size > 1:
            raise InvalidArgumentError(f"A default is one value; {what} has shape {value.shape}.", hint=_HINT)
        dtype = bytes if value.dtype == object else value.dtype
        value = value[0] if value.size else None
    else:
        dtype = value.dtype if isinstance(value, np.generic) else type(value)
    if dtype not in _DTYPES:
        raise InvalidTypeError(f"{_WANTED}; {what} is {default!r:.60}.", hint=_HINT)
    return CsvColumn(dtype, value)


def text_of(name: str, value: Any) -> bytes:
    """Return a string argument as the bytes that represent it in a file."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    raise InvalidTypeError(f"{name} is a text, got {name}={value!r:.60}.", hint="Give it as it stands in the file.")


def delimiter_of(field_delim: Any) -> int:
    """Return the byte that separates fields."""
    delimiter = field_delim.encode() if isinstance(field_delim, str) else field_delim
    if not isinstance(delimiter, bytes) or len(delimiter) != 1 or delimiter in (b"\n", b"\r", b'"'):
        message = f"field_delim is one character of ASCII and no quote or line end, got field_delim={field_delim!r}."
        raise InvalidArgumentError(message, hint='For example "," or ";" or "\\t".')
    return delimiter[0]


def _numbers(name: str, columns: Sequence[int] | None) -> tuple[int, ...] | None:
    """Return column numbers as a strictly ascending tuple, or None. As in tf.data, an empty list means None."""
    if columns is None or len(columns) == 0:
        return None
    hint = "Columns are numbered from 0."
    numbers = tuple(check_int(name, column, least=0, hint=hint) for column in columns)
    if any(b <= a for a, b in pairwise(numbers)):
        message = f"{name} has to ascend, got {name}={list(numbers)}."
        raise InvalidArgumentError(message, hint="Give record_defaults in the same order.")
    return numbers
