"""A parallel pipeline ends on a worker:  x   →   Prefetch(AUTOTUNE)·x,  for a whole plan x

Equal because a prefetch changes nothing but the time at which elements are made. Without it, steps behind the last
parallel one run in the loop that takes the batches, and the training step waits for them. A plan without any parallel
step is left alone: it runs in the caller's thread from end to end, as it was written. So is one that ends in a map with
executor="inline", which is to stay in that thread, and one in which somebody could see it: a function that counts or
draws from numpy's generator is called when its element is asked for, and no further ahead than a `prefetch(n)` says.
What workers of a service have made is taken in on a worker, too.
"""

from __future__ import annotations

from penstock.plan.distribution import Distribute
from penstock.plan.inputs import Concatenate, Scan, Zip
from penstock.plan.node import AUTOTUNE, Node
from penstock.plan.ops import Enumerate, Prefetch, Repeat, Shard, Skip, Take
from penstock.plan.visible import on_workers, shown_ahead
from penstock.rewrite.rule import rule

_LIGHT = (Take, Skip, Shard, Enumerate, Repeat, Concatenate, Zip)  # they pass Blocks on


@rule(
    Node,
    "In a parallel pipeline, runs the last steps ahead of the training loop if this has no observable effect.",
    for_lint=False,
)
def inject_prefetch(plan: Node) -> Node | None:
    """A plan with parallel steps whose last ones are not becomes Prefetch(AUTOTUNE) of it: its end runs on a worker."""
    if is_ahead(plan) or not has_workers(plan) or must_stay(plan) or shown_ahead(plan):
        return None
    return Prefetch(input=plan, buffer_size=AUTOTUNE, where=plan.where)


def has_workers(plan: Node) -> bool:
    """Whether any of it runs on workers."""
    return any(on_workers(node) or isinstance(node, Distribute) for node in plan.walk())


def is_ahead(node: Node) -> bool:
    """Whether nothing but handing on is left to do when an element is asked for."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if on_workers(node) or isinstance(node, Scan):
            continue
        if not isinstance(node, _LIGHT):
            return False
        waiting += node.inputs
    return True


def must_stay(node: Node) -> bool:
    """Whether a function that is called in the loop's thread is to be called there."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if on_workers(node):
            continue
        if getattr(node, "executor", None) == "inline":
            return True
        waiting += node.inputs
    return False
