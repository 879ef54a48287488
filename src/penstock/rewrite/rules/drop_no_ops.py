"""Steps that change nothing vanish:  Take(-1)·x, Skip(0)·x, Repeat(1)·x, Prefetch(0)·x, Shard(1, 0)·x   →   x

The results are equal by the definition of each step. A Repeat of 1 does not change the epoch, so the random numbers
stay the same.
"""

from __future__ import annotations

from penstock.plan.node import Node, UnaryNode
from penstock.plan.ops import Prefetch, Repeat, Shard, Skip, Take
from penstock.rewrite.rule import rule


@rule(
    Take | Skip | Repeat | Prefetch | Shard,
    "Removes steps that change nothing: take(-1), skip(0), repeat(1), prefetch(0), and a prefetch of a parallel step.",
)
def drop_no_ops(node: UnaryNode) -> Node | None:
    """Take(-1), Skip(0), Repeat(1), Prefetch(0) and Shard(1, 0) vanish."""
    match node:
        case Take(count=-1) | Skip(count=0) | Repeat(count=1) | Prefetch(buffer_size=0) | Shard(num_shards=1):
            return node.input
    return None
