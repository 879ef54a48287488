"""page: a recorded run as one self-contained HTML page: the verdict, the timeline, the steps, the waiting times."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.profiler.analysis.figures import Analysis, number, percent, place, seconds, shortened, size
from penstock.profiler.analysis.model import cpu_share
from penstock.profiler.analysis.report import report
from penstock.profiler.recording.store import Recorded
from penstock.profiler.views.chart import (
    SpanKind,
    TimelineRow,
    bar_chart,
    legend,
    line_chart,
    panel,
    side_by_side,
    time_axis,
)
from penstock.profiler.views.picture import DARK, HUES, PALETTE, Picture, style
from penstock.profiler.views.plan import plan_picture

_WAIT, _STEP = "wait for data", "step"
_MOST_ROWS = 12
_MOST_DRAWN = 20  # steps of a plan up to which its figure is shown directly
_SHOWN = 40  # steps in the timeline
_LEFT, _WIDE = 170, 790  # pixels of the timeline's titles, and of its lanes


def _variables(ground: int) -> str:
    return "".join(f"--{name}:{both[ground]};" for name, both in PALETTE.items() if name not in HUES)


STYLE = (
    f"""
:root{{color-scheme:light dark;{_variables(0)}}}
{DARK}{{:root{{{_variables(1)}}}}}
"""
    + """
