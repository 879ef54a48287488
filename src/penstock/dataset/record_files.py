"""Data sets of files of records: lines, windows of tokens, byte strings of one length, ArrayRecord, LMDB, TFRecord."""

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
    """The records of uncompressed local TFRecord files, as byte strings, which can be asked for by number.

    The same records as those of `TFRecordDataset`, checksums verified. In addition `len()` is known, and random access
    and global shuffles work: an index is made, when it is first needed, by hopping from header to header of each file.

    >>> import pathlib, tempfile, penstock as ps
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.tfrecord"
    >>> with ps.io.TFRecordWriter(path) as writer:
    ...     for text in (b"first", b"second", b"third"):
    ...         writer.write(text)
    >>> len(ps.IndexedTFRecordDataset(path))
    3

    Raises InvalidArgumentError for a URL. NotFoundError for a missing file and DataLossError for a damaged record come
    with the pass, in the place of one element; compressed files count as damaged. Where a file is missing, or holds no
    record at all, the cardinality is unknown, and `len()`, `ds[i]` and `shuffle(ps.ALL)` raise what is wrong with it.
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
    """Byte strings of `record_bytes` each, from between the header and the footer of every file.

    `filenames` is a path or URL, a sequence of them, or a Dataset of names; `compression_type` is "GZIP", "ZLIB" or "";
    `buffer_size` the bytes read at a time (256 KiB; local uncompressed files are mapped instead). Files are read one
    after the other, or with `num_parallel_reads` record by record in turn: that many at a time, AUTOTUNE meaning a
    fixed 16. The records of local uncompressed files that are read one after the other can also be read by number, and
    their cardinality is known.

    >>> import pathlib, tempfile, numpy as np, penstock as ps
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pixels.bin"
    >>> _ = path.write_bytes(b"HEAD" + bytes(range(6)))
    >>> ds = ps.FixedLengthRecordDataset(path, record_bytes=3, header_bytes=4)
    >>> [np.frombuffer(record, np.uint8).tolist() for record in ds], len(ds)
    ([[0, 1, 2], [3, 4, 5]], 2)

    A file of another length is one element that failed: InvalidArgumentError before its records are read or, as only
    reading can tell, DataLossError behind the whole records of a compressed one. Raises NotFoundError for a missing
    file. Over local files of which one is missing or of another length the cardinality is unknown, and `len()`, `ds[i]`
    and `shuffle(ps.ALL)` raise what is wrong with it. `tf.io.decode_raw` is `np.frombuffer(record, dtype)`.
    """
    hint = "It counts the bytes of one record, as the writer of the file laid them out."
    around = "It counts the bytes in front of the first record, or behind the last."
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
    """The records of local ArrayRecord files, as byte strings, which can be asked for by number.

    It needs the package array_record (`pip install 'penstock[array_record]'`; Linux and macOS). `len()` reads the ends
    of the files only; `ds[i]` and `shuffle(ps.ALL)` read the group of records that one is in, so files that are to be
    shuffled are best written with `group_size:1`. With `num_parallel_reads` the files are interleaved record by record,
    that many at a time, AUTOTUNE meaning a fixed 16, and records have no numbers.

        ds = ps.ArrayRecordDataset("train.array_record-00000-of-00008")
        len(ds), ds[12]

    What is wrong with a file comes with the pass, each in the place of one element: NotFoundError for a missing file,
    DataLossError for one that is cut short and for records whose group is damaged. Where a file cannot be counted,
    `len()`, `ds[i]` and `shuffle(ps.ALL)` raise what is wrong with it. MissingDependencyError where the package is not
    installed.
    """
    reader_class()
    return read_files(filenames, ArrayRecordSource(()), num_parallel_reads)


def LmdbDataset(
    filenames: Any, num_parallel_reads: int | None = None, *, database: str | bytes | None = None
) -> Dataset:
    """The `(key, value)` pairs of local LMDB databases, as byte strings, which can be asked for by number.

    A database is a folder with data.mdb in it, or such a file; `database` names one of several in it. Pairs come in the
    order of their keys. `len()`, `ds[i]` and `shuffle(ps.ALL)` work. What frameworks keep in LMDB is pairs too:
    of LSUN the value is the content of a picture, of Caffe and mmcv keys are "000001" and so on; take keys that are no
    examples, such as `__len__`, out with `filter`.

        ds = ps.LmdbDataset("lsun/bedroom_train_lmdb")
        pictures = ds.map(lambda key, value: ps.image.decode_image(value))

    No package is needed: pages are read, and not mapped into memory, so that processes and forks may share a data set,
    and a file that is damaged or cut short is an error and not the end of the process. What is read should not be
    written at the same time. With `num_parallel_reads` databases are interleaved pair by pair, that many at a time,
    AUTOTUNE meaning a fixed 16, and pairs have no numbers.

    What is wrong with a file comes with the pass: NotFoundError for a missing one, DataLossError for one whose tree of
    pages is damaged, each in the place of one element; DataLossError for a pair that is damaged. LMDB keeps no
    checksums, so a changed byte of a value is not found. UnimplementedError for a database with several values for a
    key; InvalidArgumentError for a `database` that is not there.
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
        message = f"dtype must be a dtype of integers, got {dtype!r}."
        raise InvalidTypeError(message, hint="nanoGPT writes np.uint16.")
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
    r"""The lines of text files, as byte strings without their ends.

    A line ends with `\n` or `\r\n`; the last one of a file needs no end. Any other `\r` stays where it is; tf.data
    drops every one. `filenames` is a path or URL, a sequence of them, or a Dataset of names; `compression_type` is
    "GZIP", "ZLIB" or ""; `buffer_size` the bytes read at a time (256 KiB; local uncompressed files are mapped instead).
    Files are read one after the other, or with `num_parallel_reads` line by line in turn: that many at a time, AUTOTUNE
    meaning a fixed 16, so that the order is the same on every machine.

    >>> import pathlib, tempfile, penstock as ps
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "poem.txt"
    >>> _ = path.write_text("roses\nviolets\n")
    >>> list(ps.TextLineDataset(path))
    [b'roses', b'violets']

    Raises NotFoundError for a missing file and DataLossError for damaged compression, and for a line of more than
    256 MiB in a file that is compressed or behind a URL, each in the place of one element; what cannot be read of a
    file is passed over, and the next file follows.
    """
    return read_files(filenames, TextLineSource((), compression_type, buffer_size), num_parallel_reads)
