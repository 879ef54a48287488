"""Padded, ragged and sparse batches, rebatch, the only element, padding to a number: with tf.data's values."""

import numpy as np
import pytest
from tests.dataset.batching_inputs import given, plain, rows, squares, untold, words

import penstock as ps
from penstock import errors
from penstock.block.block import Block
from penstock.block.column import BytesColumn
from penstock.physical.stages.padded import Padder
from penstock.testing import assert_resumes_exactly, assert_same_elements

BOTH = pytest.mark.parametrize("source", [rows, untold])
ROWS_SPEC = "RaggedTensorSpec(shape=(None, None), dtype=int64, ragged_rank=1, row_splits_dtype=int64)"


# -- padded_batch


@BOTH
def test_padding_goes_to_the_longest_of_the_batch(source):
    wanted = [[[1, 0], [2, 2]], [[3, 3, 3, 0], [4, 4, 4, 4]], [[5, 5, 5, 5, 5]]]
    assert given(source().padded_batch(2)) == wanted
    assert given(source().padded_batch(2, [None])) == wanted
    assert given(source().padded_batch(2, [-1])) == wanted
    assert given(source().padded_batch(2, drop_remainder=True)) == wanted[:2]


@BOTH
@pytest.mark.parametrize(
    "shape", [[6], (6,), 6, np.array([6]), ps.TensorSpec((6,)), [np.int32(6)]], ids=lambda shape: type(shape).__name__
)
def test_padding_goes_to_a_shape_written_in_any_way(source, shape):
    wanted = [
        [[1, 0, 0, 0, 0, 0], [2, 2, 0, 0, 0, 0]],
        [[3, 3, 3, 0, 0, 0], [4, 4, 4, 4, 0, 0]],
        [[5, 5, 5, 5, 5, 0]],
    ]
    assert given(source().padded_batch(2, shape)) == wanted


@pytest.mark.parametrize("dtype", ["M8[D]", "M8[ms]", "m8[s]"])
def test_times_are_padded_with_none(dtype):
    times = rows().map(lambda row: row.astype(dtype))
    (found,) = times.take(2).padded_batch(2)
    np.testing.assert_array_equal(found, np.array([[1, "NaT"], [2, 2]], dtype))
    (found,) = times.take(2).padded_batch(2, [3])
    np.testing.assert_array_equal(found[1], np.array([2, 2, "NaT"], dtype))
    value = np.array(7, dtype)[()]
    (found,) = times.take(2).padded_batch(2, padding_values=value)
    np.testing.assert_array_equal(found, np.array([[1, 7], [2, 2]], dtype))
    with pytest.raises(errors.InvalidTypeError, match="not of the dtype"):
        list(times.padded_batch(2, padding_values=0))


def test_arrays_of_several_dimensions_are_padded_in_each():
    assert given(squares().padded_batch(2)) == [
        [[[1, 1, 1], [0, 0, 0]], [[2, 2, 0], [2, 2, 0]]],
        [[[3], [3], [3]]],
    ]
    assert given(squares().padded_batch(3, [3, None], 9)) == [
        [[[1, 1, 1], [9, 9, 9], [9, 9, 9]], [[2, 2, 9], [2, 2, 9], [9, 9, 9]], [[3, 9, 9], [3, 9, 9], [3, 9, 9]]]
    ]


def test_elements_of_one_shape_are_padded_many_batches_at_a_time():
    numbers = ps.Dataset.from_tensor_slices(np.arange(12).reshape(6, 2))
    assert given(numbers.padded_batch(4, [3], -1)) == [
        [[0, 1, -1], [2, 3, -1], [4, 5, -1], [6, 7, -1]],
        [[8, 9, -1], [10, 11, -1]],
    ]
    text = ps.Dataset.from_tensor_slices(np.array([[b"a", b"bc"], [b"", b"d"], [b"e", b"f"]], object))
    assert given(text.padded_batch(2, [3])) == [[[b"a", b"bc", b""], [b"", b"d", b""]], [[b"e", b"f", b""]]]
    assert given(text.padded_batch(2, [3], "pp")) == [[[b"a", b"bc", b"pp"], [b"", b"d", b"pp"]], [[b"e", b"f", b"pp"]]]
    assert given(ps.Dataset.range(3).padded_batch(2)) == [[0, 1], [2]]
    assert given(ps.Dataset.from_tensor_slices(["a", "b", "c"]).padded_batch(2)) == [[b"a", b"b"], [b"c"]]


