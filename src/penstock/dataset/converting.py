"""Constructors of `Dataset` for objects of other libraries: Arrow, pandas, polars, Hugging Face, torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.dataset.base import Base, of_sequence, of_source
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.sources.generator import GeneratorSource

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset


class Converting(Base):
    """Constructors for objects of other libraries."""

    @staticmethod
    def from_arrow(
        table: Any, columns: Sequence[str] | None = None, *, fill_null: Mapping[str, Any] | None = None
    ) -> Dataset:
        """Create a data set of the rows of an Arrow table.

        The memory of the table is shared. Columns are converted as by `ParquetDataset`: numbers keep their dtype,
        strings become byte strings, lists become arrays, and structs become dicts.

        Args:
            table: A pyarrow Table, RecordBatch or RecordBatchReader, a sequence of record batches, or an object with
                `__arrow_c_stream__`, such as a polars frame or a DuckDB result.
            columns: Names of the columns to read. Default: all columns.
            fill_null: Value that replaces nulls, by column: `{"label": -1, "meta.name": ""}`. A null in another column
                is an error.

        Returns:
            A data set of dicts with one value for each column. Its elements have an index.

        Raises:
            InvalidTypeError: If `table` is another object, or if an array cannot hold the values of a column.
            InvalidArgumentError: If there is no column of a given name, or, during the iteration, if a value is null.

        Example:
            >>> import pyarrow as pa, penstock as ps
            >>> ds = ps.Dataset.from_arrow(pa.table({"id": [1, 2], "text": ["one", "two"]}))
            >>> len(ds), ds[1]
            (2, {'id': np.int64(2), 'text': b'two'})
        """
        return _of_table(_as_table(table, "from_arrow"), columns, fill_null, "from_arrow")

    @staticmethod
    def from_pandas(
        frame: Any, columns: Sequence[str] | None = None, *, fill_null: Mapping[str, Any] | None = None
    ) -> Dataset:
        """Create a data set of the rows of a pandas DataFrame.

        Columns of numbers are not copied. NaN stays NaN. Strings become byte strings, categories their values, times
        datetime64, and cells with arrays or lists arrays. The index is dropped.

        Args:
            frame: The DataFrame.
            columns: Names of the columns to read. Default: all columns.
            fill_null: Value that replaces missing values (None, NA, NaT), by column. A missing value in another column
                is an error.

        Returns:
            A data set of dicts with one value for each column. Its elements have an index.

        Raises:
            InvalidTypeError: If `frame` is not a DataFrame, or if an array cannot hold the values of a column.
            InvalidArgumentError: If there is no column of a given name, or, during the iteration, if a value is
                missing.

        Example:
            >>> import pandas as pd, penstock as ps
            >>> ds = ps.Dataset.from_pandas(pd.DataFrame({"x": [0.5, 1.5], "name": ["a", "b"]}))
            >>> ds[1]
            {'x': np.float64(1.5), 'name': b'b'}
        """
        return _of_table(_table_of_pandas(frame, columns), columns, fill_null, "from_pandas")

    @staticmethod
    def from_polars(
        frame: Any, columns: Sequence[str] | None = None, *, fill_null: Mapping[str, Any] | None = None
    ) -> Dataset:
        """Create a data set of the rows of a polars DataFrame.

        Columns of numbers are not copied. Columns of strings are copied. Columns and nulls are converted as by
        `from_arrow`.

        Args:
            frame: The DataFrame. Collect a LazyFrame first: `from_polars(lazy.collect())`.
            columns: Names of the columns to read. Default: all columns.
            fill_null: Value that replaces nulls, by column. A null in another column is an error.

        Returns:
            A data set of dicts with one value for each column. Its elements have an index.

        Raises:
            InvalidTypeError: If `frame` is not a DataFrame, or if an array cannot hold the values of a column.
            InvalidArgumentError: If there is no column of a given name, or, during the iteration, if a value is null.

        Example:
            >>> import polars as pl, penstock as ps
            >>> ds = ps.Dataset.from_polars(pl.DataFrame({"x": [0.5, 1.5], "name": ["a", "b"]}))
            >>> ds[1]
            {'x': np.float64(1.5), 'name': b'b'}
        """
        if hasattr(frame, "collect") and not hasattr(frame, "to_arrow"):
            message = "from_polars takes a DataFrame, got a LazyFrame."
            raise InvalidTypeError(message, hint="Write from_polars(frame.collect()).")
        return _of_table(_as_table(frame, "from_polars"), columns, fill_null, "from_polars")

    @staticmethod
    def from_huggingface(
        dataset: Any,
        columns: Sequence[str] | None = None,
        *,
        fill_null: Mapping[str, Any] | None = None,
        decode: bool = True,
    ) -> Dataset:
        """Create a data set of the rows of a data set of the Hugging Face `datasets` library.

        penstock reads the Arrow memory or the mapped file of the data set, and respects `select`, `shuffle`, `filter`
        and splits. Columns are converted as by `from_arrow`, and by their features: `Image` is decoded to a uint8 array
        of shape (height, width, channels), `ClassLabel` becomes int64, and `Array2D` and similar features become arrays
        of their shape. `Audio` and lists of images stay file contents.

        Of a format (`with_format`), only the columns count. With a transform (`set_transform`), rows are read one by
        one in one thread. A streaming data set (`IterableDataset`) is read in its order and has no length.

        Args:
            dataset: The data set: one split, no DatasetDict.
            columns: Names of the columns to read. Default: all columns.
            fill_null: Value that replaces nulls, by column. A null in another column is an error.
            decode: If False, `Image` columns stay file contents. Default: True.

        Returns:
            A data set of dicts with one value for each column. Its elements have an index, unless it is a streaming
            data set.

        Raises:
            InvalidTypeError: If `dataset` is another object, or if an array cannot hold the values of a column.
            InvalidArgumentError: If there is no column of a given name, or, during the iteration, if a value is null or
                an image is damaged.

        Example:
            >>> import datasets, penstock as ps
            >>> ds = ps.Dataset.from_huggingface(datasets.Dataset.from_dict({"text": ["a", "b"], "label": [0, 1]}))
            >>> ds[1]
            {'text': b'b', 'label': np.int64(1)}
        """
        from penstock.dataset.huggingface import from_huggingface

        return from_huggingface(dataset, columns, fill_null, decode)

    @staticmethod
    def from_torch(dataset: Any) -> Dataset:
        """Create a data set of the elements of a torch Dataset or IterableDataset.

        Tensors become numpy arrays, without gradients. bfloat16, which numpy does not have, becomes float32. A
        map-style data set is read in one thread at a time, with `__getitems__` if it has it. Kernels run the transforms
        of torchvision that they recognise, with the same bits. `explain()` lists them. The pipeline does not seed
        random numbers that the torch data set uses.

        Args:
            dataset: The torch data set.

        Returns:
            A data set of its elements. They have an index if the torch data set is map-style.

        Raises:
            InvalidTypeError: If `dataset` has neither `__len__` and `__getitem__` nor `__iter__`.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.from_torch([10, 20, 30])  # any object with __len__ and __getitem__
            >>> [int(x) for x in ds]
            [10, 20, 30]
        """
        if hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__") and not isinstance(dataset, (Mapping, type)):
            return of_sequence(dataset, "from_torch")
        if isinstance(dataset, Iterable) and not isinstance(dataset, (Mapping, str, bytes)):
            return of_source(GeneratorSource(lambda: iter(dataset)))
        message = f"from_torch takes a torch Dataset or IterableDataset, got {type(dataset).__name__}."
        hint = "A map-style data set has __getitem__ and __len__, an iterable one __iter__."
        raise InvalidTypeError(message, hint=hint)


def _of_table(table: Any, columns: Any, fill_null: Any, name: str) -> Dataset:
    from penstock.sources.arrow import TableSource
    from penstock.sources.arrow_pieces import as_columns

    source = TableSource(table, as_columns(columns, fill_null), name)
    # an unknown column, or one of a type that arrays cannot hold, raises an error here, at the user's line
    _ = source.spec
    return of_source(source)


def _as_table(table: Any, name: str) -> Any:
    import pyarrow as pa

    if isinstance(table, pa.Table):
        return table
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if isinstance(table, (list, tuple)) and table and all(isinstance(batch, pa.RecordBatch) for batch in table):
        try:
            return pa.Table.from_batches(table)
        except pa.ArrowInvalid as error:
            raise InvalidTypeError(f"The record batches differ in their schemas: {error}") from error
    if hasattr(table, "__arrow_c_stream__"):
        return pa.table(table)
    message = f"{name} takes a table, got {type(table).__name__}."
    hint = "A pyarrow.Table, a RecordBatch, a list of these, or an object with __arrow_c_stream__."
    raise InvalidTypeError(message, hint=hint)


def _table_of_pandas(frame: Any, columns: Sequence[str] | None) -> Any:
    """Return the columns of a DataFrame as Arrow columns. pyarrow's own conversion would turn NaN into null."""
    import pyarrow as pa

    if not (hasattr(frame, "columns") and hasattr(frame, "dtypes") and hasattr(frame, "iloc")):
        message = f"from_pandas takes a DataFrame, got {type(frame).__name__}."
        raise InvalidTypeError(message, hint="Convert a Series with series.to_frame().")
    known = [str(column) for column in frame.columns]
    missing = [name for name in columns or () if name not in known]
    if missing:
        raise InvalidArgumentError(f"There is no column {missing[0]!r}; the columns are {', '.join(known)}.")
    names, arrays = [], []
    for place, name in enumerate(known):
        if columns is not None and name not in columns:
            continue
        series = frame.iloc[:, place]
        try:
            if getattr(series.dtype, "kind", "O") in "iufb" and not hasattr(series.dtype, "na_value"):
                array = pa.array(series.to_numpy(), from_pandas=False)
            else:
                array = pa.array(series, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError) as error:
            message = f"Column {name!r} cannot be converted: {error}"
            hint = "Each column needs one type: numbers, text, times, or lists of these."
            raise InvalidTypeError(message, hint=hint) from error
        names.append(name)
        arrays.append(array)
    return pa.table(arrays, names=names)
