"""Draw the timeline of a recorded run as a small SVG: the work of each thread and process, and the training loop."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

import numpy as np

from penstock.profiler.recording.store import Recorded
from penstock.profiler.views.chart import SpanKind, TimelineRow, legend, panel, side_by_side, time_axis
from penstock.profiler.views.picture import Picture

KINDS = [
    SpanKind("training step", "step"),
    SpanKind("waiting for data", "wait"),
    SpanKind("read", "h3"),
    SpanKind("decode", "h0"),
    SpanKind("annotate", "h2"),
    SpanKind("balance", "h1"),
    SpanKind("other steps", "h7"),
]
# Parts of the names of spans, and the kinds of these spans. The first match decides.
WORDS = {
    "distribute(": len(KINDS) - 1,
    "pull for": None,  # a worker that waits for its input
    "prefetch(": None,  # a worker that waits for its input
    "batch(32)": None,
    "repeat(": None,
    "wait for data": 1,
    "map(receive)": 2,
    "TFRecord": 2,
    "map(decode": 3,
    "map(annotate)": 4,
    "map(balance": 5,
}
LEFT, WIDTH, MOST_ROWS = 110, 610, 5


def draw(runs: dict[str, Recorded], path: Path, seconds: float, label: str) -> None:
    """Draw the last `seconds` of each run, one below the other. Several runs have titles above them."""
    picture = Picture(LEFT + WIDTH, 1)
    parts = {title: _rows(recorded, seconds) for title, recorded in runs.items()}
    used = {int(kind) for rows, _ in parts.values() for row in rows for kind in row.spans[:, 0]}
    y = legend(picture, 0, 2, [KINDS[kind] for kind in sorted(used)]) + 6
    for title, (rows, start) in parts.items():
        if len(runs) > 1:
            picture.text(0, y + 14, title, size=14, bold=True)
            y += 24
        y = panel(picture, (LEFT, y, WIDTH), rows, KINDS, (start, seconds * 1e9)) + 4
    picture.height = int(time_axis(picture, LEFT, y, WIDTH, seconds))
    path.write_text(titled(picture, label), encoding="utf-8")


def _rows(recorded: Recorded, seconds: float) -> tuple[list[TimelineRow], int]:
    """Return the lanes of the end of a run, and the start of this end."""
    spans = recorded.spans()
    names, tracks = recorded.about["names"], recorded.about["tracks"]
    step = names.index("step")
    stop = int((spans[:, 2] + spans[:, 3])[spans[:, 1] == step].max())
    start = stop - int(seconds * 1e9)
    kinds = [0 if number == step else _kind(name) for number, name in enumerate(names)]
    spans = spans[(spans[:, 2] < stop) & (spans[:, 2] + spans[:, 3] > start)]
    spans = spans[[kinds[name] is not None for name in spans[:, 1]]]
    spans[:, 1] = [kinds[name] for name in spans[:, 1]]
    work, loop = spans[spans[:, 1] > 1], spans[spans[:, 1] <= 1]
    gap = int(2 * seconds * 1e9 / WIDTH)  # two pixels
    rows = [TimelineRow(tracks[track], _joined(work[work[:, 0] == track, 1:], gap)) for track in np.unique(work[:, 0])]
    threads = side_by_side([row for row in rows if not row.title.startswith("worker process")], "thread")
    processes = side_by_side([row for row in rows if row.title.startswith("worker process")], "process")
    processes = processes[: MOST_ROWS // 2]
    return [*threads[: MOST_ROWS - len(processes)], *processes, TimelineRow("training loop", loop[:, 1:])], start


def _joined(spans: np.ndarray, gap: int) -> np.ndarray:
    """Join spans of one kind (kind, start, duration in ns) that are less than `gap` ns apart."""
    spans = spans[np.argsort(spans[:, 1], kind="stable")]
    stops = spans[:, 1] + spans[:, 2]
    new = np.ones(len(spans), bool)
    new[1:] = (np.diff(spans[:, 0]) != 0) | (spans[1:, 1] - stops[:-1] >= gap)
    first = np.flatnonzero(new)
    joined = spans[first]
    if len(spans):
        joined[:, 2] = np.maximum.reduceat(stops, first) - joined[:, 1]
    return joined


def titled(picture: Picture, label: str) -> str:
    """Return a small SVG document whose title is also its text alternative."""
    document = re.sub(r"><title>[^<]*</title></rect>", "/>", picture.svg(label=label))  # the legend names the colours
    return document.replace("<style>", f"<title>{escape(label)}</title>\n<style>", 1)


def _kind(name: str) -> int | None:
    return next((kind for word, kind in WORDS.items() if word in name), len(KINDS) - 1)
