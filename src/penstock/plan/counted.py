"""How many elements a plan has, where that is known, or which file cannot be counted; and how many rows lie in them.

It is known of complete snapshots and caches, too. Seen stands for a part of a plan of which one element was made.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple

from penstock.block.spec import TensorSpec, ValueSpec
from penstock.block.structure import flatten, leaves_rank_open
from penstock.cache.memory import MemoryStore
from penstock.errors import Context, InvalidArgumentError, PenstockError, annotate
from penstock.plan.batching import BatchNode, is_ragged_slice
from penstock.plan.fused import MapAndBatch
from penstock.plan.inputs import Scan
from penstock.plan.node import DEEP, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Node, UnaryNode, rebuilt
from penstock.plan.ops import Batch, Prefetch, Shard, Skip, Take
from penstock.plan.stateful import AssertCardinality
from penstock.plan.storing import Cache, DiskCache, Snapshot
from penstock.sources.source import IndexedSource


class Seen(Node):
    """A part whose elements are described by `element`. It gives none: nothing is run over it."""

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
    """The cardinality of a plan, for somebody who needs to know it.

    Raises the error of a file that cannot be counted, where that is why the number is not known. Where it were not
    known with whole files either, as behind a filter, it is UNKNOWN_CARDINALITY, and files are no matter.
    """
    known = plan.cardinality
    if known != UNKNOWN_CARDINALITY or _with_counts(plan, lambda node, source: 1) == UNKNOWN_CARDINALITY:
        return known
    return _with_counts(plan, _count)


def _with_counts(plan: Node, count: Callable[[Scan, IndexedSource], int]) -> int:
    """The cardinality if files that are not counted had `count(scan, source)` rows in all."""

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
    """The plan that reads the files of each complete snapshot, in the place of the steps that made it.

    The plan itself where there is none, or where a `reader_func` decides what of the files is read. Looks at the data
    of a plan that has snapshots, once, as the first pass does; without `look` only at snapshots whose data was looked
    at before.
    """

    def saved(node: Node) -> Node | None:
        if not isinstance(node, Snapshot) or node.reader_func is not None:
            return None
        assert node.store is not None
        find = node.store.folder if look else node.store.known_folder
        folder = find(seed, deterministic)
        source = None if folder is None else node.store.saved(folder)
        return None if source is None else Scan(source=source, where=node.where)

    return rebuilt(plan, saved)


def known_cardinality(plan: Node, seed: int, deterministic: bool) -> int:  # noqa: FBT001 - an option's value
    """The cardinality of a plan, from what its caches and snapshots keep where its steps do not tell."""
    known = plan.cardinality
    if known == UNKNOWN_CARDINALITY:
        plan = _in_memory(plan)
        known = plan.cardinality
    return in_files(plan, seed, deterministic).cardinality if known == UNKNOWN_CARDINALITY else known


def _in_memory(plan: Node) -> Node:
    """The plan with something of the same length in the place of each cache in memory that a pass has filled."""

    def kept(node: Node) -> Node | None:
        if not isinstance(node, Cache) or node.cardinality != UNKNOWN_CARDINALITY:
            return None
        blocks = node.store.blocks() if isinstance(node.store, MemoryStore) else None
        if blocks is None:
            return None
        return Seen(element=node.spec, count=sum(block.size for block in blocks), where=node.where)

    return rebuilt(plan, kept)


def count_text(plan: Node, seed: int, deterministic: bool) -> str:  # noqa: FBT001 - an option's value
    """The number of elements, as far as it is known without a look at data, for people."""
    known = plan.cardinality
    if known == UNKNOWN_CARDINALITY:
        with suppress(PenstockError, OSError):  # a snapshot that cannot be read: a pass says so
            known = in_files(_in_memory(plan), seed, deterministic, look=False).cardinality
    return _text_of(known)


def _text_of(count: int) -> str:
    if count == INFINITE_CARDINALITY:
        return "infinite"
    return "unknown" if count == UNKNOWN_CARDINALITY else str(count)


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
    known = {leaf.shape[0] for leaf in leaves if not isinstance(leaf, ValueSpec) and leaf.shape} - {None}
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
    """Return True if `unbatch` makes elements with slices of ragged tensors, which `batch` makes ragged tensors of."""
    found = plan.spec if plan.height <= DEEP and any(isinstance(node, Unbatch) for node in plan.walk()) else None
    return found is not None and any(map(is_ragged_slice, flatten(found)[0]))


def _is_long(leaf: Any) -> bool:
    """Whether the length of a component is known."""
    return not isinstance(leaf, ValueSpec) and bool(leaf.shape) and leaf.shape[0] is not None
