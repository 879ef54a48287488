"""Arguments and results of functions are not copied, unless they are also referenced elsewhere or were changed."""

from __future__ import annotations

import collections

import numpy as np
import pytest

from penstock.block.block import BlockBuilder
from penstock.block.call_arguments import CallArguments
from penstock.block.column import DenseColumn

Pair = collections.namedtuple("Pair", "image label")
KEPT: list = []


def kept(row):
    KEPT.append(row)
    return row


def kept_in_a_tuple(row):
    KEPT.append((row, 1))
    return KEPT[-1]


def part_kept(row):
    KEPT.append(row[1:])
    return row


def of_another_shape(row):
    row.shape = row.shape[::-1]
    return row


NESTS = {
    "itself": lambda row: row,
    "a tuple": lambda row: (row, 1),
    "a dict": lambda row: {"a": row, "b": (row.shape[0], 2)},
    "a named tuple": lambda row: Pair(row, 3),
    "written to": lambda row: (row.__setitem__(0, 3.0), row)[1],
}
COPIED = {
    "kept": kept,
    "kept in a tuple": kept_in_a_tuple,
    "a part kept": part_kept,
    "memory kept": lambda row: (KEPT.append(memoryview(row)), row)[1],
    "another shape": of_another_shape,
    "turned": lambda row: row[::-1],
    "another array": lambda row: row + 1,
}


def built(function, rows=3):
    KEPT.clear()
    column = DenseColumn(np.arange(rows * 2000, dtype=np.float64).reshape(rows, 40, 50))
    given = CallArguments([column], [column.values()])
    results = BlockBuilder(None, given)
    for row in range(rows):
        given.begin(row)
        results.add(function(given.rows_of(0)[row]))
    return column, results


@pytest.mark.parametrize("nest", NESTS)
def test_the_column_is_that_of_the_results(nest):
    column, results = built(NESTS[nest])
    assert results.build().columns[0] is column


@pytest.mark.parametrize("how", COPIED)
def test_what_may_be_changed_later_is_copied(how):
    column, results = built(COPIED[how])
    made = results.build().columns[0]
    assert not any(np.may_share_memory(value, column.array) for value in made.values())


def test_the_same_row_twice_is_two_arrays():
    _, results = built(lambda row: (row, row))
    first, second = results.build().columns
    assert not any(np.may_share_memory(a, b) for a in first.values() for b in second.values())


def test_some_of_the_rows_do_not_keep_the_memory_of_all():
    column, results = built(lambda row: row)
    made = results.chosen([0, 2]).build().columns[0]
    assert not any(np.may_share_memory(value, column.array) for value in made.values())
    assert [value[0, 0] for value in made.values()] == [0.0, 4000.0]
