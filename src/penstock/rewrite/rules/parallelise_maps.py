"""Work for all cores:  Map(f)·x   →   Map(f, AUTOTUNE)·x

Equal because f is known to be pure, and a parallel map keeps the order. Only where it pays: f uses a function whose
nature is work that takes long, such as to decode, encode, resize, turn or recolour pictures, for which two cores need
0.56 of the time of one; or it stands directly behind a parallel map, whose workers then do both. A map that says
executor="inline" is not moved from its thread. Where somebody could see when its input is made, by a generator or a
function that counts, workers would ask for that ahead of the loop: there it stays sequential, as it is written. What
takes a few microseconds is done faster than it is handed to a worker: parsing a small Example takes 6 µs in the loop's
thread and 8 µs on workers, float32 of 64 × 64 pixels 6 µs and 11 µs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from penstock.plan.node import AUTOTUNE, Node
from penstock.plan.ops import Map
from penstock.plan.visible import shown_ahead
from penstock.rewrite.rule import rule, together
from penstock.trace.lift import nature_of
from penstock.trace.purity import captured, why_impure


@rule(Map, "Runs maps over images in parallel and in order if this has no observable effect.")
def parallelise_maps(mapped: Map) -> Node | None:
    """Map(f)·x becomes a parallel map, in order, where f is pure and takes long, or follows a parallel map."""
    if mapped.num_parallel_calls is not None or not mapped.vectorise or why_impure(mapped.function) is not None:
        return None
    if mapped.executor == "inline":
        return None
    below = mapped.input
    if isinstance(below, Map) and below.num_parallel_calls is not None and below.executor != "inline":
        joined = replace(mapped, num_parallel_calls=below.num_parallel_calls, deterministic=below.deterministic)
        if together(below, joined):
            return joined
    if _is_costly(mapped.function) and not shown_ahead(below):
        return replace(mapped, num_parallel_calls=AUTOTUNE, deterministic=True)
    return None


def _is_costly(function: Callable[..., Any]) -> bool:
    return any(nature_of(value).work for value in (function, *(value for _, _, value in captured(function).reads)))
