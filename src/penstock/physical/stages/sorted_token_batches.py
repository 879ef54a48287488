"""SortedTokenBatches: elements of like length, out of a window, in padded batches of limited cost."""

from __future__ import annotations

import numpy as np

from penstock.block.block import Block
from penstock.keys import draws, fold
from penstock.physical.collect import Collector
from penstock.physical.kernels import reference
from penstock.physical.memory import UNCOUNTED, Memory
from penstock.physical.stage import Cursor, Stage, State, StretchStage
from penstock.physical.stretch import Stretch, failure, join
from penstock.physical.token_batch import TokenLengths, TokenPadder
from penstock.physical.token_budget import TokenBudget
from penstock.plan.packing import BatchByTokens


class SortedTokenBatches(StretchStage):
    """Windows of so many positions of the input: the failures in it, then batches of its elements sorted by length.

    The order of a window's batches follows from the key and the number of the window; without a key it ascends. The
    state says where the window begins, and how much of it was given.
    """

    def __init__(
        self,
        upstream: Stage,
        node: BatchByTokens,
        key: int | None,
        *,
        vectorise: bool,
        memory: Memory = UNCOUNTED,
    ) -> None:
        super().__init__(node.label, (upstream,), node.where)
        assert node.sort_window is not None
        self._cursor = Cursor(upstream)
        self._collector = Collector(self._cursor, memory.account("group", node.label, node.where))
        self._size = node.sort_window
        self._budget = TokenBudget(node)
        self._lengths = TokenLengths(node, self._budget, vectorise=vectorise)
        self._pad = TokenPadder(node)
        self._key = key
        self._number = 0  # of windows taken
        self._pulled = 0
        self._before: State = None  # in front of the window that is being given
        self._due: list[Stretch | Block] = []
        self._given = 0  # of those due

    def make(self, want: int) -> Stretch | None:
        while self._given == len(self._due):
            self._due, self._given = [], 0
            if not self._load():
                self._lengths.tell(self._pulled)
                return None
        made = self._due[self._given : self._given + want]
        self._given += len(made)
        return join([self._pad(part) if isinstance(part, Block) else part for part in made])

    def _load(self) -> bool:
        """Take a window; False at the end."""
        self._before = [self._cursor.state(), self._pulled, self._lengths.left_out, self._number]
        stretch = self._collector.take(self._size)
        if stretch is None:
            return False
        first, self._pulled = self._pulled, self._pulled + stretch.size
        failures = list(stretch.failures)
        due: list[Stretch | Block] = []
        if stretch.block is not None:
            held = np.delete(np.arange(stretch.size), [position for position, _ in failures])
            rows, lengths, errors = self._lengths(stretch.block, first)
            failures += [(int(held[row]), error) for row, error in errors.items()]
            due = self._batches(stretch.block, rows, lengths)
        failures.sort(key=lambda entry: entry[0])
        self._due = [*(failure(error) for _, error in failures), *due]
        self._number += 1
        return True

    def _batches(self, block: Block, rows: np.ndarray, lengths: np.ndarray) -> list[Stretch | Block]:
        order = np.argsort(lengths, kind="stable")
        self._budget.clear()
        ends = [end for _, end in self._budget.cut(lengths[order].tolist())]
        if self._budget.count:
            ends.append(len(order))
        groups = np.split(rows[order], ends[:-1]) if ends else []
        if self._key is not None:
            count = len(groups)
            picks = draws(fold(self._key, self._number), 0, count, np.arange(count, 0, -1))
            groups = [groups[i] for i in reference.drain(picks).tolist()]
        return [block.take(group) for group in groups]

    def place(self) -> State:
        if self._given < len(self._due):
            return [*self._before, self._given]
        return [self._cursor.state(), self._pulled, self._lengths.left_out, self._number, 0]

    def go_to(self, place: State) -> None:
        below, self._pulled, self._lengths.left_out, self._number, given = place
        self._cursor.restore(below)
        if given:
            self._load()
            self._given = given

    def close(self) -> None:
        self._due, self._given = [], 0
        self._collector.close()
