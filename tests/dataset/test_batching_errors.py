"""Padded, ragged and sparse batches, rebatch, zeros: wrong arguments, and elements that do not fit, are named."""

import numpy as np
import pytest
from tests.dataset.batching_inputs import rows, untold, words
from tests.golden.golden import assert_golden

import penstock as ps
from penstock import errors

PAIRS = ps.Dataset.zip(rows(), ps.Dataset.range(5))
DICTS = ps.Dataset.from_tensor_slices({"a": [1, 2]})
RAGGED_ROWS = rows().ragged_batch(2)

ARGUMENTS = {
    "padded_size_0": lambda: rows().padded_batch(0),
    "padded_shape_text": lambda: rows().padded_batch(2, "7"),
    "padded_shape_float": lambda: rows().padded_batch(2, [7.5]),
    "padded_shape_minus_2": lambda: rows().padded_batch(2, [-2]),
    "padded_shape_rank": lambda: rows().padded_batch(2, [3, 3]),
    "padded_shape_small": lambda: ps.Dataset.from_tensors([1, 2, 3]).padded_batch(2, [2]),
    "padded_shape_nest": lambda: PAIRS.padded_batch(2, [None]),
    "padded_shape_short": lambda: PAIRS.padded_batch(2, ([None],)),
    "padded_value_nest": lambda: PAIRS.padded_batch(2, padding_values=(1, 2, 3)),
    "padded_value_float": lambda: rows().padded_batch(2, padding_values=0.5),
    "padded_value_int32": lambda: rows().padded_batch(2, padding_values=np.int32(1)),
    "padded_value_range": lambda: ps.Dataset.from_tensors(np.zeros(1, np.uint8)).padded_batch(2, padding_values=-1),
    "padded_value_text": lambda: PAIRS.padded_batch(2, padding_values="-"),
    "padded_value_array": lambda: rows().padded_batch(2, padding_values=[1, 2]),
    "padded_value_object": lambda: rows().padded_batch(2, padding_values=slice(3)),
    "padded_ragged": lambda: RAGGED_ROWS.padded_batch(2),
    "ragged_size_text": lambda: rows().ragged_batch("2"),
    "ragged_splits": lambda: rows().ragged_batch(2, row_splits_dtype=np.int8),
    "ragged_splits_none": lambda: rows().ragged_batch(2, row_splits_dtype=None),
    "sparse_shape_none": lambda: rows().sparse_batch(2, None),
    "sparse_shape_rank": lambda: rows().sparse_batch(2, [3, 3]),
    "sparse_pair": lambda: PAIRS.sparse_batch(2, [3]),
    "sparse_ragged": lambda: RAGGED_ROWS.sparse_batch(2, [3]),
    "rebatch_0": lambda: rows().rebatch([2, 0]),
    "rebatch_none": lambda: rows().rebatch(None),
    "rebatch_empty": lambda: rows().rebatch([]),
    "rebatch_float": lambda: rows().rebatch([1.5]),
    "rebatch_scalar": lambda: ps.Dataset.range(3).rebatch(2),
    "rebatch_extents": lambda: ps.Dataset.from_tensors(([1, 2], [1, 2, 3])).rebatch(2),
    "cardinality_minus_1": lambda: DICTS.pad_to_cardinality(-1),
    "cardinality_small": lambda: DICTS.pad_to_cardinality(1),
    "cardinality_infinite": lambda: DICTS.repeat().pad_to_cardinality(5),
    "cardinality_tuple": lambda: PAIRS.pad_to_cardinality(5),
    "cardinality_open": lambda: DICTS.batch(2).pad_to_cardinality(5),
    "cardinality_key": lambda: DICTS.pad_to_cardinality(5, "a"),
    "cardinality_key_type": lambda: DICTS.pad_to_cardinality(5, 3),
    "single_none": lambda: ps.Dataset.range(0).get_single_element(),
    "single_many": lambda: ps.Dataset.range(2).get_single_element(),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_wrong_arguments_are_refused_where_they_are_given(name):
    with pytest.raises(errors.PenstockError) as caught:
        ARGUMENTS[name]()
    assert_golden(f"argument_batching_{name}", f"{type(caught.value).__name__}: {caught.value}")


ELEMENTS = {  # the step, and the batches before the one that fails
    "padded_large": (lambda: untold().padded_batch(2, [3]), 1),
    "padded_large_component": (lambda: words().padded_batch(2, {"a": [None], "b": [2]}), 1),
    "padded_rank": (lambda: untold().padded_batch(2, [3, 3]), 0),
    "padded_value": (lambda: untold().padded_batch(2, padding_values=0.5), 0),
    "padded_tensor": (lambda: untold().ragged_batch(2).padded_batch(2), 0),
    "sparse_large": (lambda: untold().sparse_batch(2, [3]), 1),
    "sparse_rank": (lambda: untold().sparse_batch(2, [3, 3]), 0),
    "sparse_pair": (lambda: untold().map(lambda x: (x, x)).sparse_batch(2, [3]), 0),
    "rebatch_shapes": (lambda: untold().padded_batch(2).rebatch(3), 0),
    "rebatch_scalar": (lambda: untold().map(lambda x: float(len(x))).rebatch(3), 0),
}


@pytest.mark.parametrize("name", ELEMENTS)
def test_elements_that_do_not_fit_are_named(name):
    build, before = ELEMENTS[name]
    for executor in ("inline", "thread"):
        with build().iterator(executor=executor) as elements:
            for _ in range(before):
                next(elements)
            with pytest.raises(errors.PenstockError) as caught:
                next(elements)
        assert_golden(f"element_batching_{name}", f"{type(caught.value).__name__}: {caught.value}")


def fails_on(lost):
    def function(x):
        if str(x) in lost:
            raise LookupError(str(x))
        return x

    return function


DROPPING = {
    "batch": lambda ds: ds.batch(3, drop_remainder=True),
    "parallel batch": lambda ds: ds.batch(3, drop_remainder=True, num_parallel_calls=2),
    "padded": lambda ds: ds.padded_batch(3, drop_remainder=True),
    "ragged": lambda ds: ds.ragged_batch(3, drop_remainder=True),
    "rebatch": lambda ds: ds.batch(1).rebatch(3, drop_remainder=True),
    "window": lambda ds: ds.window(3, drop_remainder=True).flat_map(lambda window: window.batch(3)),
    "buckets": lambda ds: ds.bucket_by_sequence_length(lambda x: 1, [5], [3, 3], drop_remainder=True),
}


@pytest.mark.parametrize("executor", ["inline", "thread"])
@pytest.mark.parametrize("calls", [None, 2])
@pytest.mark.parametrize("name", DROPPING)
def test_a_failure_is_not_dropped_with_the_remainder(name, calls, executor):
    """Of a file that is cut short the last record fails, and a remainder is what it mostly stands in."""
    for lost in ("6", "7"):
        made = DROPPING[name](ps.Dataset.range(8).map(fails_on(lost), calls))
        for given in (0, 2):
            elements = made.iterator(epoch=0, executor=executor)
            assert len([next(elements) for _ in range(given)]) == given
            state = elements.state_dict()
            elements = made.iterator(epoch=0, executor=executor)
            elements.load_state_dict(state)
            for _ in range(2 - given):
                next(elements)
            with pytest.raises(LookupError, match=lost):
                next(elements)
            assert next(elements, None) is None
