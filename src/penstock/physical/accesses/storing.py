"""By number: snapshots."""

from __future__ import annotations

from dataclasses import replace

from penstock.physical.access import Access, access, accessible
from penstock.physical.lower import Lowering
from penstock.plan.scan import Scan
from penstock.plan.storing import Snapshot


def _reordered(node: Snapshot) -> str | None:
    return None if node.faithful else "gives its elements in the order of its shards"


@accessible(Snapshot, unless=_reordered)
def _snapshot(node: Snapshot, lowering: Lowering) -> Access:
    """What a pass has written, where there was one; before that the elements are made, and not written."""
    assert node.store is not None
    saved = node.store.saved(node.store.folder(lowering.options.seed, lowering.options.deterministic))
    if saved is None:
        return access(node.input, replace(lowering, epoch=0))
    return access(Scan(source=saved), lowering)
