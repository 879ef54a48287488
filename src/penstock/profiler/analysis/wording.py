"""Numbers as people read them."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path, PurePath

from penstock.block.size_text import size_text
from penstock.plan.explain import short_location
from penstock.profiler.analysis.figures import Analysis, Lane, Step


def number(value: float) -> str:
    """Three digits that count, and a comma every three.

    >>> number(0.01234), number(3.14159), number(98.7), number(1234.5), number(9.3e7)
    ('0.0123', '3.14', '98.7', '1,234', '93,000,000')
    """
    if not math.isfinite(value):
        return "∞"
    if value >= 100:
        digits = 3 - len(str(int(value)))
        return f"{round(value, digits):,.0f}" if value >= 1e6 else f"{value:,.0f}"
    return f"{value:.3g}"


def size(nbytes: float) -> str:
    """Bytes in the unit that suits.

    >>> size(12), size(19_267_584)
    ('12 B', '19.3 MB')
    """
    return size_text(round(nbytes)).replace("bytes", "B")


def seconds(value: float) -> str:
    """Seconds in the unit that suits.

    >>> seconds(0.0000021), seconds(0.0123), seconds(4.0)
    ('2.1 µs', '12.3 ms', '4 s')
    """
    for factor, unit in ((1e6, "µs"), (1e3, "ms")):
        if value * factor < 1000:
            return f"{value * factor:.3g} {unit}"
    return f"{value:.3g} s"


def percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def named(step: Step) -> str:
    """A step's name, and what it is of.

    >>> named(Step("map#1", "map(decode)", "map")), named(Step("repeat#1", "repeat()", "repeat"))
    ('map#1 (decode)', 'repeat#1')
    """
    rest = step.label.removeprefix(step.kind)
    return step.name if rest in ("", "()", step.label) else f"{step.name} {rest}"


def place(where: str | None) -> str:
    """A line of the user's as a page shows it: the path below the folder that the program runs in, or the file's name.

    >>> place("/elsewhere/of/mine/train.py:12"), place(str(Path.cwd() / "data" / "read.py") + ":3")
    ('train.py:12', 'data/read.py:3')
    >>> place(None), place("batch(8)")  # steps that stand in no file
    ('', 'batch(8)')
    """
    path, _, line = (where or "").rpartition(":")
    if not line.isdigit():
        return where or ""
    with suppress(ValueError):  # not below it
        return f"{PurePath(path).relative_to(Path.cwd()).as_posix()}:{line}"
    return short_location(where)


def workers(lane: Lane) -> str:
    """Name the workers of a lane."""
    kind = "process" if lane.executor == "process" else "thread"
    plural = "" if lane.workers == 1 else "es" if kind == "process" else "s"
    return f"{lane.workers} {kind}{plural}"


def rate_text(analysis: Analysis) -> str:
    return f"{number(analysis.elements_per_second)} elements a second"
