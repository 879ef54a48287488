"""Plans whose snapshots are complete: what stands in files has a length, and numbers, whatever it was made of."""

from __future__ import annotations

from penstock.plan.node import UNKNOWN_CARDINALITY, Node
from penstock.plan.scan import Scan
from penstock.plan.storing import Snapshot


def in_files(plan: Node, seed: int, deterministic: bool) -> Node:  # noqa: FBT001 - an option's value
    """The plan that reads the files of each complete snapshot, in the place of the steps that made it.

    The plan itself where there is none, or where a `reader_func` decides what of the files is read. Looks at the data
    of a plan that has snapshots, once, as the first pass does.
    """
    if isinstance(plan, Snapshot):
        assert plan.store is not None
        saved = None if plan.reader_func is not None else plan.store.saved(plan.store.folder(seed, deterministic))
        if saved is not None:
            return Scan(source=saved, where=plan.where)
    inputs = tuple(in_files(below, seed, deterministic) for below in plan.inputs)
    changed = any(now is not before for now, before in zip(inputs, plan.inputs, strict=True))
    return plan.with_inputs(inputs) if changed else plan


def known_cardinality(plan: Node, seed: int, deterministic: bool) -> int:  # noqa: FBT001 - an option's value
    """The cardinality of a plan, from its snapshots where its steps do not tell."""
    known = plan.cardinality
    return in_files(plan, seed, deterministic).cardinality if known == UNKNOWN_CARDINALITY else known
