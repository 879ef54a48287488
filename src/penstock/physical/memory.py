"""Memory: where stages say how many bytes their buffers hold, so that one budget can be kept over all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from penstock.physical.fatal import Fatal

if TYPE_CHECKING:
    from penstock.physical.stage import Around, Stage
    from penstock.plan.node import Node


class Overspent(Fatal):
    """A buffer alone is larger than the budget that the user gave: the run ends, and `error` says why."""


class Account(ABC):
    """What one buffer holds. It is closed, too, when nobody holds the account any more."""

    lasting = False  # may be kept beyond the run: its budget is the process's

    @abstractmethod
    def hold(self, nbytes: int, full: int | None = None) -> None:
        """The buffer holds so many bytes from now on. Cheap; called once per Block, by any thread.

        `full` is what it comes to when it has filled up, where that is known for certain. Raises Overspent if the size
        of such a buffer is the user's choice, and more than the budget that he gave.
        """

    @abstractmethod
    def close(self) -> None:
        """The buffer is gone. Idempotent; never waits, so that the garbage collector may call it anywhere."""


class Memory(ABC):
    """Opens accounts: one for each buffer of a run."""

    @abstractmethod
    def account(self, kind: str, label: str, where: str | None = None, *, of: Any = None) -> Account:
        """An account for a buffer of the stage with this label.

        Sizes that the user chooses have the kinds "shuffle", "cache", "batch", "window", "group" and "unique"; what is
        "at hand" the engine chooses. What several stages share is counted once: they give it as `of`, an object that
        can be weakly referenced, and get the same account.
        """

    @abstractmethod
    def observer(self, node: Node, stage: Stage) -> Around | None:
        """Is shown every stage of the run before it is asked for anything, and may look at what it gives.

        See `Stage.observe`.
        """


class _Uncounted(Account):
    def hold(self, nbytes: int, full: int | None = None) -> None:
        """Nobody counts."""

    def close(self) -> None:
        """Nothing was opened."""


class _Nowhere(Memory):
    def account(self, kind: str, label: str, where: str | None = None, *, of: Any = None) -> Account:
        return _NOBODY

    def observer(self, node: Node, stage: Stage) -> None:
        """Nobody looks."""


_NOBODY = _Uncounted()
UNCOUNTED: Memory = _Nowhere()
