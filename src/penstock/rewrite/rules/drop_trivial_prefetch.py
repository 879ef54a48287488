"""No worker for nanoseconds:  Prefetch(AUTOTUNE)·x   →   x,  for x that gives small elements of memory

Equal because a prefetch changes nothing but the time at which elements are made. AUTOTUNE leaves its size to the
engine, and here it is none: what is read ahead would be made in less time than it takes to hand it over.
"""

from __future__ import annotations

from penstock.plan.node import AUTOTUNE, Node
from penstock.plan.ops import Prefetch
from penstock.rewrite.rule import is_trivial, rule


@rule(Prefetch)
def drop_trivial_prefetch(prefetch: Prefetch) -> Node | None:
    """Prefetch(AUTOTUNE) vanishes where all below is a little arithmetic on small elements of memory."""
    return prefetch.input if prefetch.buffer_size == AUTOTUNE and is_trivial(prefetch.input) else None
