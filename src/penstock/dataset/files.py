"""Names and order of files, shared by all data sets of files; TFRecordDataset."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.block.spec import TensorSpec
from penstock.dataset.dataset import Dataset
from penstock.dataset.transform import DEFAULT_CYCLE_LENGTH
from penstock.errors import InvalidTypeError, user_location
from penstock.io.compression import as_compression
from penstock.io.storage import as_path
from penstock.options import NOTHING_SET
from penstock.plan.inputs import Scan
from penstock.plan.node import AUTOTUNE, Node, check_int
from penstock.plan.ops import FlatMap, Interleave
from penstock.sources.arrays import strings_source
from penstock.sources.files import FilesSource
from penstock.sources.records import RecordsSource


def read_files(filenames: Any, source: FilesSource, num_parallel_reads: int | None = None) -> Dataset:
    """Return a data set of the elements of files. `source` defines the format and contains no file names yet.

    Without `num_parallel_reads`, files are read one after another. Otherwise, this number of files is open, and their
    elements alternate. AUTOTUNE means 16, so that the order is the same on every machine.
    """
    parallel = check_reads(num_parallel_reads)
    as_compression(source.compression_type)
    if source.buffer_size is not None:
        hint = "It counts bytes; leave it out for the default."
        check_int("buffer_size", source.buffer_size, least=0, hint=hint)
    if isinstance(filenames, Dataset):
        names, options = filenames._plan, filenames.options()
        _check_names(names.spec)
    else:
        files, options = paths(filenames), NOTHING_SET
        whole = replace(source, files=files)
        whole.check_call()
        if parallel is None:
            return Dataset._of(Scan(source=whole), options)
        names = Scan(source=strings_source(files, f"{len(files)} files"))
    return Dataset._of(_in_turn(names, FileDatasets(source), parallel), options)


def _check_names(spec: Any) -> None:
    """Raise InvalidTypeError if the spec shows that elements are not file names."""
    if spec is None or (isinstance(spec, TensorSpec) and spec.dtype is bytes and spec.shape in ((), None)):
        return
    message = f"A data set of file names has strings as its elements, got elements {spec}."
    raise InvalidTypeError(message, hint="Make one with Dataset.list_files, or map its elements to names.")


def check_reads(num_parallel_reads: Any) -> int | None:
    """Return the number of files that are open at the same time, or None to read them one after another."""
    if num_parallel_reads is None:
        return None
    hint = "Leave it out to read one file after the other; penstock.AUTOTUNE reads 16 at a time."
    return check_int("num_parallel_reads", num_parallel_reads, least=1, also=(AUTOTUNE,), hint=hint)


def _in_turn(names: Node, function: FileDatasets, parallel: int | None) -> Node:
    if parallel is None:
        return FlatMap(input=names, function=function)
    cycle = DEFAULT_CYCLE_LENGTH if parallel == AUTOTUNE else parallel
    return Interleave(input=names, function=function, cycle_length=cycle, num_parallel_calls=parallel)


@dataclass(frozen=True)
class FileDatasets:
    """A function from the name of a file to the data set of its elements."""

    source: FilesSource

    def __post_init__(self) -> None:
        object.__setattr__(self, "_where", user_location())

    @property
    def __name__(self) -> str:
        return self.source.kind

    def __call__(self, name: Any) -> Dataset:
        (file,) = paths(name)
        return Dataset._of(Scan(source=replace(self.source, files=(file,)), where=vars(self)["_where"]))


def paths(filenames: Any) -> tuple[str, ...]:
    """Return the names of files from a user's argument: one path or several, as str, bytes or os.PathLike."""
    if isinstance(filenames, (str, bytes, os.PathLike)):
        filenames = [filenames]
    if not isinstance(filenames, Sequence) and not hasattr(filenames, "__iter__"):
        message = f"filenames must be a path, a sequence of paths, or a Dataset of names, got {filenames!r:.60}."
        raise InvalidTypeError(message)
    return tuple(as_path(name) for name in filenames)


def TFRecordDataset(
    filenames: Any,
    compression_type: str | None = None,
    buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
) -> Dataset[bytes]:
    """Create a data set of the records of TFRecord files, as byte strings.

    Checksums are verified. A damaged record is one element that fails; the next element is the next record that is
    whole. After a damaged length, penstock searches for the next whole record, and the error names the skipped bytes.

    Args:
        filenames: A path or URL, a sequence of them, or a data set of file names.
        compression_type: Compression of the whole file: `"GZIP"`, `"ZLIB"` or `""`. Default: no compression.
        buffer_size: Number of bytes that are read at a time. Default: 256 KiB. Local uncompressed files are mapped into
            memory instead.
        num_parallel_reads: Number of files that are read at the same time. Their records alternate. `ps.AUTOTUNE` means
            16. By default, one file is read after another.

    Returns:
        A data set of byte strings.

    Raises:
        InvalidArgumentError: If an argument is out of range.
        NotFoundError: If, during the iteration, a file is missing.
        DataLossError: If, during the iteration, a record is damaged. The error names the file and the byte offset.

    Example:
        >>> import pathlib, tempfile, penstock as ps
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.tfrecord"
        >>> with ps.io.TFRecordWriter(path) as writer:
        ...     writer.write(b"first")
        ...     writer.write(b"second")
        >>> list(ps.TFRecordDataset(path))
        [b'first', b'second']
    """
    return read_files(filenames, RecordsSource((), compression_type, buffer_size), num_parallel_reads)
