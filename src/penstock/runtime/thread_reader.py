"""ThreadReader reads the inputs of an interleave: fast inputs in the consumer's thread, others on workers."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import get_ident
from typing import NamedTuple

from penstock.block.block import Block
from penstock.physical.executor import StageReader
from penstock.physical.stage import Stage, State
from penstock.runtime.autotune.driver import Driver
from penstock.runtime.lane import Lane
from penstock.runtime.segment import Segment

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

# inputs of an interleave that workers read before an input is read without a worker, first and at most
_INPUTS, _MOST_INPUTS = 32, 1 << 12
_FORGIVING = 16  # fast inputs in a row after which one slow input is ignored
_WAITED = 0.01  # seconds of waits that the system does not count as reads
_AT_ONCE = 0.001  # seconds of an input that needs no worker
_SEVERAL = 4  # inputs in a row with shorter waits, which then count: a busy core or the lock delays single inputs
_ASKS = 32  # calls on fast inputs between two readings of the resource usage


class ThreadReader(StageReader):
    """Reads the inputs of an interleave. Its lane decides how many workers read at once.

    Workers read the inputs of the first cycle, unless the inputs of the previous iteration took no time. After that,
    the consumer reads fast inputs itself, because the transfer of a small file to a worker costs more than the read. If
    an input takes longer, a worker takes it over, and workers read the next inputs. After some more inputs the reader
    tries one without a worker again. After many fast inputs one slow input is ignored, because it may have waited for
    something else than its file. If several inputs in a row wait for milliseconds each, workers read the next ones.
    """

    def __init__(self, by_worker: Callable[[Stage], Stage], lane: Lane, cycle_length: int, driver: Driver) -> None:
        self.by_worker = by_worker  # returns a stage in which a worker reads an input ahead
        self.lane = lane
        self._cycle_length = cycle_length
        self._driver = driver
        self._quick = driver.inputs_were_quick(lane)  # True if the last tried input was fast
        self._left = cycle_length  # number of inputs that workers read before the next trial
        self._next_left = _INPUTS
        self._quick_ones = 0  # number of fast inputs in a row
        self._waiting_ones = 0  # number of inputs in a row that waited
        self._open: set[_Input] = set()  # inputs that no worker reads
        self._thread = self._asks = 0
        self._used = _UNTOLD

    def ahead(self, upstream: Stage) -> Stage:
        if upstream.seen_below or isinstance(upstream, Segment):
            return self.by_worker(upstream)
        if not self._quick:
            if self._left:
                self._left -= 1
                return self.by_worker(upstream)
            self._left = self._next_left
        found = _Input(self, upstream)
        self._open.add(found)
        return found

    def early(self) -> int:
        """Return the number of inputs to open early: one cycle, or more for many workers.

        The next inputs are then ready when the present inputs end together.
        """
        return 0 if self._quick else max(self._cycle_length, self.lane.knobs.parallelism)

    def quick(self) -> bool:
        return self._quick

    def tried(self, seconds: float) -> None:
        before, spent = self.used(), _Spent()
        if seconds > _AT_ONCE / 4:
            spent.add(seconds, before, self.used(now=True))
        if spent.is_long() or self._waits(spent):
            self.took_long()
        else:
            self._was_quick()

    def took_long(self) -> None:
        """Hand the tried input, all open inputs and some more inputs to workers."""
        passed, self._quick_ones = self._quick_ones >= _FORGIVING, 0
        if passed:
            return
        self._find(quick=False)
        self._left, self._next_left = self._next_left, min(2 * self._next_left, _MOST_INPUTS)
        for found in list(self._open):
            found.hand_over()
        self._open.clear()

    def ended(self, stage: _Input) -> None:
        """Record the end of an input that needed no worker."""
        if stage in self._open:
            self._open.discard(stage)
            if self._waits(stage.spent):
                self.took_long()
            else:
                self._find(quick=True)
                self._was_quick()

    def _waits(self, spent: _Spent) -> bool:
        """Return True if an input waited, and the inputs before it waited as well, or a worker read them."""
        if spent.wall <= _AT_ONCE or spent.waits <= 0:
            self._waiting_ones = 0
            return False
        self._quick_ones = 0
        self._waiting_ones += 1
        return self._waiting_ones >= _SEVERAL or not self._quick

    def _was_quick(self) -> None:
        self._quick_ones += 1
        self._next_left = max(self._next_left // 2, _INPUTS)

    def _find(self, *, quick: bool) -> None:
        if quick != self._quick:
            self._quick = quick
            self._driver.found_inputs(self.lane, quick=quick)

    def used(self, *, now: bool = False) -> _Used:
        """Return the resource usage of this thread. Unless `now` is True, the value may be some calls old.

        A reading takes as long as all other work in a call on a small input.
        """
        thread = get_ident()
        if now or thread != self._thread or self._asks == _ASKS:
            self._thread, self._asks, self._used = thread, 0, _used()
        self._asks += 1
        return self._used


class _Input(Stage):
    """An input that the consumer reads itself until it has taken some time. Then a worker reads it."""

    def __init__(self, reader: ThreadReader, upstream: Stage) -> None:
        super().__init__(reader.lane.label, (upstream,), reader.lane.where)
        self._reader = reader
        self._stage = upstream
        self._by_worker = False
        self._started = False
        self.spent = _Spent()

    @property
    def seen(self) -> bool:
        return self._stage.seen

    @property
    def seen_below(self) -> bool:
        return self._stage.seen_below

    def next(self, want: int) -> Block | None:
        if self._by_worker:
            return self._stage.next(want)
        began, started = self._reader.used(), time.perf_counter()
        try:
            return self._stage.next(want)
        finally:
            took = time.perf_counter() - started
            self.spent.add(took, began, self._reader.used(now=True) if took > _AT_ONCE / 4 else began)
            if self.spent.is_long():
                self.spent = _Spent()  # for the case that the reader ignores it
                self._reader.took_long()

    def hand_over(self) -> None:
        """Let a worker read the rest."""
        self._stage = self._reader.by_worker(self._stage)
        self.inputs = (self._stage,)
        self._by_worker = True
        if self._started:
            self._stage.start()

    def start(self) -> None:
        self._started = True
        self._stage.start()

    def can_skip(self) -> bool:
        return self._stage.can_skip()

    def skip(self, count: int) -> int:
        return self._stage.skip(count)

    def state(self) -> State:
        return self._stage.state()

    def restore(self, state: State) -> None:
        self._stage.restore(state)

    def close(self) -> None:
        self._reader.ended(self)
        self._stage.close()


class _Spent:
    """The time and resources that one input has used in `next`."""

    __slots__ = ("cpu", "reads", "waits", "wall")

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0  # seconds
        self.waits = self.reads = 0

    def add(self, took: float, began: _Used, now: _Used) -> None:
        self.wall += took
        self.cpu += took if now is began or now.waits < 0 else min(now.cpu - began.cpu, took)
        self.waits += now.waits - began.waits
        self.reads += now.reads - began.reads

    def is_long(self) -> bool:
        """Return True if the input took long.

        It must also have computed for as long, have waited for a disk, or have waited very long. Wall time alone is not
        enough: the thread may have had no core on a busy machine, or may have waited for the interpreter.
        """
        if self.wall <= _AT_ONCE:
            return False
        return self.cpu > _AT_ONCE or self.reads > 0 or (self.waits > 0 and self.wall > _WAITED)


class _Used(NamedTuple):
    """The resource usage of a thread: CPU seconds, number of waits, number of reads from disk. -1: not known."""

    cpu: float
    waits: int
    reads: int


_UNTOLD = _Used(0.0, -1, 0)


def _used() -> _Used:
    if resource is None or not hasattr(resource, "RUSAGE_THREAD"):
        return _UNTOLD
    found = resource.getrusage(resource.RUSAGE_THREAD)
    return _Used(found.ru_utime + found.ru_stime, found.ru_nvcsw, found.ru_inblock + found.ru_majflt)
