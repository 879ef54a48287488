"""Stage: the interface of all objects that yield Blocks; and Cursor, which splits Blocks where a stage needs it.

Contract for stages and their callers:

1. `next(want)` returns a Block of 1 to about `want` elements, or None at the end and after it. A Block is never empty.
   `want` balances latency against overhead; results never depend on it. A stage that is `seen` receives requests for
   the number of elements needed at once.
2. An Exception from `next` is a *failure*: it takes the place of exactly one element, after everything returned before.
   The next call continues after it. Steps that count elements (take, skip, batch, zip, shard) count failures too, so
   the number of an element does not depend on failures of others. A stage that cannot continue after a failure returns
   None from then on; it never raises forever. A BaseException that is not an Exception (KeyboardInterrupt) ends the
   run. A failure is a `PenstockError`, or marked as a failure by `as_failure`. Any other exception is a bug of the
   engine: `next` converts it to `Fatal`, which ends the run, so that it is never mistaken for a failed element or for
   the end.
3. `state()` describes everything that was not returned or raised yet: a stage that receives it in `restore`, in this
   process or another, yields exactly that. None is the start of any stage. `as_of_now` converts it to numbers, strings,
   lists and dicts. It copies no data. It is cached until the stage moves, unless other objects than the caller move the
   stage (`alone`). It must not be changed.
4. `restore(state)` is called at most once, before the first `next`. The properties `can_skip` and `seen` may be read
   before it.
5. A stage is used by one thread at a time. A stage with threads or files releases them in `close`, which may be called
   between any two calls, and more than once.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any, ClassVar

from penstock.block.block import Block
from penstock.errors import is_failure, marked
from penstock.physical.stretch import Stretch, failure, fatal, join
from penstock.plan.node import NamedStep

State = Any
_AGAIN = 4096  # positions to request at a time when reading again


def as_of_now(state: State) -> State:
    """Return a state as it is saved: the results of `resolved()` replace parts that grow or are computed late."""
    if isinstance(state, (list, tuple)):
        return [as_of_now(part) for part in state]
    if isinstance(state, dict):
        return {name: as_of_now(part) for name, part in state.items()}
    resolved = getattr(state, "resolved", None)
    return state if resolved is None else resolved()


Next = Callable[[Any, int], Block | None]
Ask = Callable[[int], Block | None]  # `next` of one stage
Around = Callable[[Ask], Ask]  # a wrapper for it


def _failures_only(make: Next) -> Next:
    """Wrap `next` of a stage class, so that only failures leave it as exceptions."""

    @wraps(make)
    def made(self: Stage, want: int) -> Block | None:
        self._place_said = None
        try:
            return make(self, want)
        except Exception as error:
            if is_failure(error):
                raise
            raise fatal(error, self.label, self.where) from error
        finally:
            self._place_said = None

    return made


def _remembered(asked: Callable[[Any], State]) -> Callable[[Any], State]:
    """Wrap `state` of a stage class, so that it is cached until the stage moves."""

    @wraps(asked)
    def told(self: Stage) -> State:
        found = self._place_said
        if found is None or not self.alone:
            found = self._place_said = asked(self)
        return found

    return told


def _moves(act: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method of a stage class that changes its state."""

    @wraps(act)
    def acted(self: Stage, *given: Any) -> Any:
        self._place_said = None
        try:
            return act(self, *given)
        finally:
            self._place_said = None

    return acted


