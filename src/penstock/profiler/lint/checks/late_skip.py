"""A skip behind a costly map: elements are made to be dropped."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.functions.uses import keeps_state
from penstock.plan.ops import Map, Prefetch, Skip
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.calls import calls
from penstock.profiler.lint.inspection import Inspection, below, between
from penstock.profiler.lint.natures import work


def late_skip(plan: Inspection) -> Iterator[Advice]:
    """Skip(n)·…·Map(f), where f reads or decodes and no rewrite has moved it."""
    for skip, _ in plan.each(Skip):
        costly: list[Map] = []
        for node in below(skip):
            if not isinstance(node, (Map, Prefetch)) or (isinstance(node, Map) and keeps_state(node.function)):
                break
            if isinstance(node, Map) and work(node.function) is not None:
                costly.append(node)
        if skip.count > 0 and costly:
            first = costly[-1]
            found = work(first.function)
            does = "" if found is None else f"; it {found[0]}"
            yield Advice.on(
                skip,
                "late-skip",
                "speed",
                f"{skip.label} drops elements that {first.label} has made{does}.",
                calls([skip, first, *between(skip, first)]),
                f"The map is then not called for the first {skip.count}; the elements that are left are the same.",
            )
