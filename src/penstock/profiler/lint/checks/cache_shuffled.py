"""A cache or snapshot behind the only shuffle: every epoch has the order of the first."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.calls import calls
from penstock.profiler.lint.inspection import Inspection, below, between
from penstock.profiler.lint.kept import kept


def cache_shuffled(plan: Inspection) -> Iterator[Advice]:
    """Cache()·…·Shuffle, or a snapshot, without a shuffle behind it."""
    for found in kept(plan.written):
        if found.drawn is not None:
            continue
        node, keeper = found.node, found.keeper
        front = between(keeper, node) if any(node is part for part in below(keeper)) else []
        yield Advice.on(
            node,
            "cache-shuffled",
            "data",
            found.message,
            calls([*front, keeper, node]),
            f"Behind the {keeper.name} the shuffle makes another order in every epoch. To keep one order on purpose, "
            "give it reshuffle_each_iteration=False.",
        )
