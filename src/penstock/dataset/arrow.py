"""ArrowDataset: the rows of Arrow IPC files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.dataset.dataset import Dataset
from penstock.dataset.files import read_files
from penstock.sources.arrow_ipc import ArrowSource
from penstock.sources.arrow_pieces import as_columns


def ArrowDataset(
    filenames: Any,
    columns: Sequence[str] | None = None,
    num_parallel_reads: int | None = None,
    *,
    fill_null: Mapping[str, Any] | None = None,
) -> Dataset:
    """The rows of Arrow IPC files (Feather V2), in the file or the stream format, as dicts of their columns.

    Local files are mapped into memory: numbers, fixed-size lists and byte strings of an uncompressed file are not
    copied. Of a file at a URL in the stream format all is read when it is opened. For everything else see
    `ParquetDataset`: columns, types and nulls are treated alike.

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
    return read_files(filenames, ArrowSource((), columns=as_columns(columns, fill_null)), num_parallel_reads)
