"""experimental.make_csv_dataset and make_batched_features_dataset.

Both return batches in one call: of rows of CSV files, or of parsed Example records.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from penstock.block.spec import DType
from penstock.block.structure import flatten
from penstock.dataset.dataset import Dataset
from penstock.dataset.files import FileDatasets, TFRecordDataset, check_reads
from penstock.dataset.table_files import columns_of, delimiter_of, text_of
from penstock.dataset.transform import DEFAULT_CYCLE_LENGTH
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.io.batch import parse_example
from penstock.io.compression import as_compression
from penstock.io.csv_columns import plain_float, plain_int, rows_of
from penstock.io.csv_format import COMMA_HINT, CsvColumn, CsvFormat, with_comma
from penstock.io.csv_reader import CsvReader
from penstock.io.storage import glob
from penstock.io.window import MARK
from penstock.plan.node import AUTOTUNE, check_int
from penstock.sources.csv import CsvSource

# `make_csv_dataset` infers names and types of columns before it reads rows.

_LADDER: tuple[DType, ...] = (
    np.dtype(np.int32),
    np.dtype(np.int64),
    np.dtype(np.float32),
    np.dtype(np.float64),
    bytes,
)  # from the narrowest type to the one that holds any value


def names_in(source: CsvSource, encoding: str) -> list[str]:
    """Return the first row of the files. It must be the same in all files."""
    found: list[str] | None = None
    for name in source.files:
        layout = source.format
        marks = layout.delimiter, layout.quote
        with closing(CsvReader(name, *marks, compression_type=source.compression_type)) as reader:
            row = header_of(reader, layout, name)
        try:
            names = [field.decode(encoding) for field in row]
        except UnicodeDecodeError as error:
            message = f"The header row is not valid {encoding}: {error.reason} in {error.object!r:.60}."
            hint = "Pass the right encoding=, or other names with column_names=."
            raise InvalidArgumentError(message, hint=hint, file=name) from error
        if found is not None and names != found:
            message = f"The header rows of all files have to agree: {source.files[0]!r} has {found}, this one {names}."
            hint = "With column_names= all files are read under the same names."
            raise InvalidArgumentError(message, hint=hint, file=name)
        found = names
    return found or []


def header_of(reader: CsvReader, layout: CsvFormat, name: str) -> list[bytes]:
    """Return the first row of a file. Raise InvalidArgumentError if it cannot name columns."""
    chunk = reader.read(1)
    if chunk is None:
        message = "The file is empty, but its first row must name the columns."
        raise InvalidArgumentError(message, hint="Leave the file out, or pass column_names=.", file=name)
    (row,) = rows_of(chunk, layout)
    if row.status:
        raise layout.row_error(row.fields, row.status, name, 0, int(chunk.offsets[1]))
    hint = layout.delimiter_hint(row.fields)
    if hint:
        message = f"The header row names one column: {row.fields[0]!r:.60}."
        raise InvalidArgumentError(message, hint=f"{hint} Else pass column_names=.", file=name, offset=0)
    return row.fields


def lines_before_header(name: str, compression: str | None) -> int:
    """Return the number of lines before the header of a CSV file with commas, for Arrow's reader.

    Raise an InvalidArgumentError if the file is UTF-16 or has another delimiter.
    """
    with closing(CsvReader(name, ord(","), ord('"'), compression_type=compression)) as reader:
        names_delimiter = reader.tell() > len(MARK)
        header_of(reader, CsvFormat(()), name)
    return int(names_delimiter)


def inferred_columns(
    source: CsvSource,
    names: Sequence[str],
    select: Sequence[int] | None,
    rows: int | None,
    *,
    ignore_errors: bool,
) -> tuple[CsvColumn, ...]:
    """Return, for each selected column, the narrowest type for the first rows, with 0 or b"" as default."""
    chosen = range(len(names)) if select is None else select
    types: list[DType | None] = [None] * len(chosen)
    commas: dict[int, bytes] = {}
    for row in _rows(source, len(names), rows, ignore_errors=ignore_errors):
        for i, place in enumerate(chosen):
            field = row[place]
            if with_comma(field):
                commas[i], field = field, b"0.5"
            types[i] = widened(types[i], field, source.format.na_value)
    for i in commas:
        if types[i] is not bytes:
            message = f"Column {names[chosen[i]]!r} holds numbers with a comma, such as {commas[i]!r:.60}."
            hint = f"{COMMA_HINT} column_defaults= says which columns are bytes."
            raise InvalidArgumentError(message, hint=hint, file=source.files[0] if len(source.files) == 1 else None)
    return tuple(CsvColumn(bytes, b"") if t is None or t is bytes else CsvColumn(t, t.type(0)) for t in types)


def _rows(source: CsvSource, width: int, most: int | None, *, ignore_errors: bool) -> Iterator[tuple[bytes, ...]]:
    """Yield the first rows, with every field as bytes."""
    layout = replace(source.format, columns=(CsvColumn(bytes, b""),) * width, na_value=b"", select=None)
    _, structure = flatten(("",) * width)
    reader = replace(source, format=layout, structure=structure).open()
    given = 0
    try:
        while most is None or given < most:
            try:
                block = reader.read(4096 if most is None else most - given)
            except InvalidArgumentError:
                if not ignore_errors:
                    raise
                continue
            if block is None:
                return
            given += block.size
            yield from block.elements()
    finally:
        reader.close()


def widened(dtype: DType | None, field: bytes, na_value: bytes) -> DType | None:
    """Return the narrowest type that holds the values so far and this field.

    >>> widened(None, b"7", b""), widened(np.dtype(np.int32), b"0.5", b""), widened(np.dtype(np.int64), b"", b"")
    (dtype('int32'), dtype('float32'), dtype('int64'))
    """
    if field in (b"", na_value):
        return dtype
    least = 0 if dtype is None else _LADDER.index(dtype)
    return next(step for step in _LADDER[least:] if _holds(step, field))


def _holds(dtype: Any, field: bytes) -> bool:
    """Return True if the dtype holds the field, as tf.data decides.

    A number that is infinite in float32 needs float64. The words "inf" and "nan" are strings.
    """
    if dtype is bytes:
        return True
    if dtype.kind == "i":
        high = (1 << (8 * dtype.itemsize - 1)) - 1
        return plain_int(field, -high - 1, high) is not None
    number = plain_float(field, single=dtype == np.float32)
    return number is not None and number < np.inf


def make_csv_dataset(
    file_pattern: Any,
    batch_size: int,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[Any] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[Any] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    num_parallel_reads: int | None = 1,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: str | None = None,
    ignore_errors: bool = False,
    encoding: str = "utf-8",
) -> Dataset:
    r"""Create a data set of batches of the rows of CSV files.

    As in tf.data, the data set **repeats without end unless `num_epochs` is passed**, and is shuffled unless
    `shuffle=False`. Unlike in tf.data, the order depends on the seed. Without `num_epochs`, all batches are full.

    Args:
        file_pattern: A glob pattern, or a list of patterns.
        batch_size: Number of rows in a batch.
        column_names: Names of all columns. Default: the header rows.
        column_defaults: One item for each selected column, as `record_defaults` of `CsvDataset`. Default: inferred from
            the first rows, as the narrowest of int32, int64, float32, float64 and bytes, with 0 or b"" for empty
            fields.
        label_name: Name of the column of the labels.
        select_columns: Names or numbers of the columns to read. Default: all columns.
        field_delim: As in `CsvDataset`.
        use_quote_delim: As in `CsvDataset`.
        na_value: As in `CsvDataset`.
        header: If True, the first row of each file is a header. Default: True.
        num_epochs: Number of repetitions. Default: no end.
        shuffle: If True, rows are shuffled. Default: True.
        shuffle_buffer_size: Number of rows in the shuffle buffer. Default: 10000.
        shuffle_seed: Seed of the order.
        prefetch_buffer_size: Number of batches that are ready at the same time. Default: chosen by penstock.
        num_parallel_reads: Number of files that are read at the same time. Their rows alternate. Default: 1.
        sloppy: If True, the order of rows of different files may differ between runs. Default: False.
        num_rows_for_inference: Number of rows that types are inferred from. None means all rows. Default: 100.
        compression_type: As in `CsvDataset`.
        ignore_errors: If True, rows that cannot be read are dropped. Default: False.
        encoding: Encoding of the header. Fields stay byte strings. Default: UTF-8.

    Returns:
        A data set of dicts of columns, or, with `label_name`, of pairs of such a dict and the labels.

    Raises:
        NotFoundError: If no file matches.
        InvalidArgumentError: If headers differ, if a column does not exist, or if types cannot be inferred. Rows fail
            as in `CsvDataset`.

    Example:
        >>> import pathlib, tempfile, penstock as ps
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "pets.csv"
        >>> _ = path.write_text("name,kg\nRex,31.5\nTom,4\n")
        >>> ds = ps.experimental.make_csv_dataset(path, 2, label_name="kg", num_epochs=1, shuffle=False)
        >>> next(iter(ds))
        ({'name': array([b'Rex', b'Tom'], dtype=object)}, array([31.5,  4. ], dtype=float32))
    """
    files = _matching(file_pattern)
    as_compression(compression_type)
    layout = CsvFormat(
        (), delimiter_of(field_delim), CsvFormat.quote_of(use_quote_delim), text_of("na_value", na_value)
    )
    _, nothing = flatten(())
    source = CsvSource(files, compression_type, format=layout, structure=nothing, header=bool(header))
    if column_names is None and not header:
        message = "The names of the columns come from column_names= or from the files' first rows, got header=False."
        raise InvalidArgumentError(message, hint="Pass column_names=[...].")
    names = names_in(source, encoding) if column_names is None else list(column_names)
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        message = f"Every column has a name of its own, got {twice} more than once."
        raise InvalidArgumentError(message, hint="Pass column_names= with other names.")
    select = _selected(select_columns, names)
    chosen = names if select is None else [names[i] for i in select]
    if column_defaults is None:
        rows = num_rows_for_inference
        columns = inferred_columns(source, names, select, rows, ignore_errors=ignore_errors)
    else:
        columns = columns_of("column_defaults", column_defaults)
    if len(columns) != len(chosen):
        message = f"column_defaults has {len(columns)} items, and {len(chosen)} columns are read: {chosen}."
        raise InvalidArgumentError(message, hint="Give one item for each selected column, in the order of the file.")
    if label_name is not None and label_name not in chosen:
        message = f"label_name names one of the columns that are read, {chosen}, got label_name={label_name!r}."
        raise InvalidArgumentError(message)
    named = tuple(replace(column, name=name) for column, name in zip(columns, chosen, strict=True))
    source = _as_elements(source, named, select, label_name)
    ds = Dataset.from_tensor_slices(np.array([name.encode() for name in files], object))
    if shuffle:
        ds = ds.shuffle(len(files), shuffle_seed)
    ds = _in_turn(ds, source, num_parallel_reads, sloppy=sloppy, ignore_errors=ignore_errors)
    if shuffle:
        ds = ds.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        ds = ds.repeat(num_epochs)
    ds = ds.batch(batch_size, drop_remainder=num_epochs is None)
    return ds.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def _matching(file_pattern: Any) -> tuple[str, ...]:
    patterns = [file_pattern] if isinstance(file_pattern, (str, bytes, os.PathLike)) else list(file_pattern)
    if not patterns:
        raise InvalidArgumentError("file_pattern needs at least one path or pattern, got none.")
    return tuple(sorted({name for pattern in patterns for name in glob(os.fsdecode(pattern))}))


def _selected(columns: Sequence[Any] | None, names: list[str]) -> tuple[int, ...] | None:
    """Return the numbers of the selected columns in ascending order."""
    if columns is None:
        return None
    found = []
    for column in columns:
        if isinstance(column, str):
            if column not in names:
                raise InvalidArgumentError(f"select_columns names columns of the files, {names}, got {column!r}.")
            found.append(names.index(column))
        else:
            number = check_int("select_columns", column, least=0, hint="Columns have names, or numbers from 0.")
            if number >= len(names):
                message = f"select_columns has column {number}, and the files have {len(names)}: {names}."
                raise InvalidArgumentError(message, hint="Columns are numbered from 0.")
            found.append(number)
    if len(set(found)) < len(found) or not found:
        raise InvalidArgumentError(f"select_columns names columns, each of them once, got {list(columns)}.")
    return tuple(sorted(found))


def _as_elements(
    source: CsvSource, columns: tuple[CsvColumn, ...], select: tuple[int, ...] | None, label_name: str | None
) -> CsvSource:
    """Return the source with dicts of the columns as elements. The label comes last, next to the dict."""
    features: dict[Any, Any] = {column.name: i for i, column in enumerate(columns)}
    order, structure = flatten((features, features.pop(label_name)) if label_name is not None else features)
    layout = replace(source.format, columns=columns, select=select)
    return replace(source, files=(), format=layout, structure=structure, order=tuple(order))


def _in_turn(names: Dataset, source: CsvSource, parallel: Any, *, sloppy: bool, ignore_errors: bool) -> Dataset:
    count = check_reads(parallel) or 1
    function = CsvFiles(source) if ignore_errors else FileDatasets(source)
    if count == 1:
        return names.flat_map(function)
    cycle = DEFAULT_CYCLE_LENGTH if count == AUTOTUNE else count
    return names.interleave(function, cycle, num_parallel_calls=count, deterministic=False if sloppy else None)


class CsvFiles(FileDatasets):
    """A function from the name of a file to the data set of its readable rows."""

    def __call__(self, name: Any) -> Dataset:
        return super().__call__(name).ignore_errors()


def parse_example_dataset(
    features: Mapping[str, Any], num_parallel_calls: int | None = 1, deterministic: bool | None = None
) -> Callable[[Dataset], Dataset]:
    """Return a function for `Dataset.apply` that parses batches of serialized Examples, as `ps.io.parse_example` does.

    Args:
        features: Dict from names to feature specifications.
        num_parallel_calls: As in `Dataset.map`. Default: 1.
        deterministic: As in `Dataset.map`.

    Returns:
        A function from a data set of batches of byte strings to a data set of dicts of tensors.

    Raises:
        InvalidTypeError: If `features` is not a dict. Records fail as in `ps.io.parse_example`.

    Example:
        >>> import numpy as np, penstock as ps
        >>> record = ps.io.Example({"x": [1.5]}).SerializeToString()
        >>> features = {"x": ps.io.FixedLenFeature((), np.float32)}
        >>> ds = ps.Dataset.from_tensors(record).repeat(2).batch(2)
        >>> list(ds.apply(ps.experimental.parse_example_dataset(features)))
        [{'x': array([1.5, 1.5], dtype=float32)}]
    """
    if not isinstance(features, Mapping):
        message = f"features is a dict from names to feature specifications, got {type(features).__name__}."
        raise InvalidTypeError(message)
    specs = dict(features)

    def parse(records: Any) -> Any:
        return parse_example(records, specs)

    return lambda dataset: dataset.map(parse, num_parallel_calls, deterministic)


def make_batched_features_dataset(
    file_pattern: Any,
    batch_size: int,
    features: Mapping[str, Any],
    reader: Callable[..., Dataset] = TFRecordDataset,
    label_key: str | None = None,
    reader_args: Any = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    reader_num_threads: int | None = None,
    parser_num_threads: int | None = None,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Dataset:
    """Create a data set of batches of parsed Example records.

    As in tf.data, the data set **repeats without end unless `num_epochs` is passed**, and is shuffled unless
    `shuffle=False`. Unlike in tf.data, the order depends on the seed. Without `num_epochs`, all batches are full.

    Args:
        file_pattern: A glob pattern, or a list of patterns.
        batch_size: Number of records in a batch.
        features: Dict from names to feature specifications.
        reader: A function that is called as `reader(name, *reader_args)` and returns a data set of the records of a
            file. If it returns pairs, the second component is the record. Default: `ps.TFRecordDataset`.
        label_key: Name of the feature of the labels.
        reader_args: Further arguments of `reader`.
        num_epochs: Number of repetitions. Default: no end.
        shuffle: If True, files and records are shuffled. Default: True.
        shuffle_buffer_size: Number of records in the shuffle buffer. Default: 10000.
        shuffle_seed: Seed of the order.
        prefetch_buffer_size: Number of batches that are ready at the same time. Default: chosen by penstock.
        reader_num_threads: Number of files that are read at the same time. Their records alternate. Default: 1.
        parser_num_threads: Number of batches that are parsed at the same time. Default: 2.
        sloppy_ordering: If True, the order of records of different files may differ between runs. Default: False.
        drop_final_batch: If True, a smaller last batch is dropped. Default: False.

    Returns:
        A data set of dicts of tensors, or, with `label_key`, of pairs of such a dict and the labels.

    Raises:
        NotFoundError: If no file matches.
        InvalidArgumentError: If `label_key` is not a feature.

    Example:
        >>> import pathlib, tempfile, numpy as np, penstock as ps
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.tfrecord"
        >>> with ps.io.TFRecordWriter(path) as writer:
        ...     for i in range(3):
        ...         writer.write(ps.io.Example({"x": [float(i)], "y": [i]}).SerializeToString())
        >>> features = {"x": ps.io.FixedLenFeature((), np.float32), "y": ps.io.FixedLenFeature((), np.int64)}
        >>> ds = ps.experimental.make_batched_features_dataset(
        ...     path, 2, features, label_key="y", num_epochs=1, shuffle=False)
        >>> list(ds)
        [({'x': array([0., 1.], dtype=float32)}, array([0, 1])), ({'x': array([2.], dtype=float32)}, array([2]))]
    """
    if label_key is not None and label_key not in features:
        message = f"label_key names one of the features, {sorted(features)}, got label_key={label_key!r}."
        raise InvalidArgumentError(message)
    arguments = () if reader_args is None else tuple(reader_args)

    def opened(name: bytes) -> Dataset:
        return reader(name, *arguments)

    def record(*parts: Any) -> Any:
        return parts[-1]

    def labelled(row: dict[str, Any]) -> Any:
        return {name: value for name, value in row.items() if name != label_key}, row[str(label_key)]

    ds: Dataset = Dataset.list_files(file_pattern, shuffle=bool(shuffle), seed=shuffle_seed)
    readers = reader_num_threads or 1
    ds = ds.interleave(opened, readers, num_parallel_calls=readers, deterministic=not sloppy_ordering)
    ds = ds.map(record)
    if shuffle:
        ds = ds.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        ds = ds.repeat(num_epochs)
    ds = ds.batch(batch_size, drop_remainder=drop_final_batch or num_epochs is None)
    ds = ds.apply(parse_example_dataset(features, parser_num_threads or 2))
    if label_key is not None:
        ds = ds.map(labelled)
    return ds.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)
