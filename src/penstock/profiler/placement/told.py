"""told: the caches of `Options.autocache`, in lines for `explain`."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.block.size_text import size_text
from penstock.cache.entry.entry import Entry
from penstock.cache.memory import MemoryStore
from penstock.plan.explain import short_location
from penstock.profiler.placement.figures import Choice, Spot

Kept = MemoryStore | Entry | None  # what the cache holds, where that is known


def told(
    wanted: str, spots: Sequence[Spot], choice: Choice | None, epochs: int, kept: Kept, *, ends: bool
) -> list[str]:
    """What it is set to, where a cache stands or why none does, what it saves, and whether it has.

    `ends`: passes come to an end.
    """
    rows = [f'Options.autocache is "{wanted}"']
    if choice is None and not ends:
        return [*rows, "nothing is decided: only whole passes are measured, and this data set has no end"]
    if choice is None:
        return [*rows, "nothing is decided before a whole pass was measured; the next one is"]
    if choice.spot is None:
        rows.append(f"no cache would pay after {epochs} whole pass{'es' if epochs > 1 else ''}: {choice.reason}")
    else:
        where = "in memory" if choice.kind == "memory" else "on disk"
        rows.append(f"a cache {where} behind {_named(choice.spot)}")
        size = size_text(int(choice.spot.nbytes or 0))
        rows.append(f"  estimated: {choice.saved:.3g} s of CPU time saved in every epoch, for {size}")
        rows.append(f"  {_happened(choice, kept)}")
    known = [spot for spot in spots if spot.why_not is not None]
    if known:
        rows.append(f"not behind {_named(known[0])}, which {known[0].why_not}")
    return rows


def _happened(choice: Choice, kept: Kept) -> str:
    if isinstance(kept, Entry) and kept.complete:
        return f"it is full, with {kept.elements} elements in {kept.folder}, and serves every further epoch"
    if isinstance(kept, Entry) and kept.elements:
        return (
            f"it has the first {kept.elements} elements, in {kept.folder}; the passes that come next write the others"
        )
    if choice.kind == "disk":
        return "the passes that come next fill it and read it, also in other processes; `penstock cache` looks after it"
    if not isinstance(kept, MemoryStore) or kept.blocks() is None:
        return "the next whole pass fills it"
    return f"it is full, with {size_text(kept.nbytes)}, and serves every further epoch"


def _named(spot: Spot) -> str:
    place = short_location(spot.where)
    return f"{spot.name}, {spot.label}" + (f" ({place})" if place else "")
