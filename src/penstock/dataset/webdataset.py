"""WebDataset: samples out of tar archives."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import product
from typing import Any

from penstock.dataset.dataset import Dataset
from penstock.dataset.files import paths, read_files
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.sources.webdataset import KEY, WebSource

_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?\Z")


def expand_braces(pattern: str) -> list[str]:
    """The names that a pattern with `{a,b}` and `{000..012}` stands for, in order; braces may be nested.

    >>> expand_braces("data-{08..10}.tar")
    ['data-08.tar', 'data-09.tar', 'data-10.tar']
    >>> expand_braces("{train,val}/{a,b}.tar")
    ['train/a.tar', 'train/b.tar', 'val/a.tar', 'val/b.tar']

    Braces that hold neither a comma nor a range stay as they are.
    """
    parts: list[list[str]] = []
    at = begin = 0
    while at < len(pattern):
        close = _closing(pattern, at) if pattern[at] == "{" else None
        choices = None if close is None else _choices(pattern[at + 1 : close])
        if close is None or choices is None:
            at += 1
            continue
        parts += [[pattern[begin:at]], choices]
        at = begin = close + 1
    return ["".join(chosen) for chosen in product(*parts, [pattern[begin:]])]


def _closing(pattern: str, at: int) -> int | None:
    depth = 0
    for place in range(at, len(pattern)):
        depth += {"{": 1, "}": -1}.get(pattern[place], 0)
        if not depth:
            return place
    return None


def _choices(inner: str) -> list[str] | None:
    """What stands between braces, or None where it is neither a list nor a range."""
    found = _RANGE.match(inner)
    if found is not None:
        return _numbers(*found.groups())
    items = _split(inner)
    return [name for item in items for name in expand_braces(item)] if len(items) > 1 else None


def _numbers(first: str, last: str, by: str | None) -> list[str]:
    padded = any(len(text.lstrip("-")) > 1 and text.lstrip("-")[0] == "0" for text in (first, last))
    width = max(len(first), len(last)) if padded else 0
    step = abs(int(by or 1)) or 1
    start, stop = int(first), int(last)
    numbers = range(start, stop + 1, step) if start <= stop else range(start, stop - 1, -step)
    return [f"{number:0{width}d}" if width else str(number) for number in numbers]


def _split(inner: str) -> list[str]:
    """The items of a list, whose commas inside further braces do not count."""
    items, depth = [""], 0
    for character in inner:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and not depth:
            items.append("")
        else:
            items[-1] += character
    return items


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
