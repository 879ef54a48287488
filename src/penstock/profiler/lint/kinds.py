"""What functions of a plan do with values of the kinds that their elements have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from penstock.block.structure import flatten
from penstock.plan.node import Node, UnaryNode
from penstock.plan.ops import Filter, FlatMap, Interleave, Map
from penstock.plan.stateful import TakeWhile
from penstock.trace.kinds.reader import Finding, read
from penstock.trace.kinds.values import kind_of_spec


def found_in_functions(plan: Node, *kinds: type) -> Iterator[tuple[UnaryNode, Any]]:
    """What is found in the functions that get whole elements, of those whose spec is known."""
    seen: set[int] = set()
    for node in plan.walk():
        function = _function(node)
        if function is None or id(node) in seen or not isinstance(node, UnaryNode):
            continue
        seen.add(id(node))
        for found in _found(function, node.input.spec):
            if isinstance(found, kinds):
                yield node, found


def _function(node: Node) -> Callable[..., Any] | None:
    if isinstance(node, (Map, FlatMap, Interleave)):
        return node.function
    return node.predicate if isinstance(node, (Filter, TakeWhile)) else None


def _found(function: Callable[..., Any], spec: Any) -> list[Finding]:
    if spec is None:
        return []
    unpacks = flatten(spec)[1].unpacks
    arguments = [kind_of_spec(part) for part in (spec if unpacks else (spec,))]
    try:
        return read(function, arguments)
    except Exception:  # code that is read may hold anything
        return []
