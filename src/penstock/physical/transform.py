"""Transforms: stateless work on one Block, which any number of workers may do at the same time."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from penstock.block.block import Block, BlockBuilder
from penstock.block.numbers import Numbers
from penstock.block.passing import FEWEST, PassingBuilder
from penstock.block.same_kind import Kind, Kinds, SameKind
from penstock.block.structure import LISTS, SAME_NEST, Structure, components
from penstock.errors import Context, InvalidTypeError, as_failure
from penstock.functions.libraries import recogniser
from penstock.physical.ended import Endings
from penstock.physical.joined import Joined
from penstock.physical.parted import Calls, Parted
from penstock.physical.stacking import ranks_of
from penstock.physical.stretch import Stretch
from penstock.physical.tokenising import TokeniserCalls, Tokenising
from penstock.physical.vectorise import Vectoriser
from penstock.trace.drawing import Draws, can_seed, drawing
from penstock.trace.graph import Allocate

T = TypeVar("T", bound="FunctionTransform")


@dataclass(slots=True)
class Outcome:
    """The results for a Block: the remaining elements, their rows (None: all rows), and (row, error) of each failure.

    `kind` is the nest, dtypes and ranks that all results must have, or None if no result was checked.
    """

    block: Block | None
    rows: np.ndarray | None = None
    failures: Sequence[tuple[int, Exception]] = ()
    kind: Kind | None = None

    def kinds_at(self, place: int) -> Kinds:
        return () if self.kind is None else ((place, self.kind),)


class BlockTransform(ABC):
    """One step on a Block. Thread-safe: several workers may call it at the same time."""

    label: str
    where: str | None
    one_to_one: ClassVar[bool] = False  # True if each element gives one element or a failure
    measured = False  # True for a profiler, which needs the time of each step
    decided: Kind | None = None  # kind of all results: that of the first one in stream order
    apart = False  # True if Blocks run in another order than that of the stream, so that `agreed` decides

    def kin(self) -> Hashable:
        """Return a key that is equal for transforms that do the same, such as those of one step in every iteration."""
        return id(self)

    @abstractmethod
    def run(self, block: Block, numbers: Numbers, allocate: Callable[[int], Allocate] | None = None) -> Outcome:
        """Transform a Block. `numbers` are the numbers of its elements in the step's input.

        `allocate(k)` offers memory for leaf k of the results.
        """

    @property
    def computes(self) -> bool:
        """True if its last Block was only computed, without a function that may wait."""
        return False

    def context(self, block: Block, row: int, numbers: Numbers) -> Context:
        return Context(self.label, self.where, numbers.at(row), *block.origin_at(row))


class FunctionTransform(BlockTransform):
    """A step that calls a user's function; the function's random numbers depend on `key`.

    If the elements are batches, `batches` is (batch size, number of elements in all batches or None).
    `any_rank`: a signature in an earlier step leaves the rank of the results open.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        label: str,
        where: str | None,
        *,
        vectorise: bool,
        key: int = 0,
        batches: tuple[int, int | None] | None = None,
        any_rank: bool = False,
    ) -> None:
        self._settings = {"vectorise": vectorise, "key": key, "batches": batches, "any_rank": any_rank}
        self.label = label
        self.where = where
        self.function = function
        # the function that is called per element: it may run transforms in kernels
        self.called = function if not vectorise or (found := recogniser()) is None else found.in_kernels(function)[0]
        vectorise = vectorise and self.called is function
        # runs it on whole Blocks, if possible
        self.vectoriser = Vectoriser(function) if vectorise else None
        self._parted = Parted(function) if vectorise else None  # for functions that run per element
        self._tokenising = Tokenising.of(function) if vectorise else None  # for functions that call tokenisers
        self._drawn: dict[str, str] | None = None  # its generators; None until they are known
        self._key = key
        self._batches = batches
        self._any_rank = any_rank
        self.begin()

    @property
    def computes(self) -> bool:
        return self.tokenises or (self.vectoriser is not None and self.vectoriser.by_block)

    @property
    def tokenises(self) -> bool:
        """True if a tokeniser gets the texts of a Block in one call."""
        return self._tokenising is not None and self._tokenising.by_block

    def context(self, block: Block, row: int, numbers: Numbers) -> Context:
        found = super().context(block, row, numbers)
        if self._batches is None or found.element is None:
            return found
        size, count = self._batches
        first = found.element * size
        if count is None:
            return replace(found, holds=f"up to {size} elements, from number {first} on")
        last = min(first + size, count) - 1
        return replace(found, holds=f"elements {first} to {last}" if last > first else f"element {first}")

    def draws(self, numbers: Numbers) -> Draws:
        """Return the source of the function's random numbers for these elements."""
        return Draws(self._key, numbers)

    @property
    def generators(self) -> dict[str, str]:
        """The generators of the process that the function uses, each with the called name."""
        if self._drawn is None:
            from penstock.plan.seeding import seeded  # loaded here: a worker process starts without plans

            self._drawn = {name: use.spelled for name, use in seeded(self.function).items()}
        return self._drawn

    def drawing(self, draws: Draws, rows: int) -> drawing:
        """Return the context in which the function is called for the elements of a Block."""
        if self.generators and not can_seed(draws):
            from penstock.plan.seeding import warn_of_unseeded

            warn_of_unseeded(self.label, next(iter(self.generators.values())), self.where)
        return drawing(draws, self.generators, rows)

    def goes_singly(self, block: Block, draws: Draws) -> bool:
        """Check the first elements; return True if Blocks would not be faster."""
        if self.vectoriser is None or self._parted is None:
            return True
        return self.vectoriser.run(block, None, draws) is None and not self._parted.has_end(block, draws)

    def rest(self, block: Block, draws: Draws) -> Calls | None:
        """Return the calls per row if the beginning of the function has run on the Block, else None."""
        with self.drawing(draws, block.size) as now:
            return None if self._parted is None else self._parted.rest(block, draws, now)

    def _failure(
        self, raised: Exception, block: Block, row: int, numbers: Numbers, elements: Sequence[Any] | None
    ) -> Exception:
        """Return an exception of one element as the consumer receives it.

        `elements` are those of the Block, or None.
        """
        element = block.slice(row, row + 1).elements()[0] if elements is None else elements[row]
        return as_failure(raised, self.context(block, row, numbers), element)

    def again(self, function: Callable[..., Any] | None = None) -> Self:
        """Return a copy for another data set, which keeps the decisions, or one for a similar `function`."""
        if function is not None:
            return _again(type(self), function, self.label, self.where, self._settings)
        found = object.__new__(type(self))
        vars(found).update(vars(self), _drawn=self.generators)
        found.begin()
        return found

    def plain(self, function: Callable[..., Any]) -> Self:
        """Return a copy with a function that is called per element, in order."""
        return _again(type(self), function, self.label, self.where, {**self._settings, "vectorise": False})

    def begin(self) -> None:
        """Reset the facts about elements."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the function, its labels and its generators. The other process decides the rest again."""
        made_of = type(self), self.function, self.label, self.where, self._settings
        return _again, made_of, {"_drawn": self.generators}

    def kin(self) -> Hashable:
        return type(self), id(self.function), self.label, self.where, *self._settings.values()


