"""Endings: calls of a function whose beginning and end run on whole Blocks, and whose middle runs per element.

The middle is called for each element in order. Its results are copied at once, so later calls cannot change them. The
end is computed after all middles: it is pure, so the delay is not observable. For some elements the middle behaves
differently: it returns, uses random numbers, leaves values of another kind, or changes data that the end reads. The end
of such an element is called at once, as in the original function.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from penstock.block.block import Block, BlockBuilder
from penstock.block.call_arguments import CallArguments
from penstock.block.column import Column, DenseColumn, column_of
from penstock.block.fixed import fixed_column, fixed_columns, fixed_values, without_aliasing
from penstock.block.leaf import as_leaf
from penstock.block.structure import components
from penstock.physical.vectorise import (
    ELEMENTS,
    SECONDS,
    PartTrial,
    PerObject,
    column_of_output,
    equal_blocks,
    in_one_piece,
    is_view,
    optimised,
    same_in_all,
)
from penstock.trace.arithmetic import views_together
from penstock.trace.drawing import Draws, Element
from penstock.trace.ends import Ended, Ends, EndSplit, may_be_passed_on
from penstock.trace.graph import Allocate, Const, Graph, NotTraceable, Ref
from penstock.trace.parts import Parts
from penstock.trace.templates import rows_of

Run = Callable[[Parts, Block, Draws], "list[list[Any]] | None"]  # values of the beginning, or None if it fails


@dataclass(frozen=True, slots=True)
class _Raised:
    error: BaseException


@dataclass(frozen=True, slots=True)
class _Pending:
    """An element whose end runs together with the ends of others; `at` is the row of its middle's values."""

    at: int


class _Mark:
    """Marks the result of a middle that reached its end."""


