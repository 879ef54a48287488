"""analyse: runs a data set for some seconds, and says what each of its steps costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.options import Options
from penstock.plan.node import Node
from penstock.profiler.analysis.alone import alone
from penstock.profiler.analysis.assembled import assembled
from penstock.profiler.analysis.changes import check_number
from penstock.profiler.analysis.figures import Analysis
from penstock.profiler.analysis.together import together
from penstock.rewrite.driver import optimise

_ALONE = 0.25  # of the seconds, before them


def analyse(
    plan: Node,
    options: Options,
    seconds: float,
    consumer_seconds: float,
    dataset: Callable[[Node], Any],
    most_passes: int | None = None,
) -> Analysis:
    """Runs twice: in one thread, which tells costs, and as `iter(ds)` does, which tells what is reached.

    Each time a data set that ends is run again until the time is over, at most `most_passes` times.
    """
    check_number("seconds", seconds, "How long the pipeline is run.")
    check_number("consumer_seconds", consumer_seconds, "What the loop takes for an element (batch).", zero=True)
    found = optimise(plan, options)
    by_itself = alone(found, options, seconds * _ALONE, dataset, most_passes)
    beside = together(found, options, seconds, consumer_seconds, dataset, most_passes)
    return assembled(found, options, by_itself, beside, consumer_seconds)
