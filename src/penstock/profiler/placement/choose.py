"""Choice of the place where a cache saves most, and its description for `explain`.

The choice depends on nothing but these figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.hints import size_text
from penstock.plan.node import short_location
from penstock.store.entry import StoredEntry
from penstock.store.memory import MemoryStore


@dataclass(frozen=True, slots=True)
class Spot:
    """A possible place of a cache: after the step `name`.

    `seconds` is the CPU time of its elements and of all steps before it in one iteration, and `nbytes` the size of
    these elements, or None if unknown. `why_not` is a reason against a cache there, regardless of its gain.
    """

    name: str
    label: str
    where: str | None = None
    seconds: float = 0.0
    nbytes: float | None = None
    why_not: str | None = None


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes that a cache may use in memory and on disk; None if that kind of cache is not allowed."""

    memory: int | None = None
    disk: int | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """A cache after a step, of a `kind` ("memory" or "disk"), and the seconds saved per epoch; or a reason for none."""

    spot: Spot | None
    kind: str = ""
    saved: float = 0.0
    reason: str = ""

    @property
    def place(self) -> str | None:
        """Name of the place in states of iterators."""
        return None if self.spot is None else f"{self.kind}:{self.spot.name}"


_LEAST = 0.01  # seconds per epoch that justify a cache
_LEAST_SHARE = 0.05  # share of all CPU time that justifies a cache
_ALIKE = 0.02  # share of the best gain; within it, fewer bytes are better


@dataclass(frozen=True, slots=True)
class _CacheKind:
    """Seconds for writing a byte once, and for reading it in every epoch."""

    name: str
    writing: float
    reading: float


_KINDS = (_CacheKind("memory", 1 / 2e9, 1 / 8e9), _CacheKind("disk", 1 / 3e8, 1 / 1e9))


def choose(spots: Sequence[Spot], room: Room, epochs: int) -> Choice:
    """Choose the place of a cache after `epochs` complete iterations. As many are assumed to follow.

    A cache saves in every epoch the cost of its elements, minus reading them, and costs writing them once. It has to
    fit, and to save at least a hundredth of a second and a twentieth of the iteration. Of places with nearly the same
    gain, the one with the fewest bytes is chosen, and memory before disk.

    >>> decode = Spot("map#1", "map(decode)", seconds=10.0, nbytes=1e9)
    >>> choose([decode, Spot("batch#1", "batch(8)", why_not="...")], Room(memory=1 << 31), epochs=1).place
    'memory:map#1'
    """
    whole = max((spot.seconds for spot in spots), default=0.0)
    found = []
    for kind, limit in zip(_KINDS, (room.memory, room.disk), strict=True):
        for spot in spots:
            if limit is None or spot.why_not is not None or spot.nbytes is None or spot.nbytes > limit:
                continue
            saved = spot.seconds - spot.nbytes * kind.reading
            if saved >= max(_LEAST, _LEAST_SHARE * whole) and saved * epochs > spot.nbytes * kind.writing:
                found.append(Choice(spot, kind.name, saved))
    if not found:
        return Choice(None, reason=_why_none(spots, room, epochs, whole))
    most = max(choice.saved for choice in found)
    return min((choice for choice in found if choice.saved >= most * (1 - _ALIKE)), key=_order)


def _order(choice: Choice) -> tuple[bool, float, float]:
    assert choice.spot is not None
    return choice.kind == "disk", choice.spot.nbytes or 0.0, -choice.saved


def _why_none(spots: Sequence[Spot], room: Room, epochs: int, whole: float) -> str:
    """Return the reason for no cache, for the place that would have saved most."""
    free = [spot for spot in spots if spot.why_not is None and spot.nbytes is not None]
    if not free:
        against = [spot for spot in spots if spot.why_not is not None]
        return f"{against[0].name} {against[0].why_not}" if against else "no step was measured"
    best = max(free, key=lambda spot: spot.seconds)
    assert best.nbytes is not None
    for kind, limit in (("memory", room.memory), ("on disk", room.disk)):
        if limit is not None and best.nbytes > limit:
            return f"{best.name} needs {size_text(int(best.nbytes))}, but there is room for {size_text(limit)} {kind}"
    if best.seconds < max(_LEAST, _LEAST_SHARE * whole):
        return f"the steps up to {best.name} take only {best.seconds:.3g} s of CPU time in an iteration"
    return (
        f"{best.name} takes {best.seconds:.3g} s of CPU time in an iteration, and writing and reading its "
        f"{size_text(int(best.nbytes))} about as much after {epochs} epoch{'s' if epochs > 1 else ''}"
    )


Kept = MemoryStore | StoredEntry | None  # the content of the cache, if known


def told(
    wanted: str, spots: Sequence[Spot], choice: Choice | None, epochs: int, kept: Kept, *, ends: bool
) -> list[str]:
    """Return lines about the setting, the place of the cache or the reason for none, its gain, and its state.

    `ends` is True if the data set is finite.
    """
    rows = [f'Options.autocache is "{wanted}"']
    if choice is None and not ends:
        return [*rows, "no decision: only complete iterations are measured, and this data set has no end"]
    if choice is None:
        return [*rows, "no decision yet: the next complete iteration is measured"]
    if choice.spot is None:
        rows.append(
            f"no cache would save time after {epochs} whole iteration{'s' if epochs > 1 else ''}: {choice.reason}"
        )
    else:
        where = "in memory" if choice.kind == "memory" else "on disk"
        rows.append(f"a cache {where} after {_named(choice.spot)}")
        size = size_text(int(choice.spot.nbytes or 0))
        rows.append(f"  estimated: {choice.saved:.3g} s of CPU time saved in every epoch, for {size}")
        rows.append(f"  {_happened(choice, kept)}")
    known = [spot for spot in spots if spot.why_not is not None]
    if known:
        rows.append(f"not after {_named(known[0])}, which {known[0].why_not}")
    return rows


def _happened(choice: Choice, kept: Kept) -> str:
    if isinstance(kept, StoredEntry) and kept.complete:
        return f"it is full, with {kept.elements} elements in {kept.folder}, and serves all later epochs"
    if isinstance(kept, StoredEntry) and kept.elements:
        return f"it has the first {kept.elements} elements, in {kept.folder}; the next iterations write the others"
    if choice.kind == "disk":
        return "the next iterations fill it and read it, also in other processes; `penstock cache` manages it"
    if not isinstance(kept, MemoryStore) or kept.blocks() is None:
        return "the next whole iteration fills it"
    return f"it is full, with {size_text(kept.nbytes)}, and serves all later epochs"


def _named(spot: Spot) -> str:
    place = short_location(spot.where)
    return f"{spot.name}, {spot.label}" + (f" ({place})" if place else "")
