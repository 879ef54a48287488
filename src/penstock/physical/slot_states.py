"""SlotStates: the states of many slots, of which few change from one moment to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.physical.stage import State, as_of_now

_LEAST = 64  # changes that are never too many


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

    def now(self) -> SlotsNow:
        """The states of all slots as they are now."""
        self._changes.extend((slot, self._state_of(slot)) for slot in self.moved)
        self.moved.clear()
        if len(self._changes) > len(self._base) + _LEAST:
            self._base, self._changes = _after(self._base, self._changes), []
        return SlotsNow(self._base, self._changes, len(self._changes))


class SlotsNow:
    """A part of a state: those of all slots."""

    __slots__ = ("_base", "_changes", "_count")

    def __init__(self, base: dict[int, State], changes: list[tuple[int, State]], count: int) -> None:
        self._base = base
        self._changes = changes
        self._count = count

    def resolved(self) -> list[Any]:
        return [as_of_now(state) for state in _after(self._base, self._changes[: self._count]).values()]

    def __iter__(self) -> Any:
        return iter(_after(self._base, self._changes[: self._count]).values())


def _after(base: dict[int, State], changes: list[tuple[int, State]]) -> dict[int, State]:
    found = dict(base)
    for slot, state in changes:
        found[slot] = state
        if state is None:
            del found[slot]
    return found
