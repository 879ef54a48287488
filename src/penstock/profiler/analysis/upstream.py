"""upstream: the steps that elements pass through on their way."""

from __future__ import annotations

from penstock.profiler.analysis.figures import Analysis


def upstream(analysis: Analysis, name: str) -> list[str]:
    """A step, and all that elements pass through in front of it."""
    found = [name]
    for reached in found:
        found += [below for below in analysis.step(reached).inputs if below not in found]
        found += [below for below in inner(analysis, reached) if below not in found]
    return found


def inner(analysis: Analysis, name: str) -> list[str]:
    """The steps of the data sets that a step opens."""
    return [step.name for step in analysis.steps if step.name.startswith(f"{name}/")]
