"""Budget: bytes for all buffers together, and how they are divided.

What a buffer of a purpose of its own holds (a shuffle, a cache, a batch being filled, memory kept for use again) is
taken off first. The rest is for the *windows*: what segments may make ahead of their consumers.

Every number here may be read and written by any thread at any time, so nobody ever waits for a lock: a worker asks for
its window's limit while it holds its segment's lock, and garbage collections, in which runs end, begin anywhere. A
change only leaves a mark; who next reads a limit divides anew, and who comes meanwhile goes by what was.
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
from penstock.runtime.memory.kept import KEPT, Follower, Reserved, Weakly
from penstock.sources.arrays import ArraysSource

# the buffers whose size is the user's choice, and what he can do
_HINTS = {
    "shuffle": "Shuffle what is smaller (file names, encoded records), give a smaller buffer_size",
    "cache": "Cache what is smaller (before decoding), or in files, with cache(filename)",
    "batch": "Make smaller batches",
    "window": "Make smaller windows",
    "group": "Make smaller groups",
    "unique": "Make the values unique in parts",
    "element": "Make smaller elements or batches",
}
CHOSEN = frozenset(_HINTS)
_TOLD: set[tuple[str, str | None]] = set()  # the stages that the process has been warned of


@dataclass(frozen=True, slots=True)
class OverBudget:
    """A buffer, and the budget. `full` is what it comes to when it has filled up, where that is known."""

    kind: str
    label: str
    where: str | None
    nbytes: int
    full: int | None
    total: int

    def error(self) -> ResourceExhaustedError:
        """For a budget that the user gave."""
        message = f"{self._holds()}, and autotune.ram_budget is {self._limit()} for all buffers together."
        hint = f"{_HINTS[self.kind]}, or raise ram_budget."
        return ResourceExhaustedError(message, hint=hint, context=Context(self.label, self.where))

    def warn(self) -> None:
        """For the budget that follows from the machine: once for each stage, for there may be memory all the same."""
        stage = self.label, self.where
        if stage in _TOLD:
            return
        _TOLD.add(stage)
        message = (
            f"{self._holds()}, more than the {self._limit()} that all buffers of this process are to stay "
            "below, half of the memory there was. It goes on, and whether there is memory for it will show. "
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
        """Whether the two numbers cannot be told apart when they are rounded."""
        return size_text(self._most) == size_text(self.total)


def fair_shares(free: int, wants: Sequence[tuple[int, float]]) -> list[int]:
    """Bytes for each (bytes wanted, weight): what it wants, or else its part by weight of what the others leave.

    Max-min fair, as by filling all at the same speed until each has enough: nobody could get more without taking it
    from somebody who has less for his weight. The sum is at most `free`.

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
        if want > level * weight:  # so does everybody behind it
            for j in order[place:]:
                given[j] = min(int(level * wants[j][1]), free)
                free -= given[j]
            break
        given[i] = min(want, free)
        free -= given[i]
        weights -= weight
    return given


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


class Mark:
    """Whether something has changed since the last division."""

    def __init__(self) -> None:
        self.value = True

    def set(self) -> None:
        self.value = True


class Window:
    """A part of a budget; `share` windows that stand side by side divide one part. May be used by any thread."""

    kind = "ahead"

    def __init__(self, budget: Budget, mark: Mark, owner: object, label: str, share: int, where: str | None) -> None:
        self._budget = budget
        self._mark = mark
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
        if self._mark.value:
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


START = 1 << 26  # bytes that a window begins with, where the budget has them
_LEAST = 1 << 26  # bytes of the process's budget, however full the machine is
_TIGHT = 1 << 23  # bytes; small inner data sets that are made at once have half of it at most
_GRAIN = 1 << 16  # bytes by which an account may grow unnoticed


