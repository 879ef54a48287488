"""What somebody could see of a plan: when functions and generators are called that may do more than give their result.

A function that is known to do nothing but compute may be called for a whole Block at once. One that prints, counts,
reads a queue or calls what is not known may wait for the loop to have received the element before: nothing that it
makes may be made before it is asked for. Two readings of functions answer that. What is known for certain to compute
(`acts`) is asked of every step at the start of a pass: what may be traced, and, of maps and filters, what calls nothing
but functions of libraries that do as much, `json.loads` or `cv2.resize`. These may take long, and are called for as
many elements at a time as take some milliseconds (`is_called_ahead`). Where work would run ahead of the loop without
having been asked to (`shown_ahead`) a function is read to its end, and less is enough: one that reads a file shows
nothing of when it does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

from penstock.functions.facts import facts, why_not_certain, why_visible
from penstock.plan import fused, grouping, ops
from penstock.plan.distribution import Distribute
from penstock.plan.grouping import Reducer
from penstock.plan.indexing import GlobalShuffle
from penstock.plan.inputs import Scan
from penstock.plan.node import AUTOTUNE, Node
from penstock.plan.storing import Cache
from penstock.sources.source import SlicedSource, Source
from penstock.trace.purity import why_impure

# the data sets that they open are looked at when they are open, and a reducer is asked for all of its input at once
_OPENING = (ops.FlatMap, ops.Interleave, grouping.GroupByReducer)
CALLING = (ops.Map, ops.Filter, fused.FusedMap, fused.MapAndBatch)  # stateless, and made for some time at most


def acts(node: Node) -> bool:
    """Whether the step itself, without its input, calls anything that may do more than give its result."""
    if isinstance(node, Scan):
        return _source_acts(node.source)
    if isinstance(node, GlobalShuffle):  # fetches the elements of its input by their numbers
        return any(acts(below) for below in node.input.walk())
    if isinstance(node, _OPENING):
        return False
    functions = [each for name, each in functions_in(node) if name != "reduce_func"]
    if not isinstance(node, CALLING):
        return any(why_impure(function) is not None for function in functions)
    verdicts = [(function, verdict) for function in functions if (verdict := _verdict(function)) is not None]
    if any(why is not None for _, (why, _) in verdicts):
        return True
    return any(makes_objects and function is not functions[-1] for function, (_, makes_objects) in verdicts)


def is_called_ahead(node: Node) -> bool:
    """Whether the functions of a map or filter do nothing but compute, and are called for each element all the same."""
    return any(_verdict(function) is not None for _, function in functions_in(node)) and not acts(node)


def _verdict(function: Any) -> tuple[str | None, bool] | None:
    """Return why a function may do more than compute, and if it creates objects; None for one that can be traced."""
    if why_impure(function) is None:
        return None
    return why_not_certain(function), facts(function).creates_objects


def why_seen_of(function: Any) -> str | None:
    """Return the reason why calls of a function may have side effects, or None if the function only computes."""
    verdict = _verdict(function)
    return None if verdict is None else verdict[0]


def opens_visibly(function: Callable[..., Any]) -> bool:
    """Return True if the function of `flat_map` may do more than create a data set."""
    return not _is_ours(type(function)) and why_visible(function) is not None


def shown(node: Node) -> bool:
    """Whether somebody could see when the step itself calls something, or when a data set is read that it opens."""
    if isinstance(node, Scan):
        return _source_acts(node.source)
    return any(why_impure(function) is not None and opens_visibly(function) for _, function in functions_in(node))


def shown_ahead(plan: Node) -> bool:
    """Whether somebody could see a plan's elements being made before they are asked for.

    What parallel steps and prefetch(AUTOTUNE) have made is ahead as it is: the user wants that. By how much
    `prefetch(n)`, and a parallel step right below it, are ahead of whoever takes their elements, he has said.
    """
    waiting = [(plan, False)]  # with whether a prefetch(n) stands right above
    while waiting:
        node, bounded = waiting.pop()
        counted = isinstance(node, ops.Prefetch) and node.buffer_size != AUTOTUNE
        if isinstance(node, Distribute) or (on_workers(node) and not bounded and not counted):
            continue
        if isinstance(node, Cache) and node.store.blocks() is not None:
            continue
        if isinstance(node, GlobalShuffle):  # as in `acts`
            if any(map(shown, node.input.walk())):
                return True
            continue
        if shown(node):
            return True
        waiting += [(below, counted) for below in node.inputs]
    return False


def on_workers(node: Node) -> bool:
    """Whether workers make what the step gives, ahead of whoever asks for it."""
    if isinstance(node, ops.Prefetch):
        return node.buffer_size != 0
    if getattr(node, "executor", None) == "inline":
        return False
    return isinstance(node, fused.MapAndBatch) or getattr(node, "num_parallel_calls", None) is not None


def _source_acts(source: Source) -> bool:
    while isinstance(source, SlicedSource):
        source = source.inner
    return source.calls or not _is_ours(type(source))


def _is_ours(kind: type) -> bool:
    return kind.__module__.startswith("penstock.")


def functions_in(node: Node) -> Iterator[tuple[str, Any]]:
    """The functions that a step calls, each with the parameter that it was given as."""
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
    """The fields that a function may be in."""
    return tuple(each.name for each in fields(kind))
