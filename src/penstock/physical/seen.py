"""Whether anybody could see when an element is made: then nothing may be made before it is asked for.

A function that is known to do nothing but compute may be called for a whole Block at once. One that prints, counts,
reads a queue or calls what is not known may wait for the loop to have received the element before. `Stage.seen` says
so of a stage; here is what it follows from.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

from penstock.functions.effects import why_visible_here
from penstock.plan import grouping, ops
from penstock.plan.indexing import GlobalShuffle
from penstock.plan.node import Node
from penstock.plan.scan import Scan
from penstock.sources.source import Source
from penstock.trace.purity import why_impure

# the data sets that they open are looked at when they are open, and a reducer is asked for all of its input at once
_OPENING = (ops.FlatMap, ops.Interleave, grouping.GroupByReducer)


def acts(node: Node) -> bool:
    """Whether the step itself, without its input, calls anything that may do more than give its result."""
    if isinstance(node, Scan):
        return _source_acts(node.source)
    if isinstance(node, GlobalShuffle):  # fetches the elements of its input by their numbers
        return any(acts(below) for below in node.input.walk())
    if isinstance(node, _OPENING):
        return False
    return any(why_impure(function) is not None for function in _functions(node))


def opens_visibly(function: Callable[..., Any]) -> bool:
    """Whether somebody could see when `flat_map` calls its function, which then does more than make a data set."""
    return not _is_ours(type(function)) and why_visible_here(function) is not None


def _source_acts(source: Source) -> bool:
    return source.calls or not _is_ours(type(source))


def _is_ours(kind: type) -> bool:
    return kind.__module__.startswith("penstock.")


def _functions(node: Node) -> Iterator[Any]:
    for step in getattr(node, "steps", ()):
        yield from _functions(step)
    for name in _names(type(node)):
        value = getattr(node, name)
        if callable(value) and (name == "function" or not (isinstance(value, type) or _is_ours(type(value)))):
            yield value


@functools.cache
def _names(kind: type[Node]) -> tuple[str, ...]:
    """The fields that a function may be in; `reduce_func` makes a data set of what is there."""
    return tuple(each.name for each in fields(kind) if each.name != "reduce_func")
