"""MemoryReport: the share of the memory budget that each buffer of running iterations uses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from penstock.hints import size_text
from penstock.options import Options
from penstock.plan.node import Node
from penstock.runtime.memory.budget import Budget, BufferAccount, MemoryWindow, process_budget
from penstock.runtime.memory.kept import KEPT
from penstock.runtime.memory.ledger import live_ledgers

_PROCESS = "this process"
_TITLES = ("buffer", "stage", "holds", "may hold")


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """The bytes of one buffer. Buffers of the same kind in the same stage form one row.

    `kind` is the purpose: "ahead" (computed before it is requested), "shuffle", "batch", "cache" and so on. `limit` is
    its largest size, or None if the budget does not limit it.
    """

    kind: str
    stage: str
    where: str | None
    nbytes: int
    limit: int | None


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """The memory of the running iterations of one data set.

    `total` is the limit of all buffers together. `given` is True if it is `Options.autotune.ram_budget` (per
    iteration), and False if it is the budget of the process, which all data sets share. `used` is the sum of the rows.
    """

    total: int
    given: bool
    used: int
    passes: int
    rows: tuple[MemoryRow, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return numbers, strings, lists and dicts, for `json.dumps`."""
        return asdict(self) | {"rows": [asdict(row) for row in self.rows]}

    def __str__(self) -> str:
        passes = {0: "no iteration runs", 1: "1 iteration runs"}.get(self.passes, f"{self.passes} iterations run")
        whose = "the budget of this process"
        if self.given:
            whose = "autotune.ram_budget" if self.passes < 2 else "autotune.ram_budget of all together"
        head = f"{passes}: {size_text(self.used)} held, {size_text(self.total)} is {whose}"
        if not self.rows:
            return head
        cells = [_TITLES]
        for row in self.rows:
            limit = "" if row.limit is None else size_text(row.limit)
            cells.append((row.kind, row.stage, size_text(row.nbytes), limit))
        widths = [max(len(row[i]) for row in cells) for i in range(len(_TITLES))]
        lines = [
            f"  {kind:<{widths[0]}}  {stage:<{widths[1]}}  {holds:>{widths[2]}}  {limit:>{widths[3]}}".rstrip()
            for kind, stage, holds, limit in cells
        ]
        return "\n".join([head, *lines])

    __repr__ = __str__


def memory_report(plan: Node, options: Options) -> MemoryReport:
    """Return the memory of the running iterations over this plan, or the limit for the next one."""
    given = options.autotune.ram_budget
    ledgers = [ledger for ledger in live_ledgers(plan) if _is_of(ledger.budget, given)]
    budgets: dict[int, Budget] = {id(ledger.budget): ledger.budget for ledger in ledgers}
    if not budgets and given is None:
        budgets = {0: process_budget()}
    own = [member for ledger in ledgers for member in ledger.members()]
    seen = set(map(id, own))
    others = [member for budget in budgets.values() for member in budget.members() if id(member) not in seen]
    other = MemoryRow("all", "other iterations", None, sum(member.nbytes for member in others), None)
    kept = [MemoryRow(kind, _PROCESS, None, nbytes, None) for kind, nbytes in KEPT.held()] if budgets else []
    rows = [row for row in [*_rows(own), other, *kept] if row.nbytes or row.limit]
    return MemoryReport(
        total=sum(budget.total for budget in budgets.values()) if budgets else given or 0,
        given=given is not None,
        used=sum(row.nbytes for row in rows),
        passes=len(ledgers),
        rows=tuple(rows),
    )


def _is_of(budget: Budget, given: int | None) -> bool:
    """Return True if a budget belongs to an iteration with these options. Other options mean another data set."""
    return (budget.total if budget.given else None) == given


def _rows(members: Iterable[BufferAccount | MemoryWindow]) -> list[MemoryRow]:
    """Return one row per kind and stage, in order of creation. Shared buffers count once."""
    found: dict[tuple[str, str, str | None], tuple[int, int | None]] = {}
    for member in {id(member): member for member in members}.values():
        key = member.kind, member.label, member.where
        nbytes, limit = found.get(key, (0, None))
        own = member.limit if isinstance(member, MemoryWindow) else None
        found[key] = nbytes + member.nbytes, limit if own is None else own + (limit or 0)
    return [MemoryRow(*key, *amounts) for key, amounts in found.items()]
