"""Inspection: a plan with helper functions for checks.

The helpers estimate the records of a file and the bytes of an element, and find text that a function treats as `str`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from penstock.block.spec import TensorSpec
from penstock.block.structure import flatten
from penstock.options import Options
from penstock.plan.node import Node, UnaryNode
from penstock.plan.ops import Filter, FlatMap, Interleave, Map
from penstock.plan.stateful import TakeWhile
from penstock.rewrite.driver import rewrite
from penstock.rewrite.phases import RULES
from penstock.trace.text import TextAsStr, texts_as_str

Kind = TypeVar("Kind", bound=Node)


class Inspection:
    """A plan with its options.

    `written` is the plan that the user wrote. `mended` is the plan after the rewrites that move steps and make them
    parallel, so that no advice repeats what penstock does itself. `final` is the plan that runs.
    """

    def __init__(self, plan: Node, options: Options) -> None:
        self.written = plan
        self.options = options
        apart = Options(experimental_optimization={rule.option: False for rule in RULES.values() if not rule.for_lint})
        self.mended = rewrite(plan, options._merged(apart))[0]
        self.final = rewrite(plan, options)[0]

    def asked(self, kind: type[Kind]) -> Iterator[tuple[Kind, tuple[Node, ...]]]:
        """Yield the steps of a kind in the written plan, each with the later steps, the nearest first."""
        return _places(self.written, (), kind)

    def each(self, kind: type[Kind]) -> Iterator[tuple[Kind, tuple[Node, ...]]]:
        """Yield the steps of a kind in the mended plan."""
        return _places(self.mended, (), kind)


def _places(node: Node, above: tuple[Node, ...], kind: type[Kind]) -> Iterator[tuple[Kind, tuple[Node, ...]]]:
    waiting = [(node, above)]
    while waiting:
        node, above = waiting.pop()
        if isinstance(node, kind):
            yield node, above
        waiting += [(part, (node, *above)) for part in reversed(node.inputs)]


def below(node: Node, through: tuple[type[Node], ...] = (Node,)) -> Iterator[Node]:
    """Yield the steps before a node, the nearest first, down to a source or a step with several inputs.

    A step of a kind that is not in `through` is the last one.
    """
    while isinstance(node, UnaryNode):
        node = node.input
        yield node
        if not isinstance(node, through):
            return


def between(top: Node, bottom: Node) -> list[Node]:
    """Return the steps above `bottom` and below `top`, the one nearest to the source first.

    There are none if `bottom` is an input of a step with several inputs, or below one.
    """
    found: list[Node] = []
    for node in below(top):
        if node is bottom:
            return found[::-1]
        found.append(node)
    return []


_FRAME = 16  # bytes around the payload of a record


def estimated_records(name: str) -> int | None:
    """Return the file's size divided by that of its first record, or None for files that are not local or readable."""
    try:
        size = Path(name).stat().st_size
        with Path(name).open("rb") as file:
            head = file.read(8)
    except (OSError, ValueError):
        return None
    if len(head) < 8:
        return None
    length: int = struct.unpack("<Q", head)[0]
    return max(round(size / (length + _FRAME)), 1)


def element_bytes(spec: Any) -> int | None:
    """Return the bytes of an element's arrays, or None if the spec leaves them open.

    Byte strings of unknown length count 0.
    """
    if spec is None:
        return None
    total = 0
    for leaf in flatten(spec)[0]:
        if not isinstance(leaf, TensorSpec) or not leaf.fixed:
            return None
        if leaf.dtype is not bytes:
            total += math.prod(leaf.shape) * np.dtype(leaf.dtype).itemsize  # type: ignore[arg-type]
    return total


def has_bytes(spec: Any) -> bool:
    """Return True if an element contains byte strings, whose length no spec contains."""
    return any(isinstance(leaf, TensorSpec) and leaf.dtype is bytes for leaf in flatten(spec)[0])


def texts_in_functions(plan: Node) -> Iterator[tuple[UnaryNode, TextAsStr]]:
    """Yield the steps whose functions treat text as `str`, of those whose spec is known."""
    seen: set[int] = set()
    for node in plan.walk():
        name = "function" if isinstance(node, (Map, FlatMap, Interleave)) else "predicate"
        if id(node) in seen or not isinstance(node, (Map, FlatMap, Interleave, Filter, TakeWhile)):
            continue
        seen.add(id(node))
        spec = node.input.spec
        if spec is not None:
            arguments = spec if flatten(spec)[1].unpacks else (spec,)
            yield from ((node, found) for found in texts_as_str(getattr(node, name), arguments))
