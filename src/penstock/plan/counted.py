"""The number of elements of a plan over files of which one cannot be counted: what is wrong with that file."""

from __future__ import annotations

from collections.abc import Callable

from penstock.errors import Context, annotate
from penstock.plan.node import UNKNOWN_CARDINALITY, Node, rebuilt
from penstock.plan.scan import Scan
from penstock.plan.seen import Seen
from penstock.sources.indexed import IndexedSource


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
