"""Budget: the bytes of all buffers together, and their division.

Buffers with a purpose of their own (a shuffle, a cache, an incomplete batch, memory for reuse) are subtracted first.
The rest is for the *windows*: the results that segments compute ahead of their consumers.

Any thread may read and write every number here at any time, so no thread waits for a lock. This is needed because a
worker asks for the limit of its window while it holds the lock of its segment. Garbage collections, which may end runs,
also begin anywhere. A change only sets a mark. The next reader of a limit divides the budget again. Other readers use
the old limits during the division.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.block.block import Block
from penstock.errors import BudgetWarning, Context, PenstockError, ResourceExhaustedError
from penstock.forked import in_child, new_lock
from penstock.hints import size_text
from penstock.options import Options
from penstock.physical.memory import Account, Memory, Overspent
from penstock.physical.stage import Around, Ask, Stage
from penstock.plan.node import Node
from penstock.runtime.machine.granted import available_memory
from penstock.runtime.memory.kept import KEPT, STAYS, Follower, Reserved, Weakly
from penstock.sources.arrays import ArraysSource

# buffers whose size the user chooses, with advice for the user
_HINTS = {
    "shuffle": "Shuffle smaller elements (file names, encoded records), use a smaller buffer_size",
    "cache": "Cache smaller elements (before decoding), cache in files with cache(filename)",
    "batch": "Make smaller batches",
    "window": "Make smaller windows",
    "group": "Make smaller groups",
    "unique": "Make the values unique in parts",
    "element": "Make smaller elements or batches",
}
CHOSEN = frozenset(_HINTS)
_TOLD: set[tuple[str, str | None]] = set()  # stages for which the process has given a warning


@dataclass(frozen=True, slots=True)
class OverBudget:
    """A buffer that exceeds the budget. `full` is its size when it has filled up. None: not known."""

    kind: str
    label: str
    where: str | None
    nbytes: int
    full: int | None
    total: int

    def error(self) -> ResourceExhaustedError:
        """Return the error for a budget that the user has set."""
        message = f"{self._holds()}, and autotune.ram_budget is {self._limit()} for all buffers together."
        hint = f"{_HINTS[self.kind]}, or raise ram_budget."
        return ResourceExhaustedError(message, hint=hint, context=Context(self.label, self.where))

    def warn(self) -> None:
        """Warn about the budget of the machine, once per stage. There may be enough memory in spite of the excess."""
        stage = self.label, self.where
        if stage in _TOLD:
            return
        _TOLD.add(stage)
        message = (
            f"{self._holds()}, but the limit for all buffers of this process is {self._limit()}, half of the available "
            "memory. The iteration continues, but the process may run out of memory. "
            f"{_HINTS[self.kind]}, or set autotune.ram_budget."
        )
        file, _, line = (self.where or "").rpartition(":")
        if file and line.isdigit():
            warnings.warn_explicit(message, BudgetWarning, file, int(line))
        else:
            warnings.warn(message, BudgetWarning, stacklevel=2)

    def _holds(self) -> str:
        if self.kind == "element":
            return f"One element of {self.label} has {self._amount()}"
        if self.full is not None and self.full > self.nbytes:
            return f"{self.label} holds {self._amount()} when it is full"
        return f"{self.label} holds {self._amount()} already"

    @property
    def _most(self) -> int:
        return max(self.nbytes, self.full or 0)

    def _amount(self) -> str:
        return f"{self._most} bytes" if self._alike() else size_text(self._most)

    def _limit(self) -> str:
        return f"{self.total} bytes" if self._alike() else size_text(self.total)

    def _alike(self) -> bool:
        """Return True if both numbers look equal after rounding."""
        return size_text(self._most) == size_text(self.total)


def fair_shares(free: int, wants: Sequence[tuple[int, float]]) -> list[int]:
    """Return the bytes for each (wanted bytes, weight): the wanted bytes, or a share by weight of the remaining bytes.

    The division is max-min fair: no entry can get more without a loss for an entry that has less per weight. The sum is
    at most `free`.

    >>> fair_shares(100, [(10, 1.0), (80, 1.0), (80, 1.0)])
    [10, 45, 45]
    """
    given = [0] * len(wants)
    free = max(free, 0)
    if sum(want for want, _ in wants) <= free:
        return [want for want, _ in wants]
    weights = sum(weight for _, weight in wants)
    order = sorted(range(len(wants)), key=lambda i: wants[i][0] / wants[i][1])
    for place, i in enumerate(order):
        want, weight = wants[i]
        level = free / weights
        if want > level * weight:  # all later entries want more than their share too
            for j in order[place:]:
                given[j] = min(int(level * wants[j][1]), free)
                free -= given[j]
            break
        given[i] = min(want, free)
        free -= given[i]
        weights -= weight
    return given


class BufferAccount(Reserved, Account):
    """The account of one buffer.

    `owner` is the run of the buffer; `of` is an object that several stages or runs share.
    """

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
        """Make this also the account of another run. The account may outlive that run."""
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
        if self._of is None:  # other runs may share it
            self.nbytes = 0
            self._budget.forget(self)


class Mark:
    """True if something has changed since the last division."""

    def __init__(self) -> None:
        self.value = True

    def set(self) -> None:
        self.value = True


class MemoryWindow:
    """A part of a budget. `share` windows of parallel segments divide one part. Any thread may use it."""

    kind = "ahead"

    def __init__(self, budget: Budget, mark: Mark, owner: object, label: str, share: int, where: str | None) -> None:
        self._budget = budget
        self._mark = mark
        self._limit = 0
        self._weight = 1 / share
        self._wish: int | None = None
        self.asked = 0  # bytes of the results ahead, if they need more than a new window has
        self._begun_with = int(budget.start / share)
        self._owner = owner
        self.label = label
        self.where = where
        self._held: Callable[[], int] | None = None

    @property
    def limit(self) -> int:
        """Bytes that the window may have now. A segment may always have one result, even above this limit."""
        if self._mark.value:
            self._budget.settle()
        return self._limit

    def belongs_to(self, owner: object) -> bool:
        return self._owner is owner

    @property
    def nbytes(self) -> int:
        """Bytes that wait in the window."""
        return 0 if self._held is None else self._held()

    def measure(self, held: Callable[[], int]) -> None:
        """Set the function that returns the waiting bytes."""
        self._held = held

    def wish(self, nbytes: int | None) -> None:
        """Ask for `nbytes`, if the budget has them. None: ask for the start value."""
        if nbytes != self._wish:
            self._wish = nbytes
            self._budget.changed()

    def ask(self, nbytes: int) -> None:
        """Ask for room for `nbytes` of results, in addition to the wish."""
        if max(nbytes, self.asked) <= self._begun_with and self._wish is None:
            return  # the window already has them
        if not self.asked - (self.asked >> 2) <= nbytes <= self.asked:
            self.asked = nbytes + (nbytes >> 3)
            self._budget.changed()

    def wanted(self) -> tuple[int, float]:
        """Return the wanted bytes, and the weight of the window."""
        wish = self._begun_with if self._wish is None else self._wish
        return max(wish, self.asked), self._weight

    def allow(self, nbytes: int) -> None:
        """Set the bytes that the budget allows."""
        self._limit = nbytes

    def close(self) -> None:
        """Return all bytes after the end of the segment. Idempotent; never waits."""
        self._held = None
        self._budget.forget(self)


START = 1 << 26  # bytes of a new window, if the budget has them
_LEAST = 1 << 26  # smallest budget of the process in bytes
_TIGHT = 1 << 23  # bytes; small inner data sets may use at most half of such a budget
_GRAIN = 1 << 16  # bytes by which an account may grow without a new division


class Budget(Memory):
    """The bytes for all buffers of one run if the user has set them (`given`), or of all other runs of the process.

    The budget keeps neither accounts nor windows alive: they end with their run. The limits of all windows are at most
    `total` minus the bytes of the accounts, minus `making`. `making` is reserved for unfinished results, which count
    only after they are finished.

    >>> budget = Budget(1 << 20, given=True)
    >>> first, second = budget.window("map(f)"), budget.window("map(g)")
    >>> shuffle = budget.account("shuffle", "shuffle(100)")
    >>> shuffle.hold(1 << 19)
    >>> 0 < first.limit + second.limit <= 1 << 19
    True
    """

    def __init__(self, total: int, *, given: bool, making: int = 0) -> None:
        self.total = total
        self._making = making
        self.given = given
        self.start = min(START, total if given else total >> 4)  # size of a window without a wish
        self._grain = min(_GRAIN, total >> 8)
        self._mark = Mark()
        self._accounts: Weakly[BufferAccount] = Weakly(self._mark.set)
        self._windows: Weakly[MemoryWindow] = Weakly(self._mark.set)
        self._dividing = new_lock()  # no thread waits for this lock
        self._follower = Follower(self._mark.set, min(total >> 3, STAYS))
        KEPT.follow(self._follower)
        self._before = KEPT.polled()

    def account(
        self, kind: str, label: str, where: str | None = None, *, of: Any = None, owner: object = None
    ) -> BufferAccount:
        shared = [] if of is None else [account for account in self._accounts.listed() if account.is_of(of)]
        account = shared[0] if shared else BufferAccount(self, owner, kind, label, where, of)
        if not shared:
            self._accounts.add(account)
        if of is not None:
            account.share(owner)
        return account

    def window(self, label: str, share: int = 1, where: str | None = None, *, owner: object = None) -> MemoryWindow:
        """Return a window for a segment. `share` windows, such as the inputs of an interleave, divide one part."""
        made = MemoryWindow(self, self._mark, owner, label, share, where)
        self._windows.add(made)
        self.changed()
        return made

    def forget(self, member: BufferAccount | MemoryWindow) -> None:
        """Remove a closed account or window."""
        if isinstance(member, MemoryWindow):
            self._windows.remove(member)
        else:
            self._accounts.remove(member)

    def check_fits(self, nbytes: int, label: str, where: str | None = None, *, elements: int = 1) -> None:
        """Check a result of `elements` elements and `nbytes` bytes.

        Raises:
            ResourceExhaustedError: If one element alone exceeds a budget set by the user. This ends the run: see
                `Overspent`.
        """
        if nbytes > self.total * elements:
            found = OverBudget("element", label, where, nbytes // elements, None, self.total)
            if self.given:
                raise found.error()
            found.warn()

    @property
    def is_tight(self) -> bool:
        """True if the budget is so small that otherwise negligible buffers must fit too."""
        return self.given and self.total < _TIGHT

    def observer(self, node: Node, stage: Stage) -> Around | None:
        """Return a check that elements fit a budget set by the user (`check_fits`), or None.

        Arrays of the user are not checked, because they are in memory anyway.
        """
        if not self.given or isinstance(getattr(node, "source", None), ArraysSource):
            return None
        label, where, total = stage.label, stage.where, self.total

        def fitting(ask: Ask) -> Ask:
            def fits(want: int) -> Block | None:
                block = ask(want)
                if block is not None and block.nbytes > total:
                    try:
                        self.check_fits(block.nbytes, label, where, elements=block.size)
                    except PenstockError as error:
                        raise Overspent(error) from None
                return block

            return fits

        return fitting

    def changed(self) -> None:
        """Divide the budget again before the next limit is read."""
        self._mark.value = True

    def settle(self) -> None:
        """Divide the budget, unless nothing has changed or another thread does it."""
        if self._mark.value and self._dividing.acquire(blocking=False):
            try:
                self._mark.value = False
                self._divide()
            finally:
                self._dividing.release()

    def _divide(self) -> None:
        fixed = sum(account.reserve(self._grain) for account in self._accounts.listed())
        left = self.total - self._making - fixed
        windows = self._windows.listed()
        # Pools may keep as many bytes as the results ahead of their consumers have. With little memory left, keeping
        # some costs more than it saves.
        results = sum(window.asked for window in windows)
        self._follower.most = min(self.total >> 3, max(results, STAYS)) if left >= self.total >> 2 else 0
        KEPT.bound()
        wants = [window.wanted() for window in windows]
        left -= KEPT.reserved(self.total, self._before)
        for window, limit in zip(windows, fair_shares(left, wants), strict=True):
            window.allow(limit)

    def members(self) -> list[BufferAccount | MemoryWindow]:
        """Return all accounts and windows, oldest first."""
        return [*self._accounts.listed(), *self._windows.listed()]


_shared: list[Budget] = []
_first = new_lock()


def process_budget() -> Budget:
    """Return the budget of all runs without a budget: half of the memory that was free when the first run began."""
    if not _shared:
        with _first:
            if not _shared:
                _shared.append(Budget(max(available_memory() // 2, _LEAST), given=False))
    return _shared[0]


@in_child
def _begin_anew() -> None:
    """Forget the budget of the parent in a forked child."""
    _shared.clear()


def budget_for(options: Options) -> Budget:
    """Return the budget of a run with these options."""
    total = options.autotune.ram_budget
    return process_budget() if total is None else Budget(total, given=True, making=total >> 3)
