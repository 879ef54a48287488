"""warn_of_kept: says, when a pass begins, that what it draws or shuffles is kept for all that follow."""

from __future__ import annotations

from penstock.errors import RandomnessWarning
from penstock.plan.node import Node
from penstock.profiler.lint.kept import KEEPERS, kept
from penstock.profiler.lint.telling import tell


def warn_of_kept(plan: Node) -> None:
    """A RandomnessWarning on the user's line for each step whose outcome is kept, once in a process."""
    if not any(isinstance(node, KEEPERS) for node in plan.walk()):
        return
    for found in kept(plan):
        hint = f"Put the step behind {found.keeper.name}(), so that every epoch has its own"
        hint += (
            "."
            if found.drawn
            else ", or give the shuffle reshuffle_each_iteration=False to say that one order is meant."
        )
        tell(found.message, hint, RandomnessWarning, found.node.where)
