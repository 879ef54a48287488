"""`StoredEntry` describes the committed elements of a cache entry, and the states from which an input can resume.

The module also removes entries: one, all, or the least recently used ones of a folder.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from penstock.hints import size_text
from penstock.io import storage
from penstock.store.chunk import Chunk
from penstock.store.journal import Commit, Journal
from penstock.store.lock import NAME as LEASE
from penstock.store.lock import Unlockable, last_used, take, take_lease, unused
from penstock.store.manifest import NAME, Manifest, file_in, read_manifest


@dataclass(frozen=True)
class Point:
    """A position at which the input can resume.

    Args:
        elements: Number of elements before this position.
        state: State of the input at this position. None: the start.
    """

    elements: int
    state: Any


class StoredEntry:
    """The state of a cache entry at the last call of `refresh`. The folder may be a URL.

    `manifest` is None until an iteration begins to write. The order of the elements is the order in which their chunks
    were committed.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.manifest: Manifest | None = None
        self._seen: Any = None  # stamp of the manifest
        self._journal = Journal(folder)

    def refresh(self) -> None:
        """Read the files again.

        Raises:
            DataLossError: If the manifest is damaged.
            FailedPreconditionError: If this version cannot read the manifest.
        """
        try:
            now = stamp(file_in(self.folder, NAME))
            if now is None or now != self._seen:
                self.manifest = read_manifest(self.folder)
                self._seen = now
        except (FileNotFoundError, NotADirectoryError):
            self.forget()
            return
        if not self.complete:
            self._journal.refresh()

    def forget(self) -> None:
        """Treat the entry as an entry that no iteration has begun to write."""
        self.manifest = self._seen = None
        self._journal = Journal(self.folder)

    def manifest_as_of(self, now: Any) -> Manifest | None:
        """Return the manifest if it has the stamp `now`, else None."""
        return self.manifest if now is not None and now == self._seen else None

    @property
    def complete(self) -> bool:
        return self.manifest is not None and self.manifest.complete

    @property
    def run(self) -> str | None:
        """Identifier that changes when the entry is written again from the start."""
        return None if self.manifest is None else self.manifest.run

    @property
    def chunks(self) -> list[Chunk]:
        if self.manifest is not None and self.manifest.complete:
            return list(self.manifest.chunks)
        return [chunk for commit in self._journal.commits for chunk in commit.chunks]

    @property
    def elements(self) -> int:
        """Number of committed elements."""
        if self.manifest is not None and self.manifest.complete:
            return self.manifest.elements
        return self._journal.elements

    @property
    def spec(self) -> Any:
        """The nest of specs of the committed elements, as JSON."""
        if self.complete or not self._journal.commits:
            return None if self.manifest is None else self.manifest.spec
        return self._journal.commits[-1].spec

    def element_spec(self) -> Any:
        """Return the nest of specs of the committed elements.

        Raises:
            InvalidTypeError: If a class of the spec is not loaded.
        """
        assert self.manifest is not None
        return replace(self.manifest, spec=self.spec).element_spec()

    def point(self, elements: int, made_by: str) -> Point:
        """Return the last position up to element `elements` from which an input with this fingerprint can resume."""
        if self.complete:
            self._journal.refresh()
        for commit in reversed(self._journal.commits):
            if commit.elements <= elements and commit.made_by == made_by:
                return Point(commit.elements, commit.state)
        return Point(0, None)

    def goes_on(self, made_by: str) -> bool:
        """Return True if an input with this fingerprint can resume after all committed elements."""
        return self.point(self.elements, made_by).elements == self.elements

    def commits(self) -> list[Commit]:
        """Return the commits of the journal. For a complete entry this reads the journal, which `refresh` does not."""
        if self.complete:
            self._journal.refresh()
        return list(self._journal.commits)

    @property
    def journal_first(self) -> int:
        """Number of the first commit in the last object of a journal at a URL."""
        return self._journal.first

    @property
    def journal_end(self) -> int:
        """Number of valid bytes in the journal."""
        return self._journal.end

    def chunk_at(self, element: int) -> tuple[int, int]:
        """Return the number of the chunk that contains an element, and the number of its first element."""
        begin = 0
        for number, chunk in enumerate(self.chunks):
            if element < begin + chunk.elements:
                return number, begin
            begin += chunk.elements
        message = f"{element} of {begin}"
        raise IndexError(message)

    def part(self, first: int) -> Manifest:
        """Return the chunks from number `first` on as a saved data set of one shard, which keeps their order."""
        assert self.manifest is not None
        chunks = tuple(replace(chunk, shard=0) for chunk in self.chunks[first:])
        return replace(self.manifest, chunks=chunks, spec=self.spec, complete=True)


