"""Whole inputs: small inner data sets that are alike, run together.

The function of `flat_map` makes thousands of data sets of a few elements, `window.batch(5)`. A stage for each of their
steps, cursors and states cost ten times what is done with the elements. Where a Block is asked for that has room for
all that several of them give, their elements go through the steps at once, one input's behind the other's, and all of
it is given: nothing is made ahead, and there is no place inside one of them that a state would have to tell.

They lie in memory, each gives batches of one size, and the functions are the same for all, or differ in numbers that
they close over, which become arguments. They run by Block, draw nothing and are seen by nobody. Where anything raises,
nothing was given yet: each input then runs by itself, with its own error in its place.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from penstock.block.block import Block, concat_blocks, joins_freely
from penstock.block.column import BytesColumn, DenseColumn
from penstock.block.structure import LEAF, Structure, nest
from penstock.functions.captured import TakingNumbers, are_same
from penstock.options import Options
from penstock.physical.key_function import verdicts
from penstock.physical.lower import transform_of
from penstock.physical.stages.batch import stack_block
from penstock.physical.vectorise import Vectoriser
from penstock.plan import ops
from penstock.plan.inputs import Scan
from penstock.plan.node import Node
from penstock.sources.arrays import ArraysSource, BlockSource, RangeSource
from penstock.sources.source import IndexedSource, Source
from penstock.trace.purity import may_draw

_MOST = 1 << 13  # elements that are read together
_NBYTES = 1 << 18  # that they, or what is made of them, may come to
_SECONDS = 0.0005  # that this may take
_KINDS = "biufcmM"  # of dtypes of which arrays are joined as they are
_MISSES = 16  # groups in a row that could not be run, or were of one input, until no further one is tried
_MOST_PATIENCE = 64  # groups that have to be small, behind some that were too much, until more are read


class NotByBlock(Exception):
    """A function has to be called for each element."""


Numbers = tuple[np.generic, ...]  # that the functions of one input close over


Watch = Callable[[int, Callable[..., Any]], Callable[..., Any] | None]  # see `StageObserver.step`


class Step(NamedTuple):
    """A map, a filter or a batch: what runs its function by Block, or how many elements a batch has.

    `taking` is its function where that takes numbers. `call` does it.
    """

    kind: type[Node]
    call: Callable[..., Any]
    function: Callable[..., Any] | None = None
    vectoriser: Vectoriser | None = None
    taking: TakingNumbers | None = None
    size: int = 0
    drop_remainder: bool = False


class Steps:
    """What plans of one form do, for the elements of several inputs.

    `rows` is how many of these may be read together, by what was measured: none at first, so that one input runs alone;
    then at most twice as many as before, while that is little work and few bytes.
    """

    def __init__(self, steps: list[Step], read: Callable[[list[Block]], Block] = concat_blocks) -> None:
        self._steps = steps  # from the source on
        self._read = read
        self.bare = not steps
        self._functions = [step for step in steps if step.vectoriser is not None]
        self._takes = any(step.taking is not None for step in steps)
        self.rows = 0
        self._given: dict[int, tuple[int, tuple[int, ...]] | None] = {}
        self._patience = 1
        self._small = 0  # groups in a row
        self._misses = _MISSES

    @classmethod
    def of(cls, plan: Node, options: Options, watch: Watch | None = None, *, numbers: bool = False) -> Self | None:
        """The steps of a plan over one source; None where such plans run one by one.

        With `numbers` each such plan has functions of its own, which close over numbers of their own. `watch` is told
        the number of each step, from the source on, and what does it.
        """
        settings = options.experimental_optimization
        *_, source = plan.walk()
        if plan.any_rank or not (isinstance(source, Scan) and type(source.source) in _IN_MEMORY):
            return None
        steps: list[Step] = []
        while not isinstance(plan, Scan):
            if getattr(plan, "num_parallel_calls", None) is not None or getattr(plan, "executor", "auto") != "auto":
                return None
            if isinstance(plan, ops.Batch):
                steps.append(Step(ops.Batch, stack_block, size=plan.batch_size, drop_remainder=plan.drop_remainder))
            elif isinstance(plan, (ops.Map, ops.Filter)):
                if isinstance(plan, ops.Filter) and any(step.size or step.taking for step in steps):
                    return None  # how many elements each input still has, nobody counts
                function = plan.function if isinstance(plan, ops.Map) else plan.predicate
                vectoriser = None if settings.approximate_image else transform_of(plan, options).vectoriser
                if vectoriser is None or may_draw(function):
                    return None
                taking = TakingNumbers.of(function) if numbers else None
                if taking is not None:
                    vectoriser = Vectoriser(taking)
                steps.append(Step(type(plan), _applied, function, vectoriser, taking))
            else:
                return None
            plan = plan.input
        found = cls(steps[::-1])
        if numbers and not found._takes:
            return None
        return found if watch is None or found._watched(watch) else None

    @classmethod
    def bare_under(cls, watch: Watch | None) -> Self | None:
        """Make those of a source alone, of which there are none."""
        found = cls([])
        return found if watch is None or found._watched(watch) else None

    def _watched(self, watch: Watch) -> bool:
        given = [self._read, *(step.call for step in self._steps)]
        calls = [found for number, call in enumerate(given) if (found := watch(number, call)) is not None]
        if len(calls) < len(given):
            return False
        self._read, *others = calls
        self._steps = [step._replace(call=call) for step, call in zip(self._steps, others, strict=True)]
        return True

    @property
    def calls(self) -> bool:
        """Whether there are functions."""
        return bool(self._functions)

    @property
    def hopeless(self) -> bool:
        """Whether no group could be run for long."""
        return self._misses <= 0

    def missed(self) -> None:
        """An input came that could not run with others, or a group could not be run."""
        self._misses -= 1

    def numbers_of(self, functions: Sequence[Callable[..., Any]]) -> Numbers | None:
        """What the functions of one input, the consumer's side first, close over; None where they differ in more."""
        if not self._takes:
            return ()
        found: list[np.generic] = []
        for step, function in zip(self._functions, reversed(functions), strict=True):
            numbers: Numbers | None = () if are_same(step.function, function) else None
            if step.taking is not None:
                numbers = step.taking.numbers_of(function)
            if numbers is None:
                return None
            found += numbers
        return tuple(found)

    def given(self, size: int) -> tuple[int, tuple[int, ...]] | None:
        """How many elements at most come of an input of so many, and how many are in its batches, of each such step.

        None where its batches differ in size.
        """
        if size not in self._given:
            self._given[size] = self._given_of(size)
        return self._given[size]

    def _given_of(self, size: int) -> tuple[int, tuple[int, ...]] | None:
        sizes: list[int] = []
        for step in self._steps:
            if step.kind is ops.Batch and size:
                each = min(step.size, size)
                if size % each or (each < step.size and step.drop_remainder):
                    return None
                sizes.append(each)
                size //= each
        return size, tuple(sizes)

    def run(self, blocks: list[Block], sizes: tuple[int, ...], numbers: list[Numbers]) -> Block | None:
        """All that comes of inputs with these elements, None where it is nothing.

        Their batches have these sizes; each has numbers of its own.
        """
        began = time.perf_counter()
        try:
            block = self._read(blocks)
            lengths = np.array([block.size for block in blocks])
            made, nbytes = self._run(block, sizes, lengths, list(zip(*numbers, strict=True)))
        except Exception:
            self.missed()
            raise
        self._misses = self._misses - 1 if len(blocks) == 1 else _MISSES  # one alone might as well have its stages
        self.learn(block.size, time.perf_counter() - began, nbytes)
        return made

    def _run(
        self, block: Block, sizes: tuple[int, ...], lengths: np.ndarray, numbers: list[tuple[np.generic, ...]]
    ) -> tuple[Block | None, int]:
        """Also how many bytes there were, after the step behind which there were most."""
        nbytes = block.nbytes
        sizes_left, numbers_left = iter(sizes), iter(numbers)
        for step in self._steps:
            if step.vectoriser is None:
                size = next(sizes_left)
                block, lengths = step.call(block, size), lengths // size
                continue
            given = block
            if step.taking is not None:
                own = [np.array(next(numbers_left), kind) for kind in step.taking.kinds]
                given = _beside(block, [DenseColumn(np.repeat(each, lengths)) for each in own])
            made = step.call(step, block, given)
            if made is None:
                return None, nbytes
            block = made
            nbytes = max(nbytes, given.nbytes, block.nbytes)
        return block, nbytes

    def learn(self, rows: int, seconds: float, nbytes: int) -> None:
        """It took so long to make so much of so many elements."""
        share = max(seconds / _SECONDS, nbytes / _NBYTES)
        if share > 1:
            self.rows = min(self.rows, rows) // 2
            self._small, self._patience = 0, min(2 * self._patience, _MOST_PATIENCE)
        elif share <= 0.5 and 2 * rows > self.rows:
            self._small += 1
            if self._small >= self._patience:
                self._small, self.rows = 0, min(2 * rows, _MOST)


