"""upstream: the steps that elements pass through on their way."""

from __future__ import annotations

from penstock.profiler.analysis.figures import Analysis


def upstream(analysis: Analysis, name: str) -> list[str]:
    """A step, and all that elements pass through in front of it."""
    below: dict[str, list[str]] = {step.name: [*step.inputs] for step in analysis.steps}
    for step in analysis.steps:
        outer, slash, _ = step.name.rpartition("/")
        while slash:
            below.setdefault(outer, []).append(step.name)
            outer, slash, _ = outer.rpartition("/")
    found = [name]
    known = {name}
    for reached in found:
        new = [each for each in dict.fromkeys(below[reached]) if each not in known]
        known.update(new)
        found += new
    return found


def inner(analysis: Analysis, name: str) -> list[str]:
    """The steps of the data sets that a step opens."""
    return [step.name for step in analysis.steps if step.name.startswith(f"{name}/")]
