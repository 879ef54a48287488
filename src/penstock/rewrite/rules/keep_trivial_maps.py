"""No workers for nanoseconds:  Map(f, AUTOTUNE)·x   →   Map(f)·x,  for arithmetic f on small elements x of memory

Equal because a parallel map gives what a sequential one gives. AUTOTUNE leaves the number of workers to the engine, and
here it is none: an element takes one nanosecond where it is made, and five on its way through another thread's caches.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.plan.node import AUTOTUNE, Node
from penstock.plan.ops import Map
from penstock.rewrite.rule import is_trivial, rule


@rule(Map)
def keep_trivial_maps(mapped: Map) -> Node | None:
    """Map(f, AUTOTUNE)·x becomes Map(f)·x where all of it is a little arithmetic on small elements of memory."""
    if mapped.num_parallel_calls != AUTOTUNE or not is_trivial(mapped):
        return None
    return replace(mapped, num_parallel_calls=None, deterministic=None)
