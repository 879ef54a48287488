"""No workers for nanoseconds:  Map(f, AUTOTUNE)·x   →   Map(f)·x,  for arithmetic f on small elements x of memory

The results are equal because a parallel map yields the elements of a sequential map. AUTOTUNE leaves the number of
workers to the engine, which chooses 0 here. Computing an element in place takes one nanosecond. Moving it through the
caches of another thread takes five.
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
