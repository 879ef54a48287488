"""Entry: what a folder that is filled by passes holds so far, and how to go on behind it.

With what removes entries: one, all, or those of a folder that were not wanted for the longest time.
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

from penstock.cache.entry.lock import NAME as LEASE
from penstock.cache.entry.lock import Unlockable, last_used, take, take_lease, unused
from penstock.hints import size_text
from penstock.io import storage
from penstock.io.saved.chunk import Chunk
from penstock.io.saved.journal import Commit, Journal
from penstock.io.saved.manifest import NAME, Manifest, file_in, read_manifest


@dataclass(frozen=True)
class Point:
    """Where the input can go on: its state in front of element number `elements`, None for the start."""

    elements: int
    state: Any


class Entry:
    """As it was when `refresh` was called last, in a folder that may be a URL of one.

    `manifest` is None before a pass began to write.

    Its elements have an order: that of the chunks, in the order in which they were committed.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.manifest: Manifest | None = None
        self._seen: Any = None  # which manifest it was
        self._journal = Journal(folder)

    def refresh(self) -> None:
        """Look at the files. Raises DataLossError and FailedPreconditionError for a manifest that cannot be read."""
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
        """Take it for one that no pass has begun to write."""
        self.manifest = self._seen = None
        self._journal = Journal(self.folder)

    def manifest_as_of(self, now: Any) -> Manifest | None:
        """The manifest, if it is the one that has this `stamp`."""
        return self.manifest if now is not None and now == self._seen else None

    @property
    def complete(self) -> bool:
        return self.manifest is not None and self.manifest.complete

    @property
    def run(self) -> str | None:
        """What tells it from one that was written anew."""
        return None if self.manifest is None else self.manifest.run

    @property
    def chunks(self) -> list[Chunk]:
        if self.manifest is not None and self.manifest.complete:
            return list(self.manifest.chunks)
        return [chunk for commit in self._journal.commits for chunk in commit.chunks]

    @property
    def elements(self) -> int:
        """How many are committed."""
        if self.manifest is not None and self.manifest.complete:
            return self.manifest.elements
        return self._journal.elements

    @property
    def spec(self) -> Any:
        """The nest of specs of what is committed, as JSON."""
        if self.complete or not self._journal.commits:
            return None if self.manifest is None else self.manifest.spec
        return self._journal.commits[-1].spec

    def element_spec(self) -> Any:
        """The nest of specs of what is committed. Raises InvalidTypeError for a class that is not loaded."""
        assert self.manifest is not None
        return replace(self.manifest, spec=self.spec).element_spec()

    def point(self, elements: int, made_by: str) -> Point:
        """The last place at or in front of so many elements from which an input that is `made_by` the same goes on."""
        if self.complete:
            self._journal.refresh()
        for commit in reversed(self._journal.commits):
            if commit.elements <= elements and commit.made_by == made_by:
                return Point(commit.elements, commit.state)
        return Point(0, None)

    def goes_on(self, made_by: str) -> bool:
        """Whether an input that is `made_by` this goes on behind all that is committed, or from the start."""
        return self.point(self.elements, made_by).elements == self.elements

    def commits(self) -> list[Commit]:
        """What the journal said at the last look; of a complete entry, which no look reads the journal of, says now."""
        if self.complete:
            self._journal.refresh()
        return list(self._journal.commits)

    @property
    def journal_first(self) -> int:
        """The number of the commit that the last object of a journal behind a URL begins with."""
        return self._journal.first

    @property
    def journal_end(self) -> int:
        """The byte of the journal behind which nothing holds."""
        return self._journal.end

    def chunk_at(self, element: int) -> tuple[int, int]:
        """(number of the chunk, number of its first element) that an element is in."""
        begin = 0
        for number, chunk in enumerate(self.chunks):
            if element < begin + chunk.elements:
                return number, begin
            begin += chunk.elements
        message = f"{element} of {begin}"
        raise IndexError(message)

    def part(self, first: int) -> Manifest:
        """The chunks from number `first` on as a saved data set of one shard, so that they come in their order."""
        assert self.manifest is not None
        chunks = tuple(replace(chunk, shard=0) for chunk in self.chunks[first:])
        return replace(self.manifest, chunks=chunks, spec=self.spec, complete=True)


def stamp(name: str) -> Any:
    """What changes when a file is replaced; None where that cannot be told."""
    if not storage.is_url(name):
        found = Path(name).stat()
        return found.st_mtime_ns, found.st_ino, found.st_size
    size, told = storage.version(name)
    return (size, told) if told else None


_LOG = logging.getLogger("penstock.cache")
KEY = re.compile("[0-9a-f]{32}")  # what the folder of an entry is called


class Kept(NamedTuple):
    """An entry: its folder, the bytes of its files, and whether a process wants it to stay."""

    folder: Path
    nbytes: int
    in_use: bool


def remove(folder: str) -> bool:
    """Remove an entry; False for one that somebody writes to, who would not notice. Raises OSError, PenstockError."""
    if storage.is_url(folder):
        return remove_remote(folder, NAME)
    lock = None
    try:
        with suppress(Unlockable):  # then nobody writes
            lock = take(folder)
            if lock is None:
                return False
        Path(folder, NAME).unlink(missing_ok=True)  # first: without it there is no entry, however this ends
        shutil.rmtree(folder)
    finally:
        if lock is not None:
            lock.release()
    return True


def remove_remote(folder: str, first: str) -> bool:
    """Remove a folder at a URL, of its files that one first without which nobody looks at the others.

    Done under a lease. False where somebody else has one, or has taken this one, because it could not be renewed in
    time: what is there then is theirs.
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
        storage.remove(folder)  # where there are folders; while the lease is held: who takes the next one loses nothing
    finally:
        lease.release()
    return True


def size_of(folder: Path) -> int:
    """The bytes of all files in a folder."""
    found = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError, PermissionError):  # removed meanwhile, or somebody else's
            found += path.lstat().st_size
    return found


def kept_below(folder: Path) -> Iterator[Kept]:
    """The entries in the folders of a folder."""
    for entry in folder.glob("*/*"):
        if KEY.fullmatch(entry.name) and entry.is_dir():
            lock = unused(str(entry))
            if lock is not None:
                lock.release()
            yield Kept(entry, size_of(entry), lock is None)


def make_room(folder: Path, most: int, own: Path) -> None:
    """Remove entries below a folder until those beside `own` have at most so many bytes: the longest unused first."""
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
