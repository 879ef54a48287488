"""Run: a running plan. Iterator: the object with which the user reads it."""

from __future__ import annotations

import operator
import os
import time
import weakref
from collections.abc import Callable, Generator
from collections.abc import Iterator as AbstractIterator
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from types import NoneType
from typing import Any, Generic, NoReturn

from penstock.block.block import Block
from penstock.block.handover import handed_over
from penstock.block.spec import T_co
from penstock.errors import AnotherPlanError, FailedPreconditionError, InvalidTypeError, is_failure
from penstock.frames import let_go, tidied
from penstock.opencv import limit_threads
from penstock.options import Options
from penstock.physical.executor import Executor
from penstock.physical.lower import Lowering, StageObserver, lower
from penstock.physical.stage import Stage, State, as_of_now
from penstock.physical.stretch import Fatal, fatal
from penstock.plan.fingerprint import fingerprint, steps
from penstock.plan.node import Node, check_executor, check_int
from penstock.plan.node_base import Answers
from penstock.rewrite.driver import optimise, optimise_inner
from penstock.runtime.autotune.driver import Driver
from penstock.runtime.autotune.figures import means
from penstock.runtime.autotune.remembered import tuning_digest
from penstock.runtime.block_sizer import BlockSizer
from penstock.runtime.executors import InlineExecutor, ThreadExecutor
from penstock.runtime.machine.malloc import keep_freed_memory
from penstock.runtime.machine.switching import Switching
from penstock.runtime.memory.budget import budget_for
from penstock.runtime.memory.kept import Trimmer
from penstock.runtime.memory.ledger import Ledger, live_ledgers
from penstock.runtime.observers import CachePlacing, Instrument, Silent, Watching
from penstock.runtime.pausing import pausing
from penstock.runtime.processes.pool import process_pool
from penstock.runtime.scheduler import Scope, scheduler_for
from penstock.runtime.sealed import brought_back, opened, sealed, set_aside
from penstock.runtime.segment import Aborted
from penstock.runtime.tracebacks import folded

_TRIMMER = Trimmer(lambda: bool(live_ledgers()))


class Run:
    """The stages of one iteration, the scope of their workers, and the driver that tunes them."""

    def __init__(
        self,
        plan: Node,
        options: Options,
        epoch: int,
        settings: RunSettings,
        *,
        written: Node | None = None,
        digest: Callable[[], str] | None = None,
    ) -> None:
        limit_threads()
        self.scope = Scope(scheduler_for(options), options.autotune.cpu_budget)
        self._memory = Ledger(budget_for(options), plan if written is None else written)
        keep_freed_memory(min(ledger.budget.total for ledger in live_ledgers()))
        self._switching = Switching(options.threading.switch_interval, tuned=options.autotune.enabled)
        self.driver = Driver(
            settings.instrument,
            self.scope,
            self._memory,
            self._switching,
            means=partial(means, options, self._memory.budget),
            processes=process_pool,
            tuned=options.autotune.enabled,
            digest=digest,
        )
        made: Executor
        if settings.executor == "inline":
            made = InlineExecutor(options)
        else:
            pinned = None if settings.executor == "auto" else settings.executor
            made = ThreadExecutor(self.scope, self.driver, options, pinned)
        lowering = Lowering(
            options,
            made,
            epoch,
            optimise=optimise_inner,
            dataset=settings.dataset,
            meter=settings.meter,
            memory=self._memory,
            pause=pausing(self.scope),
            answers=Answers(),
        )
        try:
            self.root = lower(plan, lowering)
        except Fatal as ended:
            raise ended.error from ended.error.__cause__ or ended.__cause__
        self._switching.open()
        self.raised: list[BaseException] = []  # exceptions of elements that were computed one by one
        self._pulls = _pulls(self.root)
        next(self._pulls)

    def pull(self, want: int) -> Block | Exception | None:
        """Return the next Block, a failure, or None at the end."""
        if self.scope.foreign:
            message = "This iterator belongs to the process that this one was forked from: its workers are not here."
            raise FailedPreconditionError(message, hint="Make one in the process that uses it, with iter(dataset).")
        try:
            return self._pulls.send(want)
        except StopIteration:  # the error was raised before, and a generator raises only once
            message = "This pass has ended with an error that was raised before."
            raise FailedPreconditionError(message, hint="Begin a new one, with iter(dataset).") from None
        except ValueError:  # the only ValueError here: the generator is running
            raise _busy() from None

    @property
    def is_pulling(self) -> bool:
        """True while `pull` runs, in this thread or another one."""
        return bool(getattr(self._pulls, "gi_running", False))

    def raised_failure(self) -> Exception:
        """Return the failure that ended the elements made one by one. Raise an exception that ends the run."""
        error = self.raised.pop()
        if isinstance(error, Exception) and is_failure(error):
            return error
        raise error

    def close(self) -> None:
        self._switching.close()
        self._memory.close()
        self.scope.close(self.root.close)
        if not live_ledgers():
            _TRIMMER.rest()


