"""How many rows lie in the elements of a plan, where all elements have the same number of them but perhaps the last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from penstock.block.spec import TensorSpec
from penstock.block.structure import flatten
from penstock.errors import InvalidArgumentError
from penstock.plan.batching import BatchNode
from penstock.plan.node import DEEP, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Node, UnaryNode
from penstock.plan.ops import Batch, MapAndBatch, Prefetch, Shard, Skip, Take
from penstock.plan.stateful import AssertCardinality
from penstock.plan.storing import Cache, DiskCache

_KEEP = (AssertCardinality, Cache, DiskCache, Prefetch)


class Rows(NamedTuple):
    """`each` rows in every element, and what is left in the last; `total` in all, or a cardinality's special value."""

    each: int
    total: int


def rows_of(plan: Node, count: Callable[[Node], int] = lambda node: node.cardinality) -> Rows | None:
    """The rows along the first axis of a plan's elements; None where the plan does not tell how many an element has.

    They follow from the spec, where it says how long the first axis is, and from the step that has made the batches.
    `count` says how many elements a plan has; asked with it, every size is known.
    """
    above: list[Node] = []  # steps between here and the one that tells, which leave elements as they are
    node = plan
    while True:
        each = _each(node)
        if each is not None:
            found = Rows(each, _times(count(node), each))
            break
        if isinstance(node, (Batch, BatchNode, MapAndBatch)):
            found = _of_batches(node, count)
            break
        if not isinstance(node, (*_KEEP, Shard, Skip, Take)):
            return None
        above.append(node)
        assert isinstance(node, UnaryNode)
        node = node.input
    for step in reversed(above):
        found = Rows(found.each, _left(step, found))
    return found


def _each(node: Node) -> int | None:
    """The length of the first axis, as the spec has it."""
    leaves = [] if node.spec is None else flatten(node.spec)[0]
    known = {leaf.shape[0] for leaf in leaves if isinstance(leaf, TensorSpec) and leaf.shape} - {None}
    return known.pop() if len(known) == 1 else None


def _of_batches(node: Batch | BatchNode | MapAndBatch, count: Callable[[Node], int]) -> Rows:
    batch = node.batch if isinstance(node, MapAndBatch) else node
    below = count(node.input)
    whole = below - below % batch.batch_size if batch.drop_remainder and below >= 0 else below
    return Rows(batch.batch_size, whole)


def _times(count: int, each: int) -> int:
    return count if count < 0 else count * each


def _left(step: Node, rows: Rows) -> int:
    """The rows that are left behind a step."""
    each, total = rows
    if total == UNKNOWN_CARDINALITY or isinstance(step, _KEEP):
        return total
    if isinstance(step, Take):
        if step.count < 0:
            return total
        return step.count * each if total == INFINITE_CARDINALITY else min(total, step.count * each)
    if isinstance(step, Skip):
        if step.count < 0:
            return 0
        return total if total == INFINITE_CARDINALITY else max(total - step.count * each, 0)
    assert isinstance(step, Shard)
    if total == INFINITE_CARDINALITY:
        return total
    elements = -(-total // each)
    left = max(-(-(elements - step.index) // step.num_shards), 0)
    has_last = left and (elements - 1) % step.num_shards == step.index
    return left * each - (elements * each - total if has_last else 0)


class Unbatch(UnaryNode):
    """Every slice along the first axis as an element of its own."""

    name: ClassVar[str] = "unbatch"

    def __post_init__(self) -> None:
        if self.input.height > DEEP or self.input.spec is None:
            return
        leaves, structure = flatten(self.input.spec)
        for leaf, path in zip(leaves, structure.paths(), strict=True):
            if isinstance(leaf, TensorSpec) and not leaf.shape:
                message = f"unbatch cuts along the first axis; component {path or 'value'} is a scalar."
                hint = "Only elements made by batch, or arrays, can be unbatched."
                raise InvalidArgumentError(message, hint=hint)
        known = {path: leaf.shape[0] for leaf, path in zip(leaves, structure.paths(), strict=True) if _is_long(leaf)}
        if len(set(known.values())) > 1:
            told = ", ".join(f"{path or 'value'}: {length}" for path, length in known.items())
            message = f"unbatch cuts all components along the first axis, and they differ in length ({told})."
            raise InvalidArgumentError(message, hint="Map the elements to components of one length first.")

    @property
    def spec(self) -> Any:
        if self.input.spec is None:
            return None
        leaves, structure = flatten(self.input.spec)
        if any(not isinstance(leaf, TensorSpec) or not leaf.shape for leaf in leaves):
            return None
        return structure.build([TensorSpec(leaf.shape[1:], leaf.dtype) for leaf in leaves])

    @property
    def cardinality(self) -> int:
        count = self.input.cardinality
        if count == 0 or count == INFINITE_CARDINALITY:
            return count
        rows = rows_of(self.input)
        return UNKNOWN_CARDINALITY if rows is None else rows.total


def _is_long(leaf: Any) -> bool:
    """Whether the length of a component is known."""
    return isinstance(leaf, TensorSpec) and bool(leaf.shape) and leaf.shape[0] is not None
