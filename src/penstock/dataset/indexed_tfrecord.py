"""IndexedTFRecordDataset: the records of files, by number."""

from __future__ import annotations

from typing import Any

from penstock.dataset.dataset import Dataset
from penstock.dataset.files import paths, read_files
from penstock.errors import InvalidArgumentError
from penstock.io.storage import is_url
from penstock.sources.indexed_records import IndexedRecordsSource


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
