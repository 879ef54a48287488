"""A parallel pipeline ends on a worker:  x   →   Prefetch(AUTOTUNE)·x,  for a whole plan x

The results are equal because a prefetch only changes the time at which elements are computed. Without the prefetch, the
steps after the last parallel step run in the thread of the training loop, and the training step waits for them. With
the prefetch, these steps run on a worker. So does the receiving of results from the workers of a service.

The rule does not change these plans:
- A plan without a parallel step runs entirely in the caller's thread, as written.
- A plan that ends in a map with executor="inline" stays in the caller's thread.
- A plan may have a function with side effects, such as a counter or the use of numpy's generator. Such a function runs
  when its element is requested. Only an explicit `prefetch(n)` may call it earlier.
"""

from __future__ import annotations

from penstock.plan.distribution import Distribute
from penstock.plan.inputs import Concatenate, Scan, Zip
from penstock.plan.node import AUTOTUNE, Node
from penstock.plan.ops import Enumerate, Prefetch, Repeat, Shard, Skip, Take
from penstock.plan.step_effects import on_workers
from penstock.plan.visible import shown_ahead
from penstock.rewrite.rule import rule

_LIGHT = (Take, Skip, Shard, Enumerate, Repeat, Concatenate, Zip)  # these steps pass Blocks on without work


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
    """Return True if any step of the plan runs on workers."""
    return any(on_workers(node) or isinstance(node, Distribute) for node in plan.walk())


def is_ahead(node: Node) -> bool:
    """Return True if the last steps only pass on elements that are already read or computed on workers."""
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
    """Return True if a step after the last parallel step has executor="inline"."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if on_workers(node):
            continue
        if getattr(node, "executor", None) == "inline":
            return True
        waiting += node.inputs
    return False