_IN_MEMORY = frozenset({RangeSource, ArraysSource, BlockSource})


class Group:
    """Inputs that run together. They give at most `want` elements, which may follow `behind` in one Block."""

    def __init__(self, want: int, behind: Block | None) -> None:
        self._want = want
        self._first = behind  # all others have to fit it
        self._steps: Steps | None = None
        self._sizes: tuple[int, ...] = ()
        self._blocks: list[Block] = []
        self._numbers: list[Numbers] = []
        self._rows = 0
        self._nbytes = 0
        self.is_full = False  # no further input would be taken in

    @property
    def is_complete(self) -> bool:
        """Whether nothing is to follow in the same Block."""
        return self._steps is not None and not self._steps.bare

    def admits(self, steps: Steps, source: Source, functions: Sequence[Callable[..., Any]]) -> bool:
        """Take an input in, where it fits those that are here."""
        if not isinstance(source, IndexedSource) or type(source) not in _IN_MEMORY:
            return False
        if self._steps is None:
            most = _MOST
        elif steps is self._steps:
            most = _MOST if steps.bare else steps.rows
        else:
            return False
        rows = self._rows + source.cardinality
        if rows > most:
            return False
        given = steps.given(source.cardinality)
        if given is None:
            steps.missed()
            return False
        if given[0] > self._want:
            return False
        numbers = steps.numbers_of(functions)
        if numbers is None:
            return False
        if source.cardinality:
            if not self._fits(source.rows(0, source.cardinality), steps, given[1]):
                return False
            self._numbers.append(numbers)
        self._steps, self._rows = steps, rows
        self._want -= given[0]
        self.is_full = not self._want or rows == most
        return True

    def _fits(self, block: Block, steps: Steps, sizes: tuple[int, ...]) -> bool:
        if not (steps.bare or _is_plain(block, texts=not steps.calls)):
            return False
        if self._blocks and sizes != self._sizes:
            return False
        if self._first is None:
            self._first = block
        elif not joins_freely(self._first, block) or self._nbytes + block.nbytes > _NBYTES:
            return False
        self._sizes = sizes
        self._blocks.append(block)
        self._nbytes += block.nbytes
        return True

    def run(self) -> Block | None:
        """All their elements; None where they have none. Raises where one of them fails, or might."""
        if not self._blocks or self._steps is None:
            return None
        return self._steps.run(self._blocks, self._sizes, self._numbers)


