"""Delivered: the elements of a part of a plan, computed by workers, in the order of the plan.

The state of the stage alone stores the consumer's position: an element of the base, and the number of results after it.
So workers may die, return or be replaced.
"""

from __future__ import annotations

from collections import deque

from penstock.block.block import Block
from penstock.delivery.requests import Requests
from penstock.delivery.window import Range
from penstock.errors import marked
from penstock.physical.lower import Lowering
from penstock.physical.stage import Stage, State
from penstock.plan.node import UNKNOWN_CARDINALITY


class Delivered(Stage):
    """Yields the results of `requests` to workers, in order."""

    def __init__(self, requests: Requests, lowering: Lowering) -> None:
        node = requests.node
        super().__init__(node.label, (), node.where)
        self._node = node
        self._requests = requests
        self._account = lowering.memory.account("at hand", node.label, node.where)
        self._turn = node.unit * node.consumers  # elements of the base from one result to the next, if known
        self._first = node.unit * node.consumer
        self._start = self._first  # first element of the current range
        self._given = 0  # number of results yielded after `_start`
        self._skip = 0  # number of these results that an earlier run has yielded
        self._stop = self._first  # start of the next range
        self._pieces: deque[Block | Exception] = deque()  # pieces of the current range
        self._over = False

    # -- as a stage

    def next(self, want: int) -> Block | None:
        while True:
            while self._pieces:
                piece = self._pieces.popleft()
                size = piece.size if isinstance(piece, Block) else 1
                if self._skip >= size:
                    self._skip -= size
                    continue
                if isinstance(piece, Exception):
                    self._given += 1
                    raise marked(piece)  # other errors do not leave a worker's stages
                if self._skip:
                    piece, self._skip = piece.slice(self._skip, size), 0
                if piece.size > want:
                    self._pieces.appendleft(piece.slice(want, piece.size))
                    piece = piece.slice(0, want)
                self._given += piece.size
                return piece
            if self._over or not self._more():
                return None

    def state(self) -> State:
        start, given = (self._start, self._given) if self._pieces else (self._stop, self._skip)
        if self._node.counted:
            start, given = start + given * self._turn, 0
        return [start, given]

    def restore(self, state: State) -> None:
        self._start, self._given = state
        self._stop, self._skip = self._start, self._given

    def can_skip(self) -> bool:
        return self._node.counted and self._node.cardinality != UNKNOWN_CARDINALITY

    def skip(self, count: int) -> int:
        passed = (self._start - self._first) // self._turn
        if self._node.cardinality >= 0:
            count = max(min(count, self._node.cardinality - passed), 0)
        self._start += count * self._turn
        self._stop = self._start
        return count

    def start(self) -> None:
        self._requests.tended()

    def close(self) -> None:
        self._over = True
        self._pieces.clear()
        self._account.close()
        self._requests.close()

    # -- ranges

    def _more(self) -> bool:
        """Fetch the next range. Return False at the end."""
        self._pieces.clear()
        while True:
            window = self._requests.asked(self._stop)
            found = window.take()
            if found is not None:
                self._begin(found)
                self._requests.asked(self._stop)
                return True
            if window.over:
                self._over = True
                return False
            self._requests.hear()
            self._hold()

    def _begin(self, found: Range) -> None:
        apart = self._requests.apart
        self._start, self._stop = found.start, found.start + apart if apart else found.stop
        self._given = self._skip  # count the dropped results from the start of the range
        for part in found.made:
            self._pieces += part.pieces()
        self._hold()

    def _hold(self) -> None:
        held = [piece for piece in self._pieces if isinstance(piece, Block)]
        self._account.hold(sum(block.nbytes for block in held + self._requests.held()))
