"""SnapshotStore: where the snapshots of a plan are, and what is there."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from penstock.cache.writer import SavedWriter
from penstock.errors import NotFoundError
from penstock.io.saved.compression import codec_of
from penstock.io.saved.manifest import NAME, file_in, read_manifest
from penstock.plan.content_key import content_key
from penstock.plan.node import Node
from penstock.sources.saved import SavedSource


class SnapshotStore:
    """The folders `path/<key>`, one for each content that the plan, as it was written, can have. Thread-safe.

    The data that a plan holds is looked at once, when the first pass begins.
    """

    def __init__(self, path: str, plan: Node, shard_func: Any, compression: Any) -> None:
        self._path = path
        self._parts = (plan, shard_func)
        self._codec = codec_of(compression)
        self._lock = threading.Lock()
        self._key: str | None = None
        self._opened: dict[str, tuple[Any, SavedSource]] = {}  # by folder: which manifest it was

    def folder(self, *settings: Any) -> str:
        """The folder of the snapshot under these settings, seed and determinism."""
        with self._lock:
            if self._key is None:
                self._key = content_key(*self._parts)
        return file_in(self._path, content_key(self._key, *settings))

    def saved(self, folder: str) -> SavedSource | None:
        """What a complete pass has left there, opened once."""
        try:
            found = Path(folder, NAME).stat()
        except FileNotFoundError:
            return None
        now = found.st_mtime_ns, found.st_ino
        with self._lock:
            known = self._opened.get(folder)
            if known is not None and known[0] == now:
                return known[1]
        try:
            source = SavedSource.whole(folder, read_manifest(folder))
        except NotFoundError:  # removed meanwhile
            return None
        with self._lock:
            self._opened[folder] = now, source
        return source

    def writer(self, folder: str, spec: Any) -> SavedWriter:
        return SavedWriter(folder, plan=Path(folder).name, codec=self._codec, spec=spec)
