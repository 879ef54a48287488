"""spots: the steps of a plan after which a cache could be placed, and reasons against it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.functions.facts import why_visible
from penstock.functions.uses import keeps_state, uses
from penstock.options import Options
from penstock.plan import ops
from penstock.plan.batching import Rebatch
from penstock.plan.counted import Unbatch
from penstock.plan.inputs import Concatenate, Scan, Zip
from penstock.plan.node import INFINITE_CARDINALITY, Node
from penstock.plan.storing import Cache, Snapshot
from penstock.profiler.analysis.places import Place
from penstock.profiler.lint.natures import randomness
from penstock.sources.generator import GeneratorSource
from penstock.trace.purity import may_draw

# steps with equal output for equal input
_FIXED = (
    *(Scan, Cache, Snapshot, Zip, Concatenate, Rebatch),
    *(ops.BatchNode, Unbatch, ops.Take, ops.Skip, ops.Shard, ops.Enumerate, ops.Prefetch, ops.Repeat),
)
_WORDS = ("shuffle", "random", "sample", "generator", "repeat")


def against(places: list[Place], options: Options) -> dict[str, str | None]:
    """Return, by the name of each step, the reason against a cache after it, or None.

    A reason also applies to later steps.
    """
    found: dict[str, str | None] = {}
    for place in places:
        below = [found[name] for name in place.inputs]
        found[place.name] = next((why for why in below if why), None) or _why_not(place, options)
    return found


def _why_not(place: Place, options: Options) -> str | None:
    """Return the reason that a step itself contributes, or None."""
    step = place.step
    if step.cardinality == INFINITE_CARDINALITY:
        return "has no end"
    if getattr(step, "num_parallel_calls", None) is not None:
        own = getattr(step, "deterministic", None)
        if not (options.deterministic if own is None else own):
            return "yields its elements in a different order each time"
    if isinstance(step, ops.Shuffle):
        return "has another order in every epoch" if step.reshuffle_each_iteration else None
    if isinstance(step, ops.Map):
        return why_not_the_same(step.function)
    if isinstance(step, ops.Filter):
        return why_not_the_same(step.predicate)
    if isinstance(step, (ops.Interleave, ops.FlatMap)):
        return None if _opens_the_same(step.function) else "opens data sets that may differ from epoch to epoch"
    if isinstance(step, Scan) and isinstance(step.source, GeneratorSource):
        return "comes from a generator, which may yield other elements each time"
    return None if isinstance(step, _FIXED) else "may yield other elements each time"


def why_not_the_same(function: Callable[..., Any]) -> str | None:
    """Return the reason why a second call of a function may differ or must not be left out, or None."""
    drawn = randomness(function)
    if drawn is not None:
        return f"uses random numbers of {drawn}"
    if not may_draw(function):
        return None
    why = why_visible(function)
    return None if why is None else f"may not be left out: {why}"


def _opens_the_same(function: Callable[..., Any]) -> bool:
    """Return True if a function opens data sets of penstock without visible randomness."""
    if keeps_state(function):
        return False
    for use in uses(function):
        if any(word in use.spelled.lower() for word in _WORDS):
            return False
        known = str(getattr(use.value, "__module__", "")).startswith("penstock")
        if use.value is not None and not known and not isinstance(use.value, (bool, int, float, str, bytes)):
            return False
    return True


def covered(places: list[Place]) -> set[str]:
    """Return the steps that a cache of the user prevents from running: everything before it, and the cache itself."""
    found: set[str] = set()
    for place in reversed(places):
        if isinstance(place.step, (Cache, Snapshot)) or place.name in found:
            found.update((place.name, *place.inputs))
    return found


def turns(plan: Node, target: Node) -> int:
    """Return how often an iteration over the plan reads a step, because of its repetitions."""
    return _turns(plan, target) or 1


def _turns(node: Node, target: Node) -> int:
    if node is target:
        return 1
    count = max(node.count, 1) if isinstance(node, ops.Repeat) else 1
    return count * max((_turns(below, target) for below in node.inputs), default=0)
