"""page: a recorded run as one HTML page that needs nothing else: the verdict, the timeline, the steps, the waiting."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.profiler.analysis.model import cpu_seconds
from penstock.profiler.analysis.report import report
from penstock.profiler.analysis.wording import number, percent, seconds, size
from penstock.profiler.recording.store import Recorded
from penstock.profiler.verdict.verdict import analysis_of
from penstock.profiler.views.chart import HUES, bars, line, timeline

_WAIT, _STEP = "wait for data", "step"
_MOST_ROWS = 16
_SHOWN = 40  # steps in the timeline
STYLE = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1e293b;--soft:#64748b;--line:#e2e8f0;--idle:#f1f5f9;--wait:#dc2626;
--step:#2563eb;--good:#15803d;--mid:#a16207;--bad:#b91c1c}
@media (prefers-color-scheme:dark){:root{--bg:#0f172a;--fg:#e2e8f0;--soft:#94a3b8;--line:#334155;--idle:#1e293b;
--wait:#f87171;--step:#60a5fa;--good:#4ade80;--mid:#facc15;--bad:#f87171}}
body{background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:62rem;
padding:0 1rem}
h1{font-size:1.3rem;margin:0}h2{font-size:1.05rem;margin:2rem 0 .5rem}
.verdict{border-left:5px solid;padding:.6rem 1rem;margin:1rem 0;background:var(--idle)}
.verdict p{margin:.3rem 0}.no{border-color:var(--good)}.slightly{border-color:var(--mid)}.yes{border-color:var(--bad)}
.soft,.tick,.label{color:var(--soft);fill:var(--soft)}.label{font-size:12px;text-anchor:end}.tick{font-size:11px}
table{border-collapse:collapse;width:100%;font-size:13px;display:block;overflow-x:auto}
th,td{border-bottom:1px solid var(--line);padding:.25rem .5rem;text-align:right;white-space:nowrap}
th:first-child,td:first-child,th:nth-child(2),td:nth-child(2){text-align:left}
tr.held td{font-weight:600;color:var(--bad)}svg{width:100%;height:auto;display:block;margin:.3rem 0}
.idle{fill:var(--idle)}.wait{fill:var(--wait)}.step{fill:var(--step)}.line{fill:none;stroke-width:1.5}
.h0{fill:#f59e0b;stroke:#f59e0b}.h1{fill:#10b981;stroke:#10b981}.h2{fill:#8b5cf6;stroke:#8b5cf6}
.h3{fill:#06b6d4;stroke:#06b6d4}.h4{fill:#ec4899;stroke:#ec4899}.h5{fill:#84cc16;stroke:#84cc16}
.h6{fill:#f97316;stroke:#f97316}.h7{fill:#94a3b8;stroke:#94a3b8}rect{stroke:none}.line{fill:none}
.key{display:inline-block;margin-right:1rem;font-size:13px}.key svg{display:inline;width:12px;height:12px;margin:0}
pre{font-size:12px;overflow-x:auto;background:var(--idle);padding:.6rem}
"""


def page(recorded: Recorded, told: dict[str, Any], spans: NDArray[np.int64]) -> str:
    """The whole page."""
    title = f"penstock profile {told['run']}"
    body = [f"<h1>{escape(title)}</h1>", f'<p class="soft">{_facts(told)}</p>']
    if not told["pipelines"]:
        body.append("<p>No data set was iterated while this profile was on.</p>")
    body += [_verdict(each, alone=len(told["pipelines"]) == 1) for each in told["pipelines"]]
    body += ["<h2>Timeline</h2>", _timeline(recorded, spans)]
    body += [_pipeline(recorded, each, alone=len(told["pipelines"]) == 1) for each in told["pipelines"]]
    body.append(_memory(recorded))
    head = f"<meta charset=utf-8><meta name=viewport content='width=device-width'><title>{escape(title)}</title>"
    return f"<!doctype html><html lang=en><head>{head}<style>{STYLE}</style></head><body>{''.join(body)}</body></html>"


def _facts(told: dict[str, Any]) -> str:
    steps = sum(each["steps"] for each in told["pipelines"])
    return f"{seconds(told['seconds'])} on {escape(told['host'])}, {steps:,} elements (batches) taken"


def _heading(each: dict[str, Any]) -> str:
    return f"{escape(each['name'])} <span class=soft>({escape(str(each['defined_at']))})</span>"


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
    """Some steps of the run: threads and worker processes above, what the loop does below."""
    names, titles = recorded.about["names"], recorded.about["tracks"]
    if not len(spans):
        return "<p class=soft>No spans were kept.</p>"
    steps = spans[spans[:, 1] == names.index(_STEP)]
    start, stop = _window(steps if len(steps) else spans)
    inside = spans[(spans[:, 2] < stop) & (spans[:, 2] + spans[:, 3] > start)]
    loop = inside[(inside[:, 1] == names.index(_STEP)) | (inside[:, 1] == names.index(_WAIT))]
    rows = []
    for track, title in enumerate(titles):
        own = inside[(inside[:, 0] == track) & ~np.isin(inside[:, 1], (names.index(_STEP), names.index(_WAIT)))]
        if len(own):
            rows.append((title, own))
    rows.sort(key=lambda row: -int(row[1][:, 3].sum()))
    hidden = max(len(rows) - _MOST_ROWS, 0)
    rows = [*rows[:_MOST_ROWS], ("training loop", loop)]
    busiest = np.argsort(-np.bincount(inside[:, 1], inside[:, 3], len(names))).tolist()
    stages = [name for name in busiest if names[name] not in (_WAIT, _STEP)]
    classes = ["h7"] * len(names)
    for place, name in enumerate(stages[: HUES - 1]):
        classes[name] = f"h{place}"
    classes[names.index(_WAIT)], classes[names.index(_STEP)] = "wait", "step"
    seen = set(inside[:, 1].tolist())
    keys = [_key("step", "training step"), _key("wait", "waiting for data")]
    keys += [_key(classes[name], names[name]) for name in stages[: HUES - 1] if name in seen]
    if len([name for name in stages if name in seen]) >= HUES:
        keys.append(_key("h7", "other stages"))
    text = f"{seconds((stop - start) / 1e9)} from {seconds(start / 1e9)} on. The whole run: trace.json.gz."
    text += f" {hidden} more tracks are left out." if hidden else ""
    return f"<p class=soft>{text}</p><p>{''.join(keys)}</p>{timeline(rows, classes, names, start, stop)}"


