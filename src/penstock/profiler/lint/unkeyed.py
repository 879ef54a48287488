"""Functions with random numbers that the pipeline does not seed: they differ per iteration and after a resume."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.errors import RandomnessWarning
from penstock.functions.generators import generator_of, generators
from penstock.functions.memory import recalled
from penstock.functions.uses import Use, uses
from penstock.hints import tell
from penstock.options import Options
from penstock.plan.indexing import GlobalShuffle
from penstock.plan.node import Node
from penstock.plan.ops import Filter, Map
from penstock.plan.seeding import unseeded, uses_generators, warn_of_unseeded
from penstock.profiler.lint.kept import KEEPERS, functions_of
from penstock.profiler.lint.natures import draws_by_itself, draws_by_key, is_torchs


@dataclass(frozen=True, slots=True)
class Unkeyed:
    """A step whose function uses random numbers of `drawn`; `certain` is True if it does so in each call."""

    node: Node
    drawn: str
    certain: bool

    @property
    def message(self) -> str:
        return unseeded(self.node.label, self.drawn)


def unkeyed(plan: Node) -> Iterator[Unkeyed]:
    """Yield all such steps, except those whose results a cache or snapshot stores, which have their own warning."""
    for node in _not_kept(plan):
        seeds = isinstance(node, (Map, Filter))
        for function in functions_of(node):
            found = [use for use in _drawn(function) if not (seeds and generator_of(use))]
            for use in sorted(found, key=lambda use: not use.always)[:1]:
                yield Unkeyed(node, use.spelled, use.always)


def _not_kept(plan: Node) -> Iterator[Node]:
    """Yield all steps except those whose elements a cache or snapshot stores."""
    seen: set[int] = set()
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if id(node) in seen or isinstance(node, KEEPERS):
            continue
        seen.add(id(node))
        yield node
        waiting.extend(node.inputs)


def _drawn(function: Callable[..., Any]) -> list[Use]:
    """Return the uses of random numbers in a function; cached per function."""
    return recalled(function, "drawn", lambda: (_read(function), []), by_value=False)[0]


def _read(function: Callable[..., Any]) -> list[Use]:
    if isinstance(function, np.ufunc):
        return []
    named = list(uses(function))
    seeds = any(use.spelled.endswith(".manual_seed") for use in named)
    found = [use for use in named if draws_by_itself(use) and not (seeds and is_torchs(use.value))]
    return found + [use for name, use in generators(function).items() if name == "torch"]


def warn_of_unkeyed(plan: Node, options: Options) -> None:
    """Warn once per process, at the user's line, for each such step; not if the order does not matter."""
    if options.deterministic is False:
        return
    for found in unkeyed(plan):
        if found.certain:
            warn_of_unseeded(found.node.label, found.drawn, found.node.where)


def warn_of_repeats(plan: Node) -> None:
    """Warn if reading elements by index repeats the random numbers of the same epoch."""
    for node in _not_kept(plan):
        shuffled = isinstance(node, GlobalShuffle) and node.reshuffle_each_iteration
        keyed = any(draws_by_key(use) for function in functions_of(node) for use in uses(function))
        if shuffled or keyed or uses_generators(node):
            what = f"Elements are read by index again, and {node.label} repeats the random numbers of one epoch."
            tell(what, "Call ds.set_epoch(epoch) before each epoch.", RandomnessWarning, node.where)
            return
