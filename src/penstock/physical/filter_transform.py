"""FilterTransform: keeps the elements of a Block for which a user's function returns True."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from penstock.block.block import Block
from penstock.block.numbers import Numbers
from penstock.physical.key_function import truth, verdicts
from penstock.physical.transform import FunctionTransform, Outcome
from penstock.trace.graph import Allocate


class FilterTransform(FunctionTransform):
    """Keep the elements for which `predicate(element)` is true."""

    def run(self, block: Block, numbers: Numbers, allocate: Callable[[int], Allocate] | None = None) -> Outcome:
        failures: Sequence[tuple[int, Exception]] = ()
        mask = None if self.vectoriser is None else verdicts(self.vectoriser, block, self.draws(numbers))
        if mask is None:
            mask, failures = self._per_element(block, numbers)
        if np.count_nonzero(mask) == block.size:
            return Outcome(block)
        kept = np.flatnonzero(mask)
        return Outcome(block.take(kept) if len(kept) else None, kept, failures)

    def _per_element(self, block: Block, numbers: Numbers) -> tuple[np.ndarray, Sequence[tuple[int, Exception]]]:
        predicate = self.called
        unpacks = block.structure.unpacks
        mask = np.zeros(block.size, bool)
        failures: list[tuple[int, Exception]] = []
        draws = self.draws(numbers)
        with self.drawing(draws, block.size) as now:
            calls = None if self._parted is None else self._parted.rest(block, draws, now)
            elements = block.elements() if calls is None else None
            began = time.thread_time()
            for row in range(block.size):
                now.begin(row)
                try:
                    if elements is not None:
                        element = elements[row]
                        mask[row] = truth(predicate(*element) if unpacks else predicate(element))
                    elif calls is not None:
                        mask[row] = truth(calls(row))
                except Exception as raised:
                    failures.append((row, self._failure(raised, block, row, numbers, elements)))
        if calls is not None:
            calls.parts.spent.add(block.size, time.thread_time() - began)
        return mask, failures
