"""Observable side effects of one step: calls of user functions and generators that may do more than return a result."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

from penstock.functions.facts import why_visible
from penstock.plan import fused, ops
from penstock.plan.grouping import Reducer
from penstock.plan.inputs import Scan
from penstock.plan.node import Node
from penstock.sources.source import SlicedSource, Source


def opens_visibly(function: Callable[..., Any]) -> bool:
    """Return True if the function of `flat_map` may do more than create a data set."""
    return not _is_ours(type(function)) and why_visible(function) is not None


def shown(node: Node) -> bool:
    """Return True if calls of the step itself, or of a data set that it opens, are observable."""
    from penstock.trace.purity import why_impure  # loaded here, so that `import penstock` takes less time

    if isinstance(node, Scan):
        return source_acts(node.source)
    return any(why_impure(function) is not None and opens_visibly(function) for _, function in functions_in(node))


def on_workers(node: Node) -> bool:
    """Return True if workers compute the results of a step ahead of the consumer."""
    if isinstance(node, ops.Prefetch):
        return node.buffer_size != 0
    if getattr(node, "executor", None) == "inline":
        return False
    return isinstance(node, fused.MapAndBatch) or getattr(node, "num_parallel_calls", None) is not None


def source_acts(source: Source) -> bool:
    """Return True if reading the source calls code that may have side effects."""
    while isinstance(source, SlicedSource):
        source = source.inner
    return source.calls or not _is_ours(type(source))


def _is_ours(kind: type) -> bool:
    return kind.__module__.startswith("penstock.")


def functions_in(node: Node) -> Iterator[tuple[str, Any]]:
    """Yield the functions that a step calls, each with the name of its parameter."""
    for step in getattr(node, "steps", ()):
        yield from functions_in(step)
    for name in _names(type(node)):
        value = getattr(node, name)
        if isinstance(value, Reducer):
            yield from ((each.name, getattr(value, each.name)) for each in fields(value))
        elif callable(value) and (name == "function" or not (isinstance(value, type) or _is_ours(type(value)))):
            yield name, value


@functools.cache
def _names(kind: type[Node]) -> tuple[str, ...]:
    """Return the fields that may contain a function."""
    return tuple(each.name for each in fields(kind))
