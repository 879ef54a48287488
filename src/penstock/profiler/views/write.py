"""write_views: every view of a recorded run, made of what is on the disk."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

from penstock.profiler.recording.store import Recorded
from penstock.profiler.views.events import events
from penstock.profiler.views.page import page
from penstock.profiler.views.summary import summary
from penstock.profiler.views.trace import trace
from penstock.profiler.views.xplane import xplane


def write_views(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Write report.html, summary.json, trace.json.gz and what TensorBoard reads; the summary."""
    recorded = Recorded(folder)
    spans = recorded.spans()
    told = summary(recorded)
    put(recorded.folder / "summary.json", json.dumps(told, indent=1).encode())
    put(recorded.folder / "report.html", page(recorded, told, spans).encode())
    put(recorded.folder / "trace.json.gz", gzip.compress(json.dumps(trace(recorded, spans)).encode(), 6, mtime=0))
    for old in recorded.folder.glob("events.out.tfevents.*"):
        old.unlink()
    host = recorded.about["host"]
    name = f"events.out.tfevents.{int(recorded.about['unix'])}.{host}"
    put(recorded.folder / name, events(recorded, told))
    profile = recorded.folder.parent / "plugins" / "profile" / recorded.about["run"]
    profile.mkdir(parents=True, exist_ok=True)
    put(profile / f"{host}.xplane.pb", xplane(recorded, spans))
    return told


def put(path: Path, content: bytes) -> None:
    """A file that is there whole or not at all."""
    beside = path.with_name(f".{path.name}.new")
    beside.write_bytes(content)
    beside.replace(path)
