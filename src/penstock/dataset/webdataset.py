"""WebDataset: samples out of tar archives."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from penstock.dataset.dataset import Dataset
from penstock.dataset.files import paths, read_files
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.io.braces import expand_braces
from penstock.sources.webdataset import KEY, WebSource


def WebDataset(
    shards: Any,
    suffixes: Sequence[str] | None = None,
    num_parallel_reads: int | None = None,
) -> Dataset:
    """The samples of tar archives in the layout of the webdataset library: files that follow each other with one key.

    The key is a file's path up to the first dot behind its last slash, the suffix what comes after that dot, in lower
    case. An element is a dict of byte strings: "__key__", and the content of each file under its suffix; `map` decodes
    them. All samples have the same suffixes; with `suffixes` only those are read, and others may come and go. Files
    without a suffix, hidden ones, and what is no regular file, belong to no sample.

    `shards` is a path or URL, with braces as shells expand them (`data-{0000..0009}.tar`), a sequence of those, or a
    Dataset of names. Archives compressed with gzip are recognised. Uncompressed local ones are mapped, and the contents
    not copied. With `num_parallel_reads` shards are interleaved sample by sample, that many at a time, AUTOTUNE meaning
    a fixed 16.

    >>> import io, pathlib, tarfile, tempfile, penstock as ps
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with tarfile.open(folder / "data-0.tar", "w") as archive:
    ...     for name, content in [("a/1.txt", b"one"), ("a/1.cls", b"0"), ("a/2.txt", b"two"), ("a/2.cls", b"1")]:
    ...         member = tarfile.TarInfo(name)
    ...         member.size = len(content)
    ...         archive.addfile(member, io.BytesIO(content))
    >>> for sample in ps.WebDataset(f"{folder}/data-{{0..0}}.tar"):
    ...     print(sample)
    {'__key__': b'a/1', 'txt': b'one', 'cls': b'0'}
    {'__key__': b'a/2', 'txt': b'two', 'cls': b'1'}

    Errors come with the pass, each in the place of one element: NotFoundError for a missing shard, DataLossError for a
    damaged archive (the next shard follows), InvalidTypeError for a sample with other suffixes, InvalidArgumentError
    for one that has a suffix twice.
    """
    source = WebSource((), suffixes=_checked(suffixes))
    if not isinstance(shards, Dataset):
        shards = [name for pattern in paths(shards) for name in expand_braces(os.fspath(pattern))]
    return read_files(shards, source, num_parallel_reads)


def _checked(suffixes: Any) -> tuple[str, ...] | None:
    if suffixes is None:
        return None
    if isinstance(suffixes, (str, bytes)) or not all(isinstance(name, str) for name in suffixes):
        message = f"suffixes is a sequence of names, got {suffixes!r:.60}."
        raise InvalidTypeError(message, hint='For example suffixes=("jpg", "cls").')
    names = tuple(name.lower().removeprefix(".") for name in suffixes)
    if not names or len(set(names)) < len(names) or KEY in names:
        message = f"suffixes names each suffix once, and at least one, got {list(suffixes)!r:.60}."
        raise InvalidArgumentError(message, hint="Leave it out to read what the first sample has.")
    return names
