"""ShuffleAndRepeat: epochs of a shuffle, each of which begins to fill its buffer while the one before empties."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from penstock.block.block import Block
from penstock.block.footprint import footprint
from penstock.physical.memory import UNCOUNTED, Memory
from penstock.physical.stage import Stage, State
from penstock.physical.stages.combine import Sequence


class Held(Stage):
    """A stage that may be asked to read some of its elements before they are wanted.

    They are no part of the state: another run reads them when they are wanted.
    """

    def __init__(self, upstream: Stage, *, memory: Memory = UNCOUNTED) -> None:
        super().__init__(upstream.label, (upstream,), upstream.where)
        self._account = memory.account("at hand", upstream.label, upstream.where)
        self._nbytes = 0
        self._upstream = upstream
        self._pieces: deque[tuple[State, Block | Exception | None]] = deque()  # each with the state in front of it
        self._due = self._size = 0  # elements that are to be held, and that were
        self.ended = False

    @property
    def at_hand(self) -> bool:
        return self._upstream.at_hand

    def hold(self, count: int, most: int) -> None:
        """Have about `count` elements more, up to `most`; what came beyond that the last time is of these."""
        self._due += count
        count = min(self._due, most) - self._size
        if count <= 0 or self.ended:
            return
        before = self._upstream.state()
        piece: Block | Exception | None
        try:
            piece = self._upstream.next(count)
        except Exception as error:
            piece = error
        self.ended = piece is None
        self._size += piece.size if isinstance(piece, Block) else 1
        self._pieces.append((before, piece))
        self._move(footprint(piece) if isinstance(piece, Block) else 0)

    def _move(self, nbytes: int) -> None:
        self._nbytes += nbytes
        self._account.hold(self._nbytes)

    def next(self, want: int) -> Block | None:
        if not self._pieces:
            block = self._upstream.next(want)
            self.ended = block is None
            return block
        piece = self._pieces.popleft()[1]
        if isinstance(piece, Exception):
            try:
                raise piece
            finally:
                del piece
        if piece is not None:
            self._move(-footprint(piece))
        return piece

    def state(self) -> State:
        return self._pieces[0][0] if self._pieces else self._upstream.state()

    def restore(self, state: State) -> None:
        self._upstream.restore(state)

    def close(self) -> None:
        self._pieces.clear()
        self._account.close()
        self._upstream.close()


class ShuffleAndRepeat(Sequence):
    """Epochs one behind the other; `build` makes a shuffle over a `Held`.

    As many elements as the emptying buffer has given are read for the next one, when more are asked for: both together
    hold no more than `buffer_size`. The state is that of a repeat.
    """

    def __init__(
        self, build: Callable[[int], Stage], count: int, buffer_size: int, label: str, where: str | None
    ) -> None:
        super().__init__(build, count, label, where, alike=True)
        self._buffer_size = buffer_size
        self._following: Stage | None = None
        self._given = 0  # elements, the last time

    def next(self, want: int) -> Block | None:
        self._read_early(self._given)
        self._given = 0
        block = super().next(want)
        if block is not None:
            self._given = block.size
        return block

    def _read_early(self, count: int) -> None:
        last = self._index + 1 == self._count
        if not count or self._stage is None or last or not _held(self._stage).ended:
            return
        if self._following is None:
            self._following = self._build(self._index + 1)
        _held(self._following).hold(count, self._buffer_size)

    def _current(self) -> Stage:
        if self._stage is None and self._following is not None:
            self._stage, self._following = self._following, None
        return super()._current()

    def close(self) -> None:
        super().close()
        if self._following is not None:
            self._following.close()


def _held(shuffle: Stage) -> Held:
    (held,) = shuffle.inputs
    assert isinstance(held, Held)
    return held
