"""Steps as the method calls that create them, for advice."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.plan import ops
from penstock.plan.indexing import GlobalShuffle
from penstock.plan.node import AUTOTUNE, Node, function_name
from penstock.plan.storing import Snapshot


def calls(nodes: Iterable[Node]) -> str:
    """Return for example `.shuffle(1000).map(decode)`, beginning with the step nearest to the source."""
    return "".join(call(node) for node in nodes)


def call(node: Node) -> str:
    """Return one step as a call."""
    match node:
        case ops.Map() | ops.FlatMap():
            return f".{node.name}({_function(node.function)}{_options(node)})"
        case ops.Filter():
            return f".filter({_function(node.predicate)})"
        case ops.Batch():
            drop = ", drop_remainder=True" if node.drop_remainder else ""
            return f".batch({node.batch_size}{drop}{_options(node)})"
        case ops.Shuffle() | GlobalShuffle():
            buffer = _number(node.buffer_size) if isinstance(node, ops.Shuffle) else "ps.ALL"
            seed = "" if node.seed is None else f", seed={node.seed}"
            again = "" if node.reshuffle_each_iteration else ", reshuffle_each_iteration=False"
            return f".shuffle({buffer}{seed}{again})"
        case ops.Interleave():
            block = "" if node.block_length == 1 else f", block_length={node.block_length}"
            return f".interleave({_function(node.function)}, cycle_length={node.cycle_length}{block}{_options(node)})"
        case ops.Repeat():
            return f".repeat({'' if node.count < 0 else node.count})"
        case ops.Take() | ops.Skip():
            return f".{node.name}({node.count})"
        case ops.Shard():
            return f".shard({node.num_shards}, {node.index})"
        case ops.Enumerate():
            return f".enumerate({node.start or ''})"
        case ops.Prefetch():
            return f".prefetch({_number(node.buffer_size)})"
        case Snapshot():
            return f".{node.name}({node.path!r})"
    label = node.label
    return f".{label}" if label.endswith(")") else f".{label}()"


def _options(node: Any) -> str:
    found = ""
    if getattr(node, "num_parallel_calls", None) is not None:
        found = f", num_parallel_calls={_number(node.num_parallel_calls)}"
    if getattr(node, "deterministic", None) is False:
        found += ", deterministic=False"
    if getattr(node, "executor", "auto") != "auto":
        found += f', executor="{node.executor}"'
    return found


def _number(value: int) -> str:
    return "ps.AUTOTUNE" if value == AUTOTUNE else str(value)


def _function(function: Callable[..., Any]) -> str:
    """Return the function's name, or "..." if it has no name that can be written."""
    name = function_name(function)
    if str(getattr(function, "__module__", "")).startswith("penstock."):
        return f"ps.{name}"
    return name if name.isidentifier() else "..."