def _again(kind: type[T], function: Callable[..., Any], label: str, where: str | None, settings: dict[str, Any]) -> T:
    return kind(function, label, where, **settings)


Transforms = Sequence[BlockTransform]
RunAll = Callable[[Transforms, Block, Numbers, Callable[[int], Allocate] | None], Stretch]


def run_all(
    transforms: Transforms, block: Block, numbers: Numbers, allocate: Callable[[int], Allocate] | None = None
) -> Stretch:
    """Run transforms one after another, or all as one. A failure keeps its position among the elements.

    Until the kind of a map's results is decided, the first result of each Block determines the kind for this Block.
    """
    if len(transforms) > 1:
        maps = [one for one in transforms if type(one) is MapTransform and not one.measured]
        if len(maps) == len(transforms):
            whole = maps[0].joined(maps).run(maps, block, numbers, allocate)
            if whole is not None:
                return Stretch(whole.block, kinds=whole.kinds_at(len(maps) - 1))
    size = block.size
    kinds: Kinds = ()
    failures: list[tuple[int, Exception]] = []  # each before a row of the current Block
    for place, transform in enumerate(transforms):
        last = transform is transforms[-1] and block.size == size  # otherwise the offered memory has too many rows
        outcome = transform.run(block, numbers, allocate if last else None)
        kinds += outcome.kinds_at(place)
        if outcome.failures:
            failures = sorted([*failures, *outcome.failures], key=_place)
        if outcome.block is None:
            return Stretch(None, tuple((i, error) for i, (_, error) in enumerate(failures)), kinds)
        if outcome.rows is not None:
            numbers = numbers.take(outcome.rows) if transform.one_to_one else numbers.lost()
            if failures:
                places = np.searchsorted(outcome.rows, [row for row, _ in failures]).tolist()
                failures = [(row, error) for row, (_, error) in zip(places, failures, strict=True)]
        block = outcome.block
    return Stretch(block, tuple((row + i, error) for i, (row, error) in enumerate(failures)), kinds)


def agreed(transforms: Transforms, kinds: Kinds) -> bool:
    """Set the kinds of results from the next Block of the stream. Return False if it was computed with other kinds."""
    for place, kind in kinds:
        if transforms[place].decided is None:
            transforms[place].decided = kind
        if transforms[place].decided != kind:
            return False
    return True


def _place(failed: tuple[int, Exception]) -> int:
    return failed[0]


def checked(
    same: SameKind,
    builder: BlockBuilder,
    block: Block,
    failed: Sequence[tuple[int, Exception]],
    context: Callable[[int], Context],
) -> Outcome:
    """Return the results of a function for a Block, with a failure in place of each result of another kind."""
    rows = np.arange(block.size)
    if failed:
        rows = np.delete(rows, [row for row, _ in failed])
    if not len(rows):
        return Outcome(None, rows, failed)
    built, mixed = same.build(builder, block.origin.take(rows) if failed and block.origin else block.origin)
    for at, error in mixed:
        error.context = context(int(rows[at]))
    failures = sorted([*failed, *((int(rows[at]), error) for at, error in mixed)], key=_place)
    return Outcome(built, np.delete(rows, [at for at, _ in mixed]) if failures else None, failures)


