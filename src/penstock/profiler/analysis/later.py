"""later: what a pipeline gives from its second epoch on, where the first one fills a cache."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.profiler.analysis.advice import gain
from penstock.profiler.analysis.applied import applied
from penstock.profiler.analysis.bottleneck import Bottleneck, bottleneck
from penstock.profiler.analysis.changes import Changes
from penstock.profiler.analysis.figures import Analysis
from penstock.profiler.analysis.model import fitted, rate


@dataclass(frozen=True, slots=True)
class Later:
    """The cache, what the rate will be as a multiple of what it is, and what limits then."""

    step: str
    ratio: float
    bottleneck: Bottleneck

    @property
    def sentence(self) -> str:
        """What a person is told."""
        gained = f"was filled meanwhile: expect {gain(self.ratio)} from the second epoch on."
        return f"{self.step} {gained} Then: {self.bottleneck.sentence}"


def later(analysis: Analysis) -> Later | None:
    """Of the cache nearest to the consumer; None where there is none, or it is full and served this pass."""
    if not analysis.elements_per_second:
        return None
    for step in reversed(analysis.steps):
        filled = any(analysis.step(name).elements for name in step.inputs)
        if step.kind == "cache" and "/" not in step.name and filled:
            fit = fitted(analysis)
            then = applied(analysis, Changes(cached_after=step.name))
            return Later(step.name, rate(then, fit) / rate(analysis, fit), bottleneck(then, fit))
    return None