def _busy() -> FailedPreconditionError:
    message = "This iterator is at its next element already, for another thread or for the one it is made of."
    hint = "Give each thread an iterator of its own, or a lock to all that share one."
    return FailedPreconditionError(message, hint=hint)


def _pulls(root: Stage) -> Generator[Block | Exception | None, int, None]:
    """Yield the results of the stages, from frames that do not refer to the consumer.

    A stage may keep a failure for later, for example in the buffer of a shuffle. The traceback of the failure refers to
    the frames that called it. If the iterator were among these frames, it could never be collected. The frame of a
    waiting generator has no caller.
    """
    want = yield None
    while True:
        want = yield tidied(_pulled, root, want)


def _pulled(root: Stage, want: int) -> Block | Exception | None:
    try:
        return root.next(want)
    except Exception as error:  # a failure: see Stage
        return error


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The settings of an iteration that are not in its plan and options.

    Args:
        executor: Name of the executor of all steps. "auto": each step has its own.
        instrument: Observes the workers.
        read_only: If True, arrays cannot be written to.
        views: If True, some arrays share memory with the source or a cache, as with `Options.zero_copy`.
        dataset: Makes a data set of a plan, for elements that are data sets.
        meter: Gets every stage before it runs.
        placing: Adds a cache to the plan at a place where it saves time.
    """

    executor: str = "auto"
    instrument: Instrument = field(default_factory=Silent)
    read_only: bool = False
    views: bool = False
    dataset: Callable[[Node], Any] = lambda plan: plan
    meter: StageObserver | None = None
    placing: CachePlacing | None = None

    def __post_init__(self) -> None:
        check_executor(self.executor)


@dataclass(frozen=True, slots=True)
class _Variant:
    """A plan as it runs, with its fingerprint. `place` is the place of an added cache."""

    place: str | None
    plan: Node
    fingerprint: str


_NOTHING: AbstractIterator[Any] = iter(())


class Iterator(Generic[T_co]):
    """An iteration over a data set, which can be saved and resumed.

    If an element fails, `next` raises its error, and the next call returns the element after it. An error that belongs
    to no element ends the iteration, and every further call raises it again. The workers stop at the end of the
    iteration, at `close`, at the end of a `with` block, or when the iterator has no reference. Use an iterator in one
    thread at a time.

    `state_dict()` may be called between any two elements. `load_state_dict` continues from there with the same
    elements: in this process or another one, with any executor.

    Example:
        >>> import penstock as ps
        >>> ds = ps.Dataset.range(6).map(lambda x: x * 10)
        >>> iterator = iter(ds)
        >>> next(iterator), next(iterator)
        (np.int64(0), np.int64(10))
        >>> state = iterator.state_dict()
        >>> again = iter(ds)
        >>> again.load_state_dict(state)
        >>> [int(x) for x in again]
        [20, 30, 40, 50]
    """

    def __init__(
        self,
        plan: Node,
        options: Options,
        epoch: int = 0,
        settings: RunSettings | None = None,
        continued: Callable[[int], None] = lambda epoch: None,
    ) -> None:
        self._written = plan
        self._options = options
        self._settings = settings or RunSettings()
        self._continued = continued  # called with the epoch in which a loaded state continues
        placing = self._settings.placing
        self._variant = self._with_cache(None if placing is None else placing.place)
        self._sizer = BlockSizer()
        self._zero_copy = options.zero_copy or self._settings.views
        self._start(epoch, None, 0)

    def _with_cache(self, place: str | None) -> _Variant:
        """Return the plan with a cache of `Options.autocache` at `place`, or the original plan."""
        placing, options = self._settings.placing, self._options
        # states belong to the running plan
        plan = optimise(self._written if placing is None else placing.placed(place), options)
        # the fingerprint is taken now, because functions may change the variables of their closures
        return _Variant(place, plan, fingerprint(plan, options.seed, options.deterministic))

    def _start(self, epoch: int, state: State, skip: int) -> None:
        self._epoch = epoch
        settings, variant = self._settings, self._variant
        self._watching: Watching | None = None
        if settings.placing is not None and state is None and not skip:
            self._watching = settings.placing.watch(variant.plan, variant.place)
            settings = replace(settings, meter=self._watching.meter)
        self._run: Run | None = Run(
            variant.plan,
            self._options,
            epoch,
            settings,
            written=self._written,
            digest=partial(tuning_digest, variant.fingerprint, self._options),
        )
        self._finalizer = weakref.finalize(self, self._run.close)
        self._finalizer.atexit = False  # the scheduler ends all runs at interpreter exit
        self._ended_by: Exception | None = None  # an error that was no failure of an element
        self._elements: AbstractIterator[Any] = _NOTHING
        self._singly = False  # True if the present elements are computed one by one
        self._size = 0  # positions of the present Block
        self._skip = skip  # positions that an earlier run has returned
        self._passed = 0  # skipped positions of the present Block
        self._closed_at: tuple[State, int] | None = None
        if state is not None:
            self._run.root.restore(state)
        if self._options.experimental_warm_start:
            self._run.root.start()
        self._before: State = self._run.root.state()

    def __iter__(self) -> Iterator[T_co]:
        return self

    def __next__(self) -> T_co:
        try:
            for element in self._elements:
                return element
            return self._refill()
        except StopIteration:
            raise
        except Exception as error:
            if getattr(self._elements, "gi_running", False):
                raise _busy() from None
            error.with_traceback(folded(error))
            raise

    def _refill(self) -> Any:
        if self._ended_by is not None:
            raise copy(self._ended_by)
        while True:
            try:
                found = self._found()
            except FailedPreconditionError:
                raise  # the call is not allowed here or now: see Run.pull
            except Aborted:
                self.close()
                raise StopIteration from None
            except BaseException as raised:
                self._end(raised)
            if found is None:
                raise StopIteration
            if isinstance(found, Exception):
                let_go(found)
                try:
                    raise found  # a failure of one element: the iteration continues
                finally:
                    del found  # the error refers to this frame
            self._elements = found
            for element in found:
                return element

    def _found(self) -> AbstractIterator[Any] | Exception | None:
        """Return the elements of the next Block, a failure, or None at the end."""
        block = self._next_block()
        if not isinstance(block, (Block, NoneType)):
            return block
        if block is None:
            if self._watching is not None:
                self._watching.ended()
            self.close()
            return None
        return iter(handed_over(block, read_only=self._settings.read_only, zero_copy=self._zero_copy))

    def _end(self, raised: BaseException) -> NoReturn:
        """Close the run and raise an error that is not a failure of an element."""
        if self._size:  # no element of the present Block was returned
            self._size, self._skip = 0, self._passed
        self.close()
        error: BaseException = raised
        if isinstance(raised, (Exception, Fatal)):
            ended = (raised if isinstance(raised, Fatal) else fatal(raised)).error
            self._ended_by = copy(ended)  # without its frames, which refer to this iterator
            let_go(ended)
            error = ended
            del ended
        del raised
        try:
            raise error from error.__cause__
        finally:
            del error  # the error refers to this frame

    def _next_block(self) -> Block | AbstractIterator[Any] | Exception | None:
        """Return the next Block without elements that an earlier iterator returned, or elements computed one by one."""
        self._elements = _NOTHING  # releases the last batch before the next is computed
        while self._run is not None:
            run, root = self._run, self._run.root
            if run.is_pulling:
                raise _busy()
            self._before, self._size = root.state(), 0
            if run.raised:
                return run.raised_failure()
            seen = root.seen
            if seen and not (self._singly or self._skip or self._zero_copy or self._settings.read_only):
                elements = root.singly(run.raised)
                if elements is not None:
                    self._singly = True
                    return elements
            self._singly = False
            started = time.perf_counter()
            block = run.pull((1 if seen else self._sizer.want) + self._skip)
            if isinstance(block, Exception):
                self._before = root.state()
                if self._skip:
                    self._skip -= 1
                    continue
                return block
            if block is None:
                return None
            self._sizer.observe(block.size, time.perf_counter() - started, block.nbytes, columns=len(block.columns))
            self._size = block.size
            self._passed = dropped = min(self._skip, block.size)
            if not dropped:
                return block
            if dropped < block.size:
                self._skip = 0
                return block.slice(dropped, block.size)
            self._skip -= dropped
        return None

    def state_dict(self, side_file: str | os.PathLike[str] | None = None) -> dict[str, Any]:
        """Return the state after the last element that was returned or that failed.

        The state consists of numbers, strings, lists and dicts, so JSON and pickle can store it. It contains positions
        and keys, but no elements. It can be loaded in this process or another one, with the same plan.
        `load_state_dict` refuses the state of another plan and reports the difference. The state of your `scan`
        functions is included, as is a count for every open group.

        Args:
            side_file: Path of a file for parts of the state above 4 KiB. The state then contains the name of the file.

        Returns:
            The state, for `load_state_dict()` of an iterator of the same data set.
        """
        below, skip = self._closed_at or self._place()
        state = {
            "plan": self._variant.fingerprint,
            "steps": steps(self._written),
            "epoch": self._epoch,
            "stages": as_of_now(below),
            "skip": skip,
        }
        if self._variant.place is not None:
            state["autocache"] = self._variant.place
        if side_file is not None:
            state["stages"], state["side_file"] = set_aside(state["stages"], side_file)
        return sealed(state)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume at a state from `state_dict()`, and forget the present position.

        The next iteration of the data set is then the epoch after the one of the state, as in the run that saved the
        state.

        Args:
            state: State that `state_dict()` returned, in this process or another one.

        Raises:
            AnotherPlanError: If the state belongs to another data set. The message names the first different step. The
                error is a FailedPreconditionError and a NotFoundError.
            DataLossError: If the state was changed after it was saved.
        """
        (epoch, below, skip), self._variant = self._checked(state)
        self._finalizer()
        self._start(epoch, below, skip)
        self._continued(epoch)

    def skip_steps(self, count: int) -> None:
        """Skip the next `count` elements (batches), for example after a spike of the loss.

        The iteration then continues as if the elements had been returned. If elements have indices (see `Dataset.at`),
        the skip calls no function and takes no time. Otherwise the elements are computed and dropped. Later states are
        exact. Results that were computed ahead are dropped.

        >>> import penstock as ps
        >>> iterator = iter(ps.Dataset.range(10**9).map(lambda x: x * 2).batch(2))
        >>> iterator.skip_steps(100_000_000)
        >>> next(iterator)
        array([400000000, 400000002])
        """
        hint = "count is the number of elements to skip. After batch(), an element is a batch."
        number = check_int("count", count, least=0, hint=hint)
        if self._run is None:
            return
        below, skip = self._place()
        below = as_of_now(below)
        self._finalizer()
        self._start(self._epoch, below, skip + number)
        root = self._run.root
        if root.can_skip():
            root.skip(self._skip)
            self._skip = 0
            self._before = root.state()

    def _place(self) -> tuple[State, int]:
        """Return a state of the stages, and the number of positions to skip after it."""
        left = operator.length_hint(self._elements)
        if self._run is not None and (self._singly or (self._size and not left)):
            return self._run.root.state(), 0
        return self._before, self._skip if not self._size else self._size - left

    def close(self) -> None:
        """End the workers and release files and buffers. The iterator is then at its end. Idempotent."""
        if self._run is not None:
            self._closed_at = self._place()
            self._elements, self._run = _NOTHING, None
            self._finalizer()

    def __reduce__(self) -> NoReturn:
        message = "An iterator cannot be pickled: it has workers, and may be at work."
        hint = "Pickle the data set and iterator.state_dict(), and give the state to load_state_dict there."
        raise InvalidTypeError(message, hint=hint)

    def __enter__(self) -> Iterator[T_co]:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _checked(self, state: Any) -> tuple[tuple[int, State, int], _Variant]:
        """Check a state, and return its parts and the plan that runs from there."""
        state = opened(state)
        place = state.get("autocache")
        variant = self._variant if place == self._variant.place else self._with_cache(place)
        if state["plan"] != variant.fingerprint:
            if place is not None and self._settings.placing is None:
                message = "This state is of an iteration with a cache of Options.autocache, which is not set here."
                raise AnotherPlanError(message, hint="Set the same options as in the run that saved the state.")
            difference = _difference(state.get("steps", []), steps(self._written))
            message = f"This state belongs to another data set: {difference}."
            hint = "Build the data set by the same calls as in the run that saved the state."
            raise AnotherPlanError(message, hint=hint)
        stages = state["stages"]
        stages = brought_back(stages, state["side_file"]) if "side_file" in state else stages
        return (state["epoch"], stages, state["skip"]), variant


def _difference(saved: list[list[str]], now: list[list[str]]) -> str:
    """Return a description of the first step, counted from the source, in which two plans differ."""
    for number, (before, after) in enumerate(zip(saved, now, strict=False), 1):
        if before[0] != after[0]:
            return f"step {number} from the source was {before[0]} and is {after[0]}"
        if before[1] != after[1]:
            return f"step {number} from the source, {after[0]}, has another function or other parameters"
    if len(saved) > len(now):
        return f"it had {len(saved)} steps, of which {saved[len(now)][0]} is missing here"
    if len(now) > len(saved):
        return f"it had {len(saved)} steps, and {now[len(saved)][0]} has been added"
    options = "the options differ (seed, deterministic, or which rewrites run)"
    return f"{options}, or whether steps with deterministic=False are parallel"
