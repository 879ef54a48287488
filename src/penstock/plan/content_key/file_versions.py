"""FileVersions: sizes and times of the files that a plan reads, each looked at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from penstock.block.column import BytesColumn
from penstock.io import storage
from penstock.plan.node import Node
from penstock.plan.scan import Scan
from penstock.redacted import redacted
from penstock.sources.arrays import ArraysSource

FileVersion = tuple[str, int, int | str]  # name; size; modification time in nanoseconds, or what a server calls it by

MOST_LISTED = 10_000  # files of an entry
_AT_ONCE = 16  # questions to servers


class FileVersions:
    """What was found, by name."""

    def __init__(self) -> None:
        self.found: dict[str, FileVersion] = {}

    def of(self, names: Sequence[str]) -> list[FileVersion]:
        """The versions of files. One that is not there, or whose server does not answer, has the size -1."""
        new = [name for name in dict.fromkeys(names) if name not in self.found]
        remote = [name for name in new if storage.is_url(name)]
        if len(remote) > 1:
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(_AT_ONCE, "penstock-etags") as asking:
                self._keep(remote, asking.map(_version, remote))
            new = [name for name in new if name not in self.found]
        self._keep(new, map(_version, new))
        return [self.found[name] for name in names]

    def _keep(self, names: Iterable[str], versions: Iterable[FileVersion]) -> None:
        self.found.update(zip(names, versions, strict=True))


def _version(name: str) -> FileVersion:
    try:
        return redacted(name), *storage.version(name)
    except Exception:  # whatever keeps it from being asked for will keep it from being read
        return redacted(name), -1, ""


def named_files(source: Any) -> tuple[str, ...]:
    """The files that a source reads, or whose names are in its elements: byte strings, the first of which is a file."""
    files = getattr(source, "files", ())
    if isinstance(files, tuple) and files and all(isinstance(name, str) for name in files):
        return files
    columns = source.columns if isinstance(source, ArraysSource) else ()
    return tuple(name for column in columns if isinstance(column, BytesColumn) for name in _names_in(column))


def _names_in(column: BytesColumn) -> list[str]:
    flat = BytesColumn(column.buffers, column.starts.reshape(-1), column.lengths.reshape(-1))
    if not len(flat) or not _is_file(flat.slice(0, 1).values()[0]):
        return []
    return [os.fsdecode(name) for name in flat.values()]


def _is_file(name: bytes) -> bool:
    text = os.fsdecode(name)
    return storage.is_url(text) or ("\0" not in text and len(text) < 4096 and Path(text).is_file())


def files_of(plan: Node) -> tuple[FileVersion, ...]:
    """The files that a plan reads, or whose names are in its elements, as they are now; of very many none."""
    sources = (node.source for node in plan.walk() if isinstance(node, Scan))
    names = [name for source in sources for name in named_files(source)]
    versions = FileVersions()
    if len(names) <= MOST_LISTED:
        versions.of(names)
    return tuple(versions.found.values())


def mapped_file(array: np.ndarray) -> np.memmap[Any, Any] | None:
    """The mapped file that an array is part of: its size and time stand for the content, which may be large."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap) and base.filename is not None:
            return base
        base = base.base
    return None
