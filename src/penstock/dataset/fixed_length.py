"""FixedLengthRecordDataset: the records of files in which all have one length."""

from __future__ import annotations

from typing import Any

from penstock.dataset.dataset import Dataset
from penstock.dataset.files import paths, read_files
from penstock.io.storage import is_url
from penstock.plan.node import check_int
from penstock.sources.fixed import FixedLayout, FixedLengthSource
from penstock.sources.fixed_rows import FixedLengthRowsSource


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
