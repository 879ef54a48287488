"""trace: a recorded run in the format of Chrome's trace viewer, which Perfetto reads too."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.profiler.recording.store import Recorded


def trace(recorded: Recorded, spans: NDArray[np.int64]) -> dict[str, Any]:
    """A track for each thread and worker process, counters of what buffers hold, memory."""
    pid, names = recorded.about["pid"], recorded.about["names"]
    found: list[dict[str, Any]] = [
        {"ph": "M", "pid": pid, "tid": 0, "name": "process_name", "args": {"name": recorded.about["run"]}}
    ]
    for number, title in enumerate(recorded.about["tracks"]):
        found.append({"ph": "M", "pid": pid, "tid": number, "name": "thread_name", "args": {"name": title}})
    for track, name, start, length in spans.tolist():
        found.append({"ph": "X", "pid": pid, "tid": track, "name": names[name], "ts": start / 1e3, "dur": length / 1e3})
    for sample in recorded.samples:
        at = sample["at"] * 1e6
        found.append({"ph": "C", "pid": pid, "name": "memory", "ts": at, "args": {"bytes": sample["memory"]}})
        for name, each in sample["pipelines"].items():
            for lane in each["lanes"]:
                values = {"held": lane["held"]}
                found.append({"ph": "C", "pid": pid, "name": f"{name}: {lane['lane']}", "ts": at, "args": values})
    return {"traceEvents": found, "displayTimeUnit": "ms"}
