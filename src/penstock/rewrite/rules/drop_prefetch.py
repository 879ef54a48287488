"""Nothing to run ahead of:  Prefetch(AUTOTUNE)·s   →   s,  for s a parallel map or batch, or small elements of memory

Equal because a prefetch changes nothing but the time at which elements are made. AUTOTUNE leaves its size to the
engine, and here it is none. The workers of a parallel map or batch make its results ahead of whoever takes them, by as
much as its window holds: the stage of a prefetch above them would be those workers' own. What is read ahead of a little
arithmetic on small elements would be made in less time than it takes to hand it over. A number of elements stays: it
says how far ahead.
"""

from __future__ import annotations

from penstock.plan.fused import has_workers
from penstock.plan.node import AUTOTUNE, Node
from penstock.plan.ops import Prefetch
from penstock.rewrite.rule import is_trivial, rule


@rule(Prefetch)
def drop_prefetch(prefetch: Prefetch) -> Node | None:
    """Prefetch(AUTOTUNE) of a parallel map or batch vanishes: its workers are ahead already."""
    return prefetch.input if prefetch.buffer_size == AUTOTUNE and has_workers(prefetch.input) else None


@rule(Prefetch)
def drop_trivial_prefetch(prefetch: Prefetch) -> Node | None:
    """Prefetch(AUTOTUNE) vanishes where all below is a little arithmetic on small elements of memory."""
    return prefetch.input if prefetch.buffer_size == AUTOTUNE and is_trivial(prefetch.input) else None
