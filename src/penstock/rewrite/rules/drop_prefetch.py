"""Ahead already:  Prefetch(AUTOTUNE)·s   →   s,  for s a parallel map or batch

Equal because the workers of s make its results ahead of whoever takes them, by as much as its window holds: the stage
of a prefetch above them would be those workers' own. A number of elements stays: it says how far ahead.
"""

from __future__ import annotations

from penstock.plan.fused import has_workers
from penstock.plan.node import AUTOTUNE, Node
from penstock.plan.ops import Prefetch
from penstock.rewrite.rule import rule


@rule(Prefetch)
def drop_prefetch(prefetch: Prefetch) -> Node | None:
    """Prefetch(AUTOTUNE) of a parallel map or batch vanishes: its workers are ahead already."""
    return prefetch.input if prefetch.buffer_size == AUTOTUNE and has_workers(prefetch.input) else None
