"""`FoundEntry`: a description of an entry, and the search for entries in a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError, PenstockError

if TYPE_CHECKING:
    from penstock.store.content_key.made_of import MadeOf
    from penstock.store.manifest import Manifest

SHOWN = 12  # displayed digits of a key
_LISTED = 5  # keys in an error message


@dataclass(frozen=True, eq=False)
class FoundEntry:
    """The properties of an entry that can be read without its elements.

    If the manifest cannot be read, `manifest` is None and `problem` is the reason. `writer` is the process that writes
    to the entry now.
    """

    folder: Path
    manifest: Manifest | None
    problem: str | None
    elements: int
    bytes: int
    complete: bool
    writer: dict[str, Any] | None
    changed: int | None  # time of the last write to one of its files, in nanoseconds; None: not known

    @property
    def key(self) -> str:
        return self.folder.name

    @property
    def created(self) -> str:
        return "" if self.manifest is None else self.manifest.created

    @property
    def made(self) -> MadeOf:
        """The parts that the entry is made of. Raises FailedPreconditionError if its manifest cannot be read."""
        from penstock.store.content_key.difference import made_by

        if self.manifest is None:
            message = f"What {self.key[:SHOWN]} is made of cannot be told: {self.problem}"
            raise FailedPreconditionError(message, file=str(self.folder))
        return made_by(self.manifest)

    @property
    def written_by(self) -> str:
        """`pid 4711 on host7 since 2026-01-01T12:00:00+00:00`."""
        told = self.writer or {}
        since = f" since {told['since']}" if "since" in told else ""
        return f"pid {told.get('pid', '?')} on {told.get('host', '?')}{since}"


def entries_in(path: str) -> list[FoundEntry]:
    """Return the entries in a folder or at a URL, the newest first.

    Raises:
        NotFoundError: If the folder does not exist.
        InvalidArgumentError: If the folder contains no entries but other files.
        FailedPreconditionError: If the folder cannot be read.
    """
    from penstock.hints import redacted
    from penstock.io.writing import place
    from penstock.store.manifest import NAME

    folder, path = place(path), redacted(path)
    if not folder.is_dir():
        message = f"There is no folder {path!r}."
        raise NotFoundError(message, hint="Give the path that was given to snapshot() or cache().")
    try:
        found = [_look(entry) for entry in _named_by_keys(folder)]
        others = not found and any(True for _ in folder.iterdir())
    except OSError as error:
        message = f"The folder {path!r} cannot be read: {error.strerror}."
        raise FailedPreconditionError(message, file=str(error.filename or folder)) from error
    if others:
        message = f"{path!r} is no folder of snapshots or caches: nothing in it is named by a key."
        hint = "Give the path that was given to snapshot() or cache()."
        if (folder / NAME).exists():
            hint = (
                f"It is one itself, or was written by save(). The folder around it is {redacted(str(folder.parent))!r}."
            )
        raise InvalidArgumentError(message, hint=hint)
    return sorted(found, key=lambda entry: (entry.created, entry.changed or 0), reverse=True)


def _named_by_keys(folder: Path) -> Iterator[Path]:
    """Yield the folders of entries. Entries of automatic caches are in one more folder per plan."""
    from penstock.store.entry import KEY

    for entry in folder.iterdir():
        if KEY.fullmatch(entry.name) and entry.is_dir():
            inside: list[Path] = []
            with suppress(PermissionError):  # `_look` reports the error
                inside = [inner for inner in entry.iterdir() if KEY.fullmatch(inner.name) and inner.is_dir()]
            yield from inside or [entry]


def _look(folder: Path) -> FoundEntry:
    from penstock.io import storage
    from penstock.store.entry import StoredEntry
    from penstock.store.lock import writer_of

    entry = StoredEntry(str(folder))
    problem: str | None = None
    try:
        entry.refresh()
        if entry.manifest is None:
            problem = "no pass has begun to write it, or it was being removed"
    except PenstockError as error:
        problem = error.message
    except OSError as error:
        problem = f"it cannot be read: {error.strerror}"
    states = storage.states_below(folder)
    times = [changed for _, changed in states]
    known = problem is None
    return FoundEntry(
        folder,
        entry.manifest,
        problem,
        entry.elements if known else 0,
        sum(size for size, _ in states),
        known and entry.complete,
        writer_of(str(folder)),
        None if None in times else max((changed for changed in times if changed is not None), default=0),
    )


def chosen(entries: Sequence[FoundEntry], key: str) -> FoundEntry:
    """Return the entry whose key begins with `key`.

    Raises:
        NotFoundError: If no key begins with these digits.
        InvalidArgumentError: If there are no digits, or several keys begin with them.
    """
    if not key:
        message = "A key is empty, and every key begins so."
        raise InvalidArgumentError(message, hint="Give its first digits; `penstock cache ls` lists them.")
    matching = [entry for entry in entries if entry.key.startswith(key.lower())]
    listed = ", ".join(entry.key[: max(SHOWN, len(key) + 4)] for entry in (matching or entries)[:_LISTED])
    if not matching:
        message = f"No key begins with {key!r}."
        hint = f"There are {listed}{', …' if len(entries) > _LISTED else ''}." if entries else "The folder is empty."
        raise NotFoundError(message, hint=hint)
    if len(matching) > 1:
        raise InvalidArgumentError(f"{len(matching)} keys begin with {key!r}: {listed}.", hint="Give more digits.")
    return matching[0]