def _window(spans: NDArray[np.int64]) -> tuple[int, int]:
    """Some steps in a row, behind the middle of what was kept."""
    count = len(spans)
    first = min(count // 2, max(count - _SHOWN, 0))
    last = min(first + _SHOWN, count) - 1
    start, stop = int(spans[first, 2]), int(spans[last, 2] + spans[last, 3])
    return start, max(stop, start + 1000)


def _key(shape: str, text: str) -> str:
    square = f'<svg viewBox="0 0 12 12"><rect width="12" height="12" class="{shape}"/></svg>'
    return f"<span class=key>{square} {escape(text)}</span>"


def _pipeline(recorded: Recorded, each: dict[str, Any], *, alone: bool) -> str:
    parts = [f"<h2>{'Steps' if alone else _heading(each)}</h2>", _table(each)]
    parts += ["<h2>Waiting</h2>", _waiting(each["waits"])]
    parts.append(_over_time(recorded, each["name"]))
    if each["choices"]:
        rows = "".join(
            f"<tr><td>{escape(choice['lane'])}</td><td>{seconds(max(choice['at'], 0.0))}</td>"
            f"<td>{choice['workers']}</td><td>{escape(choice['executor'])}</td>"
            f"<td style='text-align:left'>{escape(choice['reason'] or '')}</td></tr>"
            for choice in each["choices"]
        )
        head = "<tr><th>step</th><th>after</th><th>workers</th><th>executor</th><th>why</th></tr>"
        parts.append(f"<h2>What AUTOTUNE chose</h2><table>{head}{rows}</table>")
    text = escape(report(analysis_of(each["analysis"])))
    parts.append(
        f"<details><summary>The figures as explain(analyze=True) prints them</summary><pre>{text}</pre></details>"
    )
    return "".join(parts)


def _table(each: dict[str, Any]) -> str:
    analysis = analysis_of(each["analysis"])
    total = cpu_seconds(analysis) or 1.0
    head = "".join(
        f"<th>{title}</th>"
        for title in ("step", "of", "elements", "a second", "CPU µs", "waits µs", "CPU %", "lock %", "bytes", "failed")
    )
    rows = []
    for step in reversed(analysis.steps):
        cells = (
            escape(step.name),
            escape(step.label if len(step.label) < 48 else step.label[:47] + "…"),
            number(step.elements),
            number(step.per_second),
            number((step.cpu + step.shipping) * 1e6),
            number(step.waiting * 1e6),
            percent(step.ratio * (step.cpu + step.shipping) / total),
            percent(step.held / step.cpu) if step.cpu else "",
            size(step.nbytes),
            number(step.failures) if step.failures else "",
        )
        held = " class=held" if step.name == each["verdict"]["step"] else ""
        rows.append(f"<tr{held}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    return (
        f"<table><tr>{head}</tr>{''.join(rows)}</table><p class=soft>CPU and waiting: for one element of the step.</p>"
    )


def _waiting(waits: dict[str, Any]) -> str:
    counts = waits["histogram"]
    used = [index for index, count in enumerate(counts) if count]
    if not used:
        return ""
    shown = range(used[0], used[-1] + 1)
    text = f"{seconds(waits['waited'])} in all, {seconds(waits['longest'])} at most, "
    text += f"{seconds(waits['starting'])} before first elements of {waits['passes']:,} passes."
    return f"<p>{text}</p>" + bars([counts[index] for index in shown], [seconds(2.0**index / 1e6) for index in shown])


def _over_time(recorded: Recorded, name: str) -> str:
    """The share of time spent waiting, and what each buffer held."""
    at, shares = [], []
    held: dict[str, list[tuple[float, int]]] = {}
    last_at = last_waited = 0.0
    for sample in recorded.samples:
        each = sample["pipelines"].get(name)
        if each is None:
            continue
        at.append(sample["at"])
        shares.append(min((each["waited"] - last_waited) / max(sample["at"] - last_at, 1e-9), 1.0))
        last_at, last_waited = sample["at"], each["waited"]
        for lane in each["lanes"]:
            held.setdefault(lane["lane"], []).append((sample["at"], lane["held"]))
    parts = [line("time waiting", at, shares, "100 %", 1.0, "h4")]
    for index, (lane, values) in enumerate(held.items()):
        most = max(value for _, value in values)
        moments = [moment for moment, _ in values]
        parts.append(
            line(f"held: {lane}", moments, [v for _, v in values], size(most), float(most), f"h{index % HUES}")
        )
    return "".join(parts)


def _memory(recorded: Recorded) -> str:
    at = [sample["at"] for sample in recorded.samples]
    values = [float(sample["memory"]) for sample in recorded.samples]
    if not at:
        return ""
    return "<h2>Memory of the process</h2>" + line("resident", at, values, size(max(values)), max(values), "h3")
