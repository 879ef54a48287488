"""Random results that a cache or snapshot stores, so that all epochs are equal: random numbers and shuffled orders."""

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
class StoredStep:
    """A step whose random result `keeper` stores.

    `drawn` names the source of random numbers, or is None for a shuffle.
    """

    keeper: Node
    node: Node
    drawn: str | None

    @property
    def message(self) -> str:
        kept = f"{self.keeper.name}() stores"
        if self.drawn is None:
            return f"{kept} the first order of {self.node.label}: every epoch has that order."
        return f"{self.node.label} uses random numbers of {self.drawn}, and {kept} the first ones for all epochs."


def kept(plan: Node) -> Iterator[StoredStep]:
    """Yield everything of this kind that the caches and snapshots of a plan store."""
    return _kept(plan, shuffled=False)


def _kept(node: Node, *, shuffled: bool) -> Iterator[StoredStep]:
    """Yield what is stored in a part of a plan. `shuffled` is True if a later step shuffles in every epoch."""
    if isinstance(node, KEEPERS):
        for part in node.inputs:
            yield from _by(node, part, shuffled=shuffled)
    for part in node.inputs:
        yield from _kept(part, shuffled=shuffled or isinstance(node, SHUFFLES))


def functions_of(node: Node) -> list[Callable[..., Any]]:
    """Return the user's functions that compute the elements of a step."""
    if isinstance(node, Scan):
        return [node.source.function] if isinstance(node.source, GeneratorSource) else []
    return [value for value in parameters(node).values() if callable(value)]


def _by(keeper: Node, node: Node, *, shuffled: bool) -> Iterator[StoredStep]:
    """Yield what one cache or snapshot stores. The order of a shuffle before another shuffle does not count."""
    if isinstance(node, KEEPERS):
        return
    drawn = next(filter(None, map(randomness, functions_of(node))), None)
    if drawn is not None:
        yield StoredStep(keeper, node, drawn)
    elif isinstance(node, SHUFFLES) and not shuffled:
        shuffled = True
        if node.reshuffle_each_iteration and not are_names(node):
            yield StoredStep(keeper, node, None)
    for part in node.inputs:
        yield from _by(keeper, part, shuffled=shuffled)


def warn_of_kept(plan: Node) -> None:
    """Warn once per process, at the user's line, for each step whose random result is stored."""
    if not any(isinstance(node, KEEPERS) for node in plan.walk()):
        return
    for found in kept(plan):
        hint = f"Put the step after {found.keeper.name}(), so that every epoch has its own"
        hint += (
            "." if found.drawn else ", or pass reshuffle_each_iteration=False to the shuffle if one order is intended."
        )
        tell(found.message, hint, RandomnessWarning, found.node.where)
