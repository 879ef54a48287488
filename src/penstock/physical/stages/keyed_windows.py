"""KeyedWindows: groups elements by key into windows of a given size, in the order in which the windows become full."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from penstock.block.block import Block
from penstock.block.rows import ElementRows
from penstock.errors import Context, as_failure
from penstock.physical.memory import UNCOUNTED, Memory
from penstock.physical.stage import Cursor, Stage, State
from penstock.physical.stretch import Past, failed

_NO_LIMIT = 1 << 62  # slots


class SlotPool:
    """Elements by slot number, with their positions in the stream. Free slots are reused."""

    def __init__(self) -> None:
        self._rows = ElementRows(_NO_LIMIT)
        self._positions = np.empty(0, np.int64)
        self._free: list[np.ndarray] = []
        self._reserved = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the stored elements, and of free slots."""
        return self._rows.nbytes

    def put(self, block: Block, positions: np.ndarray) -> np.ndarray:
        """Store a Block's elements; return their slots."""
        slots = self._slots(block.size)
        self._rows.put(slots, block)
        self._positions[slots] = positions
        return slots

    def take(self, slots: np.ndarray) -> Block:
        """Return the elements in these slots, and free the slots."""
        found = self._rows.gather(slots)
        self.free(slots)
        return found

    def free(self, slots: np.ndarray) -> None:
        self._free.append(slots)

    def position(self, slot: int) -> int:
        return int(self._positions[slot])

    def _slots(self, count: int) -> np.ndarray:
        found: list[np.ndarray] = []
        while count and self._free:
            part = self._free.pop()
            if len(part) > count:
                self._free.append(part[count:])
                part = part[:count]
            found.append(part)
            count -= len(part)
        if count:
            found.append(np.arange(self._reserved, self._reserved + count))
            self._reserved += count
            if self._reserved > len(self._positions):
                grown = np.zeros(2 * self._reserved, np.int64)
                grown[: len(self._positions)] = self._positions
                self._positions = grown
        return found[0] if len(found) == 1 else np.concatenate(found)


# returns the keys of a Block with elements from number `first` on, and the errors of rows without a key
Keys = Callable[[Block, int], tuple[np.ndarray, dict[int, Exception]]]

_MOST = 4096  # elements to request if no window is nearly full
_MOST_LOOKED_AT = 256  # windows being filled that are checked


@dataclass(frozen=True, slots=True)
class KeyedWindow:
    """A full window, or a smaller one at the end of the input. `number` counts all windows of an iteration."""

    key: int
    number: int
    elements: Block


@dataclass(slots=True)
class _Group:
    """The window of a key while it is being filled."""

    size: int
    first: int  # position in the stream of its first element
    count: int = 0
    slots: list[np.ndarray] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Full:
    key: int
    number: int
    slots: np.ndarray


