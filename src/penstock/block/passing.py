"""PassingBuilder: collects the results of a function that returns many of its arguments unchanged.

A returned value needs no copy and no check if it is the very object that the function received and is read-only. The
column of this argument then becomes a column of the results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter, is_, itemgetter
from typing import Any

import numpy as np

from penstock.block.block import Block, BlockBuilder
from penstock.block.column import BytesColumn, Column, DenseColumn
from penstock.block.fixed import fixed_column, fixed_values
from penstock.block.leaf import settle
from penstock.block.structure import Structure, flatten, refuse_none

FEWEST = 4  # number of columns from which this pays off
_CHANGES = 3  # number of changes after which every leaf is converted one by one
_layout: Callable[[Any], Any] = attrgetter("shape", "dtype", "strides")


class PassingBuilder(BlockBuilder):
    """A `BlockBuilder` for results of a function over `elements`, in order; `row` is the row of the next result.

    >>> block = Block.from_elements([{"a": np.zeros(2), "b": i} for i in range(3)])
    >>> results = PassingBuilder(None, block)
    >>> for row, element in enumerate(results.elements):
    ...     results.row = row
    ...     results.add({**element, "b": 0})
    >>> made = results.build()
    >>> np.shares_memory(made.columns[0].array, block.columns[0].array), made.columns[1].array
    (True, array([0, 0, 0]))
    """

    __slots__ = (
        "_block",
        "_changes",
        "_columns",
        "_passed",
        "_places",
        "_rows",
        "_settled",
        "_values",
        "elements",
        "row",
    )

    def __init__(self, structure: Structure | None, block: Block) -> None:
        super().__init__(structure)
        self._block = block
        self._values = [fixed_values(column) for column in block.columns]
        self.elements: list[Any] = block.structure.rows(self._values)
        self.row = 0
        self._rows: list[int] = []  # rows of the results so far
        # leaves that were unchanged arguments in every row so far, with their columns
        self._places: dict[int, int] = {}
        self._passed: _PassedCheck | None = None
        self._changes = 0  # number of rows in which some leaves were no longer unchanged arguments
        self._settled: list[int] = []  # positions of the other leaves
        self._columns: list[list[Any]] = []  # values of the other leaves

    def add(self, element: Any) -> None:
        structure = self._structure
        if structure is None:
            leaves, structure = flatten(element)
            refuse_none(structure)
        else:
            leaves = structure.flatten(element)
        del element  # drop this reference, so that `settle` counts only those of the caller
        if not self._size:
            self._leaves = [[] for _ in leaves]
            self._places = self._given_back(leaves)
            self._sort(len(leaves))
        if self._passed is not None and not self._passed.holds(leaves, self.row):
            self._no_longer(leaves)
        chosen = leaves if self._passed is None else [leaves[k] for k in self._settled]
        del leaves
        settle(chosen)
        self._structure = structure
        for column, leaf in zip(self._columns, chosen, strict=True):
            column.append(leaf)
        self._rows.append(self.row)
        self._size += 1

    def _given_back(self, leaves: Sequence[Any]) -> dict[int, int]:
        """Return, per leaf of the current row, the column whose value it is. Each column is used once."""
        own: dict[int, list[int]] = {}  # by identity; several columns may hold the same object, such as True
        for number in reversed(range(len(self._values))):
            if _passes(self._block.columns[number]):
                own.setdefault(id(self._values[number][self.row]), []).append(number)
        return {k: own[id(leaf)].pop() for k, leaf in enumerate(leaves) if own.get(id(leaf))}

    def _sort(self, count: int) -> None:
        assert self._leaves is not None
        self._settled = [k for k in range(count) if k not in self._places]
        self._columns = [self._leaves[k] for k in self._settled]
        self._passed = _PassedCheck(self._places, self._block.columns, self._values) if self._places else None

    def _no_longer(self, leaves: Sequence[Any]) -> None:
        """Convert the leaves that are no longer unchanged arguments one by one from now on."""
        assert self._leaves is not None
        assert self._passed is not None
        others = self._passed.others(leaves, self.row)
        self._changes += 1
        for k in others if self._changes <= _CHANGES else [*self._places]:
            self._leaves[k] = self._leaves_of(self._places.pop(k))
        self._sort(len(leaves))

    def _leaves_of(self, number: int) -> list[Any]:
        """Return copies of the values of a column for all rows so far."""
        values = self._block.columns[number].values()
        return [_copied(values[row]) for row in self._rows]

    def chosen(self, rows: Sequence[int]) -> BlockBuilder:
        assert self._leaves is not None
        while self._places:
            place, number = self._places.popitem()
            self._leaves[place] = self._leaves_of(number)
        self._sort(len(self._leaves))
        return super().chosen(rows)

    def _column_at(self, place: int, *, any_rank: bool) -> Column:
        number = self._places.get(place)
        if number is None:
            return super()._column_at(place, any_rank=any_rank)
        column = self._block.columns[number]
        if not isinstance(column, DenseColumn) or column.array.ndim > 1:  # the function may have stored its argument
            column = fixed_column(column)
        return column if self._size == self._block.size else column.take(np.array(self._rows))


class _PassedCheck:
    """Checks that leaves at some positions are values of columns, with the same memory layout."""

    def __init__(self, places: Mapping[int, int], columns: Sequence[Column], values: Sequence[list[Any]]) -> None:
        self._leaves = _several([*places])
        # values of the columns, per row
        self._own = [*zip(*[values[number] for number in places.values()], strict=True)]
        own = [(k, columns[number]) for k, number in places.items()]
        arrays = {k: column.array for k, column in own if isinstance(column, DenseColumn) and column.array.ndim > 1}
        self._places = [*places]
        self._arrays = _several([*arrays]) if arrays else None
        self._layouts = [(array.shape[1:], array.dtype, array.strides[1:]) for array in arrays.values()]
        self._layout_at = dict(zip(arrays, self._layouts, strict=True))

    def holds(self, leaves: Sequence[Any], row: int) -> bool:
        if not all(map(is_, self._leaves(leaves), self._own[row])):
            return False
        return self._arrays is None or [*map(_layout, self._arrays(leaves))] == self._layouts

    def others(self, leaves: Sequence[Any], row: int) -> list[int]:
        """Return the positions of leaves that are not."""
        return [
            k
            for k, own in zip(self._places, self._own[row], strict=True)
            if leaves[k] is not own or (k in self._layout_at and _layout(own) != self._layout_at[k])
        ]


def _passes(column: Column) -> bool:
    """Return True if the column's values are the elements themselves, read-only, with contiguous arrays."""
    if type(column) is DenseColumn:
        return column.array.dtype.kind in "biufcmMSU" and bool(
            column.array.ndim == 1 or column.array.flags.c_contiguous
        )
    return type(column) is BytesColumn and column.starts.ndim == 1


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def _several(places: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Return a function that picks the items at these positions of a sequence."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda items: (items[places[0]],)