body{background:var(--ground);color:var(--text);font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:62rem;
padding:0 1rem}
h1{font-size:1.3rem;margin:0}h2{font-size:1.05rem;margin:2rem 0 .5rem;overflow-wrap:anywhere}
.verdict{border-left:5px solid;padding:.6rem 1rem;margin:1rem 0;background:var(--idle);overflow-wrap:anywhere}
.verdict p{margin:.3rem 0}.no{border-color:var(--good)}.slightly{border-color:var(--mid)}.yes{border-color:var(--bad)}
.soft{color:var(--soft)}.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:13px}
th,td{border-bottom:1px solid var(--rule);padding:.25rem .5rem;text-align:right;white-space:nowrap}
th:first-child,td:first-child,th:nth-child(2),td:nth-child(2),.why{text-align:left}
tr.held td{font-weight:600;color:var(--bad)}svg{width:100%;height:auto;display:block;margin:.3rem 0}
pre{font-size:12px;overflow-x:auto;background:var(--idle);padding:.6rem}
summary{cursor:pointer}
"""
)


def page(recorded: Recorded, told: dict[str, Any], spans: NDArray[np.int64]) -> str:
    """Return the whole page."""
    title = f"penstock profile {told['run']}"
    body = [f"<h1>{escape(title)}</h1>", f'<p class="soft">{_facts(told)}</p>']
    if not told["pipelines"]:
        body.append("<p>No data set was iterated while this profile was recorded.</p>")
    body += [_verdict(each, alone=len(told["pipelines"]) == 1) for each in told["pipelines"]]
    body += ["<h2>Timeline</h2>", _timeline(recorded, spans)]
    body += [_pipeline(recorded, each, alone=len(told["pipelines"]) == 1) for each in told["pipelines"]]
    body.append(_memory(recorded))
    head = f"<meta charset=utf-8><meta name=viewport content='width=device-width'><title>{escape(title)}</title>"
    head += f"<style>{STYLE}{style()}</style>"
    return f"<!doctype html><html lang=en><head>{head}</head><body>{''.join(body)}</body></html>"


def _facts(told: dict[str, Any]) -> str:
    steps = sum(each["steps"] for each in told["pipelines"])
    return f"{seconds(told['seconds'])} on {escape(told['host'])}, {steps:,} elements (batches) taken"


def _heading(each: dict[str, Any]) -> str:
    return f"{escape(each['name'])} <span class=soft>({escape(place(each['defined_at']))})</span>"


def _verdict(each: dict[str, Any], *, alone: bool) -> str:
    found = each["verdict"]
    lines = [f"<p><b>{escape(found['sentences'][0])}</b></p>"]
    lines += [f"<p>{escape(text)}</p>" for text in found["sentences"][1:]]
    if found["changes"]:
        lines.append("<p class=soft>What would help:</p>")
        lines += [f"<p>→ {escape(text)}</p>" for text in found["changes"]]
    title = "" if alone else f"<p class=soft>{_heading(each)}</p>"
    return f"<div class='verdict {found['input_bound']}'>{title}{''.join(lines)}</div>"


def _timeline(recorded: Recorded, spans: NDArray[np.int64]) -> str:
    """Return a timeline of some training steps: threads and worker processes above, the training loop below."""
    names, titles = recorded.about["names"], recorded.about["tracks"]
    if not len(spans):
        return "<p class=soft>No spans were recorded.</p>"
    wait, step = names.index(_WAIT), names.index(_STEP)
    steps = spans[spans[:, 1] == step]
    start, stop = _window(steps if len(steps) else spans)
    inside = spans[(spans[:, 2] < stop) & (spans[:, 2] + spans[:, 3] > start)]
    kinds, number = _kinds(names, inside, set(recorded.about.get("own", ())))
    loops = set(inside[inside[:, 1] == wait, 0].tolist())  # tracks of threads that take elements
    of_loop, own = [], []
    threads: list[TimelineRow] = []
    processes: list[TimelineRow] = []
    for track, title in enumerate(titles):
        here = inside[inside[:, 0] == track]
        marks = np.isin(here[:, 1], (wait, step))
        of_loop.append(here[marks])
        theirs = np.isin(here[:, 1], recorded.about.get("own", ()))
        own.append(here[theirs])
        rest = _numbered(here[~marks & ~theirs], number)
        if len(rest):
            found = TimelineRow(f"{title}, in the loop" if track in loops else title, rest)
            (processes if title.startswith("worker process") else threads).append(found)
    rows = [*side_by_side(threads, "thread"), *processes]
    shown = [*rows[:_MOST_ROWS], TimelineRow("training loop", _numbered(np.concatenate(of_loop), number))]
    if sum(map(len, own)):
        shown.append(TimelineRow("your spans", _numbered(np.concatenate(own), number)))
    picture = Picture(_LEFT + _WIDE, 1)
    y = legend(picture, 0, 0, [kinds[each] for each in sorted({number[each] for each in inside[:, 1].tolist()})])
    y = panel(picture, (_LEFT, y + 8, _WIDE), shown, kinds, (start, stop - start))
    picture.height = int(time_axis(picture, _LEFT, y, _WIDE, (stop - start) / 1e9))
    text = f"{seconds((stop - start) / 1e9)} from {seconds(start / 1e9)} on. The whole run: trace.json.gz."
    text += f" {len(rows) - _MOST_ROWS} more tracks are left out." if len(rows) > _MOST_ROWS else ""
    return f"<p class=soft>{text}</p>{picture.svg(inside=True, label='timeline')}"


def _kinds(names: list[str], inside: NDArray[np.int64], own: set[int]) -> tuple[list[SpanKind], dict[int, int]]:
    """Return the kinds of spans with colours, and the kind of each name. The busiest names get their own colours."""
    kinds = [SpanKind("training step", "step"), SpanKind("waiting for data", "wait")]
    number = {names.index(_STEP): 0, names.index(_WAIT): 1}
    busiest = np.argsort(-np.bincount(inside[:, 1], inside[:, 3], len(names)), kind="stable").tolist()
    busiest = [each for each in busiest if each not in number]
    named = [each for each in busiest if each in own][:2]  # the user's own spans come first
    named += [each for each in busiest if each not in named][: len(HUES) - 1 - len(named)]
    for hue, each in zip(HUES, named, strict=False):
        number[each] = len(kinds)
        kinds.append(SpanKind(names[each], hue))
    others = {each: len(kinds) for each in busiest if each not in number}
    return [*kinds, SpanKind("other stages", HUES[-1])], number | others


def _numbered(spans: NDArray[np.int64], number: dict[int, int]) -> NDArray[np.int64]:
    """Return kind, start and length of each span."""
    table = np.zeros(max(number) + 1, np.int64)
    table[list(number)] = list(number.values())
    return np.stack([table[spans[:, 1]], spans[:, 2], spans[:, 3]], 1)


def _window(spans: NDArray[np.int64]) -> tuple[int, int]:
    """Return start and end of some consecutive steps after the middle of the recorded ones."""
    count = len(spans)
    first = min(count // 2, max(count - _SHOWN, 0))
    last = min(first + _SHOWN, count) - 1
    start, stop = int(spans[first, 2]), int(spans[last, 2] + spans[last, 3])
    return start, max(stop, start + 1000)


def _pipeline(recorded: Recorded, each: dict[str, Any], *, alone: bool) -> str:
    parts = [f"<h2>{'Steps' if alone else _heading(each)}</h2>"]
    picture = plan_picture(Analysis.of(each["analysis"]), each["verdict"]["step"], each["written"])
    drawn = f"<div class=plan style='max-width:{picture.width}px'>{picture.svg(inside=True, label='the plan')}</div>"
    count = len(each["analysis"]["steps"])
    if count > _MOST_DRAWN:
        drawn = f"<details><summary>The plan with its {count} steps as a diagram</summary>{drawn}</details>"
    parts += [drawn, _table(each)]
    parts += ["<h2>Waiting</h2>", _waiting(each["waits"])]
    parts.append(_over_time(recorded, each["name"]))
    if each["choices"]:
        rows = "".join(
            f"<tr><td>{escape(choice['lane'])}</td><td>{seconds(max(choice['at'], 0.0))}</td>"
            f"<td>{choice['workers']}</td><td>{escape(choice['executor'])}</td>"
            f"<td class=why>{escape(choice['reason'] or '')}</td></tr>"
            for choice in each["choices"]
        )
        head = "<tr><th>step</th><th>after</th><th>workers</th><th>executor</th><th class=why>why</th></tr>"
        parts.append("<h2>What AUTOTUNE chose</h2>")
        parts += _workers_over_time(recorded, each["name"])
        parts.append(f"<div class=wide><table>{head}{rows}</table></div>")
    text = escape(report(Analysis.of(each["analysis"])))
    parts.append(
        f"<details><summary>The figures as explain(analyze=True) prints them</summary><pre>{text}</pre></details>"
    )
    return "".join(parts)


def _table(each: dict[str, Any]) -> str:
    analysis = Analysis.of(each["analysis"])
    head = "".join(
        f"<th>{title}</th>"
        for title in ("step", "of", "elements", "a second", "CPU µs", "waits µs", "CPU %", "lock %", "bytes", "failed")
    )
    rows = []
    for step in reversed(analysis.steps):
        cells = (
            escape(step.name),
            escape(shortened(step.label, 48)),
            number(step.elements),
            number(step.per_second),
            number(step.work * 1e6),
            number(step.waiting * 1e6),
            percent(cpu_share(analysis, step)),
            percent(step.held / step.cpu) if step.cpu else "",
            size(step.nbytes),
            number(step.failures) if step.failures else "",
        )
        held = " class=held" if step.name == each["verdict"]["step"] else ""
        rows.append(f"<tr{held}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    table = f"<div class=wide><table><tr>{head}</tr>{''.join(rows)}</table></div>"
    return f"{table}<p class=soft>CPU and waiting: per element of the step.</p>"


def _waiting(waits: dict[str, Any]) -> str:
    counts = waits["histogram"]
    used = [index for index, count in enumerate(counts) if count]
    if not used:
        return ""
    shown = range(used[0], used[-1] + 1)
    text = f"{seconds(waits['waited'])} in all, {seconds(waits['longest'])} at most, "
    text += f"{seconds(waits['starting'])} before the first elements of {_passes(waits['passes'])}."
    chart = bar_chart("waits of a request", [counts[index] for index in shown], [2.0**index / 1e6 for index in shown])
    return f"<p>{text}</p>{chart.svg(inside=True, label='waiting per step')}"


def _passes(count: int) -> str:
    return "1 iteration" if count == 1 else f"{count:,} iterations"


def _over_time(recorded: Recorded, name: str) -> str:
    """Draw the share of waiting time, and the bytes in each buffer."""
    at, shares = [], []
    last_at = last_waited = 0.0
    for sample in recorded.samples:
        each = sample["pipelines"].get(name)
        if each is None:
            continue
        at.append(sample["at"])
        shares.append(min((each["waited"] - last_waited) / max(sample["at"] - last_at, 1e-9), 1.0))
        last_at, last_waited = sample["at"], each["waited"]
    parts = [_line("time waiting", at, shares, ("100 %", 1.0), "wait")]
    for lane, moments, held, hue in _of_lanes(recorded, name, "held"):
        if any(held):
            parts.append(_line(f"held: {lane}", moments, held, (size(max(held)), max(held)), hue))
    return "".join(parts)


def _workers_over_time(recorded: Recorded, name: str) -> list[str]:
    """Return a chart for each lane whose number of workers changed."""
    return [
        _line(f"workers: {lane}", moments, counts, (f"{max(counts):g}", max(counts)), hue)
        for lane, moments, counts, hue in _of_lanes(recorded, name, "workers")
        if max(counts) > min(counts)
    ]


def _of_lanes(recorded: Recorded, name: str, key: str) -> Iterator[tuple[str, list[float], list[float], str]]:
    """Yield the name of each lane of a pipeline, the times and values of its samples, and a colour."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    for sample in recorded.samples:
        for lane in sample["pipelines"].get(name, {"lanes": ()})["lanes"]:
            moments, values = found.setdefault(lane["lane"], ([], []))
            moments.append(sample["at"])
            values.append(float(lane[key]))
    for (lane, (moments, values)), hue in zip(found.items(), cycle(HUES), strict=False):
        yield lane, moments, values, hue


def _memory(recorded: Recorded) -> str:
    at = [sample["at"] for sample in recorded.samples]
    values = [float(sample["memory"]) for sample in recorded.samples]
    if not at:
        return ""
    chart = _line("resident", at, values, (size(max(values)), max(values)), "h3")
    return f"<h2>Memory of the process</h2>{chart}"


def _line(title: str, at: list[float], values: list[float], top: tuple[str, float], hue: str) -> str:
    return line_chart(title, at, values, top, hue).svg(inside=True, label=title)
