"""Caches in files that nobody asked for: where they are, and how much of the disk all of them may have."""

from __future__ import annotations

import shutil
import weakref
from contextlib import suppress
from pathlib import Path

from penstock.cache.entry.lock import Lock, use
from penstock.cache.entry.removal import kept_below, make_room, size_of
from penstock.forked import new_lock
from penstock.options import Options
from penstock.plan.fingerprint import fingerprint
from penstock.plan.node import Node
from penstock.runtime.machine.cache_folder import cache_folder

SHARE = 2  # of what they have and what is free on the disk, they take together at most one part in so many


def folder_of(plan: Node, options: Options) -> Path | None:
    """The folder of a plan's caches in the user's cache directory; what is in it tells which data they are of."""
    folder = cache_folder("autocache")
    return None if folder is None else folder / fingerprint(plan, options.seed, options.deterministic)


def room(folder: Path) -> int:
    """Bytes that a cache of the plan with this folder may have, if all that nobody uses makes room for it."""
    others = [kept for kept in kept_below(folder.parent) if kept.in_use and kept.folder.parent != folder]
    return max(_most(folder.parent) - sum(kept.nbytes for kept in others), 0)


def _most(folder: Path) -> int:
    """Bytes that all of them may have."""
    there = folder
    while not there.exists():
        there = there.parent
    return (shutil.disk_usage(there).free + sum(kept.nbytes for kept in kept_below(folder))) // SHARE


class Uses:
    """The entries that one data set uses, which no process removes to make room, for as long as this lives."""

    def __init__(self) -> None:
        self._locks: dict[str, Lock] = {}
        self._lock = new_lock()
        weakref.finalize(self, _release, self._locks)

    def begin(self, entry: str, nbytes: int) -> None:
        """An entry is used from now on; others go if there is no room for the bytes that it will have."""
        with self._lock, suppress(OSError):  # where nothing can be locked, nothing is removed
            if entry not in self._locks:
                self._locks[entry] = use(entry)
                own = Path(entry)
                folder = own.parent.parent
                make_room(folder, _most(folder) - max(nbytes, size_of(own)), own)


def _release(locks: dict[str, Lock]) -> None:
    for lock in locks.values():
        lock.release()
