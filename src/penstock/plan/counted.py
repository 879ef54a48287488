"""How many elements a plan has, where that is known, or which file cannot be counted.

It is known of complete snapshots and caches, too. Seen stands for a part of a plan of which one element was made.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar

from penstock.block.structure import leaves_rank_open
from penstock.cache.memory import MemoryStore
from penstock.errors import Context, PenstockError, annotate
from penstock.plan.node import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Node, rebuilt
from penstock.plan.scan import Scan
from penstock.plan.storing import Cache, Snapshot
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