def _applied(step: Step, block: Block, given: Block) -> Block | None:
    """What a map makes of elements, or a filter leaves of them, None if none; `given` is what the function gets."""
    assert step.vectoriser is not None
    if step.kind is ops.Filter:
        mask = verdicts(step.vectoriser, given)
        if mask is None:
            raise NotByBlock
        kept = np.flatnonzero(mask)
        if not len(kept):
            return None
        return block if len(kept) == block.size else block.take(kept)
    made = step.vectoriser.run(given, None)
    if made is None or step.vectoriser.presumes or not _is_dense(made):
        raise NotByBlock
    return made


def _beside(block: Block, columns: list[DenseColumn]) -> Block:
    """Elements as tuples, with further components behind their own."""
    own = block.structure.children if block.structure.unpacks else (block.structure,)
    parts = [*own, *(LEAF for _ in columns)]
    structure = nest(Structure(tuple, (), (LEAF,) * len(parts), len(parts)), parts)
    return block.with_columns(structure, [*block.columns, *columns])


def _is_dense(block: Block) -> bool:
    return all(type(column) is DenseColumn for column in block.columns)


def _is_plain(block: Block, *, texts: bool) -> bool:
    """Whether the elements lie in memory as those of any other such Block: functions may round otherwise elsewhere."""
    for column in block.columns:
        if type(column) is DenseColumn:
            flags, dtype = column.array.flags, column.array.dtype
            if not (flags.c_contiguous and flags.aligned and dtype.isnative and dtype.kind in _KINDS):
                return False
        elif not (texts and type(column) is BytesColumn):
            return False
    return True
