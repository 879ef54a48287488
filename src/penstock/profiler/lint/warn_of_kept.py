"""warn_of_kept: says, when a pass begins, that what it draws or shuffles is kept for all that follow."""

from __future__ import annotations

import warnings

from penstock.errors import RandomnessWarning
from penstock.plan.node import Node
from penstock.profiler.lint.kept import KEEPERS, Kept, kept

_TOLD: set[tuple[str, str | None]] = set()  # what the process has been warned of


def warn_of_kept(plan: Node) -> None:
    """A RandomnessWarning on the user's line for each step whose outcome is kept, once in a process."""
    if any(isinstance(node, KEEPERS) for node in plan.walk()):
        for found in kept(plan):
            _warn(found)


def _warn(found: Kept) -> None:
    said = found.message, found.node.where
    if said in _TOLD:
        return
    _TOLD.add(said)
    keeper = f"{found.keeper.name}()"
    hint = f"Put the step behind {keeper}, so that every epoch has its own"
    more = (
        "." if found.drawn else ", or give the shuffle reshuffle_each_iteration=False to say that one order is meant."
    )
    message = f"{found.message} {hint}{more}"
    file, _, line = (found.node.where or "").rpartition(":")
    if file and line.isdigit():
        warnings.warn_explicit(message, RandomnessWarning, file, int(line))
    else:
        warnings.warn(message, RandomnessWarning, stacklevel=2)