class Stage(ABC):
    """A running step of a plan. `inputs` are the stages it reads from."""

    cuts = False  # computes more at a time than requested, and returns it in parts
    acts = False  # calls functions that may have side effects itself: see `plan.visible`
    alone = True  # only its caller, from `next` to `close`, changes its state
    is_observed = False  # True if `next` is wrapped by an observer
    moving: ClassVar[tuple[str, ...]] = ()  # attributes that change with the position: see `place`
    watched = False  # True if `next` is wrapped for more than the order of dict keys
    _reader: Any  # the stage or cursor that a stage with one input reads
    _place_said: State = None  # the last result of `state`, unless the stage has moved since
    latest_look: ClassVar[object] = object()  # replaced when data sets were opened or another stream began
    _is_seen: tuple[object, bool] = (None, False)  # (value of latest_look, answer)
    _is_seen_below: tuple[object, bool] = (None, False)

    @property
    def seen(self) -> bool:
        """True if it is observable when `next` computes elements: callers then request no more than they need at once.

        A computed element must not wait for a later element to be computed, because that may wait for the consumer.
        """
        look, found = self._is_seen
        if look is not Stage.latest_look:
            look = Stage.latest_look
            found = self.acts or any(stage.seen for stage in self.inputs)
            self._is_seen = look, found
        return found

    @property
    def seen_below(self) -> bool:
        """Return `seen` for everything that its elements are computed from, including all work of worker threads."""
        look, found = self._is_seen_below
        if look is not Stage.latest_look:
            look = Stage.latest_look
            found = self.acts or any(stage.seen_below for stage in self.inputs)
            self._is_seen_below = look, found
        return found

    @property
    def may_grow(self) -> bool:
        """True if the result of `state` may record elements yielded later. This occurs in free order."""
        return any(stage.may_grow for stage in self.inputs)

    @staticmethod
    def look_again() -> None:
        """Invalidate the cached answers of `seen`, in all runs."""
        Stage.latest_look = object()

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        own = vars(cls).get("next")
        if own is not None and not getattr(own, "__isabstractmethod__", False):
            cls.next = _failures_only(own)  # type: ignore[assignment, method-assign]
        # Every stage of a row asks for the state of all stages before it before it takes a Block. Without the cache, n
        # stages would ask n * n / 2 times for their first Block.
        if "state" in vars(cls):
            cls.state = _remembered(vars(cls)["state"])  # type: ignore[assignment, method-assign]
        for name in ("restore", "start", "skip", "close"):
            if name in vars(cls):
                setattr(cls, name, _moves(vars(cls)[name]))

    def __init__(self, label: str, inputs: tuple[Stage, ...] = (), where: str | None = None) -> None:
        self.label = label
        self.where = where
        self.inputs = inputs

    @property
    def at_hand(self) -> bool:
        """True if all its elements are in memory, so that requesting many costs as little as requesting one."""
        return False

    @property
    def at_end(self) -> bool:
        """True if certainly nothing follows the last Block, so that it need not be requested."""
        return False

    @abstractmethod
    def next(self, want: int) -> Block | None: ...

    def singly(self, raised: list[BaseException]) -> Iterator[Any] | None:
        """Return an iterator that computes each next element on request, for the consumer, or None to use `next`.

        The iterator yields some of the following elements; after its end, the method is called again. `state` is valid
        between any two elements. An exception ends the iterator and is appended to `raised`: a failure, or an exception
        that ends the run.
        """
        return None

    def observe(self, observers: Sequence[Around]) -> None:
        """Wrap `next` in functions that receive it and return a replacement. The last function is the outermost.

        It is called once while a plan is lowered, before the first use. The stage has no reference to itself through
        it, so it is freed with its last user.
        """
        known = weakref.ref(self)

        def ask(want: int) -> Block | None:
            stage = known()
            assert stage is not None  # the caller holds a reference
            return type(stage).next(stage, want)

        outermost: Ask = ask
        for observer in observers:
            outermost = observer(outermost)
        self.next = outermost  # type: ignore[assignment, method-assign]
        self.is_observed = True

    @abstractmethod
    def state(self) -> State: ...

    @abstractmethod
    def restore(self, state: State) -> None: ...

    def start(self) -> None:
        """Let workers start before the first request, those nearest to the source first.

        To be called once, after `restore` and before the first `next`.
        """
        for stage in self.inputs:
            stage.start()

    def can_skip(self) -> bool:
        """Return True if `skip` is available: positions can be skipped without computing their elements."""
        return False

    def skip(self, count: int) -> int:
        """Skip the next `count` positions; return the number skipped. Called at most once, before the first `next`."""
        message = f"{self.label} cannot skip"
        raise AssertionError(message)

    def place(self) -> State:
        """Return the state of the stream that is read, followed by the attributes named in `moving`."""
        below = self._reader.state()
        return [below, *(getattr(self, name) for name in self.moving)] if self.moving else below

    def go_to(self, place: State) -> None:
        """Restore a state of `place`."""
        below, *values = place if self.moving else (place,)
        for name, value in zip(self.moving, values, strict=True):
            setattr(self, name, value)
        self._reader.restore(below)

    def close(self) -> None:
        """Release the resources of this stage and its inputs."""
        for stage in self.inputs:
            stage.close()


