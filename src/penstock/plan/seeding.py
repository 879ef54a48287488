"""Decide where steps run whose functions use the random generators of the process, seeded for each element.

Other threads of the consumer's process must not meet the seeded generators. Such a function is therefore called in a
worker process, or by the consumer itself. In another thread the generators are not seeded, and a warning says so.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from penstock.errors import RandomnessWarning
from penstock.functions.generators import generators
from penstock.functions.shipping import why_not_shippable
from penstock.functions.uses import Use
from penstock.hints import tell
from penstock.plan.indexing import GlobalShuffle
from penstock.plan.node import Node
from penstock.plan.node_base import answered
from penstock.plan.ops import FlatMap, Interleave
from penstock.plan.step_effects import functions_in
from penstock.plan.visible import CALLING
from penstock.trace.purity import why_impure


def seeded(function: Callable[..., Any]) -> dict[str, Use]:
    """Return the generators of the process that a function of a map or filter uses, as `generators`."""
    return {} if why_impure(function) is None else generators(function)


def uses_generators(node: Node) -> bool:
    """Return True if a step calls functions for which generators of the process are seeded."""
    if isinstance(node, GlobalShuffle):  # fetches the elements of its input by their numbers
        return any(map(uses_generators, node.input.walk()))
    return isinstance(node, CALLING) and any(seeded(function) for _, function in functions_in(node))


def opens_seeded(node: Node) -> bool:
    """Return True if the data sets that a step opens may call functions for which generators are seeded."""
    return isinstance(node, (FlatMap, Interleave)) and bool(seeded(node.function))


def why_here(node: Node, pinned: str | None = None) -> str | None:
    """Return why the consumer itself has to call the functions of a step; None if worker processes can, or any thread.

    `pinned` is the executor of all parallel steps, whatever they ask for.
    """
    if not answered(node, uses_generators) and not answered(node, opens_seeded):
        return None
    if isinstance(node, GlobalShuffle):
        return "it looks up elements by their numbers"
    executor = pinned or getattr(node, "executor", "auto")
    if executor == "auto":
        whys = (why_not_shippable(function, seeded=True) for _, function in functions_in(node))
        return next(filter(None, whys), None)
    return None if executor == "process" else f'it has executor="{executor}"'


@functools.cache
def runs_here(pinned: str | None) -> Callable[[Node], bool]:
    """Return a question: whether the consumer itself has to call the functions of a step, or of one before it."""

    def here(node: Node) -> bool:
        found = why_here(node, pinned) is not None
        for below in node.inputs:
            found = found or answered(below, here)
        return found

    return here


def unseeded(label: str, drawn: str) -> str:
    """Return the warning about a step whose elements depend on a generator that is not seeded for them."""
    return (
        f"{label} uses random numbers of {drawn}, which the pipeline does not seed: its elements differ in every run, "
        "with other numbers of workers, and after a resume."
    )


def warn_of_unseeded(label: str, drawn: str, where: str | None) -> None:
    """Warn about such a step on the user's line, once in a process."""
    hint = (
        "Use a generator of the element, rng = np.random.default_rng(ps.element_key()), or "
        "ps.image.random_*. If order and random numbers do not matter, set Options(deterministic=False)."
    )
    tell(unseeded(label, drawn), hint, RandomnessWarning, where)
