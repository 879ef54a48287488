"""Journal: what was committed to an entry, one line behind the other, each with its own checksum."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from penstock.io import storage
from penstock.io.saved.chunk import Chunk
from penstock.io.saved.manifest import file_in

NAME = "journal.jsonl"


@dataclass(frozen=True)
class Commit:
    """Chunks that were written together, and how to go on behind them.

    `elements` counts all that were committed so far, `state` is that of the input behind them, for whom `made_by` is
    the same. `spec` is the nest of specs of all elements so far, as JSON.
    """

    chunks: tuple[Chunk, ...]
    elements: int
    state: Any
    made_by: str
    spec: Any

    def line(self, number: int) -> bytes:
        """What stands in the journal for commit number `number`."""
        import crc32c

        fields = {**self.__dict__, "chunks": [chunk.to_json() for chunk in self.chunks], "number": number}
        text = json.dumps(fields).encode()
        return b'["%08x", %b]\n' % (crc32c.crc32c(text), text)


def commit_of(line: bytes, number: int) -> Commit | None:
    """The inverse of `Commit.line`; None for a line that is torn or damaged, or is not that of this number."""
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


def text_of(commits: Iterable[Commit]) -> bytes:
    """A whole journal."""
    return b"".join(commit.line(number) for number, commit in enumerate(commits))


class Journal:
    """The commits in the journal of a folder, which may be a URL, up to the first line that is not whole.

    `end` is the byte behind the last of them. Others may write while it is read.
    """

    def __init__(self, folder: str) -> None:
        self._file = file_in(folder, NAME)
        self.commits: list[Commit] = []
        self.end = 0

    @property
    def elements(self) -> int:
        return self.commits[-1].elements if self.commits else 0

    def refresh(self) -> None:
        """Read what was added."""
        if self._read() is not None:
            self._forget()  # another one, or one that was cut off
            self._read()

    def _read(self) -> bytes | None:
        """Read on; a whole line that is not the next commit, where the file has one, or is shorter than it was."""
        try:
            with storage.open_read(self._file) as file:
                size = file.seek(0, 2)
                if size < self.end:
                    return b""
                file.seek(self.end)
                content = file.read()
        except FileNotFoundError:
            return b"" if self.end else None
        for text in content.split(b"\n")[:-1]:  # behind the last one is a line that is being written, or torn
            line = text + b"\n"
            commit = commit_of(line, len(self.commits))
            if commit is None or commit.elements != self.elements + sum(chunk.elements for chunk in commit.chunks):
                return line
            self.commits.append(commit)
            self.end += len(line)
        return None

    def _forget(self) -> None:
        self.commits, self.end = [], 0