def test_each_component_has_a_shape_and_a_value():
    pairs = ps.Dataset.zip(rows(), ps.Dataset.range(5))
    wanted = [([[1, 0], [2, 2]], [0, 1]), ([[3, 3, 3, 0], [4, 4, 4, 4]], [2, 3]), ([[5, 5, 5, 5, 5]], [4])]
    assert given(pairs.padded_batch(2)) == wanted
    assert given(pairs.padded_batch(2, ([None], []))) == wanted
    assert given(pairs.padded_batch(2, (None, []), (None, np.int64(9)))) == wanted
    assert given(pairs.padded_batch(2, padding_values=(7, None)).take(1)) == [([[1, 7], [2, 2]], [0, 1])]
    assert given(pairs.padded_batch(2, padding_values=7).take(1)) == [([[1, 7], [2, 2]], [0, 1])]


def test_dicts_are_told_by_their_keys_whatever_their_order():
    assert given(words().padded_batch(2)) == [
        {"a": [[1, 0], [2, 2]], "b": [[b"x", b""], [b"y", b"y"]]},
        {"a": [[3, 3, 3]], "b": [[b"z", b"z", b"z"]]},
    ]
    for order in (1, -1):
        shapes = dict([("a", [4]), ("b", [None])][::order])
        values = dict([("a", 7), ("b", "--")][::order])
        assert given(words().padded_batch(2, shapes, values)) == [
            {"a": [[1, 7, 7, 7], [2, 2, 7, 7]], "b": [[b"x", b"--"], [b"y", b"y"]]},
            {"a": [[3, 3, 3, 7]], "b": [[b"z", b"z", b"z"]]},
        ]
    assert given(words().padded_batch(1, padding_values={"a": None, "b": None}).take(1)) == [
        {"a": [[1]], "b": [[b"x"]]}
    ]


@pytest.mark.parametrize(
    ("dtype", "value", "wanted"),
    [
        (np.int8, -1, -1),
        (np.uint64, 2**64 - 1, 2**64 - 1),
        (np.float32, -1, -1.0),
        (np.float64, 0.1, 0.1),
        (np.float32, np.float32(0.1), np.float32(0.1)),
        (np.complex64, 2j, 2j),
        (np.bool_, True, True),
        (np.bool_, None, False),
        (np.float16, None, 0.0),
    ],
)
def test_a_value_takes_the_dtype_of_the_component(dtype, value, wanted):
    (batch,) = ps.Dataset.from_tensors(np.zeros(1, dtype)).padded_batch(1, [2], value)
    assert batch.dtype == dtype
    assert batch[0, 1] == wanted


@pytest.mark.parametrize("length", [3, 3000])
@pytest.mark.parametrize("dtype", [np.float32, object])
def test_short_and_long_rows_are_padded_alike(length, dtype):
    def values(n):
        return np.array([b"%d" % i for i in range(n)], object) if dtype is object else np.arange(n, dtype=dtype)

    lengths = [length, 0, length - 2, 1]
    block = Block.from_elements([values(n) for n in lengths])
    filler = b"-" if dtype is object else np.float32(-1)
    (batch,) = Padder(lambda *_: [((None,), filler)])(block, block.size).elements()
    wanted = np.full((4, length), filler, dtype)
    for row, n in enumerate(lengths):
        wanted[row, :n] = values(n)
    assert_same_elements([batch], [wanted])


def test_rows_without_values_are_padded():
    empty = ps.Dataset.from_tensor_slices(np.zeros((3, 0), np.float32))
    assert given(empty.padded_batch(2)) == [[[], []], [[]]]
    assert given(empty.padded_batch(3, [1], 5)) == [[[5.0], [5.0], [5.0]]]


# -- ragged_batch


@BOTH
def test_dimensions_of_unknown_extent_become_ragged(source):
    wanted = [[[1], [2, 2]], [[3, 3, 3], [4, 4, 4, 4]], [[5, 5, 5, 5, 5]]]
    found = list(source().ragged_batch(2))
    assert [plain(batch) for batch in found] == wanted
    assert {batch.row_splits.dtype for batch in found} == {np.dtype(np.int64)}
    assert given(source().ragged_batch(2, drop_remainder=True)) == wanted[:2]
    (first, *_) = source().ragged_batch(2, row_splits_dtype="int32")
    assert first.row_splits.dtype == np.int32