class StretchStage(Stage):
    """A Stage that computes several positions at a time, some of which may be failures; `next` returns them in parts.

    Subclasses define how a stretch is computed (`make`), the state after it (`place`), and how to restore this state
    (`go_to`).
    """

    _stretch: Stretch | None = None  # computed and not returned yet
    _stretch_at = 0  # number of its positions that were returned
    _stretch_before: State = None  # the state before `_stretch`
    _stretch_skip = 0  # positions that an earlier run had returned already

    @abstractmethod
    def make(self, want: int) -> Stretch | None:
        """Return the next positions, possibly none, or None at the end. An exception is one failure."""

    def next(self, want: int) -> Block | None:
        while self._stretch is None:
            before = self.place()
            try:
                made = self.make(want + self._stretch_skip)
            except Exception as error:
                if not self._stretch_skip:
                    raise
                made = failure(error)
            if made is None:
                return None
            if not (self._stretch_skip or made.failures):
                if made.block is None:
                    continue
                if not self.cuts or made.block.size <= want:
                    return made.block
            at = min(self._stretch_skip, made.size)
            self._stretch_skip -= at
            if at < made.size:
                self._stretch, self._stretch_at, self._stretch_before = made.slice(at, made.size), at, before
        first = self._stretch.slice(0, want) if self.cuts else self._stretch
        piece = next(first.pieces())
        given = piece.size if isinstance(piece, Block) else 1
        self._stretch_at += given
        # drop the raised failure, because its traceback refers back to this stage
        self._stretch = self._stretch.slice(given, self._stretch.size) if given < self._stretch.size else None
        if isinstance(piece, Block):
            return piece
        raise marked(piece)  # only failures are stored there

    def state(self) -> State:
        return [self.place(), self._stretch_skip] if self._stretch is None else [self._stretch_before, self._stretch_at]

    def restore(self, state: State) -> None:
        place, self._stretch_skip = state
        self.go_to(place)

    def pass_over(self, count: int) -> int:
        """Implement `skip` from the position of `make`, for stages that can skip."""
        message = f"{self.label} cannot skip"
        raise AssertionError(message)

    def skip(self, count: int) -> int:
        owed, self._stretch_skip = self._stretch_skip, 0
        return max(self.pass_over(owed + count) - owed, 0)


class CountingStage(StretchStage):
    """A StretchStage that numbers the positions of its one input."""

    moving: ClassVar[tuple[str, ...]] = ("_count",)

    def __init__(self, upstream: Stage, step: NamedStep) -> None:
        super().__init__(step.label, (upstream,), step.where)
        self._upstream = self._reader = upstream
        self._count = 0  # number of positions read from the input

    def pull(self, want: int) -> Block | None:
        """Return the next Block of the input. A failure of the input counts as a position, too."""
        try:
            block = self._upstream.next(want)
        except Exception:
            self._count += 1
            raise
        self._count += 0 if block is None else block.size
        return block


class UnaryStage(Stage):
    """A Stage that reads one input. Its state is its position."""

    _reader: Stage | Cursor

    def __init__(self, upstream: Stage, step: NamedStep) -> None:
        super().__init__(step.label, (upstream,), step.where)
        self._upstream = self._reader = upstream

    def state(self) -> State:
        return self.place()

    def restore(self, state: State) -> None:
        self.go_to(state)

    def close(self) -> None:
        self._reader.close()


