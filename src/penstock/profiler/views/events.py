"""events: a recorded run as TensorBoard's scalars, and the verdict as its text: TFRecord of Event messages."""

from __future__ import annotations

from typing import Any

import crc32c

from penstock.io.tfrecord.framing import frame
from penstock.profiler.recording.store import Recorded
from penstock.profiler.views.wire import content, double, integer, single

_STRING = 7  # DT_STRING


def events(recorded: Recorded, told: dict[str, Any]) -> bytes:
    """The file's content: by the number of steps of each pipeline, rates, waiting, what is held."""
    unix = recorded.about["unix"]
    found = [_record(double(1, unix) + content(3, "brain.Event:2"))]
    before: dict[str, tuple[float, int, float]] = {}
    for sample in recorded.samples:
        at = sample["at"]
        for name, each in sample["pipelines"].items():
            last_at, steps, waited = before.get(name, (0.0, 0, 0.0))
            passed = max(at - last_at, 1e-9)
            values = {
                f"{name}/steps a second": (each["steps"] - steps) / passed,
                f"{name}/share of time waiting": min((each["waited"] - waited) / passed, 1.0),
                f"{name}/memory of the process": float(sample["memory"]),
            }
            for lane in each["lanes"]:
                values[f"{name}/{lane['lane']}/bytes held"] = float(lane["held"])
                values[f"{name}/{lane['lane']}/workers"] = float(lane["workers"])
            before[name] = at, each["steps"], each["waited"]
            summary = b"".join(content(1, content(1, tag) + single(2, value)) for tag, value in values.items())
            found.append(_record(double(1, unix + at) + integer(2, each["steps"]) + content(5, summary)))
    end = unix + told["seconds"]
    for each in told["pipelines"]:
        for step in each["analysis"]["steps"]:
            tag = f"{each['name']}/CPU seconds per element/{step['name']}"
            value = content(1, content(1, tag) + single(2, step["cpu"]))
            found.append(_record(double(1, end) + integer(2, each["steps"]) + content(5, value)))
        text = integer(1, _STRING) + content(2, content(2, integer(1, 1))) + content(8, each["verdict"]["text"])
        metadata = content(9, content(1, content(1, "text")))
        value = content(1, content(1, f"{each['name']}/verdict") + metadata + content(8, text))
        found.append(_record(double(1, end) + integer(2, each["steps"]) + content(5, value)))
    return b"".join(found)


def _record(data: bytes) -> bytes:
    head, tail = frame(len(data), crc32c.crc32c(data))
    return head + data + tail