@dataclass(eq=False)
class Endings:
    """All calls of one Block, computed on creation. Calling it with each row in order returns the results.

    `whole` contains all results as one Block if no result had to be computed separately.
    """

    _function: Callable[..., Any]
    _parts: Parts
    _ends: Ends
    _block: Block
    _draws: Draws
    _now: Element
    _allocate: Callable[[int], Allocate] | None
    _begin: Run
    whole: Block | None = None

    def __post_init__(self) -> None:
        self.given = CallArguments([], [])
        self._holds = self._parts.captured.unchanged()
        self._results: list[Any] = []
        self._made()

    def __call__(self, row: int) -> Any:
        if not row and self.whole is not None:
            self._results = _elements(self.whole)
        result, self._results[row] = self._results[row], None
        if type(result) is BlockBuilder:
            return result.only()
        if type(result) is _Raised:
            raise result.error
        return result

    def _made(self) -> None:
        size = self._block.size
        while len(self._results) < size and self._holds and self._ends.ended is None:
            split = self._ends.split  # another thread may set it to None in the meantime
            if split is None:
                break
            row = len(self._results)
            element = self._block.slice(row, row + 1).elements()[0]
            self._results.append(self._sound(row, self._tried(split, element)))
        ended = self._ends.ended
        if ended is not None and self._holds and len(self._results) < size and not trial_of(ended).failed:
            self._by_block(ended)
        if not self._holds:
            self._parts.unsteady.update((self._parts if ended is None else ended).captured.places(changed=True))
        if len(self._results) < size:
            for row, element in enumerate(self._block.elements()[len(self._results) :], len(self._results)):
                self._results.append(self._as_written(row, element))

    def _as_written(self, row: int, element: Any) -> Any:
        self._now.begin(row)
        unpacks = self._block.structure.unpacks
        return _settled(lambda: self._function(*element) if unpacks else self._function(element))

    def _sound(self, row: int, result: Any) -> Any:
        """Return the result, or the result of the original function if the parts cannot compute it.

        This is the case if the result contains a tracer, or if a straight function raised an exception, because its
        exception handlers were left out.
        """
        if type(result) is not _Raised or not (self._parts.is_straight or isinstance(result.error, NotTraceable)):
            return result
        self._holds = self._holds and self._parts.is_straight
        return self._as_written(row, self._block.slice(row, row + 1).elements()[0])

    def _values(self, row: int) -> dict[str, Any] | None:
        """Return the variables before the middle for one element, or None if the beginning fails."""
        rows = np.array([row])
        block = self._block.take(rows)
        found = self._begin(self._parts, block, Draws(self._draws.key, self._draws.numbers.take(rows)))
        if found is None:
            return None
        return dict(zip(self._parts.names, next(self._parts.rows(self._function, found, 1)), strict=True))

    def _tried(self, split: EndSplit, element: Any) -> Any:
        """Return the result of an element while the values of the middle are not known yet."""
        row = len(self._results)
        variables = self._values(row)
        if variables is None:
            return self._as_written(row, element)
        self._now.begin(row)
        self._now.ordinal = self._parts.draws
        try:
            made = split.middle(_MARK, *[variables[name] for name in split.takes])
            self._holds = self._parts.captured.unchanged()
            if not _came_to_its_end(made):
                early = [made]
                del made
                return _settled(early.pop)
            if self._holds:
                self._ends.decide(split, made[1:], self._now.ordinal - self._parts.draws)
        except (NotTraceable, Exception) as error:
            self._holds = self._parts.captured.unchanged()
            return _Raised(error)
        return _settled(lambda: self._ended_plainly(split, variables, made))

    def _ended_plainly(self, split: EndSplit, variables: dict[str, Any], made: tuple[Any, ...]) -> Any:
        variables.update(zip(split.gives, made[1:], strict=True))
        return split.end(*[variables[name] for name in split.needs])

    def _by_block(self, ended: Ended) -> None:
        """Compute the results of all remaining elements."""
        start, size = len(self._results), self._block.size
        block = self._block.slice(start, size)
        numbers = self._draws.numbers.part(start, size)
        calls = _ByBlock(ended, block, Draws(self._draws.key, numbers))
        if (
            not ended.captured.unchanged()
            or not calls.begin(None if start else self._allocate)
            or not self._same_before(ended, calls, block, numbers)
        ):
            return
        now, middle, drawn = self._now, ended.split.middle, self._parts.draws + ended.drawn
        pure = ended.split.pure
        unlike, began = 0, time.thread_time()
        for at, arguments in enumerate(calls.arguments(self._function)):
            if not self._holds:
                break
            now.begin(start + at)
            now.ordinal = self._parts.draws
            try:
                made = middle(_MARK, *arguments)
            except (NotTraceable, Exception) as error:
                self._holds = pure or ended.captured.unchanged()
                self._results.append(self._sound(start + at, _Raised(error)))
                continue
            self._holds = pure or ended.captured.unchanged()
            if not _came_to_its_end(made):
                early = [made]
                del made
                self._results.append(self._sound(start + at, _settled(early.pop)))
            elif self._holds and now.ordinal == drawn and calls.keep(at, made):
                self._results.append(_Pending(at))
            else:
                unlike += 1
                self._results.append(self._unlike(ended.split, start + at, made))
        self._parts.spent.add(len(self._results) - start, time.thread_time() - began)
        self._ends.count(len(self._results) - start, unlike)
        self._finish(ended, calls, start)

    def _unlike(self, split: EndSplit, row: int, made: tuple[Any, ...]) -> Any:
        ordinal = self._now.ordinal
        variables = self._values(row)
        assert variables is not None  # the beginning was computed for all of them
        self._now.begin(row)
        self._now.ordinal = ordinal
        return self._sound(row, _settled(lambda: self._ended_plainly(split, variables, made)))

    def _same_before(self, ended: Ended, calls: _ByBlock, block: Block, numbers: Any) -> bool:
        """Return True if the middle gets the same values as per element.

        It is checked until enough elements were compared.
        """
        trial = trial_of(ended)
        if trial.over:
            return True
        rows = _sample(block.size)
        plain = self._begin(self._parts, block.take(rows), Draws(self._draws.key, numbers.take(rows)))
        if plain is None:
            return False
        names = ended.split.takes
        as_written = [
            dict(zip(self._parts.names, row, strict=True)) for row in self._parts.rows(self._function, plain, len(rows))
        ]
        given = list(calls.arguments(self._function))
        trial.failed = not all(
            same_in_all(value, wanted[name])
            for row, wanted in zip(rows.tolist(), as_written, strict=True)
            for name, value in zip(names, given[row], strict=True)
        )
        return not trial.failed

    def _finish(self, ended: Ended, calls: _ByBlock, start: int) -> None:
        """Compute the ends of the elements that wait for them."""
        kept = np.array([result.at for result in self._results[start:] if type(result) is _Pending], np.int64)
        if not len(kept):
            return
        whole = not start and len(kept) == self._block.size
        made = calls.results(kept, self._allocate if whole else None)
        if made is not None and self._holds and not self._same_after(ended, calls, kept, made):
            made = None
        if made is None:
            for row, result in enumerate(self._results):
                if type(result) is _Pending:
                    self._results[row] = self._late(ended, calls, row, result.at)
            return
        if whole:
            self.whole = self._block.with_columns(made.structure, made.columns)
            return
        elements = iter(_elements(made))
        self._results = [next(elements) if type(result) is _Pending else result for result in self._results]

    def _late(self, ended: Ended, calls: _ByBlock, row: int, at: int) -> Any:
        """Return the end of one element after the ends of a Block failed: as written if its data is unchanged."""
        if not self._holds:
            try:
                made = calls.results_of(at)
            except Exception as error:
                return self._sound(row, _Raised(error))
            return _elements(made)[0]
        self._now.begin(row)
        self._now.ordinal = self._parts.draws + ended.drawn
        return self._unlike(ended.split, row, (_MARK, *calls.left(at)))

    def _same_after(self, ended: Ended, calls: _ByBlock, kept: np.ndarray, made: Block) -> bool:
        """Return True if the end returns the same per Block as per element.

        It is checked until enough were compared.
        """
        trial = trial_of(ended)
        if trial.over:
            return not trial.failed
        builder, rows, began = BlockBuilder(), [], time.perf_counter()
        for place in _sample(len(kept)).tolist():
            row = int(kept[place]) + self._block.size - calls.size
            variables = self._values(row)
            if variables is None:
                return False
            self._now.begin(row)
            self._now.ordinal = self._parts.draws + ended.drawn
            try:
                left = (_MARK, *calls.left(int(kept[place])))
                builder.add(components(self._ended_plainly(ended.split, variables, left)))
            except (NotTraceable, Exception):  # the original calls raise it again
                return False
            rows.append(place)
            if len(rows) >= 2 and time.perf_counter() - began >= SECONDS:
                break
        trial.checked += len(rows)
        trial.spent += time.perf_counter() - began
        trial.failed = not equal_blocks(made.take(np.array(rows)), builder.build())
        return not trial.failed


