"""The figure of a plan: its steps from the source down to the loop, as written and as they run, with their costs.

With the figures of an `Analysis`, each step has its rate and its share of the work, and the bottleneck is marked.
Without them, the figure describes how each step will run. On the left is the plan as the user wrote it; lines lead from
there to the rewritten steps.
"""

from __future__ import annotations

import os
import textwrap
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from penstock.errors import InvalidArgumentError
from penstock.io.writing import local
from penstock.options import Options
from penstock.plan.counted import count_text
from penstock.plan.node import Node, short_location
from penstock.plan.node_base import question
from penstock.profiler.analysis.bottleneck import bottleneck
from penstock.profiler.analysis.figures import LOOP, Analysis, Step, named, number, percent, place, runs_on, shortened
from penstock.profiler.analysis.model import cpu_share
from penstock.profiler.analysis.places import AsWritten, as_written, places
from penstock.profiler.explanation import how
from penstock.profiler.views.picture import HUES, Picture, written
from penstock.rewrite.driver import rewrite
from penstock.rewrite.phases import RULES

_BOX, _GAP, _MARGIN = 42, 16, 16
_LEFT, _BETWEEN, _RIGHT = 330, 90, 470  # pixels of the plan as written, of the lines, and of the plan as it runs
_IN, _MOST_IN = 22, 8  # indent of a branch in pixels, and the largest number of indents
_LETTER, _SMALL = 8.0, 6.2  # pixels of a letter of a title, and of a line below it
_BAR = 110
_MOST_TOLD = 3  # places of a rewrite that are listed


class _Box(NamedTuple):
    """A step to draw.

    `inputs` are names of other steps. `lane` names the threads that run it and selects its edge colour.
    """

    name: str
    title: str
    detail: str
    inputs: tuple[str, ...]
    where: str | None = None
    label: str = ""
    lane: str = ""
    share: float | None = None  # share of the work
    marked: bool = False


