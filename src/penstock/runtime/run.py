"""Run: a plan running; Iterator: what the user holds of it."""

from __future__ import annotations

import operator
import time
import weakref
from collections.abc import Iterator as AbstractIterator
from typing import Any

from penstock.block.block import Block
from penstock.errors import FailedPreconditionError, InvalidArgumentError
from penstock.options import Options
from penstock.physical import builders as _builders  # noqa: F401 - registers what runs for each node
from penstock.physical.executor import Executor
from penstock.physical.lower import Lowering, lower
from penstock.physical.stage import State
from penstock.plan.fingerprint import fingerprint
from penstock.plan.node import Node
from penstock.rewrite.driver import optimise
from penstock.runtime.executors.inline import InlineExecutor
from penstock.runtime.executors.threads import ThreadExecutor
from penstock.runtime.free_order import resolved
from penstock.runtime.instrument import Instrument, Silent
from penstock.runtime.pace import Pace
from penstock.runtime.scheduler import Scope, scheduler

EXECUTORS = ("thread", "inline")
_STATE_VERSION = 1


class Run:
    """The stages of one pass and the scope that owns their workers."""

    def __init__(self, plan: Node, options: Options, epoch: int, executor: str, instrument: Instrument) -> None:
        if executor not in EXECUTORS:
            message = f"executor must be one of {', '.join(map(repr, EXECUTORS))}, got {executor!r}."
            raise InvalidArgumentError(message)
        self.scope = Scope(scheduler())
        made: Executor
        if executor == "inline":
            made = InlineExecutor()
        else:
            made = ThreadExecutor(scheduler(), self.scope, instrument)
        self.root = lower(plan, Lowering(options, made, epoch, optimise=optimise))

    def close(self) -> None:
        self.scope.close(self.root.close)


_NOTHING: AbstractIterator[Any] = iter(())


class Iterator:
    """One pass over a data set.

    Leaving it (the end, an error, `close`, a `with` block, or no reference left) ends its workers. It is used by one
    thread at a time. `state()` may be asked for between any two elements.

    >>> import penstock as ps
    >>> ds = ps.Dataset.range(6).map(lambda x: x * 10)
    >>> iterator = iter(ds)
    >>> next(iterator), next(iterator)
    (np.int64(0), np.int64(10))
    >>> state = iterator.state()
    >>> [int(x) for x in ds.iterator(state=state)]
    [20, 30, 40, 50]
    """

    def __init__(
        self,
        plan: Node,
        options: Options,
        epoch: int = 0,
        *,
        state: State = None,
        executor: str = "thread",
        instrument: Instrument | None = None,
        read_only: bool = False,
    ) -> None:
        self._plan = plan = optimise(plan, options)  # states are of what runs
        self._read_only = read_only
        self._fingerprint = fingerprint(plan)  # now: functions may change what they close over
        self._epoch = epoch
        skip = 0
        if state is not None:
            self._epoch, below, skip = _checked(state, self._fingerprint)
        self._run: Run | None = Run(plan, options, self._epoch, executor, instrument or Silent())
        self._finalizer = weakref.finalize(self, self._run.close)
        self._finalizer.atexit = False  # the scheduler ends all runs then
        self._pace = Pace()
        self._elements: AbstractIterator[Any] = _NOTHING
        self._size = 0
        self._skip = skip
        self._closed_at: tuple[State, int] | None = None
        if state is not None:
            self._run.root.restore(below)
        self._before: State = self._run.root.state()

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        for element in self._elements:
            return element
        return self._refill()

    def _refill(self) -> Any:
        try:
            block = self._next_block()
        except BaseException:
            self.close()
            raise
        if block is None:
            self.close()
            raise StopIteration
        self._elements = iter((block.freeze() if self._read_only else block).elements())
        del block
        return next(self._elements)

    def _next_block(self) -> Block | None:
        """The next Block, less the elements that an earlier iterator had already given."""
        self._elements = _NOTHING  # lets go of the last batch before the next is made
        while self._run is not None:
            root = self._run.root
            self._before, self._size = root.state(), 0
            started = time.perf_counter()
            block = root.next(self._pace.want + self._skip)
            if block is None:
                return None
            self._pace.observe(block.size, time.perf_counter() - started, block.nbytes)
            self._size = block.size
            if not self._skip:
                return block
            dropped = min(self._skip, block.size)
            if dropped < block.size:
                self._skip = 0
                return block.slice(dropped, block.size)
            self._skip -= dropped
        return None

    def state(self) -> dict[str, Any]:
        """What is needed to go on behind the last element given, in this process or another.

        Numbers, strings, lists and dicts (JSON and pickle both keep it), without any element in it. Hand it to
        `Dataset.iterator(state=…)` of a data set built by the same calls.
        """
        below, skip = self._closed_at or self._place()
        return {
            "version": _STATE_VERSION,
            "plan": self._fingerprint,
            "epoch": self._epoch,
            "stages": resolved(below),
            "skip": skip,
        }

    def _place(self) -> tuple[State, int]:
        """A state of the stages, and the elements to pass over from there."""
        left = operator.length_hint(self._elements)
        if self._size and not left and self._run is not None:
            return self._run.root.state(), 0
        return self._before, self._skip if not self._size else self._size - left

    def close(self) -> None:
        """End the workers and let go of files and buffers; afterwards the iterator is at its end. Idempotent."""
        if self._run is not None:
            self._closed_at = self._place()
            self._elements, self._run = _NOTHING, None
            self._finalizer()

    def __enter__(self) -> Iterator:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _checked(state: Any, expected: str) -> tuple[int, State, int]:
    """The parts of a state, if it is one of this plan."""
    try:
        version, digest = state["version"], state["plan"]
        found = int(state["epoch"]), state["stages"], int(state["skip"])
    except (TypeError, KeyError, IndexError) as error:
        message = f"state must be what Iterator.state() returned, got {type(state).__name__}."
        raise InvalidArgumentError(message) from error
    if version != _STATE_VERSION:
        message = f"This state has format {version}; this version of penstock reads format {_STATE_VERSION}."
        raise FailedPreconditionError(message)
    if digest != expected:
        message = "This state belongs to another data set: the steps, their parameters, functions or options differ."
        hint = "Build the data set by the same calls as in the run that saved the state."
        raise FailedPreconditionError(message, hint=hint)
    return found
