"""trace: a recorded run in the format of Chrome's trace viewer, which Perfetto also reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.profiler.recording.store import Recorded

_AT_ONCE = 2000  # spans


def trace(recorded: Recorded, spans: NDArray[np.int64]) -> Iterator[str]:
    """Yield a track per thread, a process per worker process, and counters of buffers, workers, waiting, memory.

    The text comes in pieces: the text of a long run would take hundreds of megabytes.
    """
    pid, titles = recorded.about["pid"], recorded.about["tracks"]
    pids = [_pid(title, pid) for title in titles]
    yield '{"displayTimeUnit":"ms","traceEvents":[\n'
    head = [_named(pid, "process_name", recorded.about["run"])]
    head += [_named(other, "process_name", title) for other, title in zip(pids, titles, strict=True) if other != pid]
    for number, title in enumerate(titles):
        head.append(_named(pids[number], "thread_name", title) | {"tid": number})
        order = {"sort_index": -1 if title == "steps of the training loop" else number}
        head.append({"ph": "M", "pid": pids[number], "tid": number, "name": "thread_sort_index", "args": order})
    yield ",\n".join(map(json.dumps, head))
    names = [json.dumps(name) for name in recorded.about["names"]]
    for track, name, start, length in in_turn(spans):
        yield (
            f',\n{{"ph":"X","pid":{pids[track]},"tid":{track},"name":{names[name]},'
            f'"ts":{start / 1e3:.3f},"dur":{length / 1e3:.3f}}}'
        )
    for at, title, value, unit in counters(recorded):
        yield ",\n" + json.dumps({"ph": "C", "pid": pid, "name": title, "ts": at * 1e6, "args": {unit: value}})
    yield "\n]}\n"


def in_turn(spans: NDArray[np.int64]) -> Iterator[list[int]]:
    """Yield the rows of an array as lists, converting a few at a time."""
    for first in range(0, len(spans), _AT_ONCE):
        yield from spans[first : first + _AT_ONCE].tolist()


def _pid(title: str, own: int) -> int:
    """Return the process of a track."""
    word = title.removeprefix("worker process ")
    return int(word) if word != title and word.isdigit() else own


def _named(pid: int, what: str, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": pid, "name": what, "args": {"name": name}}


def counters(recorded: Recorded) -> Iterator[tuple[float, str, float, str]]:
    """Yield the samples of each second: time, name, value, unit."""
    before: dict[str, tuple[float, float]] = {}
    for sample in recorded.samples:
        at = sample["at"]
        yield at, "memory of the process", sample["memory"], "bytes"
        for name, each in sample["pipelines"].items():
            last_at, waited = before.get(name, (0.0, 0.0))
            before[name] = at, each["waited"]
            share = min(max((each["waited"] - waited) / max(at - last_at, 1e-9), 0.0), 1.0)
            yield at, f"{name}: waiting for data", round(100 * share, 1), "percent"
            for lane in each["lanes"]:
                yield at, f"{name}: {lane['lane']} holds", lane["held"], "bytes"
                yield at, f"{name}: {lane['lane']} workers", lane["workers"], "workers"
