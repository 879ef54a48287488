"""events: a recorded run as TensorBoard's scalars, and the verdict as its text: TFRecord of Event messages."""

from __future__ import annotations

from typing import Any

import crc32c

from penstock.io.tfrecord.framing import frame
from penstock.profiler.recording.store import Recorded
from penstock.profiler.views.wire import content, double, integer, single

_STRING = 7  # DT_STRING


def events(recorded: Recorded, told: dict[str, Any]) -> bytes:
    """The file's content: by the number of steps of each pipeline rates, waiting and memory, of each stage as well."""
    unix = recorded.about["unix"]
    found = [_record(double(1, unix) + content(3, "brain.Event:2"))]
    before: dict[str, tuple[float, dict[str, Any]]] = {}
    for sample in recorded.samples:
        at = sample["at"]
        for name, each in sample["pipelines"].items():
            last_at, last = before.get(name, (0.0, {"steps": 0, "waited": 0.0, "stages": {}}))
            before[name] = at, each
            values = _scalars(name, each, last, max(at - last_at, 1e-9))
            values[f"{name}/memory of the process"] = float(sample["memory"])
            summary = b"".join(content(1, content(1, tag) + single(2, value)) for tag, value in values.items())
            found.append(_record(double(1, unix + at) + integer(2, each["steps"]) + content(5, summary)))
    end = unix + told["seconds"]
    for each in told["pipelines"]:
        text = integer(1, _STRING) + content(2, content(2, integer(1, 1))) + content(8, _markdown(each["verdict"]))
        metadata = content(9, content(1, content(1, "text")))
        value = content(1, content(1, f"{each['name']}/verdict") + metadata + content(8, text))
        found.append(_record(double(1, end) + integer(2, each["steps"]) + content(5, value)))
    return b"".join(found)


def _scalars(name: str, each: dict[str, Any], last: dict[str, Any], passed: float) -> dict[str, float]:
    """Of one pipeline, in the time since the last sample."""
    values = {
        f"{name}/steps a second": (each["steps"] - last["steps"]) / passed,
        f"{name}/share of time waiting": min((each["waited"] - last["waited"]) / passed, 1.0),
    }
    for lane in each["lanes"]:
        values[f"{name} {lane['lane']}/bytes held"] = float(lane["held"])
        values[f"{name} {lane['lane']}/workers"] = float(lane["workers"])
    for stage, (made, cpu) in each.get("stages", {}).items():
        values[f"{name} {stage}/elements a second"] = (made - last.get("stages", {}).get(stage, (0, 0.0))[0]) / passed
        values[f"{name} {stage}/CPU microseconds of an element"] = cpu
    return values


def _markdown(verdict: dict[str, Any]) -> str:
    """Paragraphs; what to do as a list."""
    first, *others = verdict["sentences"]
    parts = [f"**{first}**", *others]
    if verdict["changes"]:
        parts.append("\n".join(f"- {text}" for text in verdict["changes"]))
    return "\n\n".join(parts)


def _record(data: bytes) -> bytes:
    head, tail = frame(len(data), crc32c.crc32c(data))
    return head + data + tail
