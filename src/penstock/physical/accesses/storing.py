"""By number: snapshots, and caches in files."""

from __future__ import annotations

from dataclasses import replace

from penstock.physical.access import Access, access, accessible, require_access
from penstock.physical.lower import Lowering
from penstock.plan.in_files import in_files
from penstock.plan.scan import Scan
from penstock.plan.storing import DiskCache, Snapshot


def _reordered(node: Snapshot) -> str | None:
    return None if node.faithful else "gives its elements in the order of its shards"


@accessible(Snapshot, unless=_reordered)
@accessible(DiskCache)
def _snapshot(node: Snapshot, lowering: Lowering) -> Access:
    """What a pass has written, where there was one; before that the elements are made, and not written."""
    assert node.store is not None
    options = lowering.options
    saved = node.store.saved(node.store.folder(options.seed, options.deterministic))
    if saved is not None:
        return access(Scan(source=saved), lowering)
    found = in_files(node, options.seed, options.deterministic)
    require_access(found, f"Reading a {node.name} that is not complete", hint="Run a pass: a complete one has numbers.")
    return access(node.input, replace(lowering, epoch=0))
