"""Charts on a `Picture`: a timeline of threads, a value over time, and a histogram.

`panel` draws the timelines of reports and of the demo.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.profiler.analysis.figures import seconds, shortened
from penstock.profiler.views.picture import Colour, Picture

LANE, GAP = 20, 4
_CELLS = 8  # cells per pixel for the layout of spans: a span shorter than a pixel changes the opacity of its colour
_LETTER = 7.8  # average width of a letter of a legend in pixels
_LONGEST = 60  # letters of a title in a legend


class SpanKind(NamedTuple):
    """A kind of spans: its name in the legend, and its colour."""

    title: str
    colour: Colour


class TimelineRow(NamedTuple):
    """A lane of a timeline. Spans are rows of kind (by number), start and length, in one unit of time."""

    title: str
    spans: NDArray[np.int64]


def side_by_side(rows: Sequence[TimelineRow], title: str = "worker") -> list[TimelineRow]:
    """Return rows with new titles, in the order of their start. Rows that do not overlap in time share a row."""
    found: list[tuple[list[NDArray[np.int64]], int]] = []
    for row in sorted((row for row in rows if len(row.spans)), key=lambda row: int(row.spans[:, 1].min())):
        began, ended = int(row.spans[:, 1].min()), int((row.spans[:, 1] + row.spans[:, 2]).max())
        free = next((i for i, (_, until) in enumerate(found) if until <= began), None)
        if free is None:
            found.append(([row.spans], ended))
        else:
            found[free] = ([*found[free][0], row.spans], ended)
    return [TimelineRow(f"{title} {number}", np.concatenate(spans)) for number, (spans, _) in enumerate(found, 1)]


def legend(picture: Picture, x: float, y: float, kinds: Sequence[SpanKind]) -> float:
    """Draw the colours of some kinds, in lines as wide as the image; return the y position after them."""
    left = x
    for kind in kinds:
        title = shortened(kind.title, _LONGEST)  # the title of fused steps contains all their names
        wide = 32 + _LETTER * len(title)
        if x > left and x + wide > picture.width:
            x, y = left, y + 20
        picture.rectangle(x, y, 12, 12, kind.colour)
        picture.text(x + 18, y + 11, title, size=13)
        x += wide
    return y + 20


def panel(
    picture: Picture,
    box: tuple[float, float, float],
    rows: Sequence[TimelineRow],
    kinds: Sequence[SpanKind],
    window: tuple[float, float],
) -> float:
    """Draw a lane per row for a `window` (start, length) in a `box` (left, top, width); return the y after it."""
    left, y, width = box
    for row in rows:
        picture.text(left - 10, y + LANE - 6, shortened(row.title, 24), size=12, colour="soft", anchor="end")
        picture.rectangle(left, y, width, LANE, "idle")
        for x, wide, kind, share in painted(row.spans, *window, int(width)):
            title = kinds[kind].title
            picture.rectangle(left + x, y, wide, LANE, kinds[kind].colour, opacity=share, title=title)
        y += LANE + GAP
    return y


def painted(spans: NDArray[np.int64], start: float, length: float, width: int) -> list[tuple[int, int, int, float]]:
    """Return stretches of a lane `width` pixels wide: position, width, most frequent kind, and its share of the time.

    Nested spans are drawn over the spans that contain them (a stage reads from the one before it).

    >>> painted(np.array([[0, 0, 50], [1, 10, 20]]), 0, 100, 10)
    [(0, 1, 0, 1.0), (1, 2, 1, 1.0), (3, 2, 0, 1.0)]
    """
    cells = np.full(width * _CELLS, -1)
    scale = len(cells) / length
    first = np.clip(np.rint((spans[:, 1] - start) * scale), 0, len(cells)).astype(np.int64)
    last = np.clip(np.rint((spans[:, 1] + spans[:, 2] - start) * scale), 0, len(cells)).astype(np.int64)
    for each in np.argsort(-spans[:, 2], kind="stable").tolist():
        cells[first[each] : last[each]] = spans[each, 0]
    kinds = int(cells.max(initial=-1)) + 1
    if not kinds:
        return []
    pixels = cells.reshape(width, _CELLS)
    counts = np.stack([(pixels == kind).sum(1) for kind in range(kinds)], 1)
    most, busy = counts.argmax(1), counts.sum(1)
    found = []
    x = 0
    for (kind, share), run in groupby(zip(most.tolist(), busy.tolist(), strict=True)):
        wide = len(list(run))
        if share:
            found.append((x, wide, kind, share / _CELLS))
        x += wide
    return found


def time_axis(picture: Picture, left: float, y: float, width: float, length: float) -> float:
    """Draw a scale of `length` seconds from 0 on, with round numbers; return the y position after it."""
    sizes = (digit * 10.0**power for power in range(-7, 6) for digit in (1, 2, 5))
    step = next(size for size in sizes if length / size <= 12)
    picture.rectangle(left, y + 2, width, 1, "soft")
    for number in range(int(length / step) + 1):
        x = left + width * number * step / length
        picture.rectangle(x, y + 2, 1, 6, "soft")
        said = "0" if not number else f"{number * step * 1e3:g} ms" if length < 1.5 else f"{number * step:g} s"
        at_end = x > left + width - 20
        anchor = "end" if at_end else "middle" if number else "start"
        picture.text(x, y + 22, said, size=11, colour="soft", anchor=anchor)  # type: ignore[arg-type]
    return y + 34


def _chart(height: int, title: str, top: str, tall: int) -> tuple[Picture, int, int]:
    """Return an empty chart, and the left edge and the width of its area of `tall` pixels."""
    picture, left = Picture(960, height), 170
    width = picture.width - left
    picture.text(left - 10, 18, shortened(title, 24), size=12, colour="soft", anchor="end")
    picture.text(left - 10, 34, f"top: {top}", size=11, colour="soft", anchor="end")
    picture.rectangle(left, 4, width, tall, "idle")
    return picture, left, width


def line_chart(title: str, at: Sequence[float], values: Sequence[float], top: tuple[str, float], hue: str) -> Picture:
    """Draw a value over time (seconds); `top` is the label and the value of the upper edge."""
    said, most = top
    picture, left, width = _chart(92, title, said, 60)
    last = max(at[-1], 1e-9) if at else 0.0
    if at and most > 0:
        points = [
            (left + width * moment / last, 63 - 58 * min(max(value / most, 0.0), 1.0))
            for moment, value in zip(at, values, strict=True)
        ]
        if len(points) == 1:
            points = [(float(left), points[0][1]), (float(picture.width), points[0][1])]
        picture.line(points, hue, width=1.5)
    if at:
        time_axis(picture, left, 62, width, last)
    return picture


def bar_chart(title: str, values: Sequence[int], edges: Sequence[float]) -> Picture:
    """Draw how often a duration was below each of some `edges` (seconds), and not below the previous one."""
    most, count = max(values, default=1) or 1, max(len(values), 1)
    picture, left, width = _chart(112, title, f"{most:,}", 76)
    each = width / count
    every = -(-count // 11)  # distance of labels, so that they fit
    for index, (value, edge) in enumerate(zip(values, edges, strict=True)):
        x, tall = left + each * index, 72 * value / most
        label = seconds(edge)
        if value:
            said = f"{value:,} below {label}"
            picture.rectangle(x + 1, 80 - max(tall, 1), each - 2, max(tall, 1), "wait", title=said)
        if index % every == 0:
            picture.text(x + each / 2, 98, f"<{label}", size=11, colour="soft", anchor="middle")
    return picture
