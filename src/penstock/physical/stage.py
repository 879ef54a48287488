"""Stage: the interface of everything that hands on Blocks, and the Cursor that cuts them where a stage needs it.

Contract, for stages and those who drive them:

1. `next(want)` returns a Block of 1 to about `want` elements, or None at the end, and None again after that. An empty
   Block never travels. `want` is a wish that trades latency for overhead; results never depend on it. A stage that is
   `seen` is asked for no more than is needed at once.
2. An Exception from `next` is a *failure*: it takes the place of exactly one element, behind everything returned
   before. Asked again, the stage goes on behind it. Whoever counts elements (take, skip, batch, zip, shard) counts
   failures too, so that element number n is the same whether others fail or not. A stage that cannot go on behind a
   failure returns None from then on; it never raises for ever. What is no Exception (KeyboardInterrupt) ends the run.
   A failure is a `PenstockError`, or marked as one by `as_failure`. Any other exception is a mistake of the engine: on
   its way out of `next` it becomes `Fatal`, which ends the run, so that nobody takes it for an element or for the end.
3. `state()` describes what has not been returned or raised yet: a stage that is given it by `restore`, in this process
   or another, goes on with exactly that; None is the start of any stage. `as_of_now` makes numbers, strings, lists and
   dicts of it. It copies no data. It is remembered until the stage moves, unless others than its caller
   move it (`alone`), and nobody changes it.
4. `restore(state)` is called at most once, before the first `next`. What a stage was asked (`can_skip`, `seen`) may
   come before it, and changes nothing.
5. A stage is used by one thread at a time. Stages that own threads or files let go of them in `close`, which may be
   called at any time between calls, and more than once.
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

State = Any
_AGAIN = 4096  # positions to ask for at a time that were given before


def as_of_now(state: State) -> State:
    """A state as it is written down: parts that grow, or are put together only then, are what `resolved()` says now."""
    if isinstance(state, (list, tuple)):
        return [as_of_now(part) for part in state]
    if isinstance(state, dict):
        return {name: as_of_now(part) for name, part in state.items()}
    resolved = getattr(state, "resolved", None)
    return state if resolved is None else resolved()


Next = Callable[[Any, int], Block | None]
Ask = Callable[[int], Block | None]  # `next` of one stage
Around = Callable[[Ask], Ask]  # what is called in its place


def _failures_only(make: Next) -> Next:
    """`next` of a class of stages, out of which nothing but failures comes."""

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
    """`state` of a class of stages, kept until the stage moves."""

    @wraps(asked)
    def told(self: Stage) -> State:
        found = self._place_said
        if found is None or not self.alone:
            found = self._place_said = asked(self)
        return found

    return told


def _moves(act: Callable[..., Any]) -> Callable[..., Any]:
    """What a stage does, behind which its state is another."""

    @wraps(act)
    def acted(self: Stage, *given: Any) -> Any:
        self._place_said = None
        try:
            return act(self, *given)
        finally:
            self._place_said = None

    return acted


class Stage(ABC):
    """A running step of a plan. `inputs` are the stages it pulls from."""

    cuts = False  # makes more at a time than it is asked for, and gives that in parts
    acts = False  # calls what may do more than give its result, by itself: see `plan.visible`
    alone = True  # only what calls it, from `next` to `close`, changes its state
    is_observed = False  # whether somebody looks at what `next` gives
    watched = False  # whether it is looked at for more than the order of its dicts
    _place_said: State = None  # what `state` said last, unless the stage has moved since
    latest_look: ClassVar[object] = object()  # another when data sets were opened, or another stream's turn has come
    _is_seen: tuple[object, bool] = (None, False)  # as of a look
    _is_seen_below: tuple[object, bool] = (None, False)

    @property
    def seen(self) -> bool:
        """Whether somebody could see what `next` makes: then no more is asked for than is needed at once.

        An element that has been made must not wait for a later one to be made, which may wait for the loop.
        """
        look, found = self._is_seen
        if look is not Stage.latest_look:
            look = Stage.latest_look
            found = self.acts or any(stage.seen for stage in self.inputs)
            self._is_seen = look, found
        return found

    @property
    def seen_below(self) -> bool:
        """The same of all that its elements are made by: also of what workers do, whenever that is."""
        look, found = self._is_seen_below
        if look is not Stage.latest_look:
            look = Stage.latest_look
            found = self.acts or any(stage.seen_below for stage in self.inputs)
            self._is_seen_below = look, found
        return found

    @property
    def may_grow(self) -> bool:
        """Whether what `state` says may tell later what was given since: in free order."""
        return any(stage.may_grow for stage in self.inputs)

    @staticmethod
    def look_again() -> None:
        """What is `seen` may have changed: whoever has asked, in any run, asks again."""
        Stage.latest_look = object()

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        own = vars(cls).get("next")
        if own is not None and not getattr(own, "__isabstractmethod__", False):
            cls.next = _failures_only(own)  # type: ignore[assignment, method-assign]
        # Every stage of a row asks for the state of all below it before it takes a Block: without this, n stages
        # would ask n * n / 2 times for their first.
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
        """Whether all its elements are in memory already, so that asking for many costs as little as for one."""
        return False

    @abstractmethod
    def next(self, want: int) -> Block | None: ...

    def singly(self, raised: list[BaseException]) -> Iterator[Any] | None:
        """Return the next elements as the consumer gets them, each made when it is asked for; None where `next` serves.

        They are some of those that follow; once they have ended, this is asked again. `state` holds between any two. An
        exception ends them, too, and is put into `raised`: a failure, or what ends the run.
        """
        return None

    def observe(self, observers: Sequence[Around]) -> None:
        """Have `next` called through functions that are given it and return what is called instead; the last outermost.

        For whoever lowers a plan, once, before the stage is asked for anything. The stage does not hold itself by it:
        it goes with its last user.
        """
        known = weakref.ref(self)

        def ask(want: int) -> Block | None:
            stage = known()
            assert stage is not None  # who calls holds it
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
        """Let workers below begin before anybody asks, those nearest to the source first.

        To be called once, before the first `next`, and after `restore`.
        """
        for stage in self.inputs:
            stage.start()

    def can_skip(self) -> bool:
        """Whether `skip` is there: positions can be passed over without making what stands at them."""
        return False

    def skip(self, count: int) -> int:
        """Pass over the next `count` positions; how many there were. Called at most once, before the first `next`."""
        message = f"{self.label} cannot skip"
        raise AssertionError(message)

    def close(self) -> None:
        """Let go of what this stage and its inputs hold."""
        for stage in self.inputs:
            stage.close()


class StretchStage(Stage):
    """A Stage that makes several positions at a time, some of which may be failures: `next` gives them one by one.

    Subclasses say how a stretch is made (`make`), where they stand behind it (`place`) and how to get there
    (`go_to`).
    """

    _stretch: Stretch | None = None  # made and not given yet
    _stretch_at = 0  # positions of it that were given
    _stretch_before: State = None  # the place that makes `_stretch`
    _stretch_skip = 0  # positions that an earlier run had given already

    @abstractmethod
    def make(self, want: int) -> Stretch | None:
        """The next positions, perhaps none, or None at the end. May raise: one failure."""

    @abstractmethod
    def place(self) -> State:
        """The state in front of what `make` makes next."""

    @abstractmethod
    def go_to(self, place: State) -> None:
        """Restore a place."""

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
        # a failure that was raised is let go of: its traceback leads back here
        self._stretch = self._stretch.slice(given, self._stretch.size) if given < self._stretch.size else None
        if isinstance(piece, Block):
            return piece
        raise marked(piece)  # whoever put it there knew that it is one

    def state(self) -> State:
        return [self.place(), self._stretch_skip] if self._stretch is None else [self._stretch_before, self._stretch_at]

    def restore(self, state: State) -> None:
        place, self._stretch_skip = state
        self.go_to(place)

    def pass_over(self, count: int) -> int:
        """What `skip` does, from where `make` stands; for stages that can."""
        message = f"{self.label} cannot skip"
        raise AssertionError(message)

    def skip(self, count: int) -> int:
        owed, self._stretch_skip = self._stretch_skip, 0
        return max(self.pass_over(owed + count) - owed, 0)


class CountingStage(StretchStage):
    """A StretchStage that numbers what comes from the one stage below it."""

    def __init__(self, upstream: Stage, label: str, where: str | None) -> None:
        super().__init__(label, (upstream,), where)
        self._upstream = upstream
        self._count = 0  # positions that came from there

    def pull(self, want: int) -> Block | None:
        """What the upstream gives next; a failure of its is a position, too."""
        try:
            block = self._upstream.next(want)
        except Exception:
            self._count += 1
            raise
        self._count += 0 if block is None else block.size
        return block

    def place(self) -> State:
        return [self._upstream.state(), self._count]

    def go_to(self, place: State) -> None:
        below, self._count = place
        self._upstream.restore(below)


class Cursor:
    """Takes exactly as many elements as asked for from a stage, and knows the state between any two of them."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._block: Block | None = None
        self._offset = 0
        self._before: State = None  # the state that returns `_block` first
        self._skip = 0
        self._ended = False

    @classmethod
    def over_all(cls, stage: Stage, block: Block | None, offset: int = 0) -> Cursor:
        """Over a stage that is not asked any more: `block` is all there is, which it would give from its start."""
        cursor = cls(stage)
        cursor._block, cursor._offset, cursor._ended = block, offset, True
        cursor._skip = 0 if block is None else block.size
        return cursor

    @property
    def ended(self) -> bool:
        """Whether nothing comes behind what is available."""
        return self._ended

    @property
    def offset(self) -> int:
        """Elements taken of the Block at hand."""
        return self._offset

    @property
    def before(self) -> State:
        """The state in front of the Block at hand, or of the failure that `fill` raised."""
        return [self._before, 0]

    def available(self) -> int:
        """Elements that can be taken without asking the stage."""
        return 0 if self._block is None else self._block.size - self._offset

    def fill(self, want: int) -> bool:
        """Make at least one element available; False at the end. Raises if the next position is a failure."""
        while self._block is None or self._block.size == self._offset:
            if self._ended:
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
            if self._block is None:
                self._ended = True
                return False
            if self._skip:
                dropped = min(self._skip, self._block.size)
                self._skip -= dropped
                self._offset = dropped
        return True

    def pass_by(self, count: int) -> None:
        """As `take_available`, of elements that were looked at by `peek`; there must be so many."""
        self._offset += count

    def peek(self) -> Block:
        """The available elements, still to be taken; there must be one."""
        assert self._block is not None
        return self._block.slice(self._offset, self._block.size)

    def take_available(self, count: int) -> Block:
        """Up to `count` of the available elements; there must be one."""
        assert self._block is not None
        start = self._offset
        self._offset = min(start + count, self._block.size)
        return self._block.slice(start, self._offset)

    def last(self) -> Block:
        """The element that was taken last, which was of the Block at hand."""
        assert self._block is not None
        return self._block.slice(self._offset - 1, self._offset)

    def take(self, count: int, ask: int = 0) -> Stretch | None:
        """The next `count` positions, fewer only at the end; None if there are none.

        The stage is asked for `ask` at a time: asking for what is missing would make Blocks behind a filter ever
        smaller. Where somebody sees what is made, it is asked for no more.
        """
        parts = list(self._stretches(count, ask))
        return join(parts) if parts else None

    def _stretches(self, count: int, ask: int = 0) -> Iterator[Stretch]:
        """As `take`, one after the other as they are made: their elements may be of several kinds."""
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
        """The next `count` positions, as far as there are any, of which a state has told: those to be read again."""
        for stretch in self._stretches(count, min(count, _AGAIN)):
            yield from stretch.pieces()

    def skip(self, count: int) -> int:
        """As `Stage.skip`."""
        owed, self._skip = self._skip, 0
        return max(self.stage.skip(owed + count) - owed, 0)

    def state(self) -> State:
        if self.available():
            return [self._before, self._offset]
        return [self.stage.state(), self._skip]

    def restore(self, state: State) -> None:
        below, self._skip = state
        if below is not None:  # else from its start on
            self.stage.restore(below)

    def close(self) -> None:
        self._block = None
        self.stage.close()