RAGGED = {  # shape of an element: (ragged dimensions of the batch, batches of two elements of 1, 2 and 0)
    (None, 2): (1, [[[[1, 1]], [[2, 2], [2, 2]]], [[]]]),
    (2, None): (2, [[[[1], [1]], [[2, 2], [2, 2]]], [[[], []]]]),
    (2, None, 1): (2, [[[[[1]], [[1]]], [[[2], [2]], [[2], [2]]]], [[[], []]]]),
    (None, None): (2, [[[[1]], [[2, 2], [2, 2]]], [[]]]),
}


@pytest.mark.parametrize("shape", RAGGED)
def test_known_dimensions_behind_the_last_unknown_stay_as_they_are(shape):
    dims, wanted = RAGGED[shape]
    made = [np.full([n if dim is None else dim for dim in shape], n) for n in (1, 2, 0)]
    spec = ps.TensorSpec(shape, np.int64)
    found = list(ps.Dataset.from_generator(lambda: iter(made), output_signature=spec).ragged_batch(2))
    assert [plain(batch) for batch in found] == wanted
    values = found[0]
    for _ in range(dims):
        assert isinstance(values, ps.RaggedTensor)
        values = values.values
    assert isinstance(values, np.ndarray)
    assert values.shape[1:] == shape[dims:]


def test_what_is_of_known_shape_is_stacked():
    assert given(ps.Dataset.range(3).ragged_batch(2)) == [[0, 1], [2]]
    (batch,) = ps.Dataset.from_tensor_slices([[1, 2], [3, 4]]).ragged_batch(2)
    assert isinstance(batch, np.ndarray)
    pairs = ps.Dataset.zip(rows(), ps.Dataset.range(5)).ragged_batch(2)
    assert given(pairs.take(1)) == [([[1], [2, 2]], [0, 1])]
    assert pairs.element_spec[1] == ps.TensorSpec((None,), np.int64)
    assert repr(pairs.element_spec[0]) == ROWS_SPEC


def test_a_component_of_known_shape_is_stacked_beside_one_of_which_nothing_is_known():
    opaque = ps.Dataset.range(4).map(lambda x: np.ones(2) if str(x) else x)
    declared = ps.Dataset.from_tensor_slices({"x": np.arange(8).reshape(4, 2)})
    ds = ps.Dataset.zip(declared, opaque).ragged_batch(2)
    (first, second), _ = ds
    assert ds.element_spec[0]["x"] == ps.TensorSpec((None, 2), np.int64)
    assert ds.element_spec[1].shape == (None, None)
    assert isinstance(first["x"], np.ndarray)
    assert isinstance(second, ps.RaggedTensor)
    assert isinstance(ps.Dataset.zip(opaque, declared).ragged_batch(2).at(0)[1]["x"], np.ndarray)


def test_ragged_and_sparse_elements_are_stacked_as_batch_stacks_them():
    tensor = ps.RaggedTensor.from_row_lengths(np.arange(3), np.array([1, 2], np.int32))
    found = list(ps.Dataset.from_tensors(tensor).repeat(3).ragged_batch(2))
    assert [plain(batch) for batch in found] == [[[[0], [1, 2]]] * 2, [[[0], [1, 2]]]]
    sparse = rows().sparse_batch(1, [2]).take(2)
    assert given(sparse.ragged_batch(2)) == given(sparse.batch(2))


def test_byte_strings_become_ragged():
    assert given(words().ragged_batch(2)) == [
        {"a": [[1], [2, 2]], "b": [[b"x"], [b"y", b"y"]]},
        {"a": [[3, 3, 3]], "b": [[b"z", b"z", b"z"]]},
    ]


# -- sparse_batch


@BOTH
def test_sparse_batches_hold_every_value(source):
    first = ([[0, 0], [1, 0], [1, 1]], [1, 2, 2])
    last = ([[0, i] for i in range(5)], [5] * 5)
    assert given(source().sparse_batch(2, [6]))[::2] == [(*first, [2, 6]), (*last, [1, 6])]
    assert given(source().sparse_batch(2, [None]))[::2] == [(*first, [2, 2]), (*last, [1, 5])]


