"""Columns that share memory become columns without shared memory; no others are copied."""

import numpy as np
import pytest

from penstock.block.column import BytesColumn, Column, DenseColumn, ListColumn
from penstock.block.fixed import without_aliasing


def listed(array: np.ndarray) -> ListColumn:
    return ListColumn(list(array))


def arrays(column: Column) -> list[np.ndarray]:
    return [value for value in column.values() if isinstance(value, np.ndarray)]


@pytest.mark.parametrize("first", [DenseColumn, listed])
@pytest.mark.parametrize("second", [DenseColumn, listed])
@pytest.mark.parametrize("view", [lambda x: x, lambda x: x[:, ::-1], lambda x: x[:, :1]])
def test_writing_into_one_changes_no_other(first, second, view):
    whole = np.arange(12.0).reshape(3, 4)
    columns = [first(whole), second(view(whole))]
    wanted = view(whole).copy()
    found = without_aliasing(columns, [(0, 1)])
    assert found[0] is columns[0]
    for row in arrays(found[0]):
        row += 100
    np.testing.assert_array_equal(np.stack(arrays(found[1])), wanted)


def test_the_last_of_a_list_may_be_a_view():
    whole = np.zeros((2, 3))
    found = without_aliasing([DenseColumn(whole), ListColumn([np.zeros(3), whole[1]])], [(0, 1)])
    whole += 1
    assert arrays(found[1])[1].tolist() == [0, 0, 0]


def test_what_nobody_can_write_into_is_not_copied():
    whole = np.zeros((2, 3))
    whole.flags.writeable = False
    columns = [DenseColumn(whole), DenseColumn(whole[::-1]), BytesColumn.from_values([b"a", b"b"])]
    assert without_aliasing(columns, [(0, 1), (0, 2), (1, 2)]) == columns


def test_pairs_that_are_not_named_are_not_looked_at():
    columns = [DenseColumn(np.zeros(3))] * 2
    assert without_aliasing(columns, []) == columns