class Budget(Memory):
    """Bytes for all buffers of one run, if the user has `given` them, or of all other runs in the process.

    Holds neither accounts nor windows: when the run that holds them is gone, so are they. The limits of the windows
    never come to more than `total` less what the accounts hold, and less `making`: bytes for what is in the making, and
    counts only when it is made.

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
        self.start = min(START, total if given else total >> 4)  # of a window for which nobody has a wish
        self._grain = min(_GRAIN, total >> 8)
        self._mark = Mark()
        self._accounts: Weakly[Counted] = Weakly(self._mark.set)
        self._windows: Weakly[Window] = Weakly(self._mark.set)
        self._dividing = new_lock()  # never waited for
        self._follower = Follower(self._mark.set, total >> 3)
        KEPT.follow(self._follower)
        self._before = KEPT.polled()

    def account(
        self, kind: str, label: str, where: str | None = None, *, of: Any = None, owner: object = None
    ) -> Counted:
        shared = [] if of is None else [account for account in self._accounts.listed() if account.is_of(of)]
        account = shared[0] if shared else Counted(self, owner, kind, label, where, of)
        if not shared:
            self._accounts.add(account)
        if of is not None:
            account.share(owner)
        return account

    def window(self, label: str, share: int = 1, where: str | None = None, *, owner: object = None) -> Window:
        """A window for a segment; `share` of them, as the inputs of an interleave, divide one part."""
        made = Window(self, self._mark, owner, label, share, where)
        self._windows.add(made)
        self.changed()
        return made

    def forget(self, member: Counted | Window) -> None:
        """It has been closed."""
        if isinstance(member, Window):
            self._windows.remove(member)
        else:
            self._accounts.remove(member)

    def check_fits(self, nbytes: int, label: str, where: str | None = None, *, elements: int = 1) -> None:
        """A result of so many elements has `nbytes`.

        Raises ResourceExhaustedError if one alone is over a budget that was given. It ends the run: see `Overspent`.
        """
        if nbytes > self.total * elements:
            found = OverBudget("element", label, where, nbytes // elements, None, self.total)
            if self.given:
                raise found.error()
            found.warn()

    @property
    def is_tight(self) -> bool:
        """Whether so little was given that what is small otherwise has to fit as well."""
        return self.given and self.total < _TIGHT

    def observer(self, node: Node, stage: Stage) -> Around | None:
        """Where the budget was given, elements have to fit (`check_fits`). The user's own arrays are there anyway."""
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
        """Divide anew before the next limit is read."""
        self._mark.value = True

    def settle(self) -> None:
        """Divide, if something has changed and nobody else is at it."""
        if self._mark.value and self._dividing.acquire(blocking=False):
            try:
                self._mark.value = False
                self._divide()
            finally:
                self._dividing.release()

    def _divide(self) -> None:
        fixed = sum(account.reserve(self._grain) for account in self._accounts.listed())
        left = self.total - self._making - fixed
        # short of memory, keeping some for use again costs more than it brings
        self._follower.most = self.total >> 3 if left >= self.total >> 2 else 0
        KEPT.bound()
        windows = self._windows.listed()
        wants = [window.wanted() for window in windows]
        left -= KEPT.reserved(self.total, self._before)
        for window, limit in zip(windows, fair_shares(left, wants), strict=True):
            window.allow(limit)

    def members(self) -> list[Counted | Window]:
        """All that hold something of it, in the order in which they came."""
        return [*self._accounts.listed(), *self._windows.listed()]


_shared: list[Budget] = []
_first = new_lock()


def process_budget() -> Budget:
    """The budget of all runs that have none of their own: half of the memory that was free when the first began."""
    if not _shared:
        with _first:
            if not _shared:
                _shared.append(Budget(max(available_memory() // 2, _LEAST), given=False))
    return _shared[0]


@in_child
def _begin_anew() -> None:
    """Its memory is its own."""
    _shared.clear()


def budget_for(options: Options) -> Budget:
    """The budget of a run with these options."""
    total = options.autotune.ram_budget
    return process_budget() if total is None else Budget(total, given=True, making=total >> 3)