class CursorStage(UnaryStage):
    """A UnaryStage that takes elements of its input in exact numbers."""

    def __init__(self, upstream: Stage, step: NamedStep) -> None:
        super().__init__(upstream, step)
        self._cursor = self._reader = Cursor(upstream)


class Cursor:
    """Takes exactly the requested number of elements from a stage, and has a state between any two of them."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._block: Block | None = None
        self._offset = 0
        self._before: State = None  # the state before `_block`
        self._skip = 0
        self.ended = False  # True if nothing follows the available elements

    @classmethod
    def over_all(cls, stage: Stage, block: Block | None, offset: int = 0) -> Cursor:
        """Return a cursor over a `block` with all elements of a stage. The stage itself is not read any more."""
        cursor = cls(stage)
        cursor._block, cursor._offset, cursor.ended = block, offset, True
        cursor._skip = 0 if block is None else block.size
        return cursor

    @property
    def offset(self) -> int:
        """Number of elements taken from the current Block."""
        return self._offset

    @property
    def before(self) -> State:
        """The state before the current Block, or before the failure that `fill` raised."""
        return [self._before, 0]

    def available(self) -> int:
        """Return the number of elements that can be taken without a request to the stage."""
        return 0 if self._block is None else self._block.size - self._offset

    def fill(self, want: int) -> bool:
        """Make at least one element available; return False at the end. If the next position is a failure, raise it."""
        while self._block is None or self._block.size == self._offset:
            if self.ended:
                return False
            self._before = self.stage.state()
            self._block, self._offset = None, 0
            try:
                self._block = self.stage.next(want + self._skip)
            except Exception:
                if not self._skip:
                    raise
                self._skip -= 1
                continue
            self.ended = self._block is None or self.stage.at_end
            if self._block is None:
                return False
            if self._skip:
                dropped = min(self._skip, self._block.size)
                self._skip -= dropped
                self._offset = dropped
        return True

    def pass_by(self, count: int) -> None:
        """Drop `count` available elements, which were read by `peek`."""
        self._offset += count

    def peek(self) -> Block:
        """Return the available elements without taking them. There must be at least one."""
        assert self._block is not None
        return self._block.slice(self._offset, self._block.size)

    def take_available(self, count: int) -> Block:
        """Take up to `count` of the available elements. There must be at least one."""
        assert self._block is not None
        start = self._offset
        self._offset = min(start + count, self._block.size)
        return self._block.slice(start, self._offset)

    def last(self) -> Block:
        """Return the element that was taken last from the current Block."""
        assert self._block is not None
        return self._block.slice(self._offset - 1, self._offset)

    def take(self, count: int, ask: int = 0) -> Stretch | None:
        """Take the next `count` positions, fewer only at the end, or return None if there are none.

        The stage receives requests for `ask` elements: requests for the missing number only would lead to smaller and
        smaller Blocks after a filter. If computing elements is observable, requests are for the missing number.
        """
        parts = list(self._stretches(count, ask))
        return join(parts) if parts else None

    def _stretches(self, count: int, ask: int = 0) -> Iterator[Stretch]:
        """Yield the positions of `take` one part after another as they are computed.

        Elements may have several kinds.
        """
        ask = max(ask, count)
        while count:
            try:
                if not self.fill(count if self.stage.seen else ask):
                    return
                made = Stretch(self.take_available(count))
            except Exception as error:
                made = failure(error)
            count -= made.size
            yield made

    def pieces(self, count: int) -> Iterator[Block | Exception]:
        """Yield the next `count` positions that a state has recorded, to read them again, as far as they exist."""
        for stretch in self._stretches(count, min(count, _AGAIN)):
            yield from stretch.pieces()

    def skip(self, count: int) -> int:
        """Skip positions, like `Stage.skip`."""
        owed, self._skip = self._skip, 0
        return max(self.stage.skip(owed + count) - owed, 0)

    def state(self) -> State:
        if self.available():
            return [self._before, self._offset]
        return [self.stage.state(), self._skip]

    def restore(self, state: State) -> None:
        below, self._skip = state
        if below is not None:  # None means the start
            self.stage.restore(below)

    def close(self) -> None:
        self._block = None
        self.stage.close()