_MARK = _Mark()


def _elements(block: Block) -> list[Any]:
    """Return the elements of a Block of results. They may be writable."""
    return block.structure.rows([column.values() for column in block.columns])


def _came_to_its_end(made: Any) -> bool:
    return type(made) is tuple and bool(made) and made[0] is _MARK


def _sample(size: int) -> np.ndarray:
    return np.linspace(size - 1, 0, min(ELEMENTS, size)).astype(np.int64)


def _settled(make: Callable[[], Any]) -> Any:
    """Return the result of a call in a `BlockBuilder`, so that later changes by other code do not affect it."""
    builder = BlockBuilder()
    try:
        builder.add(_nest(make()))
    except (NotTraceable, Exception) as error:
        return _Raised(error)
    return builder


def _nest(result: Any) -> Any:
    return components(result) if isinstance(result, list) else result


@dataclass(frozen=True, slots=True)
class _Plan:
    """The optimised graphs, and facts about them that are the same for every Block."""

    before: Graph
    after: Graph
    used: frozenset[int]  # columns that are inputs of a computation
    apart: tuple[tuple[int, int], ...]  # pairs of outputs that must not share memory
    whole: tuple[int | None, ...]  # for each result, the input column that it is, or None
    views: tuple[bool, ...]  # for each result
    results_apart: tuple[tuple[int, int], ...]  # pairs of results that must not share memory, and may do so now

    @classmethod
    def of(cls, ended: Ended) -> _Plan:
        before = optimised(ended.before, copied=ended.copied)
        after = optimised(ended.after, copied=range(len(ended.after.outputs)))
        apart = [
            pair
            for pair in before.sharing()
            if not (ended.shown.issuperset(pair) and views_together(ended.before, *pair))
        ]
        graphs = {"before": before, "after": after}
        own = [source in graphs and graphs[source].may_be_a_view(index) for source, index in ended.results]
        results_apart = [
            (i, j)
            for i, j in combinations(range(len(own)), 2)
            if own[i] or own[j] or ended.results[i] == ended.results[j]
        ]
        whole, views = [], []
        for source, index in ended.results:
            output = before.outputs[index] if source == "before" else None
            whole.append(output.index if isinstance(output, Ref) and output.equation < 0 else None)
            views.append(source in graphs and is_view(graphs[source], index))
        return cls(
            before, after, before.used(ended.crossing), tuple(apart), tuple(whole), tuple(views), tuple(results_apart)
        )


trial_of: PerObject[Ended, PartTrial] = PerObject(lambda ended: PartTrial())
_plan_of: PerObject[Ended, _Plan] = PerObject(_Plan.of)


