"""No prefetch without a use:  Prefetch(AUTOTUNE)·s   →   s,  for s a parallel map or batch, or small elements of memory

The results are equal because a prefetch only changes the time at which elements are computed. AUTOTUNE leaves the size
to the engine, which chooses 0 in two cases:
- The workers of a parallel map or batch already compute results before the consumer asks for them, as many as their
  window stores. A prefetch after such a step would run on the same workers.
- A little arithmetic on small elements takes less time than moving the result to another thread.
A prefetch with a number is kept because the user has chosen this number.
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
