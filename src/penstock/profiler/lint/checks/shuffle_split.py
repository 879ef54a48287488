"""A take or skip behind a shuffle that makes another order in every epoch: splits made so leak into one another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.plan.ops import Skip, Take
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.calls import call, calls
from penstock.profiler.lint.inspection import Inspection
from penstock.profiler.lint.splits import is_split, reshuffled


def shuffle_split(plan: Inspection) -> Iterator[Advice]:
    """Skip(n)·Shuffle, and Take(n)·Shuffle where the shuffle is skipped elsewhere, with what gives the same between."""
    kinds: tuple[type[Skip | Take], ...] = (Skip, Take)
    for kind in kinds:
        for cut, _ in plan.asked(kind):
            shuffle = reshuffled(cut.input)
            if shuffle is None or cut.count <= 0 or (kind is Take and not is_split(shuffle)):
                continue
            fixed = replace(shuffle, seed=shuffle.seed or 0, reshuffle_each_iteration=False)
            yield Advice.on(
                cut,
                "shuffle-split",
                "data",
                f"{cut.label} behind {shuffle.label} is of other elements in every epoch: as a split for validation it "
                "leaks into training.",
                calls([cut, shuffle]),
                f"Split first, and shuffle what is trained on. If one order is meant, {call(fixed)}.",
            )
