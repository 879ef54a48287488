"""Observable side effects of a plan: calls of user functions and generators that may do more than return a result.

A function that only computes may be called for a whole Block at once. A function that prints, counts, reads a queue or
calls unknown code may wait until the consumer has received the previous element. Such a function must not be called
before its element is requested.

Two checks answer this. `acts` runs for every step at the start of an iteration and accepts only functions that are
known to compute: functions that can be traced and, in maps and filters, functions that call only library functions of
this kind, such as `json.loads` or `cv2.resize`. The latter may take long, so they are called for as many elements at a
time as take a few milliseconds (`is_called_ahead`). `shown_ahead` applies where work would run ahead of the consumer
although the user did not request it. It examines the whole function and accepts more: a function that reads a file does
not show when it does so.
"""

from __future__ import annotations

from typing import Any

from penstock.functions.facts import facts, why_not_certain
from penstock.plan import fused, grouping, ops
from penstock.plan.distribution import Distribute
from penstock.plan.indexing import GlobalShuffle
from penstock.plan.inputs import Scan
from penstock.plan.node import AUTOTUNE, Node
from penstock.plan.step_effects import functions_in, on_workers, shown, source_acts
from penstock.plan.storing import Cache
from penstock.trace.purity import why_impure

# the data sets that these steps open are checked later; a reducer needs all elements anyway
_OPENING = (ops.FlatMap, ops.Interleave, grouping.GroupByReducer)
CALLING = (ops.Map, ops.Filter, fused.FusedMap, fused.MapAndBatch)  # stateless, and called for a limited time


def acts(node: Node) -> bool:
    """Return True if the step itself, without its input, calls code that may have side effects."""
    if isinstance(node, Scan):
        return source_acts(node.source)
    if isinstance(node, GlobalShuffle):  # reads the elements of its input by index
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
    """Return True if the functions of a map or filter only compute, but are called once per element."""
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


def shown_ahead(plan: Node) -> bool:
    """Return True if it is observable that elements of a plan are computed before they are requested.

    Parallel steps and prefetch(AUTOTUNE) always compute ahead, as the user requested. `prefetch(n)`, and a parallel
    step directly below it, compute ahead by the number that the user passed.
    """
    waiting = [(plan, False)]  # (node, True if a prefetch(n) is directly above)
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
