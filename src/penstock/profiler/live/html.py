"""html: a snapshot as HTML, for the page and for notebooks; in the look of a run's report."""

from __future__ import annotations

from html import escape
from typing import Any

from penstock.profiler.live import table
from penstock.profiler.views.page import STYLE

ADDED = """
.penstock td,.penstock th{text-align:right}
.penstock :is(td,th):nth-child(-n+2){white-space:pre;text-align:left}
.penstock .bar{display:inline-block;width:4rem;height:.6rem;background:var(--rule);margin-left:.4rem}
.penstock .bar i{display:block;height:100%;background:var(--step)}
tr.held td:first-child::before{content:"▶ "}.gone{color:var(--bad)}h1{overflow-wrap:anywhere}
"""


def body(told: dict[str, Any]) -> str:
    """The table of every pass, with its verdict above it."""
    parts = [f"<h1>{escape(table.head(told))}</h1>"]
    if not told["pipelines"]:
        parts.append("<p>No iteration has started since monitoring began.</p>")
    for each in told["pipelines"]:
        first, *others = table.sentences(each)
        lines = f"<p><b>{escape(first)}</b></p>" + "".join(f"<p>{escape(text)}</p>" for text in others)
        parts.append(f"<h2>{escape(table.title(each))}</h2>")
        parts.append(f"<div class='verdict {escape(each['verdict']['input_bound'])}'>{lines}</div>")
        if each["running"]:
            parts.append(_table(each))
    parts.append(f"<p class=soft>{escape(table.LEGEND)}</p>")
    return f"<div class=penstock>{''.join(parts)}</div>"


def _table(each: dict[str, Any]) -> str:
    fill = table.TITLES.index("fill")
    rows = []
    for row in table.rows(each):
        cells = [
            f"<td>{escape(cell)}{_bar(cell) if index == fill else ''}</td>" for index, cell in enumerate(row.cells)
        ]
        rows.append(f"<tr{' class=held' if row.bottleneck else ''}>{''.join(cells)}</tr>")
    head = "".join(f"<th>{escape(title)}</th>" for title in table.TITLES)
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>"


def _bar(cell: str) -> str:
    share = cell.removesuffix(" %")
    return f"<span class=bar><i style='width:{share}%'></i></span>" if share.isdigit() else ""


def style() -> str:
    return STYLE + ADDED