def stamp(name: str) -> Any:
    """Return a value that changes when the file is replaced, or None if the storage reports no version."""
    if not storage.is_url(name):
        found = Path(name).stat()
        return found.st_mtime_ns, found.st_ino, found.st_size
    size, told = storage.version(name)
    return (size, told) if told else None


_LOG = logging.getLogger("penstock.store")
KEY = re.compile("[0-9a-f]{32}")  # name of the folder of an entry


class ListedEntry(NamedTuple):
    """An entry for listings.

    Args:
        folder: The folder of the entry.
        nbytes: Number of bytes of its files.
        in_use: True if a process uses the entry, so that it must stay.
    """

    folder: Path
    nbytes: int
    in_use: bool


def remove(folder: str) -> bool:
    """Remove an entry. Return False if another process writes to it. Raises OSError and PenstockError."""
    if storage.is_url(folder):
        return remove_remote(folder, NAME)
    lock = None
    try:
        with suppress(Unlockable):  # a file system without locks has no writers
            lock = take(folder)
            if lock is None:
                return False
        Path(folder, NAME).unlink(missing_ok=True)  # first, so that an interrupted removal leaves no entry
        shutil.rmtree(folder)
    finally:
        if lock is not None:
            lock.release()
    return True


def remove_remote(folder: str, first: str) -> bool:
    """Remove a folder at a URL under a lease, file `first` before all others.

    Readers ignore the other files without `first`.

    Returns:
        False if another process has the lease, or has taken it because the renewal came too late. The files that are
            then in
        the folder belong to that process.
    """
    lease = take_lease(folder)
    if lease is None:
        return False
    try:
        for name in (first, *(name for name in storage.names_in(folder) if name not in (first, LEASE))):
            if not lease.lasts:
                return False
            storage.remove(file_in(folder, name))
        if not lease.ours:
            return False
        # Some stores have folders. The lease is still valid here, so the next holder loses no files.
        storage.remove(folder)
    finally:
        lease.release()
    return True


def size_of(folder: Path) -> int:
    """Return the number of bytes of all files in a folder."""
    found = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError, PermissionError):  # another process has removed the file, or owns it
            found += path.lstat().st_size
    return found


def kept_below(folder: Path) -> Iterator[ListedEntry]:
    """Yield the entries in the folders of a folder."""
    for entry in folder.glob("*/*"):
        if KEY.fullmatch(entry.name) and entry.is_dir():
            lock = unused(str(entry))
            if lock is not None:
                lock.release()
            yield ListedEntry(entry, size_of(entry), lock is None)


def make_room(folder: Path, most: int, own: Path) -> None:
    """Remove the least recently used entries of a folder until all entries except `own` have at most `most` bytes."""
    others = [kept for kept in kept_below(folder) if kept.folder != own]
    total = sum(kept.nbytes for kept in others)
    for kept in sorted(others, key=lambda kept: last_used(str(kept.folder))):
        if total <= most:
            return
        lock = unused(str(kept.folder))
        if lock is None:
            continue
        try:
            removed = remove(str(kept.folder))
        except OSError as error:
            _LOG.warning("%s, a cache that is not in use, could not be removed: %s", kept.folder, error)
            continue
        finally:
            lock.release()
        if removed:
            total -= kept.nbytes
            _LOG.info("%s was removed, %s: it was not used for the longest time", kept.folder, size_text(kept.nbytes))
