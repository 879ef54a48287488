"""TFRecordDataset: the records of files."""

from __future__ import annotations

from typing import Any

from penstock.dataset.dataset import Dataset
from penstock.dataset.files import read_files
from penstock.sources.records import RecordsSource


def TFRecordDataset(
    filenames: Any,
    compression_type: str | None = None,
    buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
) -> Dataset[bytes]:
    """The records of TFRecord files, as byte strings, with their checksums verified.

    `filenames` is a path or URL, a sequence of them, or a Dataset of names. `compression_type` is "GZIP", "ZLIB" or ""
    for the whole file; `buffer_size` the bytes read at a time (256 KiB; local uncompressed files are mapped instead).
    Files are read one after the other, or with `num_parallel_reads` interleaved record by record: that many at a time,
    AUTOTUNE meaning a fixed 16, so that the order is the same on every machine.

    >>> import pathlib, tempfile, penstock as ps
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.tfrecord"
    >>> with ps.io.TFRecordWriter(path) as writer:
    ...     writer.write(b"first")
    ...     writer.write(b"second")
    >>> list(ps.TFRecordDataset(path))
    [b'first', b'second']

    Raises NotFoundError for a missing file and DataLossError, with file and byte offset, for a damaged record; both
    when the pass comes there, in the place of one element. Behind damaged data comes the next record, behind a damaged
    length the next place where a whole record with right checksums begins; the error names the bytes passed over.
    """
    return read_files(filenames, RecordsSource((), compression_type, buffer_size), num_parallel_reads)
