"""isolated: a copy of a plan whose passes leave nothing behind in the data set that it is of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

from penstock.cache.memory import MemoryStore
from penstock.options import Options
from penstock.plan.node import Node
from penstock.plan.storing import Cache, Snapshot
from penstock.plan.tally import Tally


@contextmanager
def isolated(plan: Node, options: Options) -> Iterator[Node]:
    """The same steps with caches, snapshots and counts of their own, where those of the data set are not full."""
    with ExitStack() as scratch:
        yield _isolated(plan, options, scratch)


def _isolated(plan: Node, options: Options, scratch: ExitStack) -> Node:
    inputs = tuple(_isolated(below, options, scratch) for below in plan.inputs)
    if any(new is not old for new, old in zip(inputs, plan.inputs, strict=True)):
        plan = plan.with_inputs(inputs)
    if isinstance(plan, Cache):
        return plan if plan.store.blocks() is not None else replace(plan, store=MemoryStore(silent=True))
    if isinstance(plan, Snapshot) and plan.store is not None:
        if plan.store.saved(plan.store.folder(options.seed, options.deterministic)) is not None:
            return plan
        folder = scratch.enter_context(TemporaryDirectory(prefix="penstock-"))
        return replace(plan, path=folder, store=None)
    changes: dict[str, Any] = {"tally": Tally()} if isinstance(getattr(plan, "tally", None), Tally) else {}
    if getattr(plan, "quarantine", None) is not None:
        changes["quarantine"] = None
    return replace(plan, **changes) if changes else plan
