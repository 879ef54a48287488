"""Counted: the account of one buffer in a budget."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from penstock.physical.memory import Account, Overspent
from penstock.runtime.memory.over_budget import CHOSEN, OverBudget
from penstock.runtime.memory.reserved import Reserved

if TYPE_CHECKING:
    from penstock.runtime.memory.budget import Budget


class Counted(Reserved, Account):
    """`owner` is the run whose buffer it is; `of` what several stages, also of several runs, share."""

    def __init__(self, budget: Budget, owner: object, kind: str, label: str, where: str | None, of: Any) -> None:
        self._budget = budget
        self._of = None if of is None else weakref.ref(of)
        self._owner = owner if of is None else None
        self._sharers: list[weakref.ref[Any]] = []
        self.kind = kind
        self.label = label
        self.where = where
        self.lasting = not budget.given

    def is_of(self, shared: Any) -> bool:
        return self._of is not None and self._of() is shared

    def share(self, owner: object) -> None:
        """It is also the account of another run, which it may outlive."""
        if owner is not None:
            self._sharers.append(weakref.ref(owner))

    def belongs_to(self, owner: object) -> bool:
        return self._owner is owner or any(sharer() is owner for sharer in self._sharers)

    def hold(self, nbytes: int, full: int | None = None) -> None:
        budget = self._budget
        if self.move(nbytes):
            budget.changed()
        if nbytes > budget.total or (full is not None and full > budget.total):
            self._over(nbytes, full)

    def _over(self, nbytes: int, full: int | None) -> None:
        budget = self._budget
        if self.kind in CHOSEN:
            found = OverBudget(self.kind, self.label, self.where, nbytes, full, budget.total)
            if budget.given:
                raise Overspent(found.error())
            found.warn()

    def close(self) -> None:
        if self._of is None:  # others may share it
            self.nbytes = 0
            self._budget.forget(self)
