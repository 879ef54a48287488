"""`ShuffleStage` yields random elements of a buffer, in an order that depends on a key only."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from penstock.block.block import Block
from penstock.block.footprint import footprint
from penstock.block.indexed_column import by_reference, copied_bytes, moved
from penstock.block.rows import ElementRows
from penstock.keys import draws
from penstock.permutation import drain
from penstock.physical.kernels.run import reservoir
from penstock.physical.memory import UNCOUNTED, FillingLog, Memory
from penstock.physical.stage import Cursor, Stage, State, StretchStage
from penstock.physical.stages.combine import SequenceStage
from penstock.physical.stretch import Stretch, failure
from penstock.plan.node import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, NamedStep

_AT_ONCE = 256  # most elements that are exchanged together if they are available, ...
_COPIED_AT_ONCE = 1 << 20  # ... and most bytes of them that are copied
_ASK = 64  # elements in the first request while the buffer fills


class ShuffleStage(StretchStage):
    """tf.data's reservoir: output n is the content of a random one of `buffer_size` slots. The next input replaces it.

    The state contains no elements, only counts, and a state of the input from which the buffer's elements are read
    again. The elements in the buffer are found by simulating the random numbers. Random number n depends on the key and
    n only. A failure takes a slot like an element, and is raised when that slot is picked.
    """

    cuts = True

    def __init__(
        self,
        upstream: Stage,
        buffer_size: int,
        key: int,
        step: NamedStep,
        *,
        memory: Memory = UNCOUNTED,
        cardinality: int = UNKNOWN_CARDINALITY,
    ) -> None:
        super().__init__(step.label, (upstream,), step.where)
        self._account = memory.account("shuffle", step.label, step.where)
        # number of elements that the buffer will contain, if it is known
        self._at_most = {UNKNOWN_CARDINALITY: None, INFINITE_CARDINALITY: buffer_size}.get(
            cardinality, min(buffer_size, cardinality)
        )
        self._cursor = Cursor(upstream)
        self._size = buffer_size
        self._key = key
        self._rows: ElementRows | None = None
        self._failed: dict[int, Exception] = {}  # slots that contain a failure
        self._numbers = np.empty(0, np.int64)  # number of the input element in each filled slot
        self._pulled = 0  # input elements taken
        # (number of the next element, state of the input) before each pull
        self._past: deque[tuple[int, State]] = deque()
        self._given = 0
        self._drain: np.ndarray | None = None  # slots in the order in which they are emptied after the end of the input
        self._drained = 0
        self._tidy_at = 64
        self._at_once = 0

    def make(self, want: int) -> Stretch | None:
        if self._drain is None:
            self._fill()
        want = max(want, self._at_once)
        if self._drain is None:
            pulled = self._pull(want)
            if pulled is not None:
                return self._exchange(pulled)
            self._begin_drain()
        return self._empty(want)

    def _pull(self, count: int) -> Stretch | None:
        """Return some elements of one Block, or a failure, or None at the end."""
        self._past.append((self._pulled, self._cursor.state()))
        if len(self._past) > self._tidy_at:
            self._tidy()
        try:
            if not self._cursor.fill(count):
                return None
            block = by_reference(self._cursor.take_available(count))
            if self._cursor.stage.at_hand:
                self._at_once = min(_COPIED_AT_ONCE * block.size // (copied_bytes(block) + 1), _AT_ONCE)
            found = Stretch(block)
        except Exception as error:
            found = failure(error)
        self._pulled += found.size
        return found

    def _tidy(self) -> None:
        """Drop input states from which no element of the buffer has to be read again."""
        oldest = int(self._numbers.min()) if len(self._numbers) else self._pulled
        while len(self._past) > 1 and self._past[1][0] <= oldest:
            self._past.popleft()
        self._tidy_at = 2 * len(self._past) + 64

    def _fill(self) -> None:
        if len(self._numbers) == self._size:
            return
        # inputs without side effects come at once, and each request costs 10 µs
        ask = 1 if self._cursor.stage.seen else _ASK
        log = FillingLog(self.label, self._size if self._at_most is None else self._at_most, ask=ask)
        while len(self._numbers) < self._size:
            missing = self._size - len(self._numbers)
            start = self._pulled
            pulled = self._pull(min(missing, log.ask()))
            if pulled is None:
                log.full(len(self._numbers))
                self._begin_drain()
                return
            at = len(self._numbers)
            self._put(np.arange(at, at + pulled.size), pulled)
            self._numbers = np.concatenate([self._numbers, np.arange(start, start + pulled.size)])
            self._count_bytes()
            log.at(len(self._numbers))
        log.full(self._size)

    def _put(self, slots: np.ndarray, stretch: Stretch, rows: np.ndarray | None = None) -> None:
        """Write positions `rows` (default: all) of a stretch into slots.

        The stretch is either elements or one failure.
        """
        for slot in slots.tolist() if self._failed else ():
            self._failed.pop(slot, None)
        if stretch.block is None:
            self._failed.update((slot, stretch.failures[0][1]) for slot in slots.tolist())
            return
        if self._rows is None:
            self._rows = ElementRows(self._size)
        self._rows.put(slots, stretch.block, rows)

    def _exchange(self, pulled: Stretch) -> Stretch:
        picks = draws(self._key, self._given, pulled.size, self._size)
        source, slots, rows = reservoir(picks, self._size)
        out = self._gather(source, pulled)
        self._put(slots, pulled, rows)
        self._numbers[slots] = self._pulled - pulled.size + rows
        self._given += pulled.size
        self._count_bytes()
        return out

    def _count_bytes(self) -> None:
        if self._rows is not None:
            size = self._rows.slot_bytes
            self._account.hold(self._rows.nbytes, self._at_most * size if size and self._at_most else None)

    def _gather(self, source: np.ndarray, pulled: Stretch | None = None) -> Stretch:
        """Return the contents of `source`: a slot, or from `size` on a position of the stretch."""
        if pulled is not None and pulled.block is None:
            at = int(source[0])
            if at >= self._size:
                return pulled
            pulled = None
        block = None if pulled is None else pulled.block
        failures: list[tuple[int, Exception]] = []
        if self._failed:
            places = np.flatnonzero(np.isin(source, np.fromiter(self._failed, np.int64)))
            failures = [(at, self._failed[int(source[at])]) for at in places.tolist()]
            source = np.delete(source, places)
        if not len(source):
            return Stretch(None, tuple(failures))
        if self._rows is None:  # only failures so far
            assert block is not None
            return Stretch(moved(block.take(source - self._size)), tuple(failures))
        return Stretch(self._rows.gather(source, block), tuple(failures))

    def _begin_drain(self) -> None:
        left = len(self._numbers)
        picks = draws(self._key, self._given, left, np.arange(left, 0, -1))
        self._drain = drain(picks)

    def _empty(self, want: int) -> Stretch | None:
        assert self._drain is not None
        slots = self._drain[self._drained : self._drained + want]
        if not len(slots):
            self._rows = None
            self._account.close()
            return None
        self._drained += len(slots)
        return self._gather(slots)

    def place(self) -> State:
        if not self._past:
            return [self._cursor.state(), 0, 0, 0, 0]
        number, below = self._past[0]
        return [below, number, self._pulled, self._given, self._drained]

    def go_to(self, place: State) -> None:
        below, number, pulled, self._given, drained = place
        self._cursor.restore(below)
        if not pulled:
            return
        # in free order, this state grows, and the restored one does not
        self._past.append((number, self._cursor.state()))
        self._numbers = self._simulated(pulled)
        self._refill(number, pulled)
        if drained:
            self._begin_drain()
            self._drained = drained

    def _simulated(self, pulled: int) -> np.ndarray:
        """Return the numbers of the input elements in the slots after `pulled` elements."""
        numbers = np.arange(min(pulled, self._size))
        for start in range(0, self._given, 1 << 16):
            count = min(1 << 16, self._given - start)
            _, slots, rows = reservoir(draws(self._key, start, count, self._size), self._size)
            numbers[slots] = self._size + start + rows
        return numbers

    def _refill(self, number: int, pulled: int) -> None:
        """Read the slots' elements again, from element `number` on. Elements that had left the buffer are skipped."""
        order = np.argsort(self._numbers, kind="stable")
        ordered = self._numbers[order]
        for piece in self._cursor.pieces(pulled - number):
            found = Stretch(piece) if isinstance(piece, Block) else failure(piece)
            low, high = np.searchsorted(ordered, [number, number + found.size])
            if high > low:
                self._put(order[low:high], found, ordered[low:high] - number)
            number += found.size
        self._pulled = pulled

    def close(self) -> None:
        self._rows = None
        self._account.close()
        self._failed.clear()
        self._cursor.close()


