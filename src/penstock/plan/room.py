"""Room for deep plans: Python's limit on how deep calls may go, raised for plans of hundreds of steps in a row.

A step that runs asks the one below it, so a plan of thousands of steps is thousands of calls deep. Walks over a plan do
without recursion where C would stand between two calls; everything else is Python calling Python, which takes no space
of the thread's stack (since 3.11) and is held up by that limit alone.
"""

from __future__ import annotations

import sys

from penstock.plan.node import Node

_CALLS = 40  # at most, for one step: of stages, segments and their locks
_USUAL = 20  # steps that the limit has room for in any case
_OTHERS = 5000  # calls of the program around them


def make_room(plan: Node) -> None:
    """Let calls go as deep as running this plan may take."""
    node = plan
    for _ in range(_USUAL):  # most plans end before that, and none of them is asked how high it is
        inputs = node.inputs
        if len(inputs) != 1:
            break
        (node,) = inputs
    if inputs and plan.height > _USUAL:
        needed = _OTHERS + _CALLS * plan.height
        if sys.getrecursionlimit() < needed:
            sys.setrecursionlimit(needed)
