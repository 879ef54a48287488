"""What draws from a generator that is no part of the pipeline: other elements in each pass, and behind a resume."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.errors import RandomnessWarning
from penstock.functions.uses import Use, uses
from penstock.options import Options
from penstock.plan.indexing import GlobalShuffle
from penstock.plan.node import Node
from penstock.profiler.lint.inspection import tell
from penstock.profiler.lint.kept import KEEPERS, functions_of
from penstock.profiler.lint.natures import draws_by_itself, draws_by_key

_FOUND: dict[int, tuple[weakref.ref[Any], Use | None]] = {}  # by identity: what a class compares by is the user's
HINT = (
    "Draw from a generator of the element, rng = np.random.default_rng(ps.element_key()), or with ps.image.random_*; "
    "Options(deterministic=False) says that the order and the draws do not matter."
)


@dataclass(frozen=True, slots=True)
class Unkeyed:
    """A step with a function that draws from `drawn`; `certain` where it does so at each call."""

    node: Node
    drawn: str
    certain: bool

    @property
    def message(self) -> str:
        return (
            f"{self.node.label} draws from {self.drawn}, which is no part of the pipeline: its elements are others in "
            "every run, with other numbers of workers, and after a resume."
        )


def unkeyed(plan: Node) -> Iterator[Unkeyed]:
    """All such steps, except those whose draws a cache or snapshot keeps, which is told in other words."""
    for node in _not_kept(plan):
        for function in functions_of(node):
            use = _drawn(function)
            if use is not None:
                yield Unkeyed(node, use.spelled, use.always)


def _not_kept(plan: Node) -> Iterator[Node]:
    """All steps but those whose elements a cache or snapshot keeps."""
    seen: set[int] = set()
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if id(node) in seen or isinstance(node, KEEPERS):
            continue
        seen.add(id(node))
        yield node
        waiting.extend(node.inputs)


def _drawn(function: Callable[..., Any]) -> Use | None:
    """What a function draws from, what it surely draws from first; read once for each function."""
    key = id(function)
    known = _FOUND.get(key)
    if known is not None and known[0]() is function:
        return known[1]
    found = _read(function)
    with suppress(TypeError):  # nothing that can be held weakly
        _FOUND[key] = weakref.ref(function, lambda gone: _forget(key, gone)), found
    return found


def _forget(key: int, gone: weakref.ref[Any]) -> None:
    known = _FOUND.get(key)
    if known is not None and known[0] is gone:  # and no other that has its place by now
        del _FOUND[key]


def _read(function: Callable[..., Any]) -> Use | None:
    if isinstance(function, np.ufunc):
        return None
    found = [use for use in uses(function) if draws_by_itself(use)]
    return next((use for use in found if use.always), found[0] if found else None)


def warn_of_unkeyed(plan: Node, options: Options) -> None:
    """A RandomnessWarning on the user's line for each such step, once in a process; none if order does not matter."""
    if options.deterministic is False:
        return
    for found in unkeyed(plan):
        if found.certain:
            tell(found.message, HINT, RandomnessWarning, found.node.where)


def warn_of_repeats(plan: Node) -> None:
    """A RandomnessWarning if reading the elements by index again gives the random numbers of the same epoch."""
    for node in _not_kept(plan):
        shuffled = isinstance(node, GlobalShuffle) and node.reshuffle_each_iteration
        if shuffled or any(draws_by_key(use) for function in functions_of(node) for use in uses(function)):
            what = f"Elements are read by index again, and {node.label} repeats the random numbers of one epoch."
            tell(what, "Call ds.set_epoch(epoch) before each epoch.", RandomnessWarning, node.where)
            return
