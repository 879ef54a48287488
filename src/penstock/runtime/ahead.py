"""AheadLimits: the room for results that workers compute ahead."""

from __future__ import annotations

from penstock.runtime.lane import Lane
from penstock.runtime.memory.budget import Budget
from penstock.runtime.results import Results


class AheadLimits:
    """The room for results that the consumer has not taken yet.

    Args:
        results: The waiting results.
        lane: The lane, which limits their bytes.
        budget: The byte budget of the run.
        parallelism: Number of workers that may be inside the segment.
        max_elements: Number of elements after which no further result begins. Negative: no limit.
    """

    def __init__(self, results: Results, lane: Lane, budget: Budget, parallelism: int, max_elements: int) -> None:
        self.parallelism = parallelism
        self.wanted = max_elements  # elements that the user wants ahead; negative: the tuner decides
        self._results = results
        self._lane = lane
        self._budget = budget
        self._max_elements = max_elements

    def has_room(self, *, seen: bool) -> bool:
        """Return True if another task may begin. `seen` tells whether pulling has side effects."""
        results = self._results
        if results.waiting == 0 or results.filling:
            return True
        if 0 <= self._max_elements <= results.elements:
            return False
        if seen and self.wanted > 0:  # each worker may have one more in progress
            made = results.elements + results.at_consumer
            if made >= self.wanted or results.ahead >= self.wanted + self.parallelism:
                return False
        return results.expected(self._budget.given) < self._lane.limit  # one more must fit a budget set by the user

    def of_task(self) -> int | None:
        """Return the number of results that the next task may compute if pulling has side effects. None: no limit."""
        if self.wanted <= 0:
            return None
        return max((self.wanted - self._results.ahead) // self.parallelism, 1)