class Plot:
    """A plan as a figure. A notebook shows it; `save` writes it as SVG or PNG, depending on the suffix."""

    def __init__(self, picture: Picture, steps: int) -> None:
        self.picture, self._steps = picture, steps

    @property
    def svg(self) -> str:
        """An SVG document, for a light and a dark page."""
        return self.picture.svg(label="the plan of a data set")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the figure to `path`; missing folders are created. PNGs need OpenCV."""
        suffix = local(path, "path").suffix.lower()
        if suffix not in (".svg", ".png"):
            raise InvalidArgumentError(f"path must end in .svg or .png, got path={str(path)!r}.")
        return written(path, self.picture.png() if suffix == ".png" else self.svg.encode())

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        steps = "1 step" if self._steps == 1 else f"{self._steps} steps"
        size = f"{self.picture.width} x {self.picture.height}"
        return f"<Plot of {steps}, {size} pixels: save(path) writes an SVG or a PNG>"


@question()
def plot(plan: Node, options: Options, analysis: Analysis | None) -> Plot:
    """Return a plan as written and as it runs, with figures if there are any."""
    running, record = rewrite(plan, options)
    count = count_text(plan, options.seed, options.deterministic)
    runs = _planned(running, options) if analysis is None else _measured(analysis, bottleneck(analysis).step)
    before, notes = _before(as_written(plan, record))
    title = "plan" if options.dataset_name is None else f"plan of {options.dataset_name}"
    heading = f"{title}: {count} element{'' if count == '1' else 's'}"
    return Plot(_drawn(runs, before, notes, heading, _loop_text(analysis)), len(runs))


def plan_picture(analysis: Analysis, marked: str | None, written: AsWritten | None) -> Picture:
    """Return the executed plan with its figures, and the plan it came from, for the report of a profiled run."""
    return _drawn(_measured(analysis, marked), *_before(written), "", _loop_text(analysis))


# -- contents


def _before(written: AsWritten | None) -> tuple[list[_Box], list[str]]:
    """Return the plan as the user wrote it, and a note on each rule that has changed it; nothing if none has."""
    if written is None or not written["rewrites"]:
        return [], []
    boxes = []
    for each in written["steps"]:
        where, label = each["where"], each["label"]
        boxes.append(_Box(each["name"], label, short_location(where), tuple(each["inputs"]), where, label))
    changes: dict[str, list[str]] = {}
    for rule, before, after in written["rewrites"]:
        changes.setdefault(rule, []).append(f"{before} → {after}")
    notes = []
    for rule, found in changes.items():
        more = f" and {len(found) - _MOST_TOLD} more" if len(found) > _MOST_TOLD else ""
        sentence = RULES[rule].sentence if rule in RULES else ""  # the run may have been recorded by another version
        notes.append(f"{rule}: {', '.join(found[:_MOST_TOLD])}{more}. {sentence[:1].upper()}{sentence[1:]}")
    return boxes, notes


def _planned(running: Node, options: Options) -> list[_Box]:
    return [
        _Box(
            place.name,
            place.label,
            how(place.node, options),
            place.inputs,
            place.step.where,
            place.label,
            lane=str(id(place.node)) if place.node is not place.step else place.name,
        )
        for place in places(running)
    ]


def _measured(analysis: Analysis, marked: str | None) -> list[_Box]:
    found = []
    read = {name for step in analysis.steps for name in step.inputs}
    for step in analysis.steps:
        opened = [each.name for each in analysis.steps if each.name.startswith(f"{step.name}/")]
        found.append(
            _Box(
                step.name,
                named(step).partition("/")[2] or named(step),
                _figures(analysis, step),
                (*step.inputs, *(name for name in opened if name not in read)),
                step.where,
                step.label,
                step.lane,
                cpu_share(analysis, step),
                step.name == marked,
            )
        )
    return found


def _figures(analysis: Analysis, step: Step) -> str:
    if not step.elements:
        return "(idle)"
    threads = "the loop's thread" if step.lane == LOOP else runs_on(analysis, step)
    parts = [threads, f"{number(step.per_second)} a second", f"{number(step.work * 1e6)} µs of CPU"]
    if step.waiting > step.cpu / 4:
        parts.append(f"waits {number(step.waiting * 1e6)} µs")
    return " · ".join(parts)


def _loop_text(analysis: Analysis | None) -> str:
    if analysis is None or not analysis.elements_per_second:
        return ""
    rate = number(analysis.elements_per_second)
    return f"{rate} elements a second, waits {percent(analysis.consumer_waited)} of the time"


# -- layout


def _columns(boxes: Sequence[_Box]) -> tuple[list[_Box], dict[str, int]]:
    """Return the boxes with inputs before their readers, and the indent of each.

    The first input of a join is below it.
    """
    by_name = {box.name: box for box in boxes}
    read = {name for box in boxes for name in box.inputs}
    order: list[_Box] = []
    columns: dict[str, int] = {}
    waiting = [(box.name, 0, False) for box in boxes if box.name not in read]
    while waiting:
        name, column, again = waiting.pop()
        box = by_name[name]
        if again:
            order.append(box)
        elif name not in columns:
            columns[name] = column
            waiting.append((name, column, True))
            waiting += [
                (below, min(column + index, _MOST_IN), False)
                for index, below in reversed(list(enumerate(box.inputs)))
                if below in by_name
            ]
    return order, columns


def _drawn(runs: Sequence[_Box], written: Sequence[_Box], notes: Sequence[str], heading: str, loop: str) -> Picture:
    left = _LEFT + _BETWEEN if written else 0
    width = 2 * _MARGIN + left + _RIGHT
    top = _MARGIN + (26 if heading else 0) + (24 if written else 0)
    room = int((width - 40) / _SMALL)
    lines = [line for note in notes for line in textwrap.wrap(f"• {note}", room, subsequent_indent="  ")]
    rows = max(len(runs) + 1, len(written))
    height = top + rows * (_BOX + _GAP) + _MARGIN + (18 * len(lines) + 30 if lines else 0)
    picture = Picture(width, height)
    if heading:
        picture.text(_MARGIN, _MARGIN + 14, heading, size=15, bold=True)
    at = _graph(picture, runs, _MARGIN + left, top, _RIGHT, loop)
    if written:
        pairs = _same(written, runs)
        kept = {one for one, _ in pairs}
        written = [
            box
            if box.name in kept
            else box._replace(detail=f"{box.detail} · removed, or merged with another".lstrip(" ·"))
            for box in written
        ]
        from_ = _graph(picture, written, _MARGIN, top, _LEFT, None)
        picture.text(_MARGIN, top - 10, "as written", size=12, colour="soft")
        picture.text(_MARGIN + left, top - 10, "as it runs", size=12, colour="soft")
        for one, two in pairs:
            begin, end = from_[one], at[two]
            right = _MARGIN + _LEFT
            picture.line(
                [
                    (right + 3, begin[1] + _BOX / 2),
                    (right + 20, begin[1] + _BOX / 2),
                    (right + _BETWEEN - 20, end[1] + _BOX / 2),
                    (end[0] - 3, end[1] + _BOX / 2),
                ],
                "h7",
                width=1.2,
            )
    y = top + rows * (_BOX + _GAP) + 14
    if lines:
        picture.text(_MARGIN, y, "rewritten", size=12, bold=True)
    for index, line in enumerate(lines):
        x = _MARGIN + (10 if line.startswith(" ") else 0)
        picture.text(x, y + 20 + 18 * index, line.strip(), size=11, colour="soft")
    return picture


def _graph(
    picture: Picture, boxes: Sequence[_Box], left: float, top: float, width: float, loop: str | None
) -> dict[str, tuple[float, float]]:
    """Draw boxes below each other, with lines between them; return the position of each."""
    order, columns = _columns(boxes)
    at = {box.name: (left + _IN * columns[box.name], top + index * (_BOX + _GAP)) for index, box in enumerate(order)}
    lanes = {lane: index for index, lane in enumerate(dict.fromkeys(box.lane for box in order if box.lane))}
    for box in order:
        for name in box.inputs:
            _arrow(picture, at[name][0] + 11, at[name][1] + _BOX, at[box.name][1])
    for box in order:
        x, y = at[box.name]
        hue = HUES[lanes[box.lane] % (len(HUES) - 1)] if box.lane and box.lane != LOOP else "h7"
        _box(picture, box, x, y, left + width - x, hue)
    if loop is not None:
        end = top + len(order) * (_BOX + _GAP)
        for box in order[-1:]:
            _arrow(picture, at[box.name][0] + 11, at[box.name][1] + _BOX, end)
        picture.rectangle(left, end, width, _BOX, "step", opacity=0.15)
        picture.rectangle(left, end, 5, _BOX, "step")
        picture.text(left + 16, end + (18 if loop else 26), "the loop that takes the elements", bold=True)
        picture.text(left + 16, end + 34, loop, size=11, colour="soft")
    return at


def _box(picture: Picture, box: _Box, x: float, y: float, width: float, hue: str) -> None:
    outline = "bad" if box.marked else "rule"
    picture.rectangle(x, y, width, _BOX, "ground", outline=outline, title=place(box.where))
    if box.lane:
        picture.rectangle(x, y, 5, _BOX, hue)
    bar = _BAR if box.share is not None else 0
    room = width - 30 - bar
    colour = "bad" if box.marked else "text"
    lower = box.detail
    title = shortened(box.title, int(room / _LETTER))
    picture.text(x + 16, y + (18 if lower else 26), title, colour=colour, bold=True)
    picture.text(x + 16, y + 34, shortened(lower, int(room / _SMALL)), size=11, colour="soft")
    if box.share is not None:
        left = x + width - bar - 12
        picture.text(left, y + 18, f"{percent(box.share)} of the work", size=11, colour="soft")
        picture.rectangle(left, y + 25, bar, 8, "idle")
        picture.rectangle(left, y + 25, max(bar * min(box.share, 1.0), 1.0), 8, "bad" if box.marked else hue)


def _arrow(picture: Picture, x: float, y: float, end: float) -> None:
    picture.line([(x, y), (x, end - 2)], "soft", width=1.2)
    picture.line([(x - 4, end - 6), (x, end - 1), (x + 4, end - 6)], "soft", width=1.2)


def _same(written: Sequence[_Box], runs: Sequence[_Box]) -> list[tuple[str, str]]:
    """Return pairs of names: steps as written and as they run, matched by label and line, then by line only."""
    pairs: list[tuple[str, str]] = []
    for keys in (("label", "where"), ("where",)):
        left: dict[tuple[str, ...], list[str]] = defaultdict(list)
        taken = {name for pair in pairs for name in pair}
        for box in runs:
            if box.where is not None and box.name not in taken:
                left[tuple(getattr(box, key) for key in keys)].append(box.name)
        for box in written:
            found = left.get(tuple(str(getattr(box, key)) for key in keys))
            if box.name not in taken and found:
                pairs.append((box.name, found.pop(0)))
    return pairs
