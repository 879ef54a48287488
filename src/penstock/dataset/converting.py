"""Data sets of what other libraries hold: Arrow, pandas, polars, Hugging Face, torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.dataset.base import Base, of_source
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.sources.generator import GeneratorSource

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset


class Converting(Base):
    """The constructors of data sets that another library holds."""

    @staticmethod
    def from_arrow(
        table: Any, columns: Sequence[str] | None = None, *, fill_null: Mapping[str, Any] | None = None
    ) -> Dataset:
        """The rows of an Arrow table as dicts of their columns, read where they lie in memory.

        `table` is a pyarrow.Table or RecordBatch, a sequence of record batches, or any object with
        `__arrow_c_stream__` (a polars frame, a DuckDB result); a RecordBatchReader is read to its end. Columns become
        what `ParquetDataset` makes of them: numbers keep their dtype, text becomes bytes, lists arrays, structs dicts.
        A null is an error, unless `fill_null` says by what it is replaced: `{"label": -1, "meta.name": ""}`.

        The table's memory is shared. `len(ds)`, `ds[i]` and `shuffle(ps.ALL)` work.

        >>> import pyarrow as pa, penstock as ps
        >>> ds = ps.Dataset.from_arrow(pa.table({"id": [1, 2], "text": ["one", "two"]}))
        >>> len(ds), ds[1]
        (2, {'id': np.int64(2), 'text': b'two'})

        Raises InvalidTypeError for another object, or for a column whose type no tensor holds, InvalidArgumentError for
        a column that is not there; a null is an error in the place of its row.
        """
        return _of_table(_as_table(table, "from_arrow"), columns, fill_null, "from_arrow")

    @staticmethod
    def from_pandas(
        frame: Any, columns: Sequence[str] | None = None, *, fill_null: Mapping[str, Any] | None = None
    ) -> Dataset:
        """The rows of a pandas DataFrame as dicts of their columns; the index is left out.

        Columns of numbers are not copied, and NaN stays NaN. Text becomes bytes, categories the values they stand for,
        times datetime64, cells that hold arrays or lists arrays. A missing value elsewhere (None, NA, NaT) is an error,
        unless `fill_null` says by what it is replaced.

        `len(ds)`, `ds[i]` and `shuffle(ps.ALL)` work.

            import pandas as pd
            ds = ps.Dataset.from_pandas(pd.DataFrame({"x": [0.5, 1.5], "name": ["a", "b"]}))
            ds[1]    # {'x': np.float64(1.5), 'name': b'b'}

        Raises InvalidTypeError for another object, or for a column whose values no tensor holds, InvalidArgumentError
        for a column that is not there; a missing value is an error in the place of its row.
        """
        return _of_table(_table_of_pandas(frame, columns), columns, fill_null, "from_pandas")

    @staticmethod
    def from_polars(
        frame: Any, columns: Sequence[str] | None = None, *, fill_null: Mapping[str, Any] | None = None
    ) -> Dataset:
        """The rows of a polars DataFrame as dicts of their columns; memory is shared, columns of text are copied.

        Columns, nulls, `len(ds)`, `ds[i]` and errors are those of `from_arrow`. A LazyFrame is collected first, by the
        user: `from_polars(lazy.collect())`.

            import polars as pl
            ds = ps.Dataset.from_polars(pl.DataFrame({"x": [0.5, 1.5], "name": ["a", "b"]}))
            ds[1]    # {'x': np.float64(1.5), 'name': b'b'}
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
        """The rows of a data set of the Hugging Face `datasets` library, as dicts of their columns.

        Its Arrow memory, or mapped file, is read as it is; `select`, `shuffle`, `filter` and splits that were made of
        it are respected. Columns become what `from_arrow` makes of them, and by their features: `Image` is decoded
        when the element is made, to (height, width, channels) uint8, with the channels of the file unless the feature
        has a mode; `decode=False` gives the bytes of the file, as always for `Audio` and for lists of images;
        `ClassLabel` gives int64; `Array2D` and its kin arrays of their shape.

        `len(ds)`, `ds[i]` and `shuffle(ps.ALL)` work. A format (`with_format`) counts for its columns only, as elements
        are numpy's; with a transform (`set_transform`) rows are asked for one by one, in one thread. A streaming data
        set (`IterableDataset`) is iterated in its order, and has no length. Where it tells its features, its values are
        those of a table; what a `map` without `features=` has made is taken as it comes.

            import datasets
            ds = ps.Dataset.from_huggingface(datasets.load_dataset("imagefolder", data_dir="photos", split="train"))
            ds.shuffle(ps.ALL).map(lambda row: (ps.image.resize(row["image"], (224, 224)), row["label"])).batch(32)

        Raises InvalidTypeError for another object, a DatasetDict included, or for a column whose type no tensor holds,
        InvalidArgumentError for a column that is not there; a null or a damaged image is an error in the place of its
        row.
        """
        from penstock.dataset.huggingface import from_huggingface

        return from_huggingface(dataset, columns, fill_null, decode)

    @staticmethod
    def from_torch(dataset: Any) -> Dataset:
        """The elements of a torch Dataset: a map-style one by number, an IterableDataset in its order.

        Tensors become numpy arrays, without their gradients; bfloat16, which numpy does not have, becomes float32.
        `dataset[i]` is asked from one thread at a time, `__getitems__` where there is one.
        With a map-style data set `len(ds)`, `ds[i]` and `shuffle(ps.ALL)` work.

            from torchvision.datasets import FakeData
            ds = ps.Dataset.from_torch(FakeData(100, transform=to_tensor)).shuffle(ps.ALL).batch(32)

        Raises InvalidTypeError for an object that has neither elements by number nor can be iterated.
        """
        if hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__") and not isinstance(dataset, (Mapping, type)):
            from penstock.sources.sequence import SequenceSource

            return of_source(SequenceSource(dataset, "from_torch"))
        if isinstance(dataset, Iterable) and not isinstance(dataset, (Mapping, str, bytes)):
            return of_source(GeneratorSource(lambda: iter(dataset)))
        message = f"from_torch takes a torch Dataset or IterableDataset, got {type(dataset).__name__}."
        hint = "A map-style data set has __getitem__ and __len__, an iterable one __iter__."
        raise InvalidTypeError(message, hint=hint)


