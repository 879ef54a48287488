"""TextLineDataset: the lines of files."""

from __future__ import annotations

from typing import Any

from penstock.dataset.dataset import Dataset
from penstock.dataset.files import read_files
from penstock.sources.text import TextLineSource


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
