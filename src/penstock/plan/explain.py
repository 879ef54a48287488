"""A plan as text, for reprs, documentation and golden tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from penstock.plan.node import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Node


def tree(plan: Node) -> str:
    """One line per step, the consumer's side first, with the user's line it was made on."""
    rows = list(_rows(plan, "", ""))
    width = max(len(text) for text, _ in rows)
    return "\n".join(f"{text:<{width}}  {where}".rstrip() for text, where in rows)


def _rows(node: Node, lead: str, below: str) -> Iterator[tuple[str, str]]:
    yield lead + node.label, short_location(node.where)
    for i, part in enumerate(node.inputs):
        if len(node.inputs) == 1:
            yield from _rows(part, below + "└ ", below + "  ")
        else:
            last = i == len(node.inputs) - 1
            yield from _rows(part, below + ("└ " if last else "├ "), below + ("  " if last else "│ "))


def short_location(where: str | None) -> str:
    """`train.py:12` from a full path."""
    if where is None:
        return ""
    path, _, line = where.rpartition(":")
    return f"{PurePath(path).name}:{line}"


def cardinality_text(count: int) -> str:
    if count == INFINITE_CARDINALITY:
        return "infinite"
    return "unknown" if count == UNKNOWN_CARDINALITY else str(count)
