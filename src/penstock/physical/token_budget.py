"""TokenBudget: how many elements, given their lengths, make a batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.plan.packing import BatchByTokens


class TokenBudget:
    """Neighbours are in one batch as long as it costs no more than `max_tokens`.

    A batch costs its number of elements times the greatest length ("padded"), or the lengths together ("sum"). Lengths
    count as at least 1, and are rounded up to a multiple; `cut` takes them so (see `rounded`).
    """

    def __init__(self, node: BatchByTokens) -> None:
        self._max_tokens = node.max_tokens
        self._padded = node.cost == "padded"
        self._most = node.max_elements or node.max_tokens
        self._multiple = node.multiple_of
        self.count = 0  # elements of the batch that is filling up
        self._load = 0  # its greatest length, or all its lengths

    def rounded(self, lengths: np.ndarray) -> np.ndarray:
        """Lengths as they count."""
        found: np.ndarray = -(-np.maximum(lengths, 1) // self._multiple) * self._multiple
        return found

    def too_long(self, lengths: np.ndarray) -> np.ndarray:
        """Which elements cost too much alone."""
        found: np.ndarray = lengths > self._max_tokens
        return found

    def cut(self, lengths: Sequence[int]) -> list[tuple[int, int]]:
        """(element, end) for each batch that these elements complete: the element that did it, and where it ends.

        A batch is complete when no further element can be in it, or the next one does not fit.
        """
        most, budget, padded = self._most, self._max_tokens, self._padded
        count, load = self.count, self._load
        found = []
        for i, length in enumerate(lengths):
            grown = (length if length > load else load) if padded else load + length
            cost = (count + 1) * grown if padded else grown
            if count and cost > budget:
                found.append((i, i))
                count, grown = 0, length
            count += 1
            load = grown
            least = (count + 1) * load if padded else load + 1
            if count == most or least > budget:
                found.append((i, i + 1))
                count = load = 0
        self.count, self._load = count, load
        return found

    def clear(self) -> None:
        """Begin with an empty batch."""
        self.count = self._load = 0
