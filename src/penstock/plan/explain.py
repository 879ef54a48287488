"""A plan as text, for reprs, documentation and golden tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from penstock.plan.node import Node

_WIDEST = 80  # columns that the tree may move to the right


def tree(plan: Node) -> str:
    """One line per step, the consumer's side first, with the user's line it was made on."""
    rows = list(_rows(plan))
    width = max(len(text) for text, _ in rows)
    return "\n".join(f"{text:<{width}}  {where}".rstrip() for text, where in rows)


def _rows(plan: Node) -> Iterator[tuple[str, str]]:
    waiting = [(plan, "", "")]
    while waiting:
        node, lead, below = waiting.pop()
        yield lead + node.label, short_location(node.where)
        if len(below) > _WIDEST:  # and no further to the right
            lead, below = below[:-2] + "└ ", below[:-2]
            waiting += [(part, lead, below + "  ") for part in reversed(node.inputs)]
            continue
        for i, part in reversed(list(enumerate(node.inputs))):
            last = i == len(node.inputs) - 1
            waiting.append((part, below + ("└ " if last else "├ "), below + ("  " if last else "│ ")))


def short_location(where: str | None) -> str:
    """`train.py:12` from a full path."""
    if where is None:
        return ""
    path, _, line = where.rpartition(":")
    return f"{PurePath(path).name}:{line}"
