"""Ahead already:  Prefetch(n)·s   →   s,  for s a parallel map or batch

Equal because the workers of s make its results ahead of whoever takes them, by as much as its window holds: the stage
of a prefetch above them would be those workers' own.
"""

from __future__ import annotations

from penstock.plan.node import Node
from penstock.plan.ops import Batch, FusedMap, Map, MapAndBatch, Prefetch
from penstock.rewrite.rule import rule


@rule(Prefetch, option="noop_elimination")
def drop_prefetch(prefetch: Prefetch) -> Node | None:
    """Prefetch(n) of a parallel map or batch vanishes: its workers are ahead already."""
    below = prefetch.input
    if getattr(below, "executor", None) == "inline":
        return None  # it has no workers
    parallel = isinstance(below, (Map, FusedMap, Batch)) and below.num_parallel_calls is not None
    return below if parallel or isinstance(below, MapAndBatch) else None
