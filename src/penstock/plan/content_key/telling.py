"""The parameters of a step that tell what elements it gives."""

from __future__ import annotations

from typing import Any

from penstock.plan.node import Node, parameters
from penstock.trace.purity import may_draw

# a live object of a process; a count of it; who does the work, and how much at a time
_NOT_TELLING = ("store", "tally", "num_parallel_calls", "vectorise")


def telling(node: Node) -> dict[str, Any]:
    """The parameters by name, but for those that are not set."""
    found = {name: value for name, value in parameters(node).items() if name not in _NOT_TELLING and value is not None}
    functions = [value for value in found.values() if callable(value)]
    if "salt" in found and functions and not any(map(may_draw, functions)):
        del found["salt"]  # only draws depend on it
    return found
