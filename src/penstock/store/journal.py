"""Journal: the commits of an entry, one per line, each with its own checksum."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.io import storage
from penstock.store.chunk import Chunk
from penstock.store.durable import write_whole
from penstock.store.manifest import file_in

NAME = "journal.jsonl"
_SEGMENT = 256  # commits per object of a journal at a URL, where appending is impossible


@dataclass(frozen=True)
class Commit:
    """Chunks that were written together, and the state to resume after them.

    `elements` counts all elements committed so far. `state` is the state of the input after them, for an input with an
    equal `made_by`. `spec` is the nest of specs of all elements so far, as JSON.
    """

    chunks: tuple[Chunk, ...]
    elements: int
    state: Any
    made_by: str
    spec: Any

    def line(self, number: int) -> bytes:
        """Return the line of the journal for commit number `number`."""
        import crc32c

        fields = {**self.__dict__, "chunks": [chunk.to_json() for chunk in self.chunks], "number": number}
        text = json.dumps(fields).encode()
        return b'["%08x", %b]\n' % (crc32c.crc32c(text), text)


def commit_of(line: bytes, number: int) -> Commit | None:
    """Return the Commit in a line, the inverse of `Commit.line`.

    None if it is incomplete, damaged or has another number.
    """
    import crc32c

    if line[:2] != b'["' or line[10:13] != b'", ' or line[-2:] != b"]\n":
        return None
    text = line[13:-2]
    if line[2:10] != b"%08x" % crc32c.crc32c(text):
        return None
    try:
        found = json.loads(text)
        if found.pop("number") != number:
            return None
        return Commit(**{**found, "chunks": tuple(Chunk.from_json(chunk) for chunk in found["chunks"])})
    except (ValueError, KeyError, TypeError):
        return None


def text_of(commits: Sequence[Commit], first: int = 0) -> bytes:
    """Return the text of a journal, from commit number `first` on."""
    head = _behind(list(commits[:first])) if first else b""
    return head + b"".join(commit.line(first + number) for number, commit in enumerate(commits[first:]))


class Journal:
    """The commits in the journal of a folder or URL, up to the first incomplete line.

    `end` is the byte after the last commit. Other processes may write while it is read. At a URL, a journal is a
    sequence of objects of 256 commits each. The last object begins with commit number `first`, and `end` is a position
    in it.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._remote = storage.is_url(folder)
        self._file = file_in(folder, NAME)
        self.commits: list[Commit] = []
        self.first = 0
        self.end = 0
        self._seen = b""  # content of the last object

    @property
    def elements(self) -> int:
        return self.commits[-1].elements if self.commits else 0

    def refresh(self) -> None:
        """Read the commits that were added."""
        if self._remote:
            self._refresh_objects()
        elif self._read() is not None:
            self._forget()  # the journal was replaced or truncated
            self._read()

    def _read(self) -> bytes | None:
        """Read the next commits.

        Return the first line that is not a valid next commit, or b"" for a truncated file, or None.
        """
        try:
            with storage.open_read(self._file) as file:
                size = file.seek(0, 2)
                if size < self.end:
                    return b""
                file.seek(self.end)
                content = file.read()
        except FileNotFoundError:
            return b"" if self.end else None
        for text in content.split(b"\n")[:-1]:  # the last line is being written, or incomplete
            line = text + b"\n"
            commit = commit_of(line, len(self.commits))
            if commit is None or commit.elements != self.elements + sum(chunk.elements for chunk in commit.chunks):
                return line
            self.commits.append(commit)
            self.end += len(line)
        return None

    def _refresh_objects(self) -> None:
        content = self._object(self.first)
        if content is None or not content.startswith(self._seen):  # another process has replaced the object
            self._forget()
            content = self._object(0)
        while content is not None:
            self._take(content)
            if len(self.commits) == self.first or len(self.commits) % _SEGMENT:
                return
            content = self._object(len(self.commits))
            if content is None or not content.startswith(_behind(self.commits)):
                return
            self.first, self._seen = len(self.commits), b""

    def _object(self, first: int) -> bytes | None:
        try:
            return storage.read_now(segment(self._folder, first))
        except FileNotFoundError:
            return None

    def _take(self, content: bytes) -> None:
        """Add the commits of an object that were not seen before."""
        at = len(self._seen) or (content.find(b"\n") + 1 if self.first else 0)
        while (stop := content.find(b"\n", at) + 1) > 0:
            commit = commit_of(content[at:stop], len(self.commits))
            if commit is None or commit.elements != self.elements + sum(chunk.elements for chunk in commit.chunks):
                break
            self.commits.append(commit)
            at = stop
        self._seen, self.end = content[:at], at

    def _forget(self) -> None:
        self.commits, self.first, self.end, self._seen = [], 0, 0, b""


class JournalWriter:
    """Writes a journal at a URL, after the commits that a `Journal` has read. Each commit writes a whole object.

    Each object states the commit it follows. Two writers without knowledge of each other overwrite each other's
    objects. A reader then finds a valid prefix of the work of one writer.
    """

    def __init__(self, folder: str, commits: list[Commit], first: int) -> None:
        self._folder = folder
        self._first = first
        self._text = text_of(commits, first)

    def append(self, commits: list[Commit], commit: Commit) -> None:
        """Write a commit after all others."""
        number, first, text = len(commits), self._first, self._text
        if number > first and not number % _SEGMENT:
            first, text = number, _behind(commits)
        text += commit.line(number)
        write_whole(segment(self._folder, first), text)
        self._first, self._text = first, text

    @staticmethod
    def write_all(folder: str, commits: list[Commit]) -> None:
        """Write all objects again, the last one first, so that a concurrent reader finds a shorter journal."""
        for first in range(0, len(commits), _SEGMENT)[::-1]:
            stop = min(first + _SEGMENT, len(commits))
            write_whole(segment(folder, first), text_of(commits[:stop], first))


def segment(folder: str, first: int) -> str:
    """Return the object of a journal at a URL that begins with commit number `first`."""
    return file_in(folder, f"journal-{first:06d}.jsonl" if first else NAME)


def _behind(commits: list[Commit]) -> bytes:
    """Return the first line of an object that follows these commits."""
    import crc32c

    return b'["behind", "%08x"]\n' % crc32c.crc32c(commits[-1].line(len(commits) - 1))
