"""Slices of ragged and sparse tensors: their specs, and batches of them, which are ragged and sparse tensors again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.test_declared_specs import check

import penstock as ps
from penstock.block.spec import TensorSpec
from penstock.block.structure import flatten
from penstock.errors import InvalidTypeError


def ragged(lengths):
    return ps.RaggedTensor.from_row_lengths(np.arange(sum(lengths), dtype=np.int32), lengths)


STEPS = {
    "as they are": lambda ds: ds,
    "shuffled": lambda ds: ds.shuffle(3, seed=1),
    "filtered": lambda ds: ds.filter(lambda rows, number: number >= 0),
    "cached": lambda ds: ds.cache(),
    "numbered": lambda ds: ds.enumerate().map(lambda number, pair: pair).ragged_batch(1).unbatch(),
    "prefetched": lambda ds: ds.prefetch(2).take(-1),
}
LENGTHS = st.one_of(
    st.lists(st.integers(0, 3), min_size=1, max_size=7),
    st.tuples(st.integers(0, 3), st.integers(1, 7)).map(lambda pair: [pair[0]] * pair[1]),
)


@given(LENGTHS, st.sampled_from(list(STEPS)), st.integers(1, 4), st.booleans())
def test_batches_of_slices_are_ragged_whatever_the_lengths_are(lengths, step, size, drop):
    ds = STEPS[step](ps.Dataset.from_tensor_slices((ragged(lengths), np.arange(len(lengths)))))
    assert check(ds) == len(lengths)
    batches = ds.batch(size, drop_remainder=drop)
    for rows, numbers in batches:
        assert isinstance(rows, ps.RaggedTensor)
        assert isinstance(numbers, np.ndarray)
        assert [row.tolist() for row in map(rows.__getitem__, range(len(rows)))] == [
            ragged(lengths)[number].tolist() for number in numbers
        ]
    check(batches)
    assert batches.element_spec[0].shape == (size if drop else None, None)


def test_batches_of_slices_are_counted_found_by_number_and_resumed():
    ds = ps.Dataset.from_tensor_slices(ragged([1, 0, 2, 2, 2])).batch(2)
    wanted = [batch.to_list() for batch in ds]
    assert (len(ds), wanted) == (3, [[[0], []], [[1, 2], [3, 4]], [[5, 6]]])
    assert [ds.at(i).to_list() for i in range(3)] == wanted
    elements = iter(ds)
    next(elements)
    other = iter(ds)
    other.load_state_dict(elements.state_dict())
    assert [batch.to_list() for batch in other] == wanted[1:]


def test_slices_of_sparse_tensors_have_their_shape():
    sparse = ps.SparseTensor(np.array([[0, 0], [1, 2]]), np.array([7, 8]), np.array([3, 4]))
    rows = ps.Dataset.from_tensor_slices(sparse)
    assert (rows.element_spec, len(rows)) == (ps.SparseTensorSpec((4,), np.int64), 3)
    assert rows.batch(2).element_spec == ps.SparseTensorSpec((None, 4), np.int64)
    assert [check(rows), check(rows.batch(2))] == [3, 2]


def test_a_generator_of_ragged_and_sparse_tensors_is_held_against_its_signature():
    sparse = ps.SparseTensor(np.array([[0, 1]]), np.array([7]), np.array([1, 4]))
    spec = ps.RaggedTensorSpec((None, None), np.int32), ps.SparseTensorSpec((1, 4), np.int64)
    ds = ps.Dataset.from_generator(lambda: iter([(ragged([1, 2]), sparse)] * 3), output_signature=spec)
    assert ds.element_spec == spec
    assert [check(ds), check(ds.batch(2))] == [3, 2]
    assert [type(leaf) for leaf in flatten(next(iter(ds.batch(2))))[0]] == [ps.RaggedTensor, ps.SparseTensor]
    for wrong in (np.zeros((2, 2), np.int32), ps.RaggedTensor(ragged([1, 2]), np.array([0, 1, 2])), sparse):
        bad = ps.Dataset.from_generator(lambda wrong=wrong: iter([(wrong, sparse)]), output_signature=spec)
        with pytest.raises(ps.errors.InvalidArgumentError, match=r"its signature says RaggedTensorSpec\(shape="):
            list(bad)


@pytest.mark.parametrize("lengths", [[2, 2], [1, 2]])
def test_ragged_and_sparse_tensors_are_no_arrays_whatever_the_lengths_are(lengths):
    for value in (ragged(lengths), ps.SparseTensor(np.array([[0]]), np.array([7]), np.array([2]))):
        with pytest.raises(InvalidTypeError, match="is no array"):
            np.asarray(value)
        with pytest.raises(InvalidTypeError, match="is no array"):
            np.stack([value, value])


@pytest.mark.parametrize(
    ("value", "spec"),
    [
        (ragged([1, 2]), ps.RaggedTensorSpec((2, None), np.int32)),
        (ragged([1, 2]), ps.RaggedTensorSpec((None, None), np.int32)),
        (ps.RaggedTensor(np.zeros((3, 2)), [0, 3]), ps.RaggedTensorSpec((1, None, 2), np.float64)),
        (ps.RaggedTensor(ragged([1, 2]), [0, 2]), ps.RaggedTensorSpec((1, None, None), np.int32)),
        (np.arange(3, dtype=np.int32), ps.RaggedTensorSpec((None,), np.int32)),
        (ps.SparseTensor([[0]], [7], [2]), ps.SparseTensorSpec((2,), np.int64)),
        (ps.SparseTensor([[0]], [7], [2]), ps.SparseTensorSpec(None, np.int64)),
    ],
)
def test_specs_admit_values_of_their_kind_alone(value, spec):
    assert spec.admits(value)
    for other in (
        TensorSpec((None,), np.int64), ps.RaggedTensorSpec((3, None), np.int32), ps.SparseTensorSpec((3,), np.int64),
        ps.RaggedTensorSpec((None, None), np.int8), ps.SparseTensorSpec((2,), np.int8),
    ):  # fmt: skip
        assert not other.admits(value)
