"""Committer writes the files of an entry under its lock.

After each step the files contain a complete prefix of the elements.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import Any

from penstock.io import storage
from penstock.store.chunk import Chunk
from penstock.store.chunk_files import ChunkWriter
from penstock.store.column_buffer import Alike, Kept, joined, whole
from penstock.store.durable import write_whole
from penstock.store.entry import StoredEntry
from penstock.store.journal import NAME as JOURNAL
from penstock.store.journal import Commit, JournalWriter, text_of
from penstock.store.lock import OWN, Lease, Lock
from penstock.store.manifest import Manifest, file_in, read_manifest, spec_as_json, write_manifest

_CHUNKS = "chunks"


class Committer:
    """Appends elements to an entry, and removes unlisted files of an earlier writer.

    A Committer at a URL has a lease, which cannot exclude a second writer (see `Lease`). Its chunks therefore have
    unique names, and it removes no chunk. If another writer has completed the entry, the Committer changes nothing.

    All methods raise OSError if the disk or the permissions prevent the write.

    Args:
        entry: The entry, refreshed after the lock was taken.
        lock: The lock or lease of the entry.
        manifest: The manifest of the entry if the entry is new.
        alike: Records the spec of the elements so far.
        made_by: The fingerprint of the input that can resume from the committed states.
    """

    def __init__(self, entry: StoredEntry, lock: Lock | Lease, manifest: Manifest, alike: Alike, made_by: str) -> None:
        self._lock = lock
        self._made_by = made_by
        self._alike = alike
        self.folder = entry.folder
        self._folder = Path(entry.folder)
        self._mine = f"_{token_hex(4)}" if storage.is_url(entry.folder) else ""
        self._remote: JournalWriter | None = None
        self._writer = ChunkWriter(entry.folder, manifest.compression)
        self._commits: list[Commit] = []
        self._journal = -1
        try:
            self._begin(entry, manifest)
        except BaseException:
            self.close()
            raise

    def _begin(self, entry: StoredEntry, manifest: Manifest) -> None:
        if self._mine:
            if entry.manifest is None:
                storage.remove(file_in(self.folder, JOURNAL))  # a journal without its manifest
                write_manifest(self.folder, manifest, replace=True)
            self._manifest = entry.manifest or manifest
            self._commits = entry.commits() if entry.manifest is not None else []
            self._remote = JournalWriter(self.folder, self._commits, entry.journal_first if self._commits else 0)
            return
        (self._folder / _CHUNKS).mkdir(parents=True, exist_ok=True)
        if entry.manifest is None:
            (self._folder / JOURNAL).unlink(missing_ok=True)  # a journal without its manifest
            write_manifest(self.folder, manifest, replace=True)
        self._manifest = entry.manifest or manifest
        self._commits = entry.commits()
        self._journal = os.open(self._folder / JOURNAL, os.O_WRONLY | os.O_CREAT | os.O_APPEND | OWN, 0o666)
        self._end = entry.journal_end if self._commits else 0
        os.ftruncate(self._journal, self._end)  # removes an incomplete line
        self._remove_strays()

    @property
    def elements(self) -> int:
        """Number of committed elements."""
        return self._commits[-1].elements if self._commits else 0

    def _remove_strays(self) -> None:
        known = {chunk.file for commit in self._commits for chunk in commit.chunks}
        known.update(chunk.file for chunk in self._manifest.chunks)
        for path in (self._folder / _CHUNKS).iterdir():
            if f"{_CHUNKS}/{path.name}" not in known:
                path.unlink(missing_ok=True)
        for path in self._folder.glob("*.part"):
            path.unlink(missing_ok=True)

    def commit(self, shards: dict[int, list[Kept]], state: Any) -> None:
        """Write the elements of each shard, and the state of the input after them: all of them, or none."""
        chunks = [
            self._writer.write(self._name(shard, part), shard, block, specs)
            for shard in sorted(shards)
            for part, (block, specs) in enumerate(joined(shards[shard]))
        ]
        elements = self.elements + sum(chunk.elements for chunk in chunks)
        commit = Commit(tuple(chunks), elements, state, self._made_by, spec_as_json(self._alike.spec))
        if self._remote is not None:
            self._remote.append(self._commits, commit)
        else:
            self._append(commit.line(len(self._commits)))
        self._commits.append(commit)

    def _name(self, shard: int, part: int) -> str:
        return f"{_CHUNKS}/{len(self._commits):06d}_{shard:05d}_{part}{self._mine}.arrow"

    def _append(self, line: bytes) -> None:
        try:
            left = memoryview(line)
            while left:
                left = left[os.write(self._journal, left) :]
            os.fsync(self._journal)
        except OSError:
            os.ftruncate(self._journal, self._end)
            raise
        self._end += len(line)

    def complete(self) -> None:
        """Mark the entry as complete."""
        if self._mine and read_manifest(self.folder).complete:
            return
        self._say_complete()

    def _say_complete(self) -> None:
        chunks = tuple(chunk for commit in self._commits for chunk in commit.chunks)
        spec = self._manifest.spec or spec_as_json(self._alike.spec)
        codec = self._writer.codec if chunks else None
        self._manifest = replace(self._manifest, chunks=chunks, spec=spec, compression=codec, complete=True)
        write_manifest(self.folder, self._manifest, replace=True)

    def write_again(self, number: int, kept: Sequence[Kept]) -> None:
        """Write the damaged chunk `number`, counted over all commits, again."""
        if self._mine and self._manifest.complete:
            self._write_again_of_complete(number, kept)
            return
        places = [(place, at) for place, commit in enumerate(self._commits) for at in range(len(commit.chunks))]
        if number >= len(places):  # the journal does not list the chunk
            return
        place, at = places[number]
        commit = self._commits[place]
        before = commit.chunks[at]
        chunk = self._writer.write(self._name_again(before, number), before.shard, *whole(kept))
        if chunk == before:
            return
        chunks = (*commit.chunks[:at], chunk, *commit.chunks[at + 1 :])
        self._commits[place] = replace(commit, chunks=chunks)
        if self._mine:
            JournalWriter.write_all(self.folder, self._commits)
            return
        write_whole(self._folder / JOURNAL, text_of(self._commits))
        if self._manifest.complete:
            self._say_complete()

    def _write_again_of_complete(self, number: int, kept: Sequence[Kept]) -> None:
        """Write a damaged chunk of a complete entry at a URL again.

        The manifest lists the chunks here. The journal may belong to a later writer that was stopped.
        """
        chunks = list(self._manifest.chunks)
        if number >= len(chunks):
            return
        before = chunks[number]
        chunks[number] = self._writer.write(self._name_again(before, number), before.shard, *whole(kept))
        self._manifest = replace(self._manifest, chunks=tuple(chunks), compression=self._writer.codec)
        write_manifest(self.folder, self._manifest, replace=True)

    def _name_again(self, before: Chunk, number: int) -> str:
        """Return the name of the rewritten chunk.

        At a URL the name is new, because running readers expect the old checksums under the old name.
        """
        return f"{_CHUNKS}/again_{number:06d}{self._mine}_{token_hex(4)}.arrow" if self._mine else before.file

    def close(self) -> None:
        """Close the files and release the lock. Idempotent."""
        journal, self._journal = self._journal, -1
        if journal >= 0:
            os.close(journal)
        self._lock.release()
