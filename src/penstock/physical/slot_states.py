"""SlotStates: the states of many slots, of which few change from one moment to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.physical.stage import State, as_of_now

_LEAST = 64  # changes that are never too many

Behind = Callable[[], list[tuple[int, State]]]


class SlotStates:
    """The state of every slot that there is, as `state_of` tells it; None for a slot that is free.

    What is said of a moment costs as much as has changed since the last one: a list of all slots, and the changes
    behind it. Such a list is made anew when there are as many changes as slots.
    """

    def __init__(self, state_of: Callable[[int], State]) -> None:
        self._state_of = state_of
        self._base: dict[int, State] = {}
        self._changes: list[tuple[int, State]] = []  # since then
        self.moved: set[int] = set()  # the slots whose state is another than it was when somebody asked last

    def now(self, behind: Behind | None = None) -> SlotsNow:
        """The states of all slots as they are now; `behind` tells later ones of some, when somebody wants to know."""
        self._changes.extend((slot, self._state_of(slot)) for slot in self.moved)
        self.moved.clear()
        if len(self._changes) > len(self._base) + _LEAST:
            self._base, self._changes = _after(self._base, self._changes), []
        return SlotsNow(self._base, self._changes, len(self._changes), behind)


class SlotsNow:
    """A part of a state: those of all slots."""

    __slots__ = ("_base", "_behind", "_changes", "_count")

    def __init__(
        self, base: dict[int, State], changes: list[tuple[int, State]], count: int, behind: Behind | None
    ) -> None:
        self._base = base
        self._changes = changes
        self._count = count
        self._behind = behind

    def resolved(self) -> list[Any]:
        return [as_of_now(state) for state in self]

    def __iter__(self) -> Any:
        found = _after(self._base, self._changes[: self._count])
        return iter((found if self._behind is None else _after(found, self._behind())).values())


def _after(base: dict[int, State], changes: list[tuple[int, State]]) -> dict[int, State]:
    found = dict(base)
    for slot, state in changes:
        found[slot] = state
        if state is None:
            del found[slot]
    return found
