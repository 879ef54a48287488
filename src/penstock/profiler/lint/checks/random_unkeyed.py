"""A function that draws from numpy's or Python's own generator: not the same elements always, nor after a resume."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.inspection import Inspection
from penstock.profiler.lint.unkeyed import unkeyed


def random_unkeyed(plan: Inspection) -> Iterator[Advice]:
    """Map(f), where f draws from np.random, random, or a generator of somebody's."""
    if plan.options.deterministic is False:
        return
    for found in unkeyed(plan.written):
        yield Advice.on(
            found.node,
            "random-unkeyed",
            "data",
            found.message,
            "rng = np.random.default_rng(ps.element_key()), in the function",
            "What is drawn then follows from the seed, the epoch and the element alone. For pictures there is "
            "ps.image.random_*.",
        )
