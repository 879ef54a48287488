"""Workers make the batches:  Batch(n)·Map(f, parallel)·x   →   MapAndBatch(f, n)·x

The results are equal because row i of a batch is result i in both plans. If a batch needs much work, several workers
fill its memory. This saves a copy of every element and the wait for it. If a batch needs little work, one worker
computes many batches at once. The batches are views of the results of one call, and one hand-over to another thread is
saved. The rule applies to parallel maps only. A sequential map runs in the thread of the consumer.
"""

from __future__ import annotations

from penstock.plan.fused import FusedMap, MapAndBatch
from penstock.plan.node import Node
from penstock.plan.ops import Batch, Map
from penstock.rewrite.rule import rule


@rule(Batch, "The workers of a parallel map also build the batches after it.", for_lint=False)
def fuse_map_and_batch(batch: Batch) -> Node | None:
    """Batch(n)·Map(f, parallel)·x becomes MapAndBatch(f, n)·x: workers make the batches."""
    below = batch.input
    if isinstance(below, Map):
        steps: tuple[Map, ...] = (below,)
    elif isinstance(below, FusedMap) and all(isinstance(step, Map) for step in below.steps):
        steps = tuple(step for step in below.steps if isinstance(step, Map))
    else:
        return None
    first = steps[0]
    if first.num_parallel_calls is None:
        return None
    if batch.deterministic not in (None, first.deterministic):
        return None
    return MapAndBatch(input=below.input, steps=steps, batch=batch, where=batch.where)
