"""Padded batches of limited cost: of neighbours, or of elements of similar length within a window."""

from __future__ import annotations

import numpy as np

from penstock.block.block import Block, concat_blocks
from penstock.keys import draws, fold
from penstock.permutation import drain
from penstock.physical.memory import UNCOUNTED, Collector, Memory, elements_for
from penstock.physical.stage import Cursor, Stage, State, StretchStage
from penstock.physical.stretch import Past, Stretch, failure, join
from penstock.physical.token_batch import TokenBudget, TokenLengths, TokenPadder
from penstock.plan.packing import BatchByTokens


class TokenBatchesStage(StretchStage):
    """Yields batches when they are complete, and failures of elements in their turn.

    The state records which elements of the input wait for others; they are read again.
    """

    def __init__(self, upstream: Stage, node: BatchByTokens, *, vectorise: bool, memory: Memory = UNCOUNTED) -> None:
        super().__init__(node.label, (upstream,), node.where)
        self._account = memory.account("batch", node.label, node.where)
        self._cursor = Cursor(upstream)
        self._budget = TokenBudget(node)
        self._lengths = TokenLengths(node, self._budget, vectorise=vectorise)
        self._pad = TokenPadder(node)
        self._waiting: list[Block] = []
        self._first = 0  # position of the first waiting element
        self._past = Past()
        self._pulled = 0
        self._given = 0  # number of batches, to estimate how many elements fill one

    def make(self, want: int) -> Stretch | None:
        while True:
            ask = 1 if self.seen else elements_for(want, self._pulled, self._given)
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
        self._lengths.left_out.tell(self._pulled)
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
            self._past.note(self._pulled, self._cursor.state(), lambda: np.array([first]))

    def place(self) -> State:
        self._note()
        first = self._first if self._waiting else self._pulled
        number, below = self._past.before(first)
        return [below, number, first, self._pulled, self._given, self._lengths.left_out.count]

    def go_to(self, place: State) -> None:
        below, number, first, pulled, self._given, left_out = place
        self._cursor.restore(below)
        self._past.note(number, self._cursor.state(), lambda: np.array([first]))  # in free order, this state grows
        self._cursor.take(first - number)  # these were yielded already
        self._pulled = first
        for piece in self._cursor.pieces(pulled - self._pulled):
            if isinstance(piece, Block):
                self._batches(piece)
            else:
                self._pulled += 1
        self._lengths.left_out.count = left_out

    def close(self) -> None:
        self._waiting.clear()
        self._account.close()
        self._cursor.close()


class SortedTokenBatchesStage(StretchStage):
    """Yields, per window of a fixed number of input positions: its failures, then batches of elements by length.

    The order of a window's batches depends on the key and the number of the window; without a key it is ascending. The
    state records the start of the window and the number of batches yielded.
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
        self._number = 0  # number of windows taken
        self._pulled = 0
        self._before: State = None  # state before the current window
        self._due: list[Stretch | Block] = []
        self._given = 0  # number of `_due` that were yielded

    def make(self, want: int) -> Stretch | None:
        while self._given == len(self._due):
            self._due, self._given = [], 0
            if not self._load():
                self._lengths.left_out.tell(self._pulled)
                return None
        made = self._due[self._given : self._given + want]
        self._given += len(made)
        return join([self._pad(part) if isinstance(part, Block) else part for part in made])

    def _load(self) -> bool:
        """Take a window; return False at the end."""
        self._before = [self._cursor.state(), self._pulled, self._lengths.left_out.count, self._number]
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
            groups = [groups[i] for i in drain(picks).tolist()]
        return [block.take(group) for group in groups]

    def place(self) -> State:
        if self._given < len(self._due):
            return [*self._before, self._given]
        return [self._cursor.state(), self._pulled, self._lengths.left_out.count, self._number, 0]

    def go_to(self, place: State) -> None:
        below, self._pulled, self._lengths.left_out.count, self._number, given = place
        self._cursor.restore(below)
        if given:
            self._load()
            self._given = given

    def close(self) -> None:
        self._due, self._given = [], 0
        self._collector.close()
