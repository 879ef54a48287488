"""Window: what one segment may make ahead of its consumer, in bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.runtime.memory.budget import Budget


class Window:
    """A part of a budget; `share` windows that stand side by side divide one part. May be used by any thread."""

    kind = "ahead"

    def __init__(self, budget: Budget, owner: object, label: str, share: int, where: str | None) -> None:
        self._budget = budget
        self._limit = 0
        self._weight = 1 / share
        self._wish: int | None = None
        self._asked = 0
        self._begun_with = int(budget.start / share)
        self._owner = owner
        self.label = label
        self.where = where
        self._held: Callable[[], int] | None = None

    @property
    def limit(self) -> int:
        """Bytes that it may hold now. A segment may always hold one result, whatever this says."""
        self._budget.settle()
        return self._limit

    def belongs_to(self, owner: object) -> bool:
        return self._owner is owner

    @property
    def nbytes(self) -> int:
        """Bytes that it holds."""
        return 0 if self._held is None else self._held()

    def measure(self, held: Callable[[], int]) -> None:
        """Take the function that tells how many bytes it holds."""
        self._held = held

    def wish(self, nbytes: int | None) -> None:
        """Let it have so many bytes if there are as many; None for what windows begin with."""
        if nbytes != self._wish:
            self._wish = nbytes
            self._budget.changed()

    def ask(self, nbytes: int) -> None:
        """What workers make, or the user wants ahead, comes to so many bytes: let it have them, whatever it wishes."""
        if max(nbytes, self._asked) <= self._begun_with and self._wish is None:
            return  # it has them
        if not self._asked - (self._asked >> 2) <= nbytes <= self._asked:
            self._asked = nbytes + (nbytes >> 3)
            self._budget.changed()

    def wanted(self) -> tuple[int, float]:
        """Bytes that it would take, and its weight among others."""
        wish = self._begun_with if self._wish is None else self._wish
        return max(wish, self._asked), self._weight

    def allow(self, nbytes: int) -> None:
        """What the budget has for it."""
        self._limit = nbytes

    def close(self) -> None:
        """The segment has ended. Idempotent; never waits."""
        self._held = None
        self._budget.forget(self)