class KeyedWindows:
    """Yields the windows of a stage's elements. Smaller windows at the end come in ascending order of their keys.

    A window is yielded after its last element has come. A failure is raised in its turn; an element for which a user's
    function failed is in no window.

    The state contains no elements. It is a *place* before a Block of the input, and the number of windows and failures
    yielded since. A place consists of the number of waiting elements of each key, and of a state of the input before
    the oldest of them. After a restore, the input is read again from there; the waiting elements are the last ones of
    each key. If a window fills slowly, a resumed iteration therefore reads many elements again.
    """

    def __init__(
        self,
        upstream: Stage,
        keys: Keys,
        size_of: Callable[[int], int],
        expected_size: int,
        context: Context,
        *,
        least_size: int = 1,
        memory: Memory = UNCOUNTED,
    ) -> None:
        self.singly = False  # True if it is observable when keys are computed
        self._account = memory.account("group", context.stage or "", context.where)
        self._cursor = Cursor(upstream)
        self._keys = keys
        self._size_of = size_of
        self._expected_size = expected_size  # elements to request per window
        self._least_size = least_size  # size of the smallest next window of any key
        self._context = context  # for errors of `size_of`
        self._pool = SlotPool()
        self._groups: dict[int, _Group] = {}
        self._due: deque[_Full | Exception] = deque()
        self._pulled = 0  # positions taken from the input: elements and failures
        self._number = 0
        self._past = Past()  # states of the input before each pull
        self._place: State = None
        self._given = 0  # windows and failures yielded since the place
        self._pass_over = 0  # pending windows and failures that an earlier run had yielded
        self._ended = False

    def next(self, want: int) -> KeyedWindow | None:
        """Return the next window, or None at the end. A failure is raised; the next call continues after it."""
        while True:
            while self._due:
                due = self._due.popleft()
                if self._pass_over:
                    self._pass_over -= 1
                    if isinstance(due, _Full):
                        self._pool.free(due.slots)
                    continue
                self._given += 1
                if isinstance(due, Exception):
                    raise due
                return KeyedWindow(due.key, due.number, self._pool.take(due.slots))
            if self._ended:
                return None
            self._advance(want)

    def _advance(self, want: int) -> None:
        """Compute further windows or failures, or reach the end."""
        self._remember()
        self._place = self._placed()
        self._given = self._pass_over
        seen = self.singly or self._cursor.stage.seen
        ask = want * self._expected_size
        while not self._due and not self._ended:
            self._pull(self._needed() if seen else ask)
            self._remember()
            ask = max(ask, min(2 * ask, _MOST))  # with many keys, the first window takes long to become full

    def _needed(self) -> int:
        """Return the number of elements that must come before a window can be full.

        Requesting them at once is not observable.
        """
        if self.singly or self._least_size == 1 or len(self._groups) > _MOST_LOOKED_AT:
            return 1
        return min([self._least_size, *(group.size - group.count for group in self._groups.values())])

    def _pull(self, ask: int) -> None:
        try:
            if not self._cursor.fill(ask):
                self._flush()
                return
        except Exception as error:
            self._pulled += 1
            self._due.append(failed(error))
            return
        self._collect(self._cursor.take_available(ask))

    def _collect(self, block: Block) -> None:
        keys, errors = self._keys(block, self._pulled)
        due: list[tuple[int, int, np.ndarray | Exception]] = [(row, 0, error) for row, error in errors.items()]
        rows = np.arange(block.size)
        if errors:
            rows = np.delete(rows, list(errors))
            block = block.take(rows)
        if len(rows):
            slots = self._pool.put(block, rows + self._pulled)
            for key, members in _by_key(keys[rows]):
                due.extend(self._add(key, slots[members], rows[members]))
        self._pulled += len(keys)
        for _, key, full in sorted(due, key=lambda entry: entry[0]):
            self._due.append(full if isinstance(full, Exception) else self._numbered(key, full))
        self._account.hold(self._pool.nbytes)

    def _add(self, key: int, slots: np.ndarray, rows: np.ndarray) -> Iterator[tuple[int, int, np.ndarray | Exception]]:
        """Add elements of one key; yield (row of the last element, key, slots) for windows that became full."""
        at = 0
        while at < len(slots):
            group = self._groups.get(key)
            if group is None:
                try:
                    size = self._size_of(key)
                except Exception as raised:
                    self._pool.free(slots[at : at + 1])
                    context = replace(self._context, element=self._pool.position(slots[at]))
                    yield int(rows[at]), key, as_failure(raised, context)
                    at += 1
                    continue
                group = self._groups[key] = _Group(size, self._pool.position(slots[at]))
            taken = slots[at : at + group.size - group.count]
            at += len(taken)
            group.slots.append(taken)
            group.count += len(taken)
            if group.count == group.size:
                del self._groups[key]
                yield int(rows[at - 1]), key, _joined(group.slots)

    def _flush(self) -> None:
        for key in sorted(self._groups):
            self._due.append(self._numbered(key, _joined(self._groups.pop(key).slots)))
        self._ended = True

    def _numbered(self, key: int, slots: np.ndarray) -> _Full:
        self._number += 1
        return _Full(key, self._number - 1, slots)

    def _remember(self) -> None:
        """Store the position in the input."""
        if not self._past.ends_at(self._pulled):
            self._past.note(self._pulled, self._cursor.state(), self._firsts)

    def _firsts(self) -> np.ndarray:
        """Return the positions of the first elements of the groups."""
        return np.array([group.first for group in self._groups.values()], np.int64)

    def _placed(self) -> State:
        oldest = min((group.first for group in self._groups.values()), default=self._pulled)
        position, below = self._past.before(oldest)
        groups = [[key, group.count, group.size] for key, group in self._groups.items()]
        return [below, position, self._pulled, self._number, groups]

    def state(self) -> State:
        """Return the state before all windows that `next` has not returned yet."""
        if self._place is None:
            self._remember()
            self._place = self._placed()
        return [self._place, self._given]

    def state_of_last(self) -> State:
        """Return the state before the window that was returned last."""
        return [self._place, self._given - 1]

    def restore(self, state: State) -> None:
        place, given = state
        below, position, pulled, self._number, groups = place
        self._cursor.restore(below)
        below = self._cursor.state()  # in free order, this state grows, and the restored one does not
        self._past.note(position, below, self._firsts)
        self._place, self._given, self._pass_over = [below, *place[1:]], given, given
        self._groups = {key: _Group(size, position, count) for key, count, size in groups}
        while position < pulled:
            try:
                if not self._cursor.fill(min(pulled - position, _MOST)):
                    break
                block = self._cursor.take_available(pulled - position)
            except Exception as error:  # the failure was raised in its turn
                failed(error)
                position += 1
                continue
            self._collect_again(block, position)
            position += block.size
        self._pulled = pulled

    def _collect_again(self, block: Block, position: int) -> None:
        """Collect the last elements of each key that its group had."""
        keys, errors = self._keys(block, position)
        rows = np.arange(block.size)
        if errors:
            rows = np.delete(rows, list(errors))
            block = block.take(rows)
        if not len(rows):
            return
        slots = self._pool.put(block, rows + position)
        for key, members in _by_key(keys[rows]):
            group = self._groups.get(key)
            if group is None:
                self._pool.free(slots[members])
                continue
            waiting = _joined([*group.slots, slots[members]])
            if len(waiting) > group.count:
                self._pool.free(waiting[: -group.count])
                waiting = waiting[-group.count :]
            group.slots = [waiting]
            group.first = self._pool.position(waiting[0])

    def close(self) -> None:
        self._due.clear()
        self._groups.clear()
        self._pool = SlotPool()
        self._account.close()
        self._ended = True
        self._cursor.close()


def _by_key(keys: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (key, its rows in ascending order) for every key."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    cuts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    bounds = [0, *cuts.tolist(), len(keys)]
    for start, stop in pairwise(bounds):
        yield int(ordered[start]), order[start:stop]


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
