"""TokenBatches: neighbours in padded batches of limited cost."""

from __future__ import annotations

import numpy as np

from penstock.block.block import Block, concat_blocks
from penstock.physical.memory import UNCOUNTED, Memory
from penstock.physical.past import Past
from penstock.physical.stage import Cursor, Stage, State, StretchStage
from penstock.physical.stretch import Stretch, failure, join
from penstock.physical.token_batch import TokenLengths, TokenPadder
from penstock.physical.token_budget import TokenBudget
from penstock.plan.packing import BatchByTokens

_MOST = 4096  # elements to ask for at a time


class TokenBatches(StretchStage):
    """Batches as they are complete, and failures of elements in their turn.

    The state says which elements of the input wait for others; they are read again.
    """

    def __init__(self, upstream: Stage, node: BatchByTokens, *, vectorise: bool, memory: Memory = UNCOUNTED) -> None:
        super().__init__(node.label, (upstream,), node.where)
        self._account = memory.account("batch", node.label, node.where)
        self._cursor = Cursor(upstream)
        self._budget = TokenBudget(node)
        self._lengths = TokenLengths(node, self._budget, vectorise=vectorise)
        self._pad = TokenPadder(node)
        self._waiting: list[Block] = []
        self._first = 0  # position of the first element that waits
        self._past = Past()
        self._pulled = 0
        self._given = 0  # batches, to guess how many elements make one

    def make(self, want: int) -> Stretch | None:
        while True:
            ask = 1 if self.seen else max(1, min(want * (self._pulled + 8) // (self._given + 1), _MOST))
            self._note()
            try:
                if not self._cursor.fill(ask):
                    break
            except Exception as error:
                self._pulled += 1
                return failure(error)
            found = self._batches(self._cursor.take_available(ask))
            if found:
                self._given += len(found)
                return join(found)
            self._account.hold(sum(block.nbytes for block in self._waiting))
        self._lengths.tell(self._pulled)
        return self._close() if self._waiting else None

    def _batches(self, block: Block) -> list[Stretch]:
        rows, lengths, errors = self._lengths(block, self._pulled)
        due: list[tuple[int, Stretch]] = [(row, failure(error)) for row, error in errors.items()]
        elements = block if len(rows) == block.size else block.take(rows)
        at = 0
        for i, end in self._budget.cut(lengths.tolist()):
            self._wait(elements.slice(at, end), rows, at)
            due.append((int(rows[i]), self._close()))
            at = end
        self._wait(elements.slice(at, elements.size), rows, at)
        self._pulled += block.size
        return [made for _, made in sorted(due, key=lambda entry: entry[0])]

    def _wait(self, block: Block, rows: np.ndarray, at: int) -> None:
        if block.size:
            if not self._waiting:
                self._first = self._pulled + int(rows[at])
            self._waiting.append(block)

    def _close(self) -> Stretch:
        waiting, self._waiting = self._waiting, []
        return self._pad(concat_blocks(waiting))

    def _note(self) -> None:
        if not self._past.ends_at(self._pulled):
            first = self._first if self._waiting else self._pulled
            self._past.note(self._pulled, self._cursor.state(), np.array([first]))

    def place(self) -> State:
        self._note()
        first = self._first if self._waiting else self._pulled
        number, below = self._past.before(first)
        return [below, number, first, self._pulled, self._given, self._lengths.left_out]

    def go_to(self, place: State) -> None:
        below, number, first, pulled, self._given, left_out = place
        self._cursor.restore(below)
        self._past.note(number, below, np.array([first]))
        self._cursor.take(first - number)  # was given
        self._pulled = first
        while self._pulled < pulled:
            stretch = self._cursor.take(min(pulled - self._pulled, _MOST))
            if stretch is None:
                break
            for piece in stretch.pieces():
                if isinstance(piece, Block):
                    self._batches(piece)
                else:
                    self._pulled += 1
        self._lengths.left_out = left_out

    def close(self) -> None:
        self._waiting.clear()
        self._account.close()
        self._cursor.close()
