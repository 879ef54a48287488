"""A cache or snapshot behind a step that draws: every epoch gets the draws of the first."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.calls import calls
from penstock.profiler.lint.inspection import Inspection, below, between
from penstock.profiler.lint.kept import kept


def cache_random(plan: Inspection) -> Iterator[Advice]:
    """Cache()·…·Map(f), where f draws random numbers; or a snapshot, or another step with a function."""
    for found in kept(plan.written):
        if found.drawn is None:
            continue
        node, keeper = found.node, found.keeper
        behind = between(keeper, node) if any(node is part for part in below(keeper)) else []
        yield Advice.on(
            node,
            "cache-random",
            "data",
            found.message,
            calls([keeper, node, *behind]),
            f"The {keeper.name} then holds what does not change, and the function draws anew in every epoch.",
        )
