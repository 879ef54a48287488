"""Store: the files of a recorded run. They are complete at any time, because a process may be killed at any time.

    about.json     the run, the machine; names of spans and tracks; rewritten when there are more

A file is written under another name and renamed, or lines are appended to it. Readers ignore a truncated last line.
Files of spans have half a megabyte each. If there are more than twelve, every other one except the newest is deleted:
older spans become sparser, and the sums do not depend on them. Samples are thinned in the same way.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FILE = 1 << 19  # bytes of spans per file
_FILES = 12
_SAMPLES = 1024
FIELDS = 4  # per span: track, name, start, length


class Store:
    """Writes the files. Raises OSError if the disk fails."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._spans = folder / "spans"
        self._spans.mkdir(parents=True, exist_ok=True)
        self._number = 0
        self._in_file = 0
        self._lines: list[str] = []

    def put(self, name: str, value: Any) -> None:
        """Write a file of values atomically."""
        beside = self.folder / f".{name}.new"
        beside.write_text(json.dumps(value, allow_nan=False, default=_plain), encoding="utf-8")
        beside.replace(self.folder / name)

    def add_sample(self, values: Any) -> None:
        line = json.dumps(values, allow_nan=False, default=_plain)
        self._lines.append(line)
        path = self.folder / "samples.jsonl"
        if len(self._lines) < _SAMPLES:
            with path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
            return
        del self._lines[1:-1:2]
        beside = self.folder / ".samples.new"
        beside.write_text("".join(f"{each}\n" for each in self._lines), encoding="utf-8")
        beside.replace(path)

    def add_spans(self, spans: Sequence[int]) -> None:
        if not spans:
            return
        if self._in_file >= _FILE:
            self._number += 1
            self._in_file = 0
            self._thin()
        content = np.array(spans, "<i8").tobytes()
        with (self._spans / f"{self._number:06d}").open("ab") as file:
            file.write(content)
        self._in_file += len(content)

    def _thin(self) -> None:
        files = sorted(self._spans.iterdir())
        if len(files) >= _FILES:
            for path in files[1:-1:2]:
                path.unlink()


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)


class Recorded:
    """Reads the files of a run, complete or not."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.about: dict[str, Any] = json.loads((self.folder / "about.json").read_text(encoding="utf-8"))
        self.state: dict[str, Any] = {"pipelines": [], "at": self.about["began"]}
        if (self.folder / "state.json").exists():
            self.state = json.loads((self.folder / "state.json").read_text(encoding="utf-8"))
        self.samples: list[dict[str, Any]] = []
        path = self.folder / "samples.jsonl"
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else ():
            try:
                self.samples.append(json.loads(line))
            except ValueError:  # a truncated line
                continue

    def spans(self) -> NDArray[np.int64]:
        """Return track, name, start and length (nanoseconds since the start of the run) of all spans, by start."""
        paths = sorted((self.folder / "spans").glob("*"))
        room = sum(path.stat().st_size for path in paths) // (8 * FIELDS)
        found, count = np.empty((room, FIELDS), np.int64), 0
        names, titles = len(self.about["names"]), len(self.about["tracks"])
        for path in paths:
            content = path.read_bytes()
            part = np.frombuffer(content, "<i8", len(content) // (8 * FIELDS) * FIELDS).reshape(-1, FIELDS)
            part = part[(part[:, 1] < names) & (part[:, 0] < titles) & (part[:, 3] >= 0)][: room - count]
            found[count : count + len(part)] = part
            count += len(part)
        found = found[:count]
        found[:, 2] -= int(self.about["began"] * 1e9)
        return found[np.argsort(found[:, 2], kind="stable")]
