"""choose: from figures to the place where a cache saves most. Nothing else goes into it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.block.size_text import size_text
from penstock.profiler.placement.figures import Choice, Room, Spot

_LEAST = 0.01  # seconds per epoch that are worth it
_LEAST_SHARE = 0.05  # of all CPU time
_ALIKE = 0.02  # of the best: whoever saves nearly as much with fewer bytes is better


@dataclass(frozen=True, slots=True)
class _Kind:
    """Seconds that a byte takes to be written, once, and to be read, in every epoch."""

    name: str
    writing: float
    reading: float


_KINDS = (_Kind("memory", 1 / 2e9, 1 / 8e9), _Kind("disk", 1 / 3e8, 1 / 1e9))


def choose(spots: Sequence[Spot], room: Room, epochs: int) -> Choice:
    """Where a cache pays, after so many whole passes: as many more are taken to come.

    It saves in every epoch what its elements cost, less reading them, and costs once writing them. It has to fit, and
    to save at least a hundredth of a second and a twentieth of the pass. Of those that save nearly the same the one
    with the fewest bytes is chosen, and memory before disk.

    >>> decode = Spot("map#1", "map(decode)", seconds=10.0, nbytes=1e9)
    >>> choose([decode, Spot("batch#1", "batch(8)", why_not="...")], Room(memory=1 << 31), epochs=1).place
    'memory:map#1'
    """
    whole = max((spot.seconds for spot in spots), default=0.0)
    found = [
        Choice(spot, kind.name, spot.seconds - spot.nbytes * kind.reading)
        for kind, spot in _allowed(spots, room)
        if spot.nbytes is not None and _pays(spot.seconds, spot.nbytes, kind, epochs, whole)
    ]
    if not found:
        return Choice(None, reason=_why_none(spots, room, epochs, whole))
    most = max(choice.saved for choice in found)
    return min((choice for choice in found if choice.saved >= most * (1 - _ALIKE)), key=_order)


def _order(choice: Choice) -> tuple[bool, float, float]:
    assert choice.spot is not None
    return choice.kind == "disk", choice.spot.nbytes or 0.0, -choice.saved


def _allowed(spots: Sequence[Spot], room: Room) -> Iterator[tuple[_Kind, Spot]]:
    for kind in _KINDS:
        limit = room.memory if kind.name == "memory" else room.disk
        for spot in spots:
            if limit is not None and spot.why_not is None and spot.nbytes is not None and spot.nbytes <= limit:
                yield kind, spot


def _pays(seconds: float, nbytes: float, kind: _Kind, epochs: int, whole: float) -> bool:
    saved = seconds - nbytes * kind.reading
    return saved >= max(_LEAST, _LEAST_SHARE * whole) and saved * epochs > nbytes * kind.writing


def _why_none(spots: Sequence[Spot], room: Room, epochs: int, whole: float) -> str:
    """The reason for nothing, of the spot that would have saved most."""
    free = [spot for spot in spots if spot.why_not is None and spot.nbytes is not None]
    if not free:
        against = [spot for spot in spots if spot.why_not is not None]
        return f"{against[0].name} {against[0].why_not}" if against else "no step was measured"
    best = max(free, key=lambda spot: spot.seconds)
    assert best.nbytes is not None
    for kind, limit in (("memory", room.memory), ("on disk", room.disk)):
        if limit is not None and best.nbytes > limit:
            return f"{best.name} gives {size_text(int(best.nbytes))}, and there is room for {size_text(limit)} {kind}"
    if best.seconds < max(_LEAST, _LEAST_SHARE * whole):
        return f"all that could be kept, up to {best.name}, takes only {best.seconds:.3g} s of CPU time in a pass"
    return (
        f"{best.name} takes {best.seconds:.3g} s of CPU time in a pass, and writing and reading its "
        f"{size_text(int(best.nbytes))} about as much after {epochs} epoch{'s' if epochs > 1 else ''}"
    )
