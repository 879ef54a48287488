"""Removing entries, and those of a folder that were not wanted for the longest time."""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from penstock.cache.entry.lease import NAME as LEASE
from penstock.cache.entry.lease import take_lease
from penstock.cache.entry.lock import Unlockable, last_used, take, unused
from penstock.hints import size_text
from penstock.io import storage
from penstock.io.saved.manifest import NAME, file_in

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
            _LOG.warning("%s, a cache that nobody uses, could not be removed: %s", kept.folder, error)
            continue
        finally:
            lock.release()
        if removed:
            total -= kept.nbytes
            _LOG.info("%s was removed, %s: it was not used for the longest time", kept.folder, size_text(kept.nbytes))
