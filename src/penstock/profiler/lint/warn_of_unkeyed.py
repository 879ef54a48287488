"""warn_of_unkeyed: says, when a pass begins, that a function surely draws from what is no part of the pipeline."""

from __future__ import annotations

from penstock.errors import RandomnessWarning
from penstock.options import Options
from penstock.plan.node import Node
from penstock.profiler.lint.telling import tell
from penstock.profiler.lint.unkeyed import HINT, unkeyed


def warn_of_unkeyed(plan: Node, options: Options) -> None:
    """A RandomnessWarning on the user's line for each such step, once in a process; none if order does not matter."""
    if options.deterministic is False:
        return
    for found in unkeyed(plan):
        if found.certain:
            tell(found.message, HINT, RandomnessWarning, found.node.where)
