"""The number of elements of a plan and of rows in them, if known, or the file that cannot be counted.

The number is also known from complete snapshots and caches. The node `Seen` replaces a part of a plan whose elements
are known by spec and count only.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

from penstock.block.spec import TensorSpec, ValueSpec
from penstock.block.structure import flatten, leaves_rank_open
from penstock.errors import Context, InvalidArgumentError, PenstockError, annotate
from penstock.plan.batching import is_ragged_slice
from penstock.plan.fused import MapAndBatch
from penstock.plan.inputs import Scan
from penstock.plan.node import DEEP, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Node, UnaryNode, rebuilt
from penstock.plan.ops import BatchNode, Prefetch, Shard, Skip, Take
from penstock.plan.stateful import AssertCardinality
from penstock.plan.storing import Cache, DiskCache, Snapshot
from penstock.sources.source import IndexedSource
from penstock.store.memory import MemoryStore


class Seen(Node):
    """A part of a plan that is known by the spec `element` and its count only. It cannot be run."""

    element: Any
    count: int = UNKNOWN_CARDINALITY

    name: ClassVar[str] = "seen"

    @property
    def spec(self) -> Any:
        return self.element

    @property
    def gives_any_rank(self) -> bool:
        return self.element is not None and leaves_rank_open(self.element)

    @property
    def cardinality(self) -> int:
        return self.count


def counted(plan: Node) -> int:
    """Return the cardinality of a plan for a caller that needs it.

    If the cardinality is unknown because a file cannot be counted, the error of this file is raised. If it would be
    unknown even with intact files, such as after a filter, the result is UNKNOWN_CARDINALITY.
    """
    known = plan.cardinality
    if known != UNKNOWN_CARDINALITY or _with_counts(plan, lambda node, source: 1) == UNKNOWN_CARDINALITY:
        return known
    return _with_counts(plan, _count)


def _with_counts(plan: Node, count: Callable[[Scan, IndexedSource], int]) -> int:
    """Return the cardinality that the plan has if each uncounted file has `count(scan, source)` rows."""

    def stand_in(node: Node) -> Node | None:
        if not isinstance(node, Scan) or node.cardinality != UNKNOWN_CARDINALITY:
            return None
        source = node.source
        if not isinstance(source, IndexedSource):
            return None
        return Seen(element=node.spec, count=count(node, source), where=node.where)

    return rebuilt(plan, stand_in).cardinality


def _count(node: Scan, source: IndexedSource) -> int:
    try:
        return source.count()
    except Exception as error:
        annotate(error, Context(stage=node.label, where=node.where))
        raise


def in_files(plan: Node, seed: int, deterministic: bool, *, look: bool = True) -> Node:  # noqa: FBT001
    """Return the plan with each complete snapshot read from its files, instead of the steps that computed it.

    If there is no snapshot, or a `reader_func` chooses what is read from the files, the plan is unchanged. If the plan
    has snapshots, its data is checked once, as at the start of the first iteration. With `look=False`, only snapshots
    whose data was checked before are used.
    """

    def saved(node: Node) -> Node | None:
        if not isinstance(node, Snapshot) or node.reader_func is not None:
            return None
        find = node.store.folder if look else node.store.known_folder
        folder = find(seed, deterministic)
        source = None if folder is None else node.store.saved(folder)
        return None if source is None else Scan(source=source, where=node.where)

    return rebuilt(plan, saved)


def known_cardinality(plan: Node, seed: int, deterministic: bool) -> int:  # noqa: FBT001 - an option's value
    """Return the cardinality of a plan. If its steps do not determine it, look into its caches and snapshots."""
    known = plan.cardinality
    if known == UNKNOWN_CARDINALITY:
        plan = _in_memory(plan)
        known = plan.cardinality
    return in_files(plan, seed, deterministic).cardinality if known == UNKNOWN_CARDINALITY else known


def _in_memory(plan: Node) -> Node:
    """Return the plan with each filled cache in memory replaced by a `Seen` of the same length."""

    def kept(node: Node) -> Node | None:
        if not isinstance(node, Cache) or node.cardinality != UNKNOWN_CARDINALITY:
            return None
        blocks = node.store.blocks() if isinstance(node.store, MemoryStore) else None
        if blocks is None:
            return None
        return Seen(element=node.spec, count=sum(block.size for block in blocks), where=node.where)

    return rebuilt(plan, kept)


def count_text(plan: Node, seed: int, deterministic: bool) -> str:  # noqa: FBT001 - an option's value
    """Return the number of elements as a string, as far as it is known without reading data."""
    known = plan.cardinality
    if known == UNKNOWN_CARDINALITY:
        with suppress(PenstockError, OSError):  # an unreadable snapshot is reported by the iteration
            known = in_files(_in_memory(plan), seed, deterministic, look=False).cardinality
    return _text_of(known)


def _text_of(count: int) -> str:
    if count == INFINITE_CARDINALITY:
        return "infinite"
    return "unknown" if count == UNKNOWN_CARDINALITY else str(count)


_KEEP = (AssertCardinality, Cache, DiskCache, Prefetch)


class RowCounts(NamedTuple):
    """`each` rows in every element but possibly the last, `total` rows in all, or a special cardinality."""

    each: int
    total: int


def rows_of(plan: Node, count: Callable[[Node], int] = lambda node: node.cardinality) -> RowCounts | None:
    """Return the rows along the first axis of a plan's elements, or None if the rows per element are unknown.

    They follow from the spec if it has the length of the first axis, and otherwise from the step that creates the
    batches. `count` returns the number of elements of a plan.
    """
    above: list[Node] = []  # steps above the one that determines the rows; they do not change elements
    node = plan
    while True:
        each = _each(node)
        if each is not None:
            found = RowCounts(each, _times(count(node), each))
            break
        if isinstance(node, (BatchNode, MapAndBatch)):
            found = _of_batches(node, count)
            break
        if not isinstance(node, (*_KEEP, Shard, Skip, Take)):
            return None
        above.append(node)
        assert isinstance(node, UnaryNode)
        node = node.input
    for step in reversed(above):
        found = RowCounts(found.each, _left(step, found))
    return found


def _each(node: Node) -> int | None:
    """Return the length of the first axis from the spec, or None."""
    leaves = [] if node.spec is None else flatten(node.spec)[0]
    known = {leaf.shape[0] for leaf in leaves if not isinstance(leaf, ValueSpec) and leaf.shape} - {None}
    return known.pop() if len(known) == 1 else None


def _of_batches(node: BatchNode | MapAndBatch, count: Callable[[Node], int]) -> RowCounts:
    batch = node.batch if isinstance(node, MapAndBatch) else node
    below = count(node.input)
    whole = below - below % batch.batch_size if batch.drop_remainder and below >= 0 else below
    return RowCounts(batch.batch_size, whole)


def _times(count: int, each: int) -> int:
    return count if count < 0 else count * each


def _left(step: Node, rows: RowCounts) -> int:
    """Return the number of rows after a step."""
    each, total = rows
    if total == UNKNOWN_CARDINALITY or isinstance(step, _KEEP):
        return total
    if isinstance(step, (Take, Skip)):
        return replace(step, input=Seen(element=None, count=total), count=step.count * each).cardinality
    assert isinstance(step, Shard)
    if total == INFINITE_CARDINALITY:
        return total
    elements = -(-total // each)
    left = max(-(-(elements - step.index) // step.num_shards), 0)
    has_last = left and (elements - 1) % step.num_shards == step.index
    return left * each - (elements * each - total if has_last else 0)


class Unbatch(UnaryNode):
    """Yields every slice along the first axis as an element."""

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
            message = f"unbatch cuts all components along the first axis, so they need one length ({told})."
            raise InvalidArgumentError(message, hint="Map the elements to components of one length first.")

    @property
    def spec(self) -> Any:
        if self.input.spec is None:
            return None
        leaves, structure = flatten(self.input.spec)
        if any(isinstance(leaf, ValueSpec) or not leaf.shape for leaf in leaves):
            return None
        return structure.build([leaf.unbatched() for leaf in leaves])

    @property
    def cardinality(self) -> int:
        count = self.input.cardinality
        if count == 0 or count == INFINITE_CARDINALITY:
            return count
        rows = rows_of(self.input)
        return UNKNOWN_CARDINALITY if rows is None else rows.total


def holds_ragged_slices(plan: Node) -> bool:
    """Return True if `unbatch` yields slices of ragged tensors, which `batch` joins to ragged tensors again."""
    found = plan.spec if plan.height <= DEEP and any(isinstance(node, Unbatch) for node in plan.walk()) else None
    return found is not None and any(map(is_ragged_slice, flatten(found)[0]))


def _is_long(leaf: Any) -> bool:
    """Return True if the length of a component is known."""
    return not isinstance(leaf, ValueSpec) and bool(leaf.shape) and leaf.shape[0] is not None