class HeldStage(Stage):
    """A stage that can read some of its elements before they are requested.

    Elements read early are no part of the state: another run reads them on request.
    """

    def __init__(self, upstream: Stage, *, memory: Memory = UNCOUNTED) -> None:
        super().__init__(upstream.label, (upstream,), upstream.where)
        self._account = memory.account("at hand", upstream.label, upstream.where)
        self._nbytes = 0
        self._upstream = upstream
        self._pieces: deque[tuple[State, Block | Exception | None]] = deque()  # each with the state before it
        self._due = self._size = 0  # number of elements to read early, and number read
        self.ended = False

    @property
    def at_hand(self) -> bool:
        return self._upstream.at_hand

    def hold(self, count: int, most: int) -> None:
        """Read about `count` elements more, up to `most` in total. Elements read in excess last time count."""
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


class ShuffleAndRepeatStage(SequenceStage):
    """Epochs one after another; `build` creates a shuffle over a `HeldStage`.

    While the buffer of one epoch is emptied, the same number of elements is read for the next epoch. Together they
    never exceed `buffer_size`. The state is that of a repeat.
    """

    def __init__(
        self, build: Callable[[int], Stage], count: int, buffer_size: int, step: NamedStep, *, may_grow: bool
    ) -> None:
        super().__init__(build, count, step, alike=True, may_grow=may_grow)
        self._buffer_size = buffer_size
        self._following: Stage | None = None
        self._given = 0  # elements yielded last time

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
            self._following = self._made(self._index + 1)
        _held(self._following).hold(count, self._buffer_size)

    def _made(self, index: int) -> Stage:
        made, self._following = self._following, None
        return super()._made(index) if made is None else made

    def close(self) -> None:
        super().close()
        if self._following is not None:
            self._following.close()


def _held(shuffle: Stage) -> HeldStage:
    (held,) = shuffle.inputs
    assert isinstance(held, HeldStage)
    return held
