"""Parted: a function whose beginning runs on whole Blocks, and whose rest is called per element, in order.

The rest receives the values that the beginning has for its element: equal types, bits, memory layout and writability.
This is checked on the first elements. Outside data that the beginning reads is checked before every call: after a
change, the whole function is called for the remaining elements.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.call_arguments import CallArguments
from penstock.block.column import Column, DenseColumn, ListColumn
from penstock.block.fixed import fixed_columns, fixed_values, without_aliasing
from penstock.block.structure import Structure
from penstock.forked import new_lock
from penstock.physical.ended import Endings, trial_of
from penstock.physical.vectorise import (
    ELEMENTS,
    SECONDS,
    PartTrial,
    PerObject,
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
    """Runs the beginning of a function on Blocks, if it has a suitable beginning. Thread-safe."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._decided: dict[Any, Parts | None] = {}
        self._latest: tuple[Structure | None, tuple[Any, ...], Parts | None] = None, (), None

    def calls(
        self, block: Block, draws: Draws, now: Element, allocate: Callable[[int], Allocate] | None = None
    ) -> Calls | Endings | None:
        """Return the calls for the elements of a Block, or None if the function has to be called as written."""
        found = self._found(block, draws, gives_elements=True)
        if found is not None and found.ends is not None and found.ends.split is not None:
            return Endings(self._function, found, found.ends, block, draws, now, allocate, _values)
        return None if found is None else self._rest(found, block, draws, now)

    def has_end(self, block: Block, draws: Draws) -> bool:
        """Return True if the end of the function may run on Blocks, too."""
        found = self._found(block, draws, gives_elements=True)
        return found is not None and found.ends is not None and found.ends.split is not None

    def rest(self, block: Block, draws: Draws, now: Element) -> Calls | None:
        """Return the calls for a function whose results are not elements. Its end is called together with the rest."""
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
    """The calls of one Block, one per row, in order."""

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
        self.given = CallArguments([columns[k] for k in own], [values[k] for k in own])
        self._rows: Iterator[tuple[Any, ...]] = parts.rows(function, values, block.size)
        self._elements: list[Any] = []  # empty until the elements are needed

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
    """Return True if a column was created for these calls and shares memory with no other column."""
    column, output = columns[k], graph.outputs[k]
    if not isinstance(column, DenseColumn) or (isinstance(output, Ref) and output.equation < 0):
        return False
    others = [*columns[:k], *columns[k + 1 :], *[inputs[i] for i in graph.used(range(len(columns)))]]
    if any(isinstance(other, ListColumn) for other in others):
        return False  # arrays of a list may share memory with anything
    return not any(
        isinstance(other, DenseColumn) and np.may_share_memory(column.array, other.array) for other in others
    )


_graph_of: PerObject[Parts, Graph] = PerObject(lambda found: optimised(found.graph))
_trial_of: PerObject[Parts, PartTrial] = PerObject(lambda found: PartTrial())


def _run(found: Parts, block: Block, draws: Draws) -> list[Column] | None:
    """Return the results of the beginning for a Block, or None if it fails: the original calls then raise the error."""
    graph = _graph_of(found)
    try:
        used = graph.used(range(len(graph.outputs)))
        inputs = fixed_columns(block.columns, used)  # views of these columns are not writable either
        made = graph.run(inputs, block.size, None, draws.of(block.size))
    except MemoryError:
        raise
    except Exception:
        return None
    columns = [column_of_output(column, block.size) for column in made]
    return without_aliasing(columns, [pair for pair in graph.sharing() if not views_together(found.graph, *pair)])


def _values(found: Parts, block: Block, draws: Draws) -> list[list[Any]] | None:
    """Return the values of each output of the beginning, or None if it fails."""
    columns = _run(found, block, draws)
    return None if columns is None else values_of(found, columns)


def _checked(found: Parts, block: Block, draws: Draws) -> bool:
    """Return True if the beginning returns the same per Block as per element.

    It is checked until enough were compared.
    """
    trial = _trial_of(found)
    if not trial.over:
        with _TRYING:
            if not trial.over:
                trial.failed = not _equal(found, trial, block, draws)
    return not trial.failed


def differs(found: Parts) -> bool:
    """Return True if the beginning or end gave another result on Blocks, so that the function runs as written."""
    ended = None if found.ends is None else found.ends.ended
    return _trial_of(found).failed or (ended is not None and trial_of(ended).failed)


_TRYING = new_lock()


def _equal(found: Parts, trial: PartTrial, block: Block, draws: Draws) -> bool:
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
    except Exception:  # the original run raises it again
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
    """Return the values of each output. Values of the element itself are read-only."""
    own = [isinstance(output, Ref) and output.equation < 0 for output in found.graph.outputs]
    return [fixed_values(column) if given else column.values() for column, given in zip(columns, own, strict=True)]


def _apart(graph: Graph, values: Sequence[Any]) -> bool:
    """Return True if no write to one value changes another. Views are allowed if they are views on Blocks, too."""
    arrays = [(k, value) for k, value in enumerate(values) if isinstance(value, np.ndarray)]
    written = [(k, value) for k, value in arrays if value.flags.writeable]
    return not any(
        i != j and np.may_share_memory(a, b) and not views_together(graph, min(i, j), max(i, j))
        for (i, a), (j, b) in product(written, arrays)
    )


def _may_be_together(graph: Graph) -> Iterator[tuple[int, int]]:
    """Return the pairs of outputs that are not both values of the element itself."""
    own = [isinstance(output, Ref) and output.equation < 0 for output in graph.outputs]
    made = [k for k, itself in enumerate(own) if not itself]
    return ((min(i, j), max(i, j)) for i, j in product(made, range(len(own))) if i < j or own[j])


def _distance(first: np.ndarray, second: np.ndarray) -> int | None:
    """Return the distance of two arrays in shared memory in bytes, or None if they share none."""
    if not np.may_share_memory(first, second):
        return None
    begins = [array.__array_interface__["data"][0] for array in (first, second)]
    return int(begins[1] - begins[0])
