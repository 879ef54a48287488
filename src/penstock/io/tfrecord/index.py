"""Random access to an uncompressed local TFRecord file: where its records are, and reading some of them."""

from __future__ import annotations

import numpy as np

from penstock.errors import InvalidArgumentError
from penstock.io import storage
from penstock.io.tfrecord.chunk import RecordChunk
from penstock.io.tfrecord.damage import damaged_record
from penstock.io.tfrecord.framing import EVERYTHING, FINE, HEADER, LENGTHS, NOTHING
from penstock.io.tfrecord.walk import gather, scan

_STEP = 1 << 16  # records per call of the kernel


def build_index(path: storage.Path) -> tuple[np.ndarray, np.ndarray]:
    """Offsets of all record headers and lengths of the records' data, both int64 (records,).

    Hops from header to header: their checksums are verified, the data is not looked at.

    >>> import pathlib, tempfile
    >>> from penstock.io.tfrecord.writer import TFRecordWriter
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "two.tfrecord"
    >>> with TFRecordWriter(path) as writer:
    ...     writer.write(b"one")
    ...     writer.write(b"three")
    >>> [part.tolist() for part in build_index(path)]
    [[0, 19], [3, 5]]

    Raises DataLossError at the first damaged header, NotFoundError, InvalidArgumentError for a URL.
    """
    name = storage.as_path(path)
    if storage.is_url(name):
        message = f"Only local files have an index, got {name!r}."
        raise InvalidArgumentError(message, hint="Read it in order, or copy it to a local disk first.")
    buffer = storage.bytes_of(name)
    at = 0
    starts, lengths = [], []
    while at < len(buffer):
        found, sizes = np.empty(_STEP, np.int64), np.empty(_STEP, np.int64)
        count, at, status = scan(buffer, at, np.iinfo(np.int64).max, LENGTHS, found, sizes)
        if status != FINE:
            raise damaged_record(status, name, at, buffer[at : at + 16], len(buffer) - at, at_start=at == 0)
        starts.append(found[:count])
        lengths.append(sizes[:count])
    if not starts:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return np.concatenate(starts) - HEADER, np.concatenate(lengths)


def read_at(
    path: storage.Path, offsets: np.ndarray, *, verify: bool = True, buffer: np.ndarray | None = None
) -> RecordChunk:
    """The records whose headers begin at `offsets`, in that order, without copying.

    `buffer` is the mapped file (`storage.bytes_of`), for callers that read from it many times.
    Raises DataLossError at the first damaged record, or at an offset where no record begins.
    """
    name = storage.as_path(path)
    mapped = storage.bytes_of(name) if buffer is None else buffer
    places = np.array(offsets, np.int64)  # a copy: the chunk keeps it
    starts, lengths = np.empty(len(places), np.int64), np.empty(len(places), np.int64)
    check = EVERYTHING if verify else NOTHING
    count, status = gather(mapped, places, check, starts, lengths)
    if status != FINE:
        at = int(places[count])
        rest = mapped[at:] if at >= 0 else mapped[:0]
        raise damaged_record(status, name, at, rest[:16], len(rest), at_start=False)
    return RecordChunk(mapped, starts, lengths, places)
