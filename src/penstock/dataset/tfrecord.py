"""TFRecordDataset: the records of files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from penstock.dataset.dataset import Dataset
from penstock.dataset.transform import DEFAULT_CYCLE_LENGTH
from penstock.errors import InvalidTypeError, user_location
from penstock.io.tfrecord.options import as_compression
from penstock.options import Options
from penstock.plan.node import AUTOTUNE, check_parallel
from penstock.plan.ops import FlatMap, Interleave
from penstock.plan.scan import Scan
from penstock.sources.arrays import strings_source
from penstock.sources.records import RecordsSource


def TFRecordDataset(
    filenames: Any,
    compression_type: str | None = None,
    buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
) -> Dataset:
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
    when the pass comes there, behind the records before it.
    """
    check_parallel("num_parallel_reads", num_parallel_reads)
    as_compression(compression_type)
    where = user_location()

    def records(name: bytes) -> Dataset:
        source = RecordsSource((name.decode(),), compression_type, buffer_size)
        return Dataset._of(Scan(source=source, where=where), Options())

    if isinstance(filenames, Dataset):
        names, options = filenames._plan, filenames.options()
    else:
        files = _paths(filenames)
        options = Options()
        if num_parallel_reads is None:
            return Dataset._of(Scan(source=RecordsSource(files, compression_type, buffer_size)), options)
        names = Scan(source=strings_source(files, f"{len(files)} files"))
    if num_parallel_reads is None:
        return Dataset._of(FlatMap(input=names, function=records), options)
    plan = Interleave(
        input=names,
        function=records,
        cycle_length=DEFAULT_CYCLE_LENGTH if num_parallel_reads == AUTOTUNE else num_parallel_reads,
        num_parallel_calls=num_parallel_reads,
    )
    return Dataset._of(plan, options)


def _paths(filenames: Any) -> tuple[str, ...]:
    if isinstance(filenames, (str, bytes, os.PathLike)):
        filenames = [filenames]
    if not isinstance(filenames, Sequence) and not hasattr(filenames, "__iter__"):
        message = f"filenames must be a path, a sequence of paths, or a Dataset of names, got {filenames!r:.60}."
        raise InvalidTypeError(message)
    return tuple(os.fsdecode(name) for name in filenames)