def test_sparse_batches_have_the_rank_of_their_rows_and_one():
    assert given(squares().sparse_batch(2, [3, None])) == [
        (
            [[0, 0, 0], [0, 0, 1], [0, 0, 2], [1, 0, 0], [1, 0, 1], [1, 1, 0], [1, 1, 1]],
            [1, 1, 1, 2, 2, 2, 2],
            [2, 3, 3],
        ),
        ([[0, 0, 0], [0, 1, 0], [0, 2, 0]], [3, 3, 3], [1, 3, 1]),
    ]
    assert given(ps.Dataset.range(3).sparse_batch(2, [])) == [([[0], [1]], [0, 1], [2]), ([[0]], [2], [1])]
    text = words().map(lambda parts: parts["b"]).sparse_batch(2, [3])
    assert given(text) == [
        ([[0, 0], [1, 0], [1, 1]], [b"x", b"y", b"y"], [2, 3]),
        ([[0, 0], [0, 1], [0, 2]], [b"z"] * 3, [1, 3]),
    ]
    zeros = ps.Dataset.range(3).map(lambda n: np.zeros(n, np.int32)).sparse_batch(2, [3])
    assert given(zeros) == [([[1, 0]], [0], [2, 3]), ([[0, 0], [0, 1]], [0, 0], [1, 3])]


# -- rebatch


def test_batches_change_their_size():
    batches = ps.Dataset.range(7).batch(3)
    assert given(batches.rebatch(2)) == [[0, 1], [2, 3], [4, 5], [6]]
    assert given(batches.rebatch(2, drop_remainder=True)) == [[0, 1], [2, 3], [4, 5]]
    assert given(batches.rebatch([2, 1])) == [[0, 1], [2], [3, 4], [5], [6]]
    assert given(batches.rebatch((2, 3), drop_remainder=True)) == [[0, 1], [2, 3, 4], [5, 6]]
    assert given(batches.rebatch(np.array([10]))) == [list(range(7))]
    assert given(batches.repeat().rebatch(2).take(2)) == [[0, 1], [2, 3]]
    assert given(ps.Dataset.zip(batches, batches).rebatch(4)) == [([0, 1, 2, 3],) * 2, ([4, 5, 6],) * 2]
    assert given(ps.Dataset.from_tensor_slices(list("abcde")).batch(3).rebatch([1, 2])) == [
        [b"a"],
        [b"b", b"c"],
        [b"d"],
        [b"e"],
    ]


def test_batches_of_differing_size_are_joined():
    assert given(untold().rebatch(4)) == [[1, 2, 2, 3], [3, 3, 4, 4], [4, 4, 5, 5], [5, 5, 5]]
    some = ps.Dataset.range(4).map(lambda n: np.full(n % 2 * 3, n))
    assert given(some.rebatch(2)) == [[1, 1], [1, 3], [3, 3]]


def test_ragged_and_sparse_batches_stay_what_they_are():
    assert given(rows().ragged_batch(2).rebatch(3)) == [[[1], [2, 2], [3, 3, 3]], [[4] * 4, [5] * 5]]
    (same, *_) = rows().map(lambda row: row[:1]).ragged_batch(4, row_splits_dtype=np.int32).rebatch(2)
    assert isinstance(same, ps.RaggedTensor)
    assert same.row_splits.dtype == np.int32
    assert given(squares().ragged_batch(2).rebatch([1, 2])) == [
        [[[1, 1, 1]]],
        [[[2, 2], [2, 2]], [[3], [3], [3]]],
    ]
    assert given(rows().sparse_batch(2, [6]).rebatch(3)) == [
        ([[0, 0], [1, 0], [1, 1], [2, 0], [2, 1], [2, 2]], [1, 2, 2, 3, 3, 3], [3, 6]),
        ([[0, i] for i in range(4)] + [[1, i] for i in range(5)], [4] * 4 + [5] * 5, [2, 6]),
    ]


@pytest.mark.parametrize("sizes", [4, 2, 1, [2, 4, 2], [8]])
@pytest.mark.parametrize("extent", [2, 4096])
def test_batches_that_are_large_enough_are_cut_without_a_copy(sizes, extent):
    whole = np.arange(24 * extent).reshape(3, 8, extent)
    source = ps.Dataset.from_tensor_slices(whole)
    for batches in (source, source.map(lambda batch: batch).prefetch(2)):
        found = list(batches.rebatch(sizes).with_options(ps.Options(zero_copy=True)))
        assert np.concatenate(found).tolist() == whole.reshape(24, extent).tolist()
        assert all(np.shares_memory(batch, whole) for batch in found)


# -- get_single_element, pad_to_cardinality


