"""OverBudget: a buffer that alone is larger than the budget for all of them, and what is said about it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from penstock.errors import BudgetWarning, Context, ResourceExhaustedError
from penstock.hints import size_text

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