def _of_table(table: Any, columns: Any, fill_null: Any, name: str) -> Dataset:
    from penstock.sources.arrow import TableSource
    from penstock.sources.arrow_pieces import as_columns

    source = TableSource(table, as_columns(columns, fill_null), name)
    _ = source.spec  # a column that is missing, or of a type that no tensor holds, is met on the user's line
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
            message = f"The record batches differ in their schemas: {error}"
            raise InvalidTypeError(message) from error
    if hasattr(table, "__arrow_c_stream__"):
        return pa.table(table)
    message = f"{name} takes a table, got {type(table).__name__}."
    hint = "A pyarrow.Table, a RecordBatch, a list of these, or an object with __arrow_c_stream__."
    raise InvalidTypeError(message, hint=hint)


def _table_of_pandas(frame: Any, columns: Sequence[str] | None) -> Any:
    """The columns of a DataFrame as Arrow's. pyarrow's own conversion takes NaN for a null."""
    import pyarrow as pa

    if not (hasattr(frame, "columns") and hasattr(frame, "dtypes") and hasattr(frame, "iloc")):
        message = f"from_pandas takes a DataFrame, got {type(frame).__name__}."
        raise InvalidTypeError(message, hint="Of a Series: series.to_frame().")
    known = [str(column) for column in frame.columns]
    missing = [name for name in columns or () if name not in known]
    if missing:
        message = f"There is no column {missing[0]!r}; the columns are {', '.join(known)}."
        raise InvalidArgumentError(message)
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
            message = f"Column {name!r} cannot be taken over: {error}"
            hint = "Each column needs one type: numbers, text, times, or lists of these."
            raise InvalidTypeError(message, hint=hint) from error
        names.append(name)
        arrays.append(array)
    return pa.table(arrays, names=names)