class MapTransform(FunctionTransform):
    """Calls `function(element)` for every element, or runs it on whole Blocks where the result is known to be equal.

    Its results have one rank, with two exceptions: `any_rank`, or its arguments have several ranks, such as elements of
    data sets that a function of `interleave` creates.
    """

    one_to_one = True
    _joined: Joined | None = None  # the following maps that it last ran together with

    def begin(self) -> None:
        super().begin()
        self.decided, self.apart = None, False
        self._ranks_differ = self._any_rank
        self._lists = False  # True if it has returned a list

    def run(self, block: Block, numbers: Numbers, allocate: Callable[[int], Allocate] | None = None) -> Outcome:
        found = self.by_block(block, numbers, allocate)
        return self._per_element(block, numbers, allocate) if found is None else found

    def by_block(
        self, block: Block, numbers: Numbers, allocate: Callable[[int], Allocate] | None = None
    ) -> Outcome | None:
        """Return the results of a function that is known to work on whole Blocks, or None."""
        if self.vectoriser is None:
            return None
        found = self.vectoriser.run(block, allocate, self.draws(numbers))
        return None if found is None else self.admitted(found, block)

    def joined(self, maps: Sequence[MapTransform]) -> Joined:
        """Return these maps, which begin with this one, as one."""
        if self._joined is None or not self._joined.is_of(maps):
            self._joined = Joined(maps)
        return self._joined

    def admitted(self, made: Block, given: Block) -> Outcome | None:
        """Return results for a Block as the outcome, or None if they differ from the decided kind."""
        same = self.same_kind(given)
        return self._outcome(same, Outcome(made)) if same.admits(made) else None

    def _outcome(self, same: SameKind, made: Outcome) -> Outcome:
        made.kind = same.expected
        if not self.apart:
            self.decided = same.expected
        return made

    def same_kind(self, given: Block) -> SameKind:
        """Return the kind of the results so far, to check the results of one more Block."""
        same = SameKind("The function's result", any_rank=self._ranks_differ)
        same.expected = self.decided
        if same.expected is None:
            same.given = ranks_of(given)
        return same

    def _per_element(
        self, block: Block, numbers: Numbers, allocate: Callable[[int], Allocate] | None = None
    ) -> Outcome:
        failures: list[tuple[int, Exception]] = []
        draws = self.draws(numbers)
        with self.drawing(draws, block.size) as now:
            calls: TokeniserCalls | Calls | Endings | None = None
            if self._tokenising is not None:
                calls = self._tokenising.calls(block, now)
            if calls is None and self._parted is not None:
                calls = self._parted.calls(block, draws, now, allocate)
            if isinstance(calls, Endings) and calls.whole is not None and (whole := self.admitted(calls.whole, block)):
                return whole
            same = self.same_kind(block)
            structure = same.structure
            passing: PassingBuilder | None = None
            elements: list[Any] | None = None
            if calls is not None:
                builder = BlockBuilder(structure, calls.given)
            elif len(block.columns) >= FEWEST:
                builder = passing = PassingBuilder(structure, block)
                elements = passing.elements
            else:
                builder, elements = BlockBuilder(structure), block.elements()
            began = time.thread_time()
            for row in range(block.size):
                now.begin(row)
                if passing is not None:
                    passing.row = row
                try:
                    if elements is not None:
                        builder.add(self._called(elements[row], block.structure))
                    elif calls is not None:
                        builder.add(self.result(calls(row)))
                except Exception as raised:
                    failures.append((row, self._failure(raised, block, row, numbers, elements)))
                    self.explain(raised)
        if isinstance(calls, Calls):
            calls.parts.spent.add(block.size, time.thread_time() - began)
        context = partial(self.context, block, numbers=numbers)
        made = checked(same, builder, block, failures, context)
        if len(made.failures) > len(failures) and self.relaxed(same, block):
            made = checked(same, builder, block, failures, context)
        return self._outcome(same, made)

    def relaxed(self, same: SameKind, block: Block) -> bool:
        """Let ranks differ from here on, if those of the Block differ from the first ones; return False otherwise."""
        given = None if same.expected is None else same.expected[2]
        if same.any_rank or given is None or not (None in given or ranks_of(block) != given):
            return False
        self._ranks_differ = same.any_rank = True
        return True

    def explain(self, raised: Exception) -> None:
        """Add a hint about lists to an error."""
        if self._lists and isinstance(raised, InvalidTypeError) and raised.hint is SAME_NEST:
            raised.hint = f"A list that a function returns is a tuple of components. {LISTS}"

    def _called(self, element: Any, structure: Structure) -> Any:
        """Return the result for one element, without other references: a fresh array is not copied."""
        return self.result(self.called(*element) if structure.unpacks else self.called(element))

    def result(self, result: Any) -> Any:
        """Return the function's result as an element: the items of a list become components."""
        if isinstance(result, list):
            self._lists = True
            return components(result)
        return result
