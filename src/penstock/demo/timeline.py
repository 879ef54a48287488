"""The timeline shows training steps and pipeline stages. The naive run is above the pipelined run, on one time scale.

The drawing functions are those of the report of a profiled run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.demo.loop import TRAIN, WAIT, Span, TrainingRun
from penstock.profiler.views.chart import GAP, LANE, SpanKind, TimelineRow, legend, panel, side_by_side, time_axis
from penstock.profiler.views.picture import Picture

KINDS = (
    SpanKind("training step", "step"),
    SpanKind("waiting for data", (252, 165, 165)),
    SpanKind("parse, decode, resize", "h0"),
    SpanKind("read records", "h1"),
    SpanKind("cache, shuffle, batch", "h2"),
)
_WORDS = ((TRAIN,), (WAIT,), ("map",), ("interleave", "TFRecord", "list_files"), ("",))  # words in the labels of a kind
_WIDTH, _LEFT, _RIGHT = 1500, 150, 30
_MOST_LANES = 8


def draw_timeline(naive: TrainingRun, pipelined: TrainingRun, zoom: float = 0.6) -> Picture:
    """Draw two panels: both runs as a whole, and `zoom` seconds of the first epoch of each."""
    runs = (naive, pipelined)
    lanes = [_lanes(run) for run in runs]
    rows = sum(map(len, lanes))
    height = 140 + 2 * (rows * (LANE + GAP) + 2 * 32 + 50)
    picture = Picture(_WIDTH, height)
    ratio = naive.seconds / pipelined.seconds
    picture.text(24, 38, f"penstock demo: {ratio:.1f} times as fast, the same batches", size=22)
    legend(picture, 24, 55, KINDS)
    longest = max(run.seconds for run in runs)
    y = _panel(picture, 104, f"all epochs ({longest:.1f} s)", runs, lanes, [0.0, 0.0], longest)
    starts = [max(run.epochs[0].seconds / 2 - zoom / 2, 0.0) for run in runs]
    title = f"{zoom:g} s from the middle of the first epoch"
    _panel(picture, y + 36, title, runs, lanes, starts, zoom)
    return picture


def _number_of(label: str) -> int:
    """Return the number of the kind of a span: the first kind with a word that is in its label."""
    return next(number for number, words in enumerate(_WORDS) if any(word in label for word in words))


def _lanes(run: TrainingRun) -> list[TimelineRow]:
    """Return the lanes of the training loop and of the workers.

    A thread that ended before another one began shares its lane.
    """
    loop = next(span.thread for span in run.spans if span.label == TRAIN)
    threads: dict[str, list[Span]] = {loop: []}
    for span in run.spans:
        threads.setdefault(span.thread, []).append(span)
    workers = side_by_side([TimelineRow(name, _nanoseconds(spans)) for name, spans in threads.items() if name != loop])
    return [TimelineRow("training loop", _nanoseconds(threads[loop])), *workers[: _MOST_LANES - 1]]


def _nanoseconds(spans: Sequence[Span]) -> NDArray[np.int64]:
    found = [(_number_of(span.label), span.start * 1e9, (span.stop - span.start) * 1e9) for span in spans]
    return np.array(found).astype(np.int64).reshape(-1, 3)


def _panel(
    picture: Picture,
    y: float,
    title: str,
    runs: Sequence[TrainingRun],
    lanes: Sequence[list[TimelineRow]],
    starts: Sequence[float],
    length: float,
) -> float:
    """Draw one panel with its top at `y`, and return its lower end."""
    picture.text(24, y + 4, title, size=15)
    y += 14
    width = _WIDTH - _LEFT - _RIGHT
    for run, rows, start in zip(runs, lanes, starts, strict=True):
        y += 24
        picture.text(24, y, f"{run.title}: {run.waiting / run.seconds:.0%} of the time waiting for data", size=13)
        y = panel(picture, (_LEFT, y + 8, width), rows, KINDS, (start * 1e9, length * 1e9))
    return time_axis(picture, _LEFT, y, width, length)
