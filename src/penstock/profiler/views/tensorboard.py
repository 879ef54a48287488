"""Files of a recorded run for TensorBoard: scalars, the verdict as text, the Profile tab.

They are encoded here directly.

The tools of the Profile tab read the following, as experiments showed: the name of the plane; `step_num` and `_r` of
steps; waiting nested in steps on the same line, under a name that begins with IteratorGetNext; for stages
`_ipl_stage_id`, `_ipl_stage_name` and `_ipl_stage_cat`, as Grain writes them (ids of stages share a map with those of
names, so they begin at a large number); a line called `_counters_`, whose events have a `counter_value`. Names are
interned; times are picoseconds.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import crc32c
import numpy as np
from numpy.typing import NDArray

from penstock.io.tfrecord.framing import frame
from penstock.io.wire import delimited, encode_varint
from penstock.profiler.recording.store import Recorded
from penstock.profiler.views.trace import counters, in_turn

_MASK = (1 << 64) - 1


def integer(field: int, value: int) -> bytes:
    return encode_varint(field << 3) + encode_varint(value & _MASK)


def double(field: int, value: float) -> bytes:
    return encode_varint(field << 3 | 1) + struct.pack("<d", value)


def single(field: int, value: float) -> bytes:
    return encode_varint(field << 3 | 5) + struct.pack("<f", value)


def content(field: int, value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return delimited(field << 3 | 2, data)


_STRING = 7  # DT_STRING


def events(recorded: Recorded, told: dict[str, Any]) -> bytes:
    """Return the content of the events file: rates, waiting and memory by number of steps, per pipeline and stage."""
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
    """Return the scalars of one pipeline, for the time since the last sample."""
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
    """Return paragraphs, with the advice as a list."""
    first, *others = verdict["sentences"]
    parts = [f"**{first}**", *others]
    if verdict["changes"]:
        parts.append("\n".join(f"- {text}" for text in verdict["changes"]))
    return "\n\n".join(parts)


def _record(data: bytes) -> bytes:
    head, tail = frame(len(data), crc32c.crc32c(data))
    return head + data + tail


_PLANE = "/host:CPU"
_WAIT, _STEP = "wait for data", "step"  # the names used in observing.py
_PICO = 1000  # picoseconds per nanosecond
_MOST, _MOST_OF_LOOP = 60_000, 15_000  # spans: with more, the page takes long to open
_FIRST_STAGE = 1 << 40  # smallest id of a stage


def xplane(recorded: Recorded, spans: NDArray[np.int64]) -> list[bytes]:
    """Return the content of the profile file, in pieces. Of many spans it has the longest, of many steps the last."""
    names, titles = recorded.about["names"], recorded.about["tracks"]
    own, reading = recorded.about.get("own", []), set(recorded.about.get("reading", ()))
    step, wait = names.index(_STEP), names.index(_WAIT)
    loops = np.unique(spans[spans[:, 1] == wait, 0])
    of_loop = np.isin(spans[:, 1], (step, wait)) | (np.isin(spans[:, 1], own) & np.isin(spans[:, 0], loops))
    rest = spans[~of_loop]
    if len(rest) > _MOST:
        rest = rest[np.sort(np.argpartition(rest[:, 3], -_MOST)[-_MOST:])]
    plane = _Plane()
    plane.line(len(titles) + 1, "training loop", _steps(plane, spans[of_loop], (step, wait), names))
    for track, title in enumerate(titles):
        events = bytearray()
        for _, name, start, length in in_turn(rest[rest[:, 0] == track]):
            text = names[name]
            stage = name not in own and not text.startswith("pull for ")
            kind = "" if not stage else "read" if name in reading else "preprocessing"
            events += plane.event(text, start, length, stage=(name, kind))
        plane.line(track + 1, title, events)
    plane.line(len(titles) + 2, "_counters_", _counters(plane, recorded))
    return [*_long(1, plane.encoded()), content(4, recorded.about["host"])]


def _steps(plane: _Plane, spans: NDArray[np.int64], marks: tuple[int, int], names: Sequence[str]) -> bytearray:
    """Return steps with their numbers. Nested in them are the loop's waiting and work, and the user's spans."""
    step, wait = marks
    steps = spans[spans[:, 1] == step]
    first = max(len(steps) - _MOST_OF_LOOP, 0)
    steps = steps[first:]
    begins, ends = steps[:, 2], steps[:, 2] + steps[:, 3]
    others = spans[spans[:, 1] != step]
    at = np.searchsorted(begins, others[:, 2], "right") - 1
    inside = (at >= 0) & (others[:, 2] < ends[at]) if len(steps) else np.zeros(len(others), bool)
    others, at = others[inside][-2 * _MOST_OF_LOOP :], at[inside][-2 * _MOST_OF_LOOP :]
    others[:, 3] = np.minimum(others[:, 3], ends[at] - others[:, 2])
    waits = others[:, 1] == wait
    after = others[waits]  # the rest of a step, after a wait
    after[:, 2] += after[:, 3]
    after[:, 3] = ends[at[waits]] - after[:, 2]
    after[:, 1] = -1
    steps[:, 0] = np.arange(first, first + len(steps))
    every = np.concatenate([steps, others, after])
    found = bytearray()
    every = every[np.lexsort((-every[:, 3], every[:, 2]))]  # the outer ones first
    for number, name, start, length in in_turn(every):
        if name == step:
            found += plane.event("train", start, length, step_num=number, _r=1)
        else:
            text = "compute" if name < 0 else "IteratorGetNext" if name == wait else names[name]
            found += plane.event(text, start, length)
    return found


def _counters(plane: _Plane, recorded: Recorded) -> bytearray:
    found = bytearray()
    for at, name, value, unit in counters(recorded):
        found += plane.event(f"{name} ({unit})", int(at * 1e9), 0, counter_value=float(value))
    return found


class _Plane:
    """Collects lines and assigns numbers to names."""

    def __init__(self) -> None:
        self._events: dict[str, int] = {}
        self._stats: dict[str, int] = {}
        self._lines: list[bytes] = []

    def event(self, name: str, start: int, length: int, *, stage: tuple[int, str] = (0, ""), **stats: float) -> bytes:
        """Return an XEvent; for a stage with its number and its kind of work."""
        number = self._events.setdefault(name, len(self._events) + 1)
        body = integer(1, number) + integer(2, start * _PICO) + integer(3, length * _PICO)
        for key, value in stats.items():
            body += self._stat(key, double(2, value) if isinstance(value, float) else integer(4, value))
        if stage[1]:
            body += self._stat("_ipl_stage_id", integer(4, _FIRST_STAGE + stage[0]))
            body += self._stat("_ipl_stage_name", integer(7, self._number(name)))
            body += self._stat("_ipl_stage_cat", integer(7, self._number(stage[1])))
        return content(4, body)

    def _stat(self, key: str, value: bytes) -> bytes:
        return content(4, integer(1, self._number(key)) + value)

    def _number(self, text: str) -> int:
        return self._stats.setdefault(text, len(self._stats) + 1)

    def line(self, number: int, name: str, events: bytearray) -> None:
        if events:
            self._lines += _long(3, [integer(1, number) + content(2, name), bytes(events)])

    def encoded(self) -> list[bytes]:
        return [content(2, _PLANE), *self._lines, _interned(4, self._events), _interned(5, self._stats)]


def _long(field: int, parts: list[bytes]) -> list[bytes]:
    """Return `content` of several parts, without joining them."""
    return [encode_varint(field << 3 | 2) + encode_varint(sum(map(len, parts))), *parts]


def _interned(field: int, names: dict[str, int]) -> bytes:
    return b"".join(
        content(field, integer(1, number) + content(2, integer(1, number) + content(2, name)))
        for name, number in names.items()
    )
