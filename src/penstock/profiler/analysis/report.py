"""The text of an analysis: a row per step, the consumer's side first; the bottleneck; advice."""

from __future__ import annotations

import textwrap

from penstock.profiler.analysis.advice import advice, nothing_to_do
from penstock.profiler.analysis.bottleneck import bottleneck
from penstock.profiler.analysis.figures import (
    LOOP,
    Analysis,
    LaneFigures,
    Step,
    named,
    number,
    rate_text,
    runs_on,
    seconds,
    shortened,
    size,
    waited_text,
)
from penstock.profiler.analysis.model import cpu_seconds, cpu_share, fitted
from penstock.profiler.analysis.prediction import later

WIDTH = 100
_FIRST = 24
_SHORT = 0.1  # seconds
_PASSES = {0: "", 1: ", to the end of the data"}
_COLUMNS = (
    ("runs on", 12),
    ("elements/s", 10),
    ("CPU µs", 8),
    ("wall µs", 8),
    ("CPU %", 5),
    ("lock %", 6),
    ("in %", 4),
    ("out %", 5),
    ("held", 7),
)
_LEGEND = """\
µs: per element of the step; wall: while all steps run. CPU %: share of all work. lock %: share
of its work that holds the GIL. in %, out %: share of the time that its threads wait for elements,
for room. held: most bytes computed ahead."""


def report(analysis: Analysis) -> str:
    """Return the paragraphs, each below its title."""
    parts = ["measured", _indented(_head(analysis)), _indented(_table(analysis))]
    parts += [_indented(_LEGEND)]
    reasons = [f"{lane.name}: {lane.reason}" for lane in analysis.lanes if lane.reason]
    if reasons:
        parts += ["what AUTOTUNE chose", *(_filled(reason) for reason in reasons)]
    parts += ["bottleneck", _filled(bottleneck(analysis).sentence)]
    then = later(analysis)
    if then is not None:
        parts += [_filled(then.sentence)]
    if analysis.elements_per_second:
        found = [each.sentence for each in advice(analysis)] or [nothing_to_do(analysis)]
        parts += ["what would help", *(_filled(sentence) for sentence in found)]
        parts += [_filled(_trust(analysis))]
    return "\n".join(parts)


def _filled(text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent="  ", subsequent_indent="    ")


def _indented(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.splitlines())


def _head(analysis: Analysis) -> str:
    until = _PASSES.get(analysis.passes, f", {analysis.passes:,} iterations over the data")
    used = f"{analysis.cpu_used:.2f} of {number(analysis.cpus)} {'core' if analysis.cpus == 1 else 'cores'} used"
    lines = [f"{rate_text(analysis)} ({analysis.elements:,} in {seconds(analysis.seconds)}{until}), {used}"]
    took = f"; it took {seconds(analysis.consumer_seconds)} for each" if analysis.consumer_seconds else ""
    lines.append(f"{waited_text(analysis)}{took}")
    if analysis.failures:
        lines.append(f"{analysis.failures:,} elements failed, the first by {analysis.first_failure}"[:WIDTH])
    return "\n".join(lines)


def _table(analysis: Analysis) -> str:
    rows = [_row("step", [title for title, _ in _COLUMNS])]
    rows.append(_row("(the loop)", _loop_cells(analysis)))
    seen = {LOOP}
    for step in reversed(analysis.steps):
        lane = analysis.lane(step.lane)
        first = lane.name not in seen
        seen.add(lane.name)
        rows.append(_row(_first(step), _cells(analysis, step, lane, first=first)))
    return "\n".join(rows)


def _first(step: Step) -> str:
    """Return name and argument of a step, shortened to the column. Steps of inner data sets are indented."""
    text = named(step)
    if "/" in step.name:
        text = "  " + text.partition("/")[2]
    return shortened(text, _FIRST)


def _row(first: str, cells: list[str]) -> str:
    parts = [f"{first:<{_FIRST}}"]
    for (title, width), cell in zip(_COLUMNS, cells, strict=True):
        parts.append(f"{cell:<{width}}" if title == "runs on" else f"{cell:>{width}}")
    return " ".join(parts).rstrip()


def _loop_cells(analysis: Analysis) -> list[str]:
    total = cpu_seconds(analysis)
    share = _share(analysis.handing / total) if total else ""
    return ["loop", number(analysis.elements_per_second), _micro(analysis.handing), "", share, "", "", "", ""]


def _cells(analysis: Analysis, step: Step, lane: LaneFigures, *, first: bool) -> list[str]:
    waited = sum(other.starved for other in analysis.lanes if other.consumer == lane.name)
    fed = any(other.consumer == lane.name for other in analysis.lanes)
    return [
        runs_on(analysis, step) if step.elements else "(idle)",
        number(step.per_second),
        _micro(step.work),
        _micro(step.wall),
        _share(cpu_share(analysis, step)) if cpu_seconds(analysis) else "",
        _share(step.held / step.cpu) if step.cpu and analysis.lock else "",
        _share(min(waited, 1.0)) if first and fed else "",
        _share(lane.full) if first and lane.window is not None else "",
        size(lane.held_bytes) if first and lane.window is not None else "",
    ]


def _micro(value: float) -> str:
    """Return microseconds, or seconds if there are many."""
    return number(value * 1e6) if value < 1 else f"{number(value)} s"


def _share(value: float) -> str:
    return f"{100 * value:.0f}"


def _trust(analysis: Analysis) -> str:
    fit = fitted(analysis)
    text = f"The model computes {number(analysis.elements_per_second / fit)} elements a second from these figures"
    text += f"; {number(analysis.elements_per_second)} were measured."
    if analysis.passes and analysis.seconds < _SHORT:
        text += f" The data set ended after {seconds(analysis.seconds)}: figures of so short a time are rough."
    if analysis.slowed > 1.2:
        text += f" Other programs were busy: work took {analysis.slowed:.1f} times its CPU time."
    return text
