"""xplane: a recorded run for TensorBoard's Profile tab: an XSpace with one plane, a line for each track.

What its tools look at, found by trying: the plane's name, `step_num` and `_r` on steps, waiting nested inside of them
on the same line under a name that begins with IteratorGetNext. Names are interned, times are picoseconds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.profiler.recording.store import Recorded
from penstock.profiler.views.wire import content, integer

_PLANE = "/host:CPU"
_WAIT, _STEP = "wait for data", "step"  # as recording.py names them
_PICO = 1000  # in a nanosecond


def xplane(recorded: Recorded, spans: NDArray[np.int64]) -> bytes:
    """The file's content."""
    names, titles = recorded.about["names"], recorded.about["tracks"]
    plane = _Plane()
    steps = spans[spans[:, 1] == names.index(_STEP)]
    waits = spans[spans[:, 1] == names.index(_WAIT)]
    plane.line(len(titles) + 1, "training loop", _steps(plane, steps, waits))
    for track, title in enumerate(titles):
        own = spans[(spans[:, 0] == track) & (spans[:, 1] != names.index(_STEP)) & (spans[:, 1] != names.index(_WAIT))]
        events = [plane.event(names[name], start, length) for _, name, start, length in own.tolist()]
        if events:
            plane.line(track + 1, title, events)
    return content(1, plane.encoded()) + content(4, recorded.about["host"])


def _steps(plane: _Plane, steps: NDArray[np.int64], waits: NDArray[np.int64]) -> list[bytes]:
    """Steps with their numbers, and what the loop waited in each."""
    found = []
    for number, (_, _, start, length) in enumerate(steps.tolist()):
        found.append((start, -length, plane.event("train", start, length, step_num=number, _r=1)))
    begins, ends = steps[:, 2], steps[:, 2] + steps[:, 3]
    at = np.searchsorted(begins, waits[:, 2], "right") - 1
    for (_, _, start, length), step in zip(waits.tolist(), at.tolist(), strict=True):
        if step >= 0 and start < ends[step]:
            inside = min(length, int(ends[step]) - start)
            found.append((start, -inside, plane.event("IteratorGetNext", start, inside)))
            rest = int(ends[step]) - start - inside
            found.append((start + inside, -rest, plane.event("compute", start + inside, rest)))
    return [event for _, _, event in sorted(found)]  # what encloses others comes first


class _Plane:
    """Collects lines; knows the numbers of names."""

    def __init__(self) -> None:
        self._events: dict[str, int] = {}
        self._stats: dict[str, int] = {}
        self._lines: list[bytes] = []

    def event(self, name: str, start: int, length: int, **stats: int) -> bytes:
        number = self._events.setdefault(name, len(self._events) + 1)
        body = integer(1, number) + integer(2, start * _PICO) + integer(3, length * _PICO)
        for key, value in stats.items():
            stat = self._stats.setdefault(key, len(self._stats) + 1)
            body += content(4, integer(1, stat) + integer(4, value))
        return content(4, body)

    def line(self, number: int, name: str, events: list[bytes]) -> None:
        self._lines.append(content(3, integer(1, number) + content(2, name) + b"".join(events)))

    def encoded(self) -> bytes:
        return content(2, _PLANE) + b"".join(self._lines) + _interned(4, self._events) + _interned(5, self._stats)


def _interned(field: int, names: dict[str, int]) -> bytes:
    return b"".join(
        content(field, integer(1, number) + content(2, integer(1, number) + content(2, name)))
        for name, number in names.items()
    )