def test_the_only_element_is_given_and_nothing_else():
    assert ps.Dataset.range(5).batch(5).get_single_element().tolist() == [0, 1, 2, 3, 4]
    made = []
    endless = ps.Dataset.range(100).repeat().map(lambda x: made.append(x) or x)
    with pytest.raises(errors.InvalidArgumentError, match="more than one element"):
        endless.get_single_element()
    with pytest.raises(errors.InvalidArgumentError, match="no element"):
        ps.Dataset.range(0).get_single_element()
    with pytest.raises(KeyError, match="wanted"):
        ps.Dataset.range(1).map(lambda x: {}["wanted"]).get_single_element()


def test_zeros_follow_up_to_the_cardinality():
    ds = ps.Dataset.from_tensor_slices({"a": [1, 2], "b": ["x", "y"], "c": np.ones((2, 2), np.float32)})
    padded = ds.pad_to_cardinality(3)
    assert given(padded) == [
        {"a": 1, "b": b"x", "c": [1.0, 1.0], "valid": True},
        {"a": 2, "b": b"y", "c": [1.0, 1.0], "valid": True},
        {"a": 0, "b": b"", "c": [0.0, 0.0], "valid": False},
    ]
    assert len(padded) == 3
    assert given(ds.pad_to_cardinality(2, "real").map(lambda e: e["real"])) == [True, True]
    nested = ds.map(lambda e: {"q": (e["a"], e["b"])}).pad_to_cardinality(3)
    assert given(nested.skip(2)) == [{"q": (0, b""), "valid": False}]
    assert given(ds.take(0).pad_to_cardinality(1).map(lambda e: e["valid"])) == [False]


def test_the_length_need_not_be_known_before():
    ds = ps.Dataset.range(9).map(lambda x: {"x": x}).filter(lambda e: e["x"] % 4 == 0)
    assert given(ds.pad_to_cardinality(4).map(lambda e: (e["x"], e["valid"]))) == [
        (0, True),
        (4, True),
        (8, True),
        (0, False),
    ]
    untraced = ps.Dataset.range(2).map(lambda x: {"x": float(x)}).pad_to_cardinality(3)
    assert given(untraced.map(lambda e: e["x"])) == [0.0, 1.0, 0.0]
    for executor in ("inline", "thread"):
        with ds.pad_to_cardinality(2).iterator(executor=executor) as elements:
            assert [int(next(elements)["x"]) for _ in range(2)] == [0, 4]
            with pytest.raises(errors.InvalidArgumentError, match="more elements than cardinality=2"):
                next(elements)


# -- specs and cardinalities

SPECS = {
    "padded": (lambda: rows().padded_batch(2), "TensorSpec(shape=(None, None), dtype=int64)", ps.UNKNOWN_CARDINALITY),
    "padded to": (
        lambda: rows().padded_batch(2, [7], drop_remainder=True),
        "TensorSpec(shape=(2, 7), dtype=int64)",
        -2,
    ),
    "padded fixed": (
        lambda: ps.Dataset.from_tensor_slices(np.zeros((5, 3))).padded_batch(2),
        "TensorSpec(shape=(None, 3), dtype=float64)",
        3,
    ),
    "padded open": (
        lambda: ps.Dataset.from_tensor_slices(np.zeros((5, 3))).padded_batch(2, [None], drop_remainder=True),
        "TensorSpec(shape=(2, None), dtype=float64)",
        2,
    ),
    "padded endless": (
        lambda: ps.Dataset.range(3).repeat().padded_batch(2),
        "TensorSpec(shape=(2,), dtype=int64)",
        ps.INFINITE_CARDINALITY,
    ),
    "ragged": (lambda: rows().ragged_batch(2), ROWS_SPEC, -2),
    "sparse": (lambda: rows().sparse_batch(2, [None]), "SparseTensorSpec(shape=(None, None), dtype=int64)", -2),
    "rebatch": (lambda: ps.Dataset.range(7).batch(3).rebatch(2), "TensorSpec(shape=(None,), dtype=int64)", -2),
    "rebatch full": (
        lambda: ps.Dataset.range(8).batch(4, True).rebatch(3, True),
        "TensorSpec(shape=(3,), dtype=int64)",
        2,
    ),
    "rebatch turns": (
        lambda: ps.Dataset.range(8).batch(4, True).rebatch([1, 2]),
        "TensorSpec(shape=(None,), dtype=int64)",
        6,
    ),
    "rebatch endless": (
        lambda: ps.Dataset.range(7).batch(3).repeat().rebatch([2, 2]),
        "TensorSpec(shape=(2,), dtype=int64)",
        ps.INFINITE_CARDINALITY,
    ),
}


@pytest.mark.parametrize("name", SPECS)
def test_what_is_known_before_a_pass(name):
    build, spec, count = SPECS[name]
    assert repr(build()._plan.spec) == spec
    assert build().cardinality() == count


