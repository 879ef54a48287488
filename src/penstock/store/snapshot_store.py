"""SnapshotStore: the folders of a plan's entries, and their content."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any

from penstock.errors import DataLossError, FailedPreconditionError, InvalidTypeError, NotFoundError, PenstockError
from penstock.forked import new_lock
from penstock.hints import size_text
from penstock.io import storage
from penstock.io.compression import codec_of
from penstock.store.column_buffer import Alike, Kept, stored_as
from penstock.store.committer import Committer
from penstock.store.content_key.difference import why_not
from penstock.store.content_key.made_of import MadeOf, made_of
from penstock.store.entry import StoredEntry, size_of, stamp
from penstock.store.journal import NAME as JOURNAL
from penstock.store.lock import Lease, Lock, take, take_lease
from penstock.store.manifest import NAME, Manifest, file_in, read_manifest, spec_as_json
from penstock.store.saved_source import SavedSource

_LOG = logging.getLogger("penstock.store")


class SnapshotStore:
    """The folders `path/<key>`, one for each content that the plan, before rewrites, can have. Thread-safe.

    The data of the plan is checked once, when the first iteration begins. With `droppable`, an unreadable entry counts
    as missing, and the next iteration that writes replaces it. Otherwise it raises an error.
    """

    def __init__(self, path: str, plan: Any, shard_func: Any, compression: Any, *, droppable: bool = False) -> None:
        self._path = path
        self._plan = plan
        self._shard_func = shard_func
        self._codec = codec_of(compression)
        self._droppable = droppable
        self._lock = new_lock()
        self._made: MadeOf | None = None
        self._made_under: dict[str, MadeOf] = {}  # by folder
        # by folder: the version of the manifest, and the opened source
        self._opened: dict[str, tuple[Any, SavedSource]] = {}
        self._unreadable: set[tuple[str, str]] = set()  # folders, with the text of the error

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the lock and opened sources."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_lock", "_opened")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=new_lock(), _opened={})

    def known_folder(self, seed: int, deterministic: bool) -> str | None:  # noqa: FBT001 - an option's value
        """Return `folder`, or None if it is not known without checking data."""
        with self._lock:
            made = self._made
        return None if made is None else file_in(self._path, made.under(seed=seed, deterministic=deterministic).key)

    def folder(self, seed: int, deterministic: bool) -> str:  # noqa: FBT001 - an option's value
        """Return the folder of the entry under these options."""
        with self._lock:
            if self._made is None:
                self._made = made_of(self._plan, shard_func=self._shard_func)
            made = self._made.under(seed=seed, deterministic=deterministic)
            folder = file_in(self._path, made.key)
            known = folder in self._made_under
            self._made_under[folder] = made
        if not known:
            self._say_why(made, folder)
        return folder

    def refresh(self, entry: StoredEntry) -> None:
        """Check the files of an entry.

        Raise DataLossError, FailedPreconditionError or OSError if it is not droppable.
        """
        try:
            entry.refresh()
        except (DataLossError, FailedPreconditionError, OSError) as error:
            self._refuse(entry.folder, error)
            entry.forget()

    def _refuse(self, folder: str, error: PenstockError | OSError) -> None:
        """Raise the error with advice, or log that the elements are computed again."""
        if not self._droppable:
            if isinstance(error, PenstockError):
                remedy = f"Delete the folder {folder!r}: the next iteration computes and writes its elements again."
                error.hint = remedy if isinstance(error, DataLossError) else f"{error.hint} {remedy}"
            raise error
        with self._lock:
            known = (folder, str(error)) in self._unreadable
            self._unreadable.add((folder, str(error)))
        if known:
            return
        if isinstance(error, PenstockError):
            text = "%s: the stored elements%s are computed and written again: %s"
            _LOG.warning(text, folder, _size_of(folder), without_hint(error))
        else:
            _LOG.warning("%s: the stored elements are computed again, as they cannot be read: %s", folder, error)

    def _say_lost(self, folder: str) -> None:
        """Log a warning if there are chunks without a manifest."""
        if storage.exists(file_in(folder, JOURNAL)) and not storage.exists(file_in(folder, NAME)):
            text = "%s: the stored elements%s are computed and written again: there is no %s"
            _LOG.warning(text, folder, _size_of(folder), NAME)

    def _say_why(self, made: MadeOf, folder: str) -> None:
        """Log the reason if the path has entries and none belongs to the plan."""
        why = None if storage.exists(file_in(folder, NAME)) else why_not(made, self._path)
        if why is not None:
            _LOG.info("%s: a new entry, %s; %s", self._path, made.key[:8], why)

    def saved(self, folder: str, entry: StoredEntry | None = None) -> SavedSource | None:
        """Return a complete entry, or None. It is opened once.

        The parts that `entry` has already read are not read again. It raises the errors of `refresh`.
        """
        try:
            now = stamp(file_in(folder, NAME))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self._refuse(folder, error)
            return None
        with self._lock:
            known = self._opened.get(folder)
            if known is not None and now is not None and known[0] == now:
                return known[1]
        try:
            manifest = entry.manifest_as_of(now) if entry is not None else None
            manifest = read_manifest(folder) if manifest is None else manifest
        except NotFoundError:  # it was removed in the meantime
            return None
        except (DataLossError, FailedPreconditionError, OSError) as error:
            self._refuse(folder, error)
            return None
        if not manifest.complete:
            return None
        source = SavedSource.whole(folder, manifest)
        with self._lock:
            self._opened[folder] = now, source
        return source

    def source(self, entry: StoredEntry, element: int) -> tuple[SavedSource, int]:
        """Return the committed elements in the order of the entry, and the position of an element in them."""
        if entry.complete and entry.manifest is not None and len(entry.manifest.shards) < 2:
            whole = self.saved(entry.folder, entry)
            if whole is not None and whole.manifest.run == entry.run:
                return whole, element
        return committed(entry, element)

    def prepare(self, folder: str) -> None:
        """Create the folder of an entry before writing. Raise OSError if that fails."""
        if not storage.is_url(folder):
            Path(folder).mkdir(parents=True, exist_ok=True)

    def lock(self, folder: str) -> Lock | Lease | None:
        """Return the lock for writing, or None if another process holds it.

        It raises the errors of `lock.take`, `take_lease`.
        """
        return take_lease(folder) if storage.is_url(folder) else take(folder)

    def committer(self, entry: StoredEntry, lock: Lock | Lease, made_by: str) -> tuple[Committer, Alike]:
        """Return the writer that appends to an entry, and the spec of its elements so far. Raise OSError on failure."""
        self._say_lost(entry.folder)
        alike = Alike(entry.element_spec() if entry.elements else None)
        made = self._made_under[entry.folder]
        spec = spec_as_json(_storable(self._plan.spec))
        parts = tuple((*part,) for part in made.parts)
        manifest = Manifest(made.key, token_hex(6), self._codec, spec, (), made.sources, parts, complete=False)
        return Committer(entry, lock, manifest, alike, made_by), alike

    def write_again(self, entry: StoredEntry, made_by: str, number: int, kept: Sequence[Kept]) -> None:
        """Rewrite a damaged chunk, if the lock is free and the entry still exists. Raise OSError on failure."""
        run = entry.run
        lock = self.lock(entry.folder)
        if lock is None:
            return
        try:
            self.refresh(entry)
            if entry.run == run:
                committer, _ = self.committer(entry, lock, made_by)
                try:
                    committer.write_again(number, kept)
                finally:
                    committer.close()
        finally:
            lock.release()
        with self._lock:
            self._opened.pop(entry.folder, None)  # it remembers the failure


def _size_of(folder: str) -> str:
    return "" if storage.is_url(folder) else f" ({size_text(size_of(Path(folder)))})"


def without_hint(error: Exception) -> str:
    """Return the text of an error without its hint, for an error that needs no action."""
    if not isinstance(error, PenstockError):
        return str(error)
    return "\n  ".join([error.message, *error.context.lines()])


def committed(entry: StoredEntry, element: int) -> tuple[SavedSource, int]:
    """Return the elements of an entry from the chunk of an element on, in commit order, and its index in them."""
    number, begin = entry.chunk_at(element)
    return SavedSource.whole(entry.folder, entry.part(number)), element - begin


def _storable(spec: Any) -> Any:
    """Return a nest of specs, or None if it is unknown or cannot be stored. The first element then raises the error."""
    try:
        return None if spec is None else stored_as(spec)
    except InvalidTypeError:
        return None
