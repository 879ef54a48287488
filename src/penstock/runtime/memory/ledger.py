"""Ledger: the accounts and windows of one run."""

from __future__ import annotations

from typing import Any

from penstock.physical.memory import Account, Memory
from penstock.physical.stage import Around, Stage
from penstock.plan.node import Node
from penstock.runtime.memory.budget import Budget, BufferAccount, MemoryWindow
from penstock.runtime.memory.kept import Weakly


class Ledger(Memory):
    """The accounts and windows of one run over `plan`, as the user wrote the plan. `live_ledgers` lists it."""

    def __init__(self, budget: Budget, plan: object = None) -> None:
        self.budget = budget
        self.plan = plan
        _LIVE.add(self)

    def account(self, kind: str, label: str, where: str | None = None, *, of: Any = None) -> Account:
        return self.budget.account(kind, label, where, of=of, owner=self)

    def window(self, label: str, share: int = 1, where: str | None = None) -> MemoryWindow:
        """See `Budget.window`."""
        return self.budget.window(label, share, where, owner=self)

    def check_fits(self, nbytes: int, label: str, where: str | None = None, *, elements: int = 1) -> None:
        """See `Budget.check_fits`."""
        self.budget.check_fits(nbytes, label, where, elements=elements)

    @property
    def is_tight(self) -> bool:
        """See `Budget.is_tight`."""
        return self.budget.is_tight

    def observer(self, node: Node, stage: Stage) -> Around | None:
        """See `Budget.observer`."""
        return self.budget.observer(node, stage)

    def members(self) -> list[BufferAccount | MemoryWindow]:
        """Return the accounts and windows of the run."""
        return [member for member in self.budget.members() if member.belongs_to(self)]

    def close(self) -> None:
        """Remove everything of the ended run from the budget. Idempotent; never waits."""
        _LIVE.remove(self)
        for member in self.members():
            member.close()


_LIVE: Weakly[Ledger] = Weakly()


def live_ledgers(plan: object = None) -> list[Ledger]:
    """Return the ledgers of the runs over this plan, or of all runs."""
    return [ledger for ledger in _LIVE.listed() if plan is None or ledger.plan is plan]