# -- no elements, one element, checkpoints

STEPS = {
    "padded": lambda ds: ds.padded_batch(2),
    "ragged": lambda ds: ds.ragged_batch(2),
    "sparse": lambda ds: ds.sparse_batch(2, [None]),
    "rebatch": lambda ds: ds.rebatch([1, 2]),
}


@pytest.mark.parametrize("name", STEPS)
def test_no_element_gives_none_and_one_gives_one(name):
    assert given(STEPS[name](rows().take(0))) == []
    assert len(given(STEPS[name](rows().take(1)))) == 1
    assert len(given(STEPS[name](rows().repeat()).take(4))) == 4


@pytest.mark.parametrize("name", STEPS)
def test_a_pass_continues_from_every_batch(name):
    assert_resumes_exactly(STEPS[name](rows()))
    assert_resumes_exactly(STEPS[name](rows().repeat().shuffle(3)), limit=5)


def fails_at(*numbers):
    def check(row):
        if len(row) in numbers:
            raise LookupError
        return row

    return check


def outcomes(elements):
    found = []
    while True:
        try:
            found.append(plain(next(elements)))
        except StopIteration:
            return found
        except LookupError:
            found.append("lost")


SURVIVORS = {
    "padded": [[[1, 0], [2, 2]], "lost", [[5, 5, 5, 5, 5]]],
    "ragged": [[[1], [2, 2]], "lost", [[5, 5, 5, 5, 5]]],
    "sparse": [([[0, 0], [1, 0], [1, 1]], [1, 2, 2], [2, 2]), "lost", ([[0, i] for i in range(5)], [5] * 5, [1, 5])],
    "rebatch": [[1], [2, 2], "lost", [4, 4], [4], [4, 5], [5], [5, 5], [5]],
}


@pytest.mark.parametrize("executor", ["inline", "thread"])
@pytest.mark.parametrize("parallel", [None, 2])
@pytest.mark.parametrize("name", SURVIVORS)
def test_an_iterator_goes_on_behind_a_batch_with_a_failure(name, parallel, executor):
    ds = STEPS[name](untold().map(fails_at(3), parallel))
    wanted = SURVIVORS[name]
    with ds.iterator(executor=executor) as elements:
        assert outcomes(elements) == wanted
    for given_before in range(len(wanted)):
        with ds.iterator(executor=executor) as elements:
            for _ in range(given_before):
                try:
                    next(elements)
                except LookupError:
                    continue
            state = elements.state_dict()
        with ds.iterator(executor=executor) as elements:
            elements.load_state_dict(state)
            assert outcomes(elements) == wanted[given_before:]


def test_a_padded_pass_continues_within_the_zeros():
    assert_resumes_exactly(ps.Dataset.range(3).map(lambda x: {"x": x}).pad_to_cardinality(6))


def test_strings_of_many_files_are_padded_where_they_are():
    buffers = (np.frombuffer(b"abc", np.uint8), np.frombuffer(b"xyz", np.uint8))
    column = BytesColumn(buffers, np.array([[0], [1]]), np.array([[2], [1]]), np.array([[0], [1]], np.int32))
    for value, filler in ((b"", b""), (b"..", b"..")):
        (batch,) = Padder(lambda *_, value=value: [((2,), value)])(Block.single(column), len(column)).elements()
        assert batch.tolist() == [[b"ab", filler], [b"y", filler]]


def test_a_record_that_is_too_long_is_named_with_its_file(tmp_path):
    path = tmp_path / "rows.tfrecord"
    with ps.io.TFRecordWriter(path) as writer:
        for n in (1, 2, 3):
            writer.write(b"x" * n)
    ds = ps.TFRecordDataset(path).map(lambda record: np.frombuffer(record, np.uint8)).padded_batch(2, [2])
    with ds.iterator() as elements:
        assert next(elements).tolist() == [[120, 0], [120, 120]]
        with pytest.raises(errors.DataLossError, match=r"rows.tfrecord at byte 35"):
            next(elements)


def test_plans_differ_where_their_paddings_do():
    def fingerprint(shapes, value):
        return rows().padded_batch(2, shapes, value).fingerprint()

    assert len({fingerprint(np.array([n]), np.array(v)) for n in (6, 7) for v in (0, 1)}) == 4
    assert fingerprint(ps.TensorSpec([6]), 0) != fingerprint(ps.TensorSpec([7]), 0)
