"""write_views: writes every view of a recorded run from the recorded files."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from penstock.errors import writing_to
from penstock.profiler.analysis.figures import Analysis
from penstock.profiler.recording.store import Recorded
from penstock.profiler.verdict import verdict
from penstock.profiler.views.page import page
from penstock.profiler.views.tensorboard import events, xplane
from penstock.profiler.views.trace import trace


def summary(recorded: Recorded) -> dict[str, Any]:
    """Return numbers, strings, lists and dicts; times in seconds."""
    pipelines = []
    for each in recorded.state["pipelines"]:
        waits = each["waits"]
        running = max(waits["running"], waits["waited"])
        found = verdict(Analysis.of(each["analysis"]), waits, each["start"])
        pipelines.append(
            {
                "name": each["name"],
                "defined_at": each["title"],
                "written": each.get("written"),
                "steps": waits["steps"],
                "steps_per_second": waits["steps"] / running if running else 0.0,
                "waits": waits,
                "verdict": asdict(found := verdict(Analysis.of(each["analysis"]), waits, each["start"]))
                | {"text": found.text},
                "start": each["start"],
                "choices": each["choices"],
                "analysis": each["analysis"],
            }
        )
    pipelines.sort(key=lambda each: -each["waits"]["running"])
    return {
        "run": recorded.about["run"],
        "host": recorded.about["host"],
        "began": recorded.about["unix"],
        "seconds": recorded.state["at"] - recorded.about["began"],
        "steps_marked": recorded.state.get("steps", 0),
        "most_memory": max((sample["memory"] for sample in recorded.samples), default=0),
        "pipelines": pipelines,
    }


def write_views(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Write report.html, summary.json, trace.json.gz and the files for TensorBoard; return the summary."""
    recorded = Recorded(folder)
    told = summary(recorded)
    put(recorded.folder / "summary.json", [json.dumps(told, indent=1).encode()])
    host = recorded.about["host"]
    for old in recorded.folder.glob("events.out.tfevents.*"):
        old.unlink()
    put(recorded.folder / f"events.out.tfevents.{int(recorded.about['unix'])}.{host}", [events(recorded, told)])
    spans = recorded.spans()
    put(recorded.folder / "report.html", [page(recorded, told, spans).encode()])
    put(recorded.folder / "trace.json.gz", (text.encode() for text in trace(recorded, spans)), zipped=True)
    profile = recorded.folder.parent / "plugins" / "profile" / recorded.about["run"]
    profile.mkdir(parents=True, exist_ok=True)
    # files that the plugin derived from an earlier file of that name
    for old in filter(Path.is_file, profile.iterdir()):
        old.unlink()
    put(profile / f"{host}.xplane.pb", xplane(recorded, spans))
    return told


def put(path: Path, parts: Iterable[bytes], *, zipped: bool = False) -> None:
    """Write a file atomically."""
    beside = path.with_name(f".{path.name}.new")
    try:
        with writing_to(path), beside.open("wb") as file:
            if zipped:
                with gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0) as inside:
                    for part in parts:
                        inside.write(part)
            else:
                file.writelines(parts)
        beside.replace(path)
    except OSError:
        with suppress(OSError):
            beside.unlink()
        raise
