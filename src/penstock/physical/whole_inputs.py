"""Whole inputs: what the steps of small inner data sets do, for the elements of several that are alike.

The function of `interleave` or `flat_map` makes thousands of data sets of a few elements, `window.batch(5)`,
`TFRecordDataset(name).map(f)`. A stage for each of their steps, cursors and states cost ten times what is done with the
elements. What the sources of several have given, one's elements behind the other's, goes through the steps at once; how
many each still has is known behind every step, so that all of them can be given in any order.

Their functions are the same, or of one code, and close over values of their own: numbers of numpy's become arguments,
else each element is given to the function of its input. They are pure and draw nothing. Where anything raises, nothing
was given yet: each input then runs by itself, with its own error in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from time import perf_counter
from types import CodeType
from typing import Any, Self
from weakref import WeakSet

import numpy as np

from penstock.block.block import Block, concat_blocks
from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn
from penstock.block.numbers import Numbers
from penstock.block.structure import LEAF, Structure, nest
from penstock.functions.captured import TakingNumbers, are_same
from penstock.options import Options
from penstock.physical.lower import transform_of
from penstock.physical.stages.batch import stack_block, stack_column
from penstock.physical.transform import FunctionTransform, Outcome
from penstock.plan import ops
from penstock.plan.inputs import Scan
from penstock.plan.node import Node
from penstock.sources.source import Source
from penstock.trace.purity import may_draw

_MOST = 1 << 13  # elements that a function is given at a time
_SECONDS, _NBYTES = 0.0005, 1 << 18  # that this may take, and come to
_TOO_LONG, _TOO_LARGE = 0.002, 1 << 20  # that all functions together may, for several inputs
_LOOKED_AT = 0.02  # seconds in which a function is traced, and compared, with its first element
_MOST_INPUTS = 1 << 12
_FEW_OF_ITS_OWN = 32  # elements, for which a function of an input's own is called rather than looked at
_LONGEST_REST = 1 << 10  # inputs that run by themselves, behind some that could not run together
_COSTLY = 0.01  # seconds of one element, behind which few are tried, and behind two in a row none in this process
_LONG_REST = 1 << 6  # inputs that run by themselves then
_KINDS = "biufcmM"  # of dtypes of which arrays are joined as they are


class Alone(Exception):
    """Each input is to run by itself."""


_COSTLY_ONCE: WeakSet[CodeType] = WeakSet()
_COSTLY_TWICE: WeakSet[CodeType] = WeakSet()

Own = tuple[Any, ...]  # of one input, for each function: the numbers that it closes over, or itself, or nothing
Watch = Callable[[int, Callable[..., Any]], Callable[..., Any] | None]  # see `StageObserver.step`


class _OfEach:
    """Gives each element to the function of its input."""

    def __init__(self, functions: Iterator[Callable[..., Any]]) -> None:
        self._functions = functions

    def __call__(self, *given: Any) -> Any:
        return next(self._functions)(*given)


@dataclass(slots=True)
class Step:
    """A map, a filter or a batch: what runs its function, or how many elements a batch has.

    `taking` is its function where that takes numbers; with `own` each input has another. `call` does it. `rows` is how
    many elements are given to it at a time, by what was measured: one at first, of which 20 ms do not count, as the
    function is looked at with it; then at most twice as many as before, while that is little work and few bytes.
    """

    kind: type[Node]
    call: Callable[..., Any]
    transform: FunctionTransform | None = None
    taking: TakingNumbers | None = None
    own: bool = False
    code: CodeType | None = None
    size: int = 0
    drop_remainder: bool = False
    rows: int = 0

    @classmethod
    def of(cls, node: ops.Map | ops.Filter, transform: FunctionTransform, other: Callable[..., Any]) -> Step:
        """`other` is the function of another such input."""
        code = _code(transform.function)
        if are_same(transform.function, other):
            return cls(type(node), _applied, transform, code=code)
        taking = TakingNumbers.of(transform.function)
        if taking is None or taking.numbers_of(other) is None:
            return cls(type(node), _applied, transform, own=True, code=code)
        return cls(type(node), _applied, transform.again(taking), taking, code=code)

    def own_of(self, function: Callable[..., Any]) -> Any:
        """What is another input's own, which has this function; None where that differs in more."""
        assert self.transform is not None
        if self.taking is not None:
            return self.taking.numbers_of(function)
        return function if self.own else () if are_same(self.transform.function, function) else None

    def learn(self, rows: int, seconds: float, nbytes: int) -> None:
        """It took so long to make so much of so many elements."""
        share = max(seconds / _SECONDS, nbytes / _NBYTES)
        if share > 1:
            self.rows = max(min(self.rows, rows) // 2, 1)
        elif share <= 0.5:
            self.rows = max(self.rows, min(2 * rows, _MOST))


class Steps:
    """What plans of one form do, for the elements of several inputs."""

    def __init__(self, steps: list[Step], cuts: Sequence[ops.Take | ops.Skip] = ()) -> None:
        self._steps = steps  # from the source on
        self._cuts = cuts  # of what the source gives, in front of all
        self._functions = [step for step in steps if step.transform is not None]
        self.watch: Watch | None = None
        self.inputs = 1  # that are to run together, by what those before took
        self._rest = 0  # further inputs that are to run by themselves
        self._patience = 1

    @classmethod
    def of(
        cls, plan: Node, options: Options, others: Sequence[Callable[..., Any]], watch: Watch | None = None
    ) -> Self | None:
        """The steps of a plan over one source; None where such plans run one by one.

        `others` are the functions of another such plan, the consumer's side first. `watch` is told the number of each
        step, from the source on, and what does it.
        """
        settings = options.experimental_optimization
        *row, source = plan.walk()
        if plan.any_rank or not isinstance(source, Scan) or type(source.source).small is Source.small:
            return None
        steps: list[Step] = []
        cuts: list[ops.Take | ops.Skip] = []
        left = list(others)
        for node in reversed(row):
            if getattr(node, "num_parallel_calls", None) is not None or getattr(node, "executor", "auto") != "auto":
                return None
            if isinstance(node, ops.Batch):
                steps.append(Step(ops.Batch, _batched, size=node.batch_size, drop_remainder=node.drop_remainder))
            elif isinstance(node, (ops.Map, ops.Filter)):
                transform = transform_of(node, options)
                if _code(transform.function) in _COSTLY_TWICE:
                    return None
                if settings.approximate_image or transform.vectoriser is None or may_draw(transform.function):
                    return None
                steps.append(Step.of(node, transform, left.pop()))
            elif isinstance(node, (ops.Take, ops.Skip)) and _may_be_cut(node, steps):
                cuts.append(node)
            else:
                return None
        found = cls(steps, cuts)
        return found if watch is None or found._watched(watch) else None

    def _watched(self, watch: Watch) -> bool:
        """Whether it can be told what each step does."""
        if self._cuts or watch(0, _batched) is None:  # the source; what is cut of it is a step of its own
            return False
        for number, step in enumerate(self._steps, 1):
            call = watch(number, step.call)
            if call is None:
                return False
            step.call = call
        self.watch = watch
        return True

    def rests(self) -> bool:
        """Whether the next input is to run by itself, as those before it were too much or could not be run."""
        self._rest -= self._rest > 0
        return self._rest > 0

    def own_of(self, functions: Sequence[Callable[..., Any]]) -> Own | None:
        """What is one input's own, with functions from the consumer's side on; None where it differs in more."""
        found = tuple([step.own_of(each) for step, each in zip(self._functions, reversed(functions), strict=True)])
        return None if None in found else found

    def run(self, block: Block | None, counts: list[int], own: Sequence[Own]) -> tuple[Block | None, list[int]] | None:
        """All that comes of the first inputs, and how much of each; None where the first is to run by itself.

        `block` has the elements of all, `counts` of each; and `own` what is each one's own.
        """
        inputs = len(counts)
        while inputs:
            began = perf_counter()
            run = _Run(np.array(counts, np.int64), block)
            run.cut_to(inputs)
            try:
                self._run(run, own[:inputs])
            except Exception:  # one of them fails, or might: by itself it says why
                inputs //= 2
                continue
            done = len(run.counts)
            self._learn(inputs, done, perf_counter() - began, run.nbytes)
            if not done:
                if run.costly:
                    self._patience = max(self._patience, _LONG_REST)
                break
            return run.block, run.counts.tolist()
        self._rest, self._patience = self._patience, min(2 * self._patience, _LONGEST_REST)
        return None

    def _run(self, run: _Run, own: Sequence[Own]) -> None:
        for cut in self._cuts:
            run.take(cut)
        columns = iter(zip(*own, strict=True))
        for step in self._steps:
            if step.transform is None:
                run.batch(step)
            else:
                run.apply(step, next(columns))

    def _learn(self, inputs: int, done: int, seconds: float, nbytes: int) -> None:
        """Learn from a run how many inputs the next one may have: of so many so many were done, for so much."""
        if done > 1:
            self._patience = 1
        share = max(seconds / _SECONDS, nbytes / _NBYTES) / 2
        if done < inputs or share > 1:
            self.inputs = max(min(self.inputs, done) // 2, 1)
        elif share <= 0.5:
            self.inputs = max(self.inputs, min(2 * inputs, _MOST_INPUTS))


def _remember(code: CodeType | None, *, costly: bool) -> None:
    """Note whether a single element took very long; one may have, as the machine was busy."""
    if code is None:
        return
    if not costly:
        _COSTLY_ONCE.discard(code)
    elif code in _COSTLY_ONCE:
        _COSTLY_TWICE.add(code)
    else:
        _COSTLY_ONCE.add(code)


def _code(function: Callable[..., Any]) -> CodeType | None:
    found = getattr(function, "__code__", None)
    return found if isinstance(found, CodeType) else None


def _may_be_cut(node: ops.Take | ops.Skip, below: list[Step]) -> bool:
    """Whether a step leaves out elements that are not made then either: behind nothing, or a `take` behind maps."""
    if node.count < 0:
        return False
    return all(step.kind is ops.Map for step in below) if isinstance(node, ops.Take) else not below


class _Run:
    """Elements of several inputs on their way through the steps: `counts` of each, one's behind the other's."""

    def __init__(self, counts: np.ndarray, block: Block | None) -> None:
        self.counts = counts
        self.block = block
        self.nbytes = 0  # that steps have made
        self.costly = False  # whether a single element took very long
        self._seconds = 0.0

    def cut_to(self, inputs: int) -> None:
        """Leave out all inputs behind the first ones."""
        self.counts = self.counts[:inputs]
        rows = int(self.counts.sum())
        self.block = None if self.block is None or not rows else self.block.slice(0, rows)

    def take(self, cut: ops.Take | ops.Skip) -> None:
        """Leave out the first elements of each, or all behind them."""
        first = np.minimum(self.counts, cut.count)
        number = np.arange(self.counts.sum()) - (np.cumsum(self.counts) - self.counts).repeat(self.counts)
        keeps = number < cut.count if isinstance(cut, ops.Take) else number >= cut.count
        self.counts = first if isinstance(cut, ops.Take) else self.counts - first
        self._keep(np.flatnonzero(keeps))

    def _keep(self, rows: np.ndarray) -> None:
        if self.block is not None and len(rows) < self.block.size:
            self.block = self.block.take(rows) if len(rows) else None

    def batch(self, step: Step) -> None:
        """Every so many elements of each as one."""
        full, rest = np.divmod(self.counts, step.size)
        if step.drop_remainder and rest.any():
            number = np.arange(self.counts.sum()) - (np.cumsum(self.counts) - self.counts).repeat(self.counts)
            self._keep(np.flatnonzero(number < (full * step.size).repeat(self.counts)))
            rest = np.zeros_like(rest)
        self.counts = full + (rest > 0)
        if self.block is None:
            return
        sizes = np.full(int(self.counts.sum()), step.size)
        ends = np.cumsum(self.counts)
        sizes[ends[rest > 0] - 1] = rest[rest > 0]
        self.block = step.call(self.block, sizes)
        self.nbytes += self.block.nbytes

    def apply(self, step: Step, own: Sequence[Any]) -> None:
        """What a map makes of the elements, or a filter leaves of them, as long as that is no great work."""
        block = self.block
        if block is None or step.transform is None:
            return
        given, transform = block, step.transform
        if step.taking is not None:
            given, transform = _beside(block, step.taking, own, self.counts), transform.again()
        elif step.own:
            if block.size > _FEW_OF_ITS_OWN * len(self.counts):
                raise Alone
            functions = map(repeat, own, self.counts.tolist())
            transform = transform.plain(_OfEach(chain.from_iterable(functions)))
        else:
            transform = transform.again()
        made: list[Block] = []
        kept: list[np.ndarray] = []
        at = 0
        while at < block.size and (not at or (self._seconds < _TOO_LONG and self.nbytes < _TOO_LARGE)):
            stop = min(at + max(step.rows, 1), block.size)
            began = perf_counter()
            outcome = step.call(given.slice(at, stop), transform)
            found, rows = outcome.block, outcome.rows
            if step.kind is ops.Filter:
                rows = np.arange(stop - at) if rows is None else rows
                kept.append(rows + at)
                if given is not block:
                    found = block.take(rows + at) if len(rows) else None
            seconds, nbytes = perf_counter() - began, 0 if found is None else found.nbytes
            seconds -= min(seconds, 0.0 if step.rows else _LOOKED_AT)
            if stop - at == 1:
                self.costly = self.costly or seconds > _COSTLY
                _remember(step.code, costly=seconds > _COSTLY)
            step.learn(stop - at, seconds, nbytes)
            self._seconds += seconds
            self.nbytes += nbytes
            made += [] if found is None else [found]
            at = stop
        done = int(np.searchsorted(np.cumsum(self.counts), at, "right"))
        self.block = concat_blocks(made) if made else None
        if step.kind is ops.Filter:
            inputs = np.arange(len(self.counts)).repeat(self.counts)
            self.counts = np.bincount(inputs[np.concatenate(kept)], minlength=len(self.counts))
        self.cut_to(done)


def _applied(block: Block, transform: FunctionTransform) -> Outcome:
    """What a map makes of elements, or a filter leaves of them."""
    outcome = transform.run(block, Numbers(None))
    if outcome.failures or (outcome.block is not None and not all(map(_is_usual, outcome.block.columns))):
        raise Alone
    return outcome


def _is_usual(column: Column) -> bool:
    if isinstance(column, ListColumn):
        first = column.items[0]
        if type(first) is not np.ndarray:
            return False
        return all(
            type(each) is np.ndarray and each.ndim == first.ndim and each.dtype == first.dtype for each in column.items
        )
    return type(column) in (DenseColumn, BytesColumn)


def _batched(block: Block, sizes: np.ndarray) -> Block:
    """Elements as batches of these sizes."""
    size = int(sizes[0])
    if (sizes == size).all():
        return stack_block(block, size)
    stops = np.cumsum(sizes).tolist()
    places = list(zip([0, *stops], stops, strict=False))
    paths = block.structure.paths()
    columns = [_batches(column, path, places) for column, path in zip(block.columns, paths, strict=True)]
    origin = None if block.origin is None else block.origin.batched_in(sizes)
    return Block(block.structure, columns, len(sizes), origin)


def _batches(column: Column, path: str, places: list[tuple[int, int]]) -> ListColumn:
    """Elements of a column as batches, from here to there; who keeps one of them does not keep the others."""
    if isinstance(column, ListColumn):
        return ListColumn([stack_column(column.slice(*place), path).values()[0] for place in places])
    whole = stack_column(column, path).values()[0]
    return ListColumn([whole[start:stop].copy() for start, stop in places])


def _beside(block: Block, taking: TakingNumbers, own: Sequence[Any], counts: np.ndarray) -> Block:
    """Elements as tuples, with the numbers of their inputs behind their own components."""
    columns: list[Column] = []
    for kind, values in zip(taking.kinds, zip(*own[: len(counts)], strict=True), strict=True):
        if kind is bytes:
            columns.append(BytesColumn.from_values(values).take(np.arange(len(values)).repeat(counts)))
        else:
            columns.append(DenseColumn(np.array(values, kind).repeat(counts)))
    components = [*block.structure.children] if block.structure.unpacks else [block.structure]
    parts = [*components, *(LEAF for _ in columns)]
    structure = nest(Structure(tuple, (), (LEAF,) * len(parts), len(parts)), parts)
    return block.with_columns(structure, [*block.columns, *columns])


def is_plain(block: Block) -> bool:
    """Whether the elements lie in memory as those of any other such Block: functions may round otherwise elsewhere."""
    arrays = [column.array for column in block.columns if type(column) is DenseColumn]
    return is_simple(block) and all(array.flags.c_contiguous and array.flags.aligned for array in arrays)


def is_simple(block: Block) -> bool:
    """Whether the elements are numbers, arrays of one shape, or byte strings, however they lie in memory."""
    for column in block.columns:
        if type(column) is DenseColumn:
            if not (column.array.dtype.isnative and column.array.dtype.kind in _KINDS):
                return False
        elif type(column) is not BytesColumn:
            return False
    return True
