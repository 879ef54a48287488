"""analyse: runs a data set for some seconds, and says what each of its steps costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.options import Options
from penstock.plan.node import Node
from penstock.profiler.analysis.alone import alone
from penstock.profiler.analysis.assembled import assembled
from penstock.profiler.analysis.figures import Analysis
from penstock.profiler.analysis.together import together
from penstock.rewrite.driver import optimise

_ALONE = 0.25  # of the seconds, before them


def analyse(
    plan: Node, options: Options, seconds: float, consumer_seconds: float, dataset: Callable[[Node], Any]
) -> Analysis:
    """Two passes over the first elements; one that tells costs, one that tells what is reached."""
    check_seconds("seconds", seconds, zero=False)
    check_seconds("consumer_seconds", consumer_seconds, zero=True)
    found = optimise(plan, options)
    by_itself = alone(found, options, seconds * _ALONE, dataset)
    beside = together(found, options, seconds, consumer_seconds, dataset)
    return assembled(found, options, by_itself, beside, consumer_seconds)


def check_seconds(name: str, value: Any, *, zero: bool) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        message = f"{name} must be a number of seconds, got {name}={value!r} ({type(value).__name__})."
        raise InvalidTypeError(message)
    if not 0 <= value < float("inf") or (value == 0 and not zero):
        least = "at least 0" if zero else "above 0"
        message = f"{name} must be {least}, got {name}={value!r}."
        hint = "How long the pipeline is run." if name == "seconds" else "What the loop takes for an element (batch)."
        raise InvalidArgumentError(message, hint=hint)
