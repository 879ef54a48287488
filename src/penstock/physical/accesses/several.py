"""Access by index: several streams zipped or concatenated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from penstock.block.block import Block
from penstock.block.structure import Structure
from penstock.errors import Context, UnimplementedError, annotate
from penstock.forked import new_lock
from penstock.physical.access import Access, FunctionAccess, access, accessible, all_failed, by_part, require_access
from penstock.physical.key_order import ordered
from penstock.physical.lower import Lowering, opener
from penstock.physical.memory import FillingLog
from penstock.physical.stages.combine import zipped
from penstock.physical.stretch import Stretch, failed
from penstock.plan import ops
from penstock.plan.inputs import Concatenate, Zip
from penstock.plan.node import INFINITE_CARDINALITY, total

_MOST_TURNS = 64  # repetitions of which the access is stored
_MOST_OPENED = 1024  # data sets of a flat_map of which the access is stored
_AT_ONCE = 256  # elements whose data sets are created together


def _at(stretch: Stretch, places: np.ndarray) -> Block:
    """Return the elements at positions that did not fail."""
    assert stretch.block is not None
    if len(places) == stretch.size:
        return stretch.block
    failed = np.array([place for place, _ in stretch.failures], np.int64)
    return stretch.block.take(places - np.searchsorted(failed, places))


@accessible(Zip)
def _zip(node: Zip, lowering: Lowering) -> Access:
    """Join one element of each part. If several parts fail, the error is that of the first failed part."""
    parts = [access(part, lowering) for part in node.parts]

    def size() -> int:
        finite = [part.size for part in parts if part.size != INFINITE_CARDINALITY]
        return min(finite) if finite else INFINITE_CARDINALITY

    def rows(numbers: np.ndarray) -> Stretch:
        found = [part.rows(numbers) for part in parts]
        errors = {place: error for part in reversed(found) for place, error in part.failures}
        failures = tuple(sorted(errors.items(), key=lambda failed: failed[0]))
        if len(failures) == len(numbers):
            return Stretch(None, failures)
        kept = np.delete(np.arange(len(numbers)), [place for place, _ in failures])
        return Stretch(zipped([_at(part, kept) for part in found], node.structure), failures)

    return FunctionAccess(size, rows)


def _sequence(
    size: Callable[[], int],
    split: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    stream: Callable[[int], Access],
) -> Access:
    """Return streams one after another. `split` maps indices to pairs of stream number and index in the stream."""

    def rows(numbers: np.ndarray) -> Stretch:
        which, inner = split(numbers)
        return by_part(which, lambda index, places: stream(index).rows(inner[places]))

    return FunctionAccess(size, rows)


@accessible(Concatenate)
def _concatenate(node: Concatenate, lowering: Lowering) -> Access:
    first, second = (access(part, lowering) for part in node.parts)

    def split(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if first.size == INFINITE_CARDINALITY:
            return np.zeros_like(numbers), numbers
        behind = (numbers >= first.size).astype(np.int64)
        return behind, numbers - first.size * behind

    return _ordered(
        _sequence(lambda: total([first.size, second.size]), split, lambda index: second if index else first)
    )


@accessible(ops.Repeat)
def _repeat(node: ops.Repeat, lowering: Lowering) -> Access:
    turns: dict[int, Access] = {}

    def turn(index: int) -> Access:
        found = turns.get(index)
        if found is None:
            if len(turns) >= _MOST_TURNS:
                turns.clear()
            found = turns[index] = access(node.input, lowering.turn(node.count, index))
        return found

    one = turn(0)

    def size() -> int:
        if node.count == 0 or one.size == 0:
            return 0
        return INFINITE_CARDINALITY if node.count < 0 or one.size == INFINITE_CARDINALITY else one.size * node.count

    def split(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if one.size == INFINITE_CARDINALITY:
            return np.zeros_like(numbers), numbers
        return np.divmod(numbers, one.size)

    return _sequence(size, split, turn)


def _ordered(elements: Access) -> Access:
    """Return the elements with dict keys in the order of the first element."""
    order: list[Structure] = []

    def rows(numbers: np.ndarray) -> Stretch:
        found = elements.rows(numbers)
        if found.block is None or not found.block.structure.has_names:
            return found
        if not order:
            first = found if numbers[0] == 0 else elements.rows(np.zeros(1, np.int64))
            order.append(found.block.structure if first.block is None else first.block.structure)
        return replace(found, block=ordered(found.block, order[0]))

    return FunctionAccess(lambda: elements.size, rows)


class _OpenedAccess(Access):
    """The elements of the data sets that a function creates, one data set after another.

    The length of each data set is computed first, for all of them. A data set is created again when one of its elements
    is read. A failed element, or a data set that could not be created, is one position.
    """

    def __init__(self, node: ops.FlatMap, lowering: Lowering) -> None:
        self._outer = access(node.input, lowering)
        self._open = opener(node)
        self._lowering = lowering
        self._context = Context(node.label, node.where)
        self._lock = new_lock()
        self._begins: np.ndarray | None = None  # the index of the first element of each data set, and the total number
        self._endless = False  # True if the last data set is infinite
        self._opened: dict[int, Access | Exception] = {}

    @property
    def size(self) -> int:
        begins = self._laid_out()
        return INFINITE_CARDINALITY if self._endless else int(begins[-1])

    def rows(self, numbers: np.ndarray) -> Stretch:
        begins = self._laid_out()
        which = np.searchsorted(begins if self._endless else begins[:-1], numbers, side="right") - 1

        def rows_of(index: int, places: np.ndarray) -> Stretch:
            inner = self._inner(index)
            if isinstance(inner, Exception):
                return all_failed(inner, len(places))
            return inner.rows(numbers[places] - begins[index])

        return by_part(which, rows_of)

    def _laid_out(self) -> np.ndarray:
        with self._lock:
            if self._begins is None:
                counts, size = [0], self._outer.size
                log = FillingLog(f"{self._context.stage} by number", size, at_once=_AT_ONCE)
                while len(counts) <= size and not self._endless:
                    first = len(counts) - 1
                    numbers = np.arange(first, min(first + log.ask(), size))
                    for number, inner in zip(numbers.tolist(), self._made(numbers), strict=True):
                        found = 1 if isinstance(inner, Exception) else inner.size
                        self._endless = found == INFINITE_CARDINALITY
                        if self._endless:
                            break
                        counts.append(found)
                        if number < _MOST_OPENED:
                            self._opened[number] = inner
                        log.at(number + 1)
                log.full(len(counts) - 1)
                self._begins = np.cumsum(counts)
            return self._begins

    def _inner(self, number: int) -> Access | Exception:
        found = self._opened.get(number)
        if found is None:
            (found,) = self._made(np.array([number]))
            if len(self._opened) >= _MOST_OPENED:
                self._opened.clear()
            self._opened[number] = found
        return found

    def _made(self, numbers: np.ndarray) -> Iterator[Access | Exception]:
        for number in numbers.tolist():
            for piece in self._outer.rows(np.array([number])).pieces():
                yield piece if isinstance(piece, Exception) else self._of(piece.elements()[0], number)

    def _of(self, element: object, number: int) -> Access | Exception:
        try:
            plan = self._open(element)
        except Exception as error:
            annotate(error, replace(self._context, element=number))
            return failed(error)
        try:
            require_access(plan, f"{self._context.stage} by number", _NO_NUMBERS)
        except UnimplementedError as error:
            annotate(error, replace(self._context, element=number))
            raise
        return access(plan, self._lowering.inside(plan, number))


_NO_NUMBERS = "The elements of a cache() after the flat_map have an index. An iteration fills it first."


def _never_opened(node: ops.FlatMap) -> str | None:
    return "makes data sets without end" if node.input.cardinality == INFINITE_CARDINALITY else None


@accessible(ops.FlatMap, unless=_never_opened)
def _flat_map(node: ops.FlatMap, lowering: Lowering) -> Access:
    return _OpenedAccess(node, lowering)
