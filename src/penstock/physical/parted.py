"""Parted: a function whose beginning runs a Block at a time, and whose rest is called for each element, in order.

What the rest gets are the values that the beginning has for that element when it is called: the same types, bits,
layout and rights to write, which is checked on the first elements. What the beginning reads from outside is looked at
before every call: once some of it is another, the whole function is called for the elements that follow.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.column import Column, DenseColumn, ListColumn
from penstock.block.fixed import Given, fixed_columns, fixed_values, without_aliasing
from penstock.block.structure import Structure
from penstock.forked import new_lock
from penstock.physical.ended import Endings, trial_of
from penstock.physical.vectorise import (
    ELEMENTS,
    SECONDS,
    Trial,
    any_extent,
    column_of_output,
    kind_of,
    optimised,
    same_in_all,
)
from penstock.trace.arithmetic import views_together
from penstock.trace.drawing import Draws, Element, drawing
from penstock.trace.graph import Allocate, Graph, Ref
from penstock.trace.parts import Parts, in_parts, worth_asking


class Parted:
    """Runs the beginning of a function by Block, where it has one. Thread-safe."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._decided: dict[Any, Parts | None] = {}
        self._latest: tuple[Structure | None, tuple[Any, ...], Parts | None] = None, (), None

    def calls(
        self, block: Block, draws: Draws, now: Element, allocate: Callable[[int], Allocate] | None = None
    ) -> Calls | Endings | None:
        """How to call the function for the elements of a Block; None where that is to be done as it is written."""
        found = self._found(block, draws, gives_elements=True)
        if found is not None and found.ends is not None and found.ends.split is not None:
            return Endings(self._function, found, found.ends, block, draws, now, allocate, _values)
        return None if found is None else self._rest(found, block, draws, now)

    def has_end(self, block: Block, draws: Draws) -> bool:
        """Return True if the end of the function may run by Block, too."""
        found = self._found(block, draws, gives_elements=True)
        return found is not None and found.ends is not None and found.ends.split is not None

    def rest(self, block: Block, draws: Draws, now: Element) -> Calls | None:
        """The same, where what the function gives is no element: its end is called with the rest."""
        found = self._found(block, draws, gives_elements=False)
        return None if found is None else self._rest(found, block, draws, now)

    def _rest(self, found: Parts, block: Block, draws: Draws, now: Element) -> Calls | None:
        columns = _run(found, block, draws) if found.gains else None
        return None if columns is None else Calls(self._function, found, columns, block, now)

    def _found(self, block: Block, draws: Draws, *, gives_elements: bool) -> Parts | None:
        structure, kinds = block.structure, tuple(map(kind_of, block.columns))
        latest, same, found = self._latest
        if latest is not structure or same != kinds or (found is not None and not found.holds()):
            found = self._decided.get((structure, kinds))
            if (structure, kinds) not in self._decided or (found is not None and not found.holds()):
                if not worth_asking(self._function, structure, block.size, gives_elements=gives_elements):
                    return None
                specs = tuple(map(any_extent, block.columns))
                found = self._decided[structure, kinds] = in_parts(self._function, structure, specs, found)
            self._latest = structure, kinds, found
        return found if found is not None and _checked(found, block, draws) else None


class Calls:
    """The calls of one Block, each called with its row, in order."""

    def __init__(
        self, function: Callable[..., Any], parts: Parts, columns: Sequence[Column], block: Block, now: Element
    ) -> None:
        self._function = function
        self.parts = parts
        self._block = block
        self._now = now
        self._holds = True
        values = values_of(parts, columns)
        own = [k for k in range(len(columns)) if _is_own(parts.graph, k, columns, block.columns)]
        self.given = Given([columns[k] for k in own], [values[k] for k in own])
        self._rows: Iterator[tuple[Any, ...]] = parts.rows(function, values, block.size)
        self._elements: list[Any] = []  # once they are to be made

    def __call__(self, row: int) -> Any:
        arguments = next(self._rows)
        if self._holds and (self.parts.pure or self.parts.captured.unchanged()):
            self.given.begin(row)
            self._now.ordinal = self.parts.draws
            try:
                return self.parts.rest(*arguments)
            except Exception:
                if not self.parts.is_straight:
                    raise
                self._now.begin(row)
        else:
            if self._holds:
                self.parts.unsteady.update(self.parts.captured.places(changed=True))
            self._holds = False
        self.given.begin(-1)
        self._elements = self._elements or self._block.elements()
        element = self._elements[row]
        return self._function(*element) if self._block.structure.unpacks else self._function(element)


def _is_own(graph: Graph, k: int, columns: Sequence[Column], inputs: Sequence[Column]) -> bool:
    """Whether it was made for these calls, and is of memory that no other column has."""
    column, output = columns[k], graph.outputs[k]
    if not isinstance(column, DenseColumn) or (isinstance(output, Ref) and output.equation < 0):
        return False
    others = [*columns[:k], *columns[k + 1 :], *[inputs[i] for i in graph.used(range(len(columns)))]]
    if any(isinstance(other, ListColumn) for other in others):
        return False  # of arrays that may be anything's
    return not any(
        isinstance(other, DenseColumn) and np.may_share_memory(column.array, other.array) for other in others
    )


