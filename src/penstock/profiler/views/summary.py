"""summary: a recorded run as plain values, for programs and for the other views."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from penstock.profiler.recording.store import Recorded
from penstock.profiler.verdict.verdict import verdict


def summary(recorded: Recorded) -> dict[str, Any]:
    """Numbers, strings, lists and dicts; times in seconds."""
    pipelines = []
    for each in recorded.state["pipelines"]:
        waits = each["waits"]
        running = max(waits["running"], waits["waited"])
        pipelines.append(
            {
                "name": each["name"],
                "defined_at": each["title"],
                "written": each.get("written"),
                "steps": waits["steps"],
                "steps_per_second": waits["steps"] / running if running else 0.0,
                "waits": waits,
                "verdict": asdict(found := verdict(each)) | {"text": found.text},
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
