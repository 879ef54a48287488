"""Which part of a data set a rank reads: elements parted before they are batched, as many for each."""

from __future__ import annotations

from dataclasses import replace

from penstock.errors import InvalidArgumentError
from penstock.plan.batching import BatchNode, Rebatch
from penstock.plan.counted import counted
from penstock.plan.node import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Node, UnaryNode
from penstock.plan.ops import Batch, Map, Prefetch, Repeat, Shard, Take

_BATCHES = (Batch, BatchNode)
_ABOVE = (Map, Prefetch, Repeat, Rebatch)  # a batch: they do the same to the batches of a part


def parted(plan: Node, count: int, index: int) -> Node:
    """The plan of part `index` of `count`; all parts have equally many elements of equal size.

        prefetch · batch(32) · map · x    →    prefetch · batch(32) · shard(2, 0) · take(even) · map · x

    Rewrites carry the shard on towards the source. Elements at the end that not every part would get one of are left
    out. Where no batch is seen, what comes out last is parted.

    Raises InvalidArgumentError where only a pass can tell how many elements there are.
    """
    batch = _batch_of(plan)
    return _part(plan, count, index) if batch is None else _with_part(plan, batch, count, index)


def _batch_of(plan: Node) -> UnaryNode | None:
    while isinstance(plan, _ABOVE):
        plan = plan.input
    return plan if isinstance(plan, _BATCHES) else None


def _with_part(plan: Node, batch: UnaryNode, count: int, index: int) -> Node:
    assert isinstance(plan, UnaryNode)
    below = _part(batch.input, count, index) if plan is batch else _with_part(plan.input, batch, count, index)
    return replace(plan, input=below)


def _part(plan: Node, count: int, index: int) -> Node:
    size = counted(plan)
    if size == UNKNOWN_CARDINALITY:
        message = f"{count} ranks cannot take equally many steps: how many elements {plan.label} gives shows in a pass."
        hint = (
            "Say it with assert_cardinality(n), make it endless with repeat() and count steps, or part it yourself, "
            "with shard(count, index), and leave shard= out."
        )
        raise InvalidArgumentError(message, hint=hint)
    even = plan if size == INFINITE_CARDINALITY or size % count == 0 else Take(input=plan, count=size - size % count)
    return Shard(input=even, num_shards=count, index=index)
