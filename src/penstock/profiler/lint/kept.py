"""What a cache or snapshot keeps of what would differ from epoch to epoch: random draws, the order of a shuffle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.errors import RandomnessWarning
from penstock.hints import tell
from penstock.plan.indexing import GlobalShuffle
from penstock.plan.inputs import Scan
from penstock.plan.node import Node, parameters
from penstock.plan.ops import Shuffle
from penstock.plan.storing import Cache, Snapshot
from penstock.profiler.lint.names import are_names
from penstock.profiler.lint.natures import randomness
from penstock.sources.generator import GeneratorSource

KEEPERS = (Cache, Snapshot)
SHUFFLES = (Shuffle, GlobalShuffle)


@dataclass(frozen=True, slots=True)
class Kept:
    """A step whose outcome `keeper` keeps; `drawn` is what its function draws from, None for a shuffle."""

    keeper: Node
    node: Node
    drawn: str | None

    @property
    def message(self) -> str:
        kept = f"{self.keeper.name}() keeps"
        if self.drawn is None:
            return f"{kept} the order that {self.node.label} made first: every epoch is in that order."
        return f"{self.node.label} uses random numbers of {self.drawn}, and {kept} the first ones for all epochs."


def kept(plan: Node) -> Iterator[Kept]:
    """All that is kept by the caches and snapshots of a plan."""
    return _kept(plan, shuffled=False)


def _kept(node: Node, *, shuffled: bool) -> Iterator[Kept]:
    """`shuffled` says that a step above makes another order in every epoch."""
    if isinstance(node, KEEPERS):
        for part in node.inputs:
            yield from _by(node, part, shuffled=shuffled)
    for part in node.inputs:
        yield from _kept(part, shuffled=shuffled or isinstance(node, SHUFFLES))


def functions_of(node: Node) -> list[Callable[..., Any]]:
    """The user's functions that make the elements of a step."""
    if isinstance(node, Scan):
        return [node.source.function] if isinstance(node.source, GeneratorSource) else []
    return [value for value in parameters(node).values() if callable(value)]


def _by(keeper: Node, node: Node, *, shuffled: bool) -> Iterator[Kept]:
    """What one of them keeps; a shuffle below another one has made no order that is seen."""
    if isinstance(node, KEEPERS):
        return
    drawn = next(filter(None, map(randomness, functions_of(node))), None)
    if drawn is not None:
        yield Kept(keeper, node, drawn)
    elif isinstance(node, SHUFFLES) and not shuffled:
        shuffled = True
        if node.reshuffle_each_iteration and not are_names(node):
            yield Kept(keeper, node, None)
    for part in node.inputs:
        yield from _by(keeper, part, shuffled=shuffled)


def warn_of_kept(plan: Node) -> None:
    """A RandomnessWarning on the user's line for each step whose outcome is kept, once in a process."""
    if not any(isinstance(node, KEEPERS) for node in plan.walk()):
        return
    for found in kept(plan):
        hint = f"Put the step after {found.keeper.name}(), so that every epoch has its own"
        hint += (
            "."
            if found.drawn
            else ", or give the shuffle reshuffle_each_iteration=False to say that one order is meant."
        )
        tell(found.message, hint, RandomnessWarning, found.node.where)
