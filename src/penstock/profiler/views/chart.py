"""Charts of a report: SVG in the page's own colours, without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from penstock.profiler.analysis.wording import seconds

WIDTH, LEFT, ROW, GAP = 960, 150, 18, 4
HUES = 8  # colours of stages, in the page's style sheet: h0, h1, …


def timeline(
    rows: Sequence[tuple[str, NDArray[np.int64]]], classes: Sequence[str], names: Sequence[str], start: int, stop: int
) -> str:
    """A row for each track: what it was at from `start` to `stop` (nanoseconds); nested spans lie over outer ones."""
    cells = WIDTH - LEFT
    height = len(rows) * (ROW + GAP) + 22
    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="timeline">']
    for index, (title, spans) in enumerate(rows):
        y = index * (ROW + GAP)
        parts.append(f'<text x="{LEFT - 8}" y="{y + 13}" class="label">{escape(_short(title, 22))}</text>')
        parts.append(f'<rect x="{LEFT}" y="{y}" width="{cells}" height="{ROW}" class="idle"/>')
        painted = np.full(cells, -1)
        at = np.clip((spans[:, 2] - start) * cells / (stop - start), 0, cells)
        end = np.clip((spans[:, 2] + spans[:, 3] - start) * cells / (stop - start), 0, cells)
        for each in np.argsort(-spans[:, 3], kind="stable").tolist():
            first, last = int(at[each]), int(np.ceil(end[each]))
            painted[first : max(last, first)] = spans[each, 1]
        x = LEFT
        for name, run in groupby(painted.tolist()):
            width = len(list(run))
            if name >= 0:
                said = escape(names[name])
                shape = f'<rect x="{x}" y="{y}" width="{width}" height="{ROW}" class="{classes[name]}">'
                parts.append(f"{shape}<title>{said}</title></rect>")
            x += width
    for tick in range(5):
        x = LEFT + cells * tick // 4
        said = seconds((stop - start) / 1e9 * tick / 4) if tick else "0"
        anchor = "start" if tick == 0 else "end" if tick == 4 else "middle"
        parts.append(f'<text x="{x}" y="{height - 6}" class="tick" text-anchor="{anchor}">{said}</text>')
    return "".join([*parts, "</svg>"])


def line(title: str, at: Sequence[float], values: Sequence[float], top: str, most: float, hue: str = "h0") -> str:
    """A value over time; `top` says what the upper edge means."""
    height, right = 90, WIDTH - LEFT
    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">']
    parts.append(f'<text x="{LEFT - 8}" y="20" class="label">{escape(_short(title, 22))}</text>')
    parts.append(f'<text x="{LEFT - 8}" y="36" class="tick" text-anchor="end">top: {escape(top)}</text>')
    parts.append(f'<rect x="{LEFT}" y="4" width="{right}" height="64" class="idle"/>')
    if at and most > 0:
        last = max(at[-1], 1e-9)
        points = [
            f"{LEFT + right * x / last:.1f},{68 - 64 * min(max(value / most, 0), 1):.1f}"
            for x, value in zip(at, values, strict=True)
        ]
        parts.append(f'<polyline points="{" ".join(points)}" class="line {hue}"/>')
        parts.append(f'<text x="{LEFT}" y="84" class="tick">0</text>')
        parts.append(f'<text x="{WIDTH}" y="84" class="tick" text-anchor="end">{seconds(last)}</text>')
    return "".join([*parts, "</svg>"])


def bars(values: Sequence[int], labels: Sequence[str]) -> str:
    """How often each of some classes was met."""
    height, right = 110, WIDTH - LEFT
    most, count = max(values, default=1) or 1, max(len(values), 1)
    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="waiting per step">']
    parts.append(f'<text x="{LEFT - 8}" y="20" class="label">waits of</text>')
    for index, (value, label) in enumerate(zip(values, labels, strict=True)):
        tall = 70 * value / most
        x, width = LEFT + right * index / count, right / count - 2
        parts.append(
            f'<rect x="{x:.1f}" y="{76 - tall:.1f}" width="{width:.1f}" height="{tall:.1f}" class="wait">'
            f"<title>{value:,} below {escape(label)}</title></rect>"
        )
        parts.append(f'<text x="{x:.1f}" y="92" class="tick">&lt;{escape(label)}</text>')
    return "".join([*parts, "</svg>"])


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
