"""Sparse and ragged tensors."""

import numpy as np
import pytest

from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.errors import InvalidArgumentError


def ragged(rows, dtype=np.int64):
    return RaggedTensor.stack([np.array(row, dtype) for row in rows])


def test_ragged():
    tensor = ragged([[1, 2], [], [3]])
    assert tensor.shape == (3, None)
    assert tensor.dtype == np.int64
    assert tensor.row_lengths.tolist() == [2, 0, 1]
    assert tensor.to_list() == [[1, 2], [], [3]]
    assert tensor.to_dense(-1).tolist() == [[1, 2], [-1, -1], [3, -1]]
    assert tensor[-1].tolist() == [3]
    assert tensor.nbytes == 3 * 8 + 4 * 8
    with pytest.raises(IndexError):
        tensor[3]


def test_nested():
    tensor = RaggedTensor.stack([ragged([[1], [2, 3]]), ragged([[4]])])
    assert tensor.to_list() == [[[1], [2, 3]], [[4]]]
    assert tensor.shape == (2, None, None)
    assert tensor[0].to_list() == [[1], [2, 3]]
    assert tensor.flat_values.tolist() == [1, 2, 3, 4]
    assert tensor.to_dense().tolist() == [[[1, 0], [2, 3]], [[4, 0], [0, 0]]]
    assert tensor.equals(RaggedTensor.stack([ragged([[1], [2, 3]]), ragged([[4]])]))
    assert not tensor.equals(ragged([[1], [2]]))


def test_byte_strings():
    values = np.array([b"a", b"bcd"], object)
    tensor = RaggedTensor.from_row_lengths(values, [1, 1])
    assert tensor.dtype is bytes
    assert tensor.to_dense().tolist() == [[b"a"], [b"bcd"]]
    sparse = SparseTensor(np.array([[0], [2]]), values, np.array([3]))
    assert sparse.to_list() == [b"a", b"", b"bcd"]
    assert sparse.dtype is bytes


def test_equality_is_of_content():
    assert ragged([[1.0], [np.nan]], np.float32).equals(ragged([[1.0], [np.nan]], np.float32))
    assert not ragged([[1]]).equals(ragged([[1]], np.float32))
    assert not ragged([[1], []]).equals(ragged([[1]]))
    one, two = (SparseTensor(np.array([[0]]), np.array([v]), np.array([1])) for v in (1, 2))
    assert one.equals(one)
    assert not one.equals(two)


@pytest.mark.parametrize("splits", [[], [1, 2], [0, 2, 1], [0, 1], [[0, 2]]])
def test_splits_that_do_not_fit(splits):
    with pytest.raises(InvalidArgumentError, match="row_splits must"):
        RaggedTensor(np.array([1, 2]), np.array(splits, np.int64))


def test_parts_that_do_not_fit():
    with pytest.raises(InvalidArgumentError, match="indices of shape"):
        SparseTensor(np.zeros((2, 1)), np.zeros(3), np.array([3]))
    with pytest.raises(InvalidArgumentError, match="rows of one kind"):
        RaggedTensor.stack([np.array([1]), ragged([[1]])])
    with pytest.raises(InvalidArgumentError, match="at least one row"):
        RaggedTensor.stack([])
