"""Workers write into the batch's memory:  Batch(n)·Map(f, parallel)·x   →   MapAndBatch(f, n)·x

Equal because row i of a batch is the i-th result in either case. What goes is a copy of every element, and the wait for
it: several workers fill one batch. Only for parallel maps; a sequential one is run by whoever pulls. And not for small
elements that functions are known to make a Block at a time: there a Block is many batches, which are views of it, and a
task for each of them would cost more than its elements (15 against 200 million elements per second).
"""

from __future__ import annotations

from penstock.block.known_bytes import known_bytes
from penstock.plan.node import Node
from penstock.plan.ops import Batch, FusedMap, Map, MapAndBatch
from penstock.rewrite.rule import rule

_SMALL = 1 << 10  # bytes of an element


@rule(Batch, option="map_and_batch_fusion")
def fuse_map_and_batch(batch: Batch) -> Node | None:
    """Batch(n)·Map(f, parallel)·x becomes MapAndBatch(f, n)·x: workers write into the batch's memory.

    Only a map whose function is traced has a spec.
    """
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
    nbytes, known = known_bytes(below.spec)
    if known and nbytes <= _SMALL:
        return None
    return MapAndBatch(input=below.input, steps=steps, batch=batch, where=batch.where)