_GRAPHS: weakref.WeakKeyDictionary[Parts, Graph] = weakref.WeakKeyDictionary()
_TRIALS: weakref.WeakKeyDictionary[Parts, Trial] = weakref.WeakKeyDictionary()
_LOCK = new_lock()


def _graph(found: Parts) -> Graph:
    with _LOCK:
        graph = _GRAPHS.get(found)
        if graph is None:
            graph = _GRAPHS[found] = optimised(found.graph)
        return graph


def _run(found: Parts, block: Block, draws: Draws) -> list[Column] | None:
    """What the beginning gives for a Block; None where it fails: the calls as written raise the user's error."""
    graph = _graph(found)
    try:
        used = graph.used(range(len(graph.outputs)))
        inputs = fixed_columns(block.columns, used)  # nor can views of them be written to
        made = graph.run(inputs, block.size, None, draws.of(block.size))
    except MemoryError:
        raise
    except Exception:
        return None
    columns = [column_of_output(column, block.size) for column in made]
    return without_aliasing(columns, [pair for pair in graph.sharing() if not views_together(found.graph, *pair)])


def _values(found: Parts, block: Block, draws: Draws) -> list[list[Any]] | None:
    """The values of each output of the beginning; None where it fails."""
    columns = _run(found, block, draws)
    return None if columns is None else values_of(found, columns)


def _checked(found: Parts, block: Block, draws: Draws) -> bool:
    """Whether the beginning gives what it gives per element; said of more elements until there were enough."""
    with _LOCK:
        trial = _TRIALS.setdefault(found, Trial())
    if not trial.over:
        with _TRYING:
            if not trial.over:
                trial.failed = not _equal(found, trial, block, draws)
    return not trial.failed


def differs(found: Parts) -> bool:
    """Return True if the beginning or the end gave another result by Block, so that the function runs as written."""
    with _LOCK:
        trial = _TRIALS.get(found)
    ended = None if found.ends is None else found.ends.ended
    return (trial is not None and trial.failed) or (ended is not None and trial_of(ended).failed)


_TRYING = new_lock()


def _equal(found: Parts, trial: Trial, block: Block, draws: Draws) -> bool:
    rows = np.linspace(block.size - 1, 0, min(ELEMENTS, block.size)).astype(np.int64)
    elements = block.take(rows).elements()
    plain: list[list[Any]] = []
    began = time.perf_counter()
    try:
        with drawing(draws) as now:
            for row, element in zip(rows.tolist(), elements, strict=True):
                now.begin(row)
                plain.append(found.plainly(element if block.structure.unpacks else (element,)))
                if now.ordinal != found.draws or not _apart(found.graph, plain[-1]):
                    return False
                if len(plain) >= 2 and time.perf_counter() - began >= SECONDS:
                    break
    except Exception:  # the run as written raises it again
        return True
    finally:
        trial.checked += len(plain)
        trial.spent += time.perf_counter() - began
    rows = rows[: len(plain)]
    columns = _run(found, block.take(rows), Draws(draws.key, draws.numbers.take(rows)))
    if columns is None:
        return False
    fast = zip(*values_of(found, columns), strict=True) if columns else iter([()] * len(plain))
    together = [pair for pair in _may_be_together(found.graph) if views_together(found.graph, *pair)]
    return all(
        all(map(same_in_all, row, as_written))
        and all(_distance(row[i], row[j]) == _distance(as_written[i], as_written[j]) for i, j in together)
        for row, as_written in zip(fast, plain, strict=True)
    )


def values_of(found: Parts, columns: Sequence[Column]) -> list[list[Any]]:
    """The values of each output: those of the element itself cannot be written to."""
    own = [isinstance(output, Ref) and output.equation < 0 for output in found.graph.outputs]
    return [fixed_values(column) if given else column.values() for column, given in zip(columns, own, strict=True)]


def _apart(graph: Graph, values: Sequence[Any]) -> bool:
    """Whether nobody who writes into one of the values changes another, but for views, which are views by Block too."""
    arrays = [(k, value) for k, value in enumerate(values) if isinstance(value, np.ndarray)]
    written = [(k, value) for k, value in arrays if value.flags.writeable]
    return not any(
        i != j and np.may_share_memory(a, b) and not views_together(graph, min(i, j), max(i, j))
        for (i, a), (j, b) in product(written, arrays)
    )


def _may_be_together(graph: Graph) -> Iterator[tuple[int, int]]:
    """The pairs of outputs of which not both are values of the element itself."""
    own = [isinstance(output, Ref) and output.equation < 0 for output in graph.outputs]
    made = [k for k, itself in enumerate(own) if not itself]
    return ((min(i, j), max(i, j)) for i, j in product(made, range(len(own))) if i < j or own[j])


def _distance(first: np.ndarray, second: np.ndarray) -> int | None:
    """How far apart two arrays begin in the memory that they share; None where they share none."""
    if not np.may_share_memory(first, second):
        return None
    begins = [array.__array_interface__["data"][0] for array in (first, second)]
    return int(begins[1] - begins[0])
