"""ParquetDataset: the rows of Parquet files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.dataset.dataset import Dataset
from penstock.dataset.files import read_files
from penstock.sources.arrow_pieces import as_columns
from penstock.sources.parquet import ParquetSource


def ParquetDataset(
    filenames: Any,
    columns: Sequence[str] | None = None,
    num_parallel_reads: int | None = None,
    *,
    fill_null: Mapping[str, Any] | None = None,
) -> Dataset:
    """The rows of Parquet files, as dicts of their columns.

    `filenames` is a path or URL, a sequence of them, or a Dataset of names. Only `columns` are read, in that order, or
    all. Numbers keep their dtype, text and binaries become bytes, times datetime64; fixed-size lists are arrays of that
    shape, lists arrays of differing length, lists of lists RaggedTensors, structs dicts. A null stands for an error,
    unless `fill_null` says by what it is replaced: `{"label": -1, "meta.name": ""}`.

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
    return read_files(filenames, ParquetSource((), columns=as_columns(columns, fill_null)), num_parallel_reads)