class _ByBlock:
    """The values computed per Block, and the values that the middles leave for it."""

    def __init__(self, ended: Ended, block: Block, draws: Draws) -> None:
        self.size = block.size
        self._ended = ended
        self._block = block
        self._draws = draws
        self._plan = _plan_of(ended)
        self._columns: list[Column] = []
        self._kept: list[Any] = [
            [None] * block.size if kind is None else np.empty((block.size, *kind.shape), kind.dtype)
            for kind in ended.kinds
        ]

    def begin(self, allocate: Callable[[int], Allocate] | None) -> bool:
        """Compute everything that does not need the middle, with results in the offered memory.

        Return False on failure.
        """
        leaves = {index: k for k, (source, index) in enumerate(self._ended.results) if source == "before"}

        def offered(output: int) -> Allocate:
            return _nothing if allocate is None or output not in leaves else allocate(leaves[output])

        try:
            inputs = fixed_columns(self._block.columns, self._plan.used)
            made = self._plan.before.run(inputs, self.size, offered, self._draws.of(self.size))
        except MemoryError:
            raise
        except Exception:
            return False
        columns = [column_of_output(column, self.size) for column in made]
        self._columns = without_aliasing(columns, self._plan.apart)
        return True

    def arguments(self, itself: Any) -> Any:
        """Return the arguments of the middle for each element."""
        shown = list(zip(self._columns, self._plan.before.outputs, strict=True))[: len(self._ended.shown)]
        values = [
            fixed_values(column) if isinstance(output, Ref) and output.equation < 0 else column.values()
            for column, output in shown
        ]
        return rows_of(self._ended.arguments, itself, values, self.size)

    def keep(self, at: int, made: Sequence[Any]) -> bool:
        """Store the values of the middle for one element. Return False if they differ in kind from those of others."""
        kinds, layout = self._ended.kinds, self._ended.any_layout
        for kind, value in zip(kinds, made[1:], strict=True):
            if not (may_be_passed_on(value) if kind is None else kind.admits(value, any_layout=layout)):
                return False
        for place, value in zip(self._kept, made[1:], strict=True):
            place[at] = value
        return True

    def left(self, at: int) -> list[Any]:
        """Return the values of the middle for one element."""
        found = []
        for kind, place in zip(self._ended.kinds, self._kept, strict=True):
            value = place[at]
            found.append(value.copy() if kind is not None and kind.shape else value)
        return found

    def results(self, rows: np.ndarray, allocate: Callable[[int], Allocate] | None) -> Block | None:
        """Return the results of these elements in the offered memory, or None if the end fails."""
        try:
            return self._results(rows, allocate)
        except MemoryError:
            raise
        except Exception:
            return None

    def results_of(self, at: int) -> Block:
        return self._results(np.array([at]), None)

    def _results(self, rows: np.ndarray, allocate: Callable[[int], Allocate] | None) -> Block:
        ended, plan, every = self._ended, self._plan, len(rows) == self.size
        before = self._columns if every else [column.take(rows) for column in self._columns]
        kept = [self._chosen(i, rows, every=every) for i in range(len(self._kept))]
        inputs = [before[place] for place in ended.crossing]
        inputs += [DenseColumn(place) for place, kind in zip(kept, ended.kinds, strict=True) if kind is not None]
        draws = self._draws if every else Draws(self._draws.key, self._draws.numbers.take(rows))
        after = [
            column_of_output(made, len(rows))
            for made in self._plan.after.run(inputs, len(rows), None, draws.of(len(rows)))
        ]
        columns: list[Column] = []
        for k, (source, index) in enumerate(ended.results):
            itself = plan.whole[k]
            if itself is not None:
                column = fixed_column(self._block.columns[itself])  # the middle may have stored it
                column = column if every else column.take(rows)
            elif source == "constant":
                assert isinstance(index, Const)
                column = column_of_output(index, len(rows))
            elif source == "passed":
                column = _column_of(kept[index])
            elif source == "given":
                column = DenseColumn(kept[index])
            else:
                column = (before if source == "before" else after)[index]
            columns.append(in_one_piece(column, None if allocate is None else allocate(k), view=plan.views[k]))
        return Block(ended.structure, without_aliasing(columns, plan.results_apart), len(rows))

    def _chosen(self, give: int, rows: np.ndarray, *, every: bool) -> Any:
        place = self._kept[give]
        if every:
            return place
        return place[rows] if isinstance(place, np.ndarray) else [place[row] for row in rows.tolist()]


def _nothing(shape: tuple[int, ...], dtype: Any) -> None:
    """Return no memory."""


def _column_of(values: list[Any]) -> Column:
    """Return Python values as a column of leaves. Lists of integers, the usual case, are converted at once."""
    if all(type(value) is int for value in values):
        made = np.array(values)
        if made.dtype == np.int64:
            return DenseColumn(made)
    return column_of([as_leaf(value) for value in values])
