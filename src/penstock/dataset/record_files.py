"""Data sets of files of records: lines, token windows, byte strings of one length, ArrayRecord, LMDB, TFRecord."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.block.spec import as_dtype
from penstock.dataset.dataset import Dataset
from penstock.dataset.files import paths, read_files
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.io.storage import is_url
from penstock.plan.node import check_int
from penstock.plan.packing import check_choice
from penstock.sources.fixed import FixedLayout, FixedLengthRowsSource, FixedLengthSource
from penstock.sources.indexed_records import ArrayRecordSource, IndexedRecordsSource, reader_class
from penstock.sources.lmdb import LmdbSource
from penstock.sources.text import TextLineSource
from penstock.sources.tokens import DOCUMENTS, TokensSource


def IndexedTFRecordDataset(filenames: Any) -> Dataset[bytes]:
    """Create a data set of the records of local uncompressed TFRecord files, with an index.

    The records are those of `TFRecordDataset`. In addition, `len(ds)`, `ds[i]` and `shuffle(ps.ALL)` work: penstock
    reads the headers of all records when the index is first needed.

    Args:
        filenames: A path, a sequence of paths, or a data set of file names.

    Returns:
        A data set of byte strings. Its elements have an index.

    Raises:
        InvalidArgumentError: If a file name is a URL.
        NotFoundError: If a file is missing.
        DataLossError: If a record is damaged, or if a file is compressed. During an iteration, one element fails;
            `len(ds)`, `ds[i]` and `shuffle(ps.ALL)` raise the error if a file is missing or contains no record.

    Example:
        >>> import pathlib, tempfile, penstock as ps
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.tfrecord"
        >>> with ps.io.TFRecordWriter(path) as writer:
        ...     for text in (b"first", b"second", b"third"):
        ...         writer.write(text)
        >>> len(ps.IndexedTFRecordDataset(path))
        3
    """
    if not isinstance(filenames, Dataset):
        filenames = paths(filenames)
        remote = [name for name in filenames if is_url(name)]
        if remote:
            message = f"Only local files have an index, got {remote[0]!r}."
            raise InvalidArgumentError(message, hint="Use TFRecordDataset, or copy the file to a local disk first.")
    return read_files(filenames, IndexedRecordsSource(()))


def FixedLengthRecordDataset(
    filenames: Any,
    record_bytes: int,
    header_bytes: int | None = None,
    footer_bytes: int | None = None,
    buffer_size: int | None = None,
    compression_type: str | None = None,
    num_parallel_reads: int | None = None,
) -> Dataset[bytes]:
    """Create a data set of records of the same length, as byte strings.

    Write `np.frombuffer(record, dtype)` for `tf.io.decode_raw`.

    Args:
        filenames: A path or URL, a sequence of them, or a data set of file names.
        record_bytes: Number of bytes in a record, at least 1.
        header_bytes: Number of bytes before the first record of a file. Default: 0.
        footer_bytes: Number of bytes after the last record of a file. Default: 0.
        buffer_size: Number of bytes that are read at a time. Default: 256 KiB. Local uncompressed files are mapped into
            memory instead.
        compression_type: Compression of the whole file: `"GZIP"`, `"ZLIB"` or `""`. Default: no compression.
        num_parallel_reads: Number of files that are read at the same time. Their records alternate. `ps.AUTOTUNE` means
            16. By default, one file is read after another.

    Returns:
        A data set of byte strings. Its elements have an index if the files are local, uncompressed and read one after
        another.

    Raises:
        InvalidArgumentError: If an argument is out of range, or if the length of a file does not fit its records.
        NotFoundError: If a file is missing.
        DataLossError: If the length of a compressed file does not fit its records. During an iteration, one element
            fails; `len(ds)`, `ds[i]` and `shuffle(ps.ALL)` raise the error.

    Example:
        >>> import pathlib, tempfile, numpy as np, penstock as ps
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "pixels.bin"
        >>> _ = path.write_bytes(b"HEAD" + bytes(range(6)))
        >>> ds = ps.FixedLengthRecordDataset(path, record_bytes=3, header_bytes=4)
        >>> [np.frombuffer(record, np.uint8).tolist() for record in ds], len(ds)
        ([[0, 1, 2], [3, 4, 5]], 2)
    """
    hint = "It counts the bytes of one record, as the writer of the file laid them out."
    around = "It counts the bytes before the first record, or after the last."
    layout = FixedLayout(
        check_int("record_bytes", record_bytes, least=1, hint=hint),
        check_int("header_bytes", 0 if header_bytes is None else header_bytes, least=0, hint=around),
        check_int("footer_bytes", 0 if footer_bytes is None else footer_bytes, least=0, hint=around),
    )
    if num_parallel_reads is None and not compression_type and not isinstance(filenames, Dataset):
        filenames = paths(filenames)
        if not any(map(is_url, filenames)):
            return read_files(filenames, FixedLengthRowsSource((), None, buffer_size, layout=layout))
    source = FixedLengthSource((), compression_type, buffer_size, layout=layout)
    return read_files(filenames, source, num_parallel_reads)


def ArrayRecordDataset(filenames: Any, num_parallel_reads: int | None = None) -> Dataset:
    """Create a data set of the records of local ArrayRecord files, as byte strings.

    It needs the package array_record: `pip install 'penstock[array_record]'` on Linux or macOS. `ds[i]` and
    `shuffle(ps.ALL)` read the whole group of a record, so write files that you shuffle with `group_size:1`.

    Args:
        filenames: A path, a sequence of paths, or a data set of file names.
        num_parallel_reads: Number of files that are read at the same time. Their records alternate, and have no index.
            `ps.AUTOTUNE` means 16. By default, one file is read after another.

    Returns:
        A data set of byte strings. Its elements have an index.

    Raises:
        MissingDependencyError: If array_record is not installed.
        NotFoundError: If a file is missing.
        DataLossError: If a file is truncated, or if a group of records is damaged. During an iteration, one element
            fails.

    Example:
        >>> import penstock as ps
        >>> ds = ps.ArrayRecordDataset("train.array_record-00000-of-00008")  # doctest: +SKIP
        >>> len(ds), ds[12]  # doctest: +SKIP
    """
    reader_class()
    return read_files(filenames, ArrayRecordSource(()), num_parallel_reads)


def LmdbDataset(
    filenames: Any, num_parallel_reads: int | None = None, *, database: str | bytes | None = None
) -> Dataset:
    """Create a data set of the `(key, value)` pairs of local LMDB databases, as byte strings.

    Pairs are in the order of their keys. penstock reads the pages itself: no package is needed, processes and forks may
    share a data set, and a damaged file raises an error. LMDB has no checksums, so a changed byte of a value is not
    detected. Do not write to a database while it is read. Databases of LSUN, Caffe and mmcv contain pairs too; use
    `filter` to drop keys that are not examples, such as `__len__`.

    Args:
        filenames: A database, which is a file or a folder with a file data.mdb; a sequence of databases; or a data set
            of their names.
        num_parallel_reads: Number of databases that are read at the same time. Their pairs alternate, and have no
            index. `ps.AUTOTUNE` means 16. By default, one database is read after another.
        database: Name of a database within the file. Default: the database without a name.

    Returns:
        A data set of pairs. Its elements have an index.

    Raises:
        InvalidTypeError: If `database` is not a string.
        InvalidArgumentError: If a file name is a URL, or if there is no database of the given name.
        UnimplementedError: If a database has several values for a key.
        NotFoundError: If a file is missing.
        DataLossError: If a file is damaged. During an iteration, one element fails.

    Example:
        >>> import penstock as ps
        >>> ds = ps.LmdbDataset("lsun/bedroom_train_lmdb")  # doctest: +SKIP
        >>> images = ds.map(lambda key, value: ps.image.decode_image(value))  # doctest: +SKIP
    """
    if database is not None and not isinstance(database, str | bytes):
        message = f"database must be a name, got {database!r}."
        raise InvalidTypeError(message, hint="Leave it out for the database that has no name.")
    name = database.encode() if isinstance(database, str) else database
    return read_files(filenames, LmdbSource((), database=name), num_parallel_reads)


def TokenDataset(
    filenames: Any,
    dtype: Any,
    length: int,
    step: int | None = None,
    *,
    shift: bool = False,
    documents: str = "ignore",
    offset: int = 0,
) -> Dataset:
    """Read windows of `length` tokens from files of tokens.

    Three kinds of files are told apart by their names: `.npy` files with an array of one axis, Megatron's indexes
    (`.idx`, each with its `.bin` file in the same folder), and raw tokens under any other name, such as nanoGPT's
    `train.bin`. Local files are mapped into memory; remote files are loaded when they are opened. Windows can be asked
    for by number, so that `len()`, `ds[i]` and `shuffle(ps.ALL)` work.

    A window never crosses the end of a file. The tokens at the end that fill no window are left out, and their number
    is logged.

    Args:
        filenames: A path or URL, a sequence of them, or a data set of names.
        dtype: The dtype of the tokens, one of integers. None takes it from the file, which raw files do not allow.
        length: Number of tokens in a window.
        step: Number of tokens from the start of a window to the start of the next. Default: `length`. With 1 there is
            a window at each token, and `shuffle(ps.ALL)` gives random windows.
        shift: If True, elements are pairs `(x, y)`, where y is the window one token later. A pair reads `length + 1`
            tokens; the step stays the same.
        documents: Treatment of the bounds of documents, which only Megatron's indexes have. "ignore" reads across
            them. "segment_ids" gives dicts of "tokens", "segment_ids" and "positions", as `Dataset.pack` does. "stop"
            cuts each document into windows of its own, so that no window crosses a bound.
        offset: Number of bytes before the first token of a raw file.

    Returns:
        A data set of arrays of shape (length,), or of the pairs or dicts above.

    Raises:
        InvalidArgumentError: If an argument is out of range.
        InvalidTypeError: If `dtype` is no dtype of integers.

    Errors of a file come with the iteration, each in the place of one element: NotFoundError for a missing file,
    DataLossError for a file that ends within a token or an index that does not fit its `.bin` file, InvalidTypeError
    for another dtype or an array of several axes. `len()`, `ds[i]` and `shuffle(ps.ALL)` raise them too.

    Example:
        >>> import pathlib, tempfile, numpy as np, penstock as ps
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.bin"
        >>> np.arange(10, dtype=np.uint16).tofile(path)
        >>> ds = ps.TokenDataset(path, np.uint16, 4, shift=True)
        >>> len(ds), ds[1]
        (2, (array([4, 5, 6, 7], dtype=uint16), array([5, 6, 7, 8], dtype=uint16)))
    """
    check_choice("documents", documents, DOCUMENTS)
    known = None if dtype is None else as_dtype(dtype)
    if known is bytes or (isinstance(known, np.dtype) and known.kind not in "iu"):
        raise InvalidTypeError(f"dtype must be a dtype of integers, got {dtype!r}.", hint="nanoGPT writes np.uint16.")
    length = check_int("length", length, least=1, hint="It is the number of tokens in a window.")
    step = length if step is None else step
    source = TokensSource(
        (),
        dtype=None if dtype is None else np.dtype(dtype).str,
        length=length,
        step=check_int("step", step, least=1, hint="It is the number of tokens from one window to the next."),
        shift=bool(shift),
        documents=documents,
        offset=check_int("offset", offset, least=0, hint="It is the number of bytes before the first token."),
    )
    return read_files(filenames, source)


def TextLineDataset(
    filenames: Any,
    compression_type: str | None = None,
    buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
) -> Dataset[bytes]:
    r"""Create a data set of the lines of text files, as byte strings without their line ends.

    A line ends with `\n` or `\r\n`. Any other `\r` is part of the line; tf.data drops every `\r`.

    Args:
        filenames: A path or URL, a sequence of them, or a data set of file names.
        compression_type: Compression of the whole file: `"GZIP"`, `"ZLIB"` or `""`. Default: no compression.
        buffer_size: Number of bytes that are read at a time. Default: 256 KiB. Local uncompressed files are mapped into
            memory instead.
        num_parallel_reads: Number of files that are read at the same time. Their lines alternate. `ps.AUTOTUNE` means
            16. By default, one file is read after another.

    Returns:
        A data set of byte strings.

    Raises:
        InvalidArgumentError: If an argument is out of range.
        NotFoundError: If, during the iteration, a file is missing.
        DataLossError: If, during the iteration, compressed data are damaged, or a line of a compressed or remote file
            is longer than 256 MiB. The next element is the next line that can be read.

    Example:
        >>> import pathlib, tempfile, penstock as ps
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "poem.txt"
        >>> _ = path.write_text("roses\nviolets\n")
        >>> list(ps.TextLineDataset(path))
        [b'roses', b'violets']
    """
    return read_files(filenames, TextLineSource((), compression_type, buffer_size), num_parallel_reads)
