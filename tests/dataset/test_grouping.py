"""Windows, groups and buckets: what tf.data 2.21 gives for the same calls, resumed passes, and what is refused."""

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.golden.golden import assert_golden, said

import penstock as ps
from penstock import errors
from penstock.testing import assert_resumes_exactly, assert_same_elements, assert_same_on_all_executors, resumed

Reducer, group_by_reducer = ps.experimental.Reducer, ps.experimental.group_by_reducer


def plain(element):
    """An element as numbers and lists, a data set as the list of its elements."""
    if isinstance(element, tuple):
        return tuple(plain(part) for part in element)
    if isinstance(element, dict):
        return {name: plain(part) for name, part in element.items()}
    return [plain(part) for part in element] if isinstance(element, ps.Dataset) else element.tolist()


# -- window

WINDOWS = {  # of range(7)
    (3,): [[0, 1, 2], [3, 4, 5], [6]],
    (3, 2): [[0, 1, 2], [2, 3, 4], [4, 5, 6], [6]],
    (2, 3): [[0, 1], [3, 4], [6]],
    (3, 1, 2): [[0, 2, 4], [1, 3, 5], [2, 4, 6], [3, 5], [4, 6], [5], [6]],
    (3, 2, 2): [[0, 2, 4], [2, 4, 6], [4, 6], [6]],
    (3, 1, 1, True): [[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5, 6]],
    (3, 5, 2, True): [[0, 2, 4]],
    (3, 2, 2, True): [[0, 2, 4], [2, 4, 6]],
    (1, 1, 3): [[0], [1], [2], [3], [4], [5], [6]],
    (2, 4, 3): [[0, 3], [4]],
    (10,): [[0, 1, 2, 3, 4, 5, 6]],
    (4, 1, 3): [[0, 3, 6], [1, 4], [2, 5], [3, 6], [4], [5], [6]],
    (8, 1, 1, True): [],
}


@pytest.mark.parametrize("arguments", WINDOWS)
def test_windows_are_those_of_tf_data(arguments):
    ds = ps.Dataset.range(7).window(*arguments)
    assert [plain(window) for window in ds] == WINDOWS[arguments]
    assert ds.cardinality() == len(WINDOWS[arguments])


@pytest.mark.parametrize("arguments", [(3,), (3, 1, 2), (3, 1, 1, True), (1, 5)])
@pytest.mark.parametrize("count", [0, 1])
def test_windows_of_nothing_and_of_one_element(count, arguments):
    ds = ps.Dataset.range(count).window(*arguments)
    wanted = [] if count == 0 or arguments[-1] is True else [[0]]
    assert [plain(window) for window in ds] == wanted
    assert ds.cardinality() == len(wanted)


@given(st.integers(0, 30), st.integers(1, 9), st.integers(1, 9), st.integers(1, 4), st.booleans())
def test_the_number_of_windows_is_known(count, size, shift, stride, drop):
    ds = ps.Dataset.range(count).window(size, shift, stride, drop)
    assert len(list(ds.iterator(executor="inline"))) == len(ds)


def test_the_number_of_windows_of_unknown_and_of_endless_many():
    ds = ps.Dataset.range(3)
    assert ds.filter(lambda x: x > 0).window(2).cardinality() == ps.UNKNOWN_CARDINALITY
    assert ds.repeat().window(2).cardinality() == ps.INFINITE_CARDINALITY


def test_an_endless_input_has_windows():
    ds = ps.Dataset.range(3).repeat().window(2, 3)
    assert [plain(window) for window in ds.take(3)] == [[0, 1], [0, 1], [0, 1]]
    assert_resumes_exactly(ds.flat_map(lambda window: window), limit=7)


def test_the_nest_is_outside():
    pairs = ps.Dataset.zip(ps.Dataset.range(3), ps.Dataset.range(3, 6))
    assert [plain(window) for window in pairs.window(2)] == [([0, 1], [3, 4]), ([2], [5])]
    dicts = ps.Dataset.from_tensor_slices({"a": [1, 2, 3], "b": [4, 5, 6]})
    assert [plain(window) for window in dicts.window(2)] == [{"a": [1, 2], "b": [4, 5]}, {"a": [3], "b": [6]}]


def test_windows_of_windows():
    ds = ps.Dataset.range(7).window(2).window(2)
    assert [[plain(window) for window in outer] for outer in ds] == [[[0, 1], [2, 3]], [[4, 5], [6]]]
    flat = ds.flat_map(lambda outer: outer.flat_map(lambda window: window))
    assert_resumes_exactly(flat)


def test_a_window_can_be_read_again_and_is_a_data_set_like_others():
    window = next(iter(ps.Dataset.range(5).window(3)))
    assert len(window) == 3
    assert window.element_spec == ps.TensorSpec((), np.int64)
    assert plain(window) == plain(window) == [0, 1, 2]
    assert plain(window.map(lambda x: x * 2).skip(1).batch(3)) == [[2, 4]]


def test_a_function_cannot_write_into_arrays_of_a_window():
    def writes(array):
        array[...] = 0
        return array

    for ds in (ps.Dataset.range(6).batch(2), ps.Dataset.range(6).map(lambda x: np.zeros(int(x) % 2))):
        for arguments in ((2,), (2, 1), (2, 1, 2)):
            for window in ds.window(*arguments):
                with pytest.raises(ValueError, match="read-only"):
                    list(window.map(writes))
        with pytest.raises(ValueError, match="read-only"):
            list(ds.group_by_window(lambda x: x.size, lambda key, window: window.map(writes), 2))


def test_windows_of_strings_and_of_arrays_of_differing_shape():
    strings = ps.Dataset.from_tensor_slices(np.array([b"a", b"bb", b"", b"dddd"], object))
    assert [list(window) for window in strings.window(3, 1, 2)] == [[b"a", b""], [b"bb", b"dddd"], [b""], [b"dddd"]]
    ragged = ps.Dataset.range(4).map(lambda n: np.arange(n))
    assert [plain(window) for window in ragged.window(2)] == [[[], [0]], [[0, 1], [0, 1, 2]]]


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [(3,), (3, 1), (2, 5), (3, 2, 2, True), (20,)])
def test_a_pass_over_windows_continues_from_every_step(arguments):
    ds = ps.Dataset.range(15).shuffle(4).window(*arguments)
    assert_resumes_exactly(ds.flat_map(lambda window: window.batch(2)))
    assert_resumes_exactly(ds.map(lambda window: sum(int(x) for x in window), num_parallel_calls=2))


def test_a_state_holds_no_element():
    numbers = ps.Dataset.range(10**9, 10**9 + 40)
    passes = (
        numbers.window(5, 2),
        numbers.group_by_window(lambda x: x % 3, lambda key, window: window, 4),
        numbers.bucket_by_sequence_length(lambda x: x % 7, [3], [4, 4]),
        numbers.apply(group_by_reducer(lambda x: x % 3, Reducer(lambda key: 0, lambda s, x: s + x, int))),
    )
    for ds in passes:
        with ds.iterator(executor="inline") as elements:
            next(elements)
            assert "1000000" not in str(elements.state_dict()["stages"])


# -- group_by_window

GROUPS = [  # (elements, key_func, reduce_func, sizes, what tf.data gives)
    (10, lambda x: x % 3, lambda k, w: w.batch(10), 2, [[0, 3], [1, 4], [2, 5], [6, 9], [7], [8]]),
    (10, lambda x: -(x % 3), lambda k, w: w.batch(10), 5, [[2, 5, 8], [1, 4, 7], [0, 3, 6, 9]]),
    (10, lambda x: x % 2, lambda k, w: w.batch(10), lambda k: k + 2, [[0, 2], [1, 3, 5], [4, 6], [8], [7, 9]]),
    (
        10,
        lambda x: x % 2,
        lambda k, w: w.map(lambda x: (k, x)),
        3,
        [(0, 0), (0, 2), (0, 4), (1, 1), (1, 3), (1, 5), (0, 6), (0, 8), (1, 7), (1, 9)],
    ),
    (10, lambda x: x % 2, lambda k, w: w.filter(lambda x: x > 5), 3, [6, 8, 7, 9]),
    (7, lambda x: x % 2, lambda k, w: ps.Dataset.from_tensors(w.cardinality()), 2, [2, 2, 2, 1]),
    (7, lambda x: x % 2, lambda k, w: w.concatenate(w), 2, [0, 2, 0, 2, 1, 3, 1, 3, 4, 6, 4, 6, 5, 5]),
    (0, lambda x: x % 2, lambda k, w: w.batch(3), 2, []),
    (1, lambda x: x % 2, lambda k, w: w.batch(3), 2, [[0]]),
    (9, lambda x: int(x) // 4, lambda k, w: w, 1, list(range(9))),
]


@pytest.mark.parametrize(("count", "key_func", "reduce_func", "size", "wanted"), GROUPS)
def test_groups_are_those_of_tf_data(count, key_func, reduce_func, size, wanted):
    sizes = {"window_size_func": size} if callable(size) else {"window_size": size}
    ds = ps.Dataset.range(count).group_by_window(key_func, reduce_func, **sizes)
    assert_same_on_all_executors(ds)
    assert [plain(element) for element in ds] == wanted
    assert_resumes_exactly(ds)


def test_groups_of_pairs_keep_their_nest_inside():
    pairs = ps.Dataset.zip(ps.Dataset.range(6), ps.Dataset.range(6, 12))
    ds = pairs.group_by_window(lambda a, b: a % 2, lambda key, window: window.batch(3), window_size=2)
    wanted = [([0, 2], [6, 8]), ([1, 3], [7, 9]), ([4], [10]), ([5], [11])]
    assert [plain(element) for element in ds] == wanted


def test_a_shuffle_of_a_window_differs_from_window_to_window_and_epoch_to_epoch():
    ds = (
        ps.Dataset.range(40)
        .map(lambda x: x % 20)
        .group_by_window(lambda x: 0, lambda key, window: window.shuffle(20), 20)
    )
    first, second = [[int(x) for x in ds] for _ in range(2)]
    orders = [first[:20], first[20:], second[:20], second[20:]]
    assert len({tuple(order) for order in orders}) == 4
    assert all(sorted(order) == list(range(20)) for order in orders)


def test_how_many_groups_there_are_only_a_pass_can_tell():
    def grouped(ds):
        return ds.group_by_window(lambda x: x, lambda key, window: window, 2).cardinality()

    def reduced(ds):
        return ds.apply(group_by_reducer(lambda x: x, COUNT)).cardinality()

    ds = ps.Dataset.range(5)
    assert grouped(ds) == reduced(ds) == ps.UNKNOWN_CARDINALITY
    assert grouped(ds.take(0)) == reduced(ds.take(0)) == 0
    assert grouped(ds.repeat()) == ps.INFINITE_CARDINALITY
    assert reduced(ds.repeat()) == ps.UNKNOWN_CARDINALITY


def test_an_endless_input_has_groups():
    ds = ps.Dataset.range(5).repeat().group_by_window(lambda x: x % 2, lambda key, window: window.batch(4), 4)
    assert [plain(batch) for batch in ds.take(3)] == [[0, 2, 4, 0], [1, 3, 1, 3], [2, 4, 0, 2]]
    assert_resumes_exactly(ds, limit=6)


def test_a_resumed_pass_reads_again_from_the_oldest_waiting_element_and_no_further():
    read = []
    ds = (
        ps.Dataset.range(100)
        .map(lambda x: read.append(int(x)) or x)
        .group_by_window(lambda x: int(x) // 60, lambda key, window: window.batch(10), 10)
    )
    with ds.iterator(executor="inline") as elements:
        given = [next(elements) for _ in range(5)]
        state = elements.state_dict()
    read.clear()
    rest = list(resumed(ds, state, "inline"))
    assert read == sorted(set(read))
    assert read[0] > 20
    assert [plain(batch) for batch in given + rest] == [list(range(i, i + 10)) for i in range(0, 100, 10)]


# -- bucket_by_sequence_length

SEQUENCES = [
    [0],
    [1, 2, 3, 4],
    [5, 6, 7],
    [7, 8, 9, 10, 11],
    [13, 14, 15, 16, 19, 20],
    [21, 22],
    [1],
    [2, 2, 2],
    [5, 5],
]
FIVE = [[1, 2, 3, 4], [5, 6, 7, 0]], [[7, 8, 9, 10, 11, 0], [13, 14, 15, 16, 19, 20]]
LOW = [[0, 0], [21, 22]], [[1, 0], [5, 5]]


def sequences(of=SEQUENCES):
    return ps.Dataset.from_generator(lambda: of, output_signature=ps.TensorSpec((None,), np.int64))


def widened(batch, width):
    return [row + [0] * (width - len(row)) for row in batch]


BUCKETS = {
    "plain": (([3, 5], [2, 2, 2]), {}, [*FIVE, *LOW, [[2, 2, 2]]]),
    "sizes": (
        ([3, 5], [3, 1, 2]),
        {},
        [[[1, 2, 3, 4]], [[5, 6, 7]], FIVE[1], [[0, 0], [21, 22], [1, 0]], [[2, 2, 2]], [[5, 5]]],
    ),
    "drop_remainder": (
        ([3, 5], [3, 2, 2]),
        {"drop_remainder": True},
        [*FIVE, [[0, 0], [21, 22], [1, 0]]],
    ),
    "boundary": (
        ([3, 5, 9], [2, 2, 2, 2]),
        {"pad_to_bucket_boundary": True},
        [FIVE[0], widened(FIVE[1], 8), *LOW, [[2, 2, 2, 0]]],
    ),
    "boundary_and_shapes": (
        ([3, 5, 9], [2, 2, 2, 2]),
        {"pad_to_bucket_boundary": True, "padded_shapes": [7]},
        [widened(batch, 7) for batch in (*FIVE, *LOW, [[2, 2, 2]])],
    ),
    "values": (
        ([3, 5], [2, 2, 2]),
        {"padding_values": np.int64(-1)},
        [
            [[1, 2, 3, 4], [5, 6, 7, -1]],
            [[7, 8, 9, 10, 11, -1], [13, 14, 15, 16, 19, 20]],
            [[0, -1], [21, 22]],
            [[1, -1], [5, 5]],
            [[2, 2, 2]],
        ],
    ),
    "shapes": (
        ([3, 5], [2, 2, 2]),
        {"padded_shapes": [8]},
        [widened(batch, 8) for batch in (*FIVE, *LOW, [[2, 2, 2]])],
    ),
    "equal_boundaries": (([3, 3], [2, 2, 2]), {}, [*FIVE, *LOW, [[2, 2, 2]]]),
    "one_bucket": (
        ([], [2]),
        {},
        [
            [[0, 0, 0, 0], [1, 2, 3, 4]],
            [[5, 6, 7, 0, 0], [7, 8, 9, 10, 11]],
            [[13, 14, 15, 16, 19, 20], [21, 22, 0, 0, 0, 0]],
            [[1, 0, 0], [2, 2, 2]],
            [[5, 5]],
        ],
    ),
}


@pytest.mark.parametrize("name", BUCKETS)
def test_buckets_are_those_of_tf_data(name):
    arguments, options, wanted = BUCKETS[name]
    ds = sequences().bucket_by_sequence_length(len, *arguments, **options)
    assert_same_on_all_executors(ds)
    assert [plain(batch) for batch in ds] == wanted
    for batch in ds:
        assert ds.element_spec.admits(batch)
    assert_resumes_exactly(ds)


def test_buckets_without_padding():
    ds = sequences([[1], [1, 2], [3], [4, 5], [6]])
    ds = ds.bucket_by_sequence_length(len, [2, 3, 4], [2, 2, 2, 2], no_padding=True)
    assert [plain(batch) for batch in ds] == [[[1], [3]], [[1, 2], [4, 5]], [[6]]]


def test_buckets_of_nests():
    pairs = sequences().map(lambda x: (x, x.size))
    ds = pairs.bucket_by_sequence_length(lambda x, size: size, [3, 5], [2, 2, 2])
    counts = [[4, 3], [5, 6], [1, 2], [1, 2], [3]]
    assert [plain(element) for element in ds] == list(zip([*FIVE, *LOW, [[2, 2, 2]]], counts, strict=True))
    dicts = sequences().map(lambda x: {"x": x, "first": x[:1].astype(np.float32)})
    ds = dicts.bucket_by_sequence_length(
        lambda d: d["x"].size, [3, 5], [4, 2, 2], padding_values={"x": np.int64(-1), "first": 9.5}
    )
    assert plain(list(ds)[-2]) == {
        "x": [[0, -1], [21, 22], [1, -1], [5, 5]],
        "first": [[0.0], [21.0], [1.0], [5.0]],
    }


def test_buckets_of_nothing_and_of_one_element():
    for of in ([], [[1, 2]]):
        ds = sequences(of).bucket_by_sequence_length(len, [2], [3, 3])
        assert [plain(batch) for batch in ds] == [of] * len(of)
    assert ps.Dataset.range(0).bucket_by_sequence_length(lambda x: x, [2], [3, 3]).cardinality() == 0


def test_the_spec_of_buckets():
    def spec(**options):
        return sequences().bucket_by_sequence_length(len, [3, 5], [2, 2, 2], **options).element_spec

    either = ps.TensorSpec((None, None), np.int64)
    assert spec() == spec(drop_remainder=True) == spec(pad_to_bucket_boundary=True) == spec(no_padding=True) == either
    assert spec(padded_shapes=[8]) == spec(padded_shapes=[8], pad_to_bucket_boundary=True)
    assert spec(padded_shapes=[8]) == ps.TensorSpec((None, 8), np.int64)


LENGTHS = st.lists(st.integers(0, 9), max_size=40)


@given(
    LENGTHS, st.lists(st.integers(0, 9), max_size=3), st.lists(st.integers(1, 5), min_size=4, max_size=4), st.booleans()
)
def test_buckets_are_groups_made_padded_batches(lengths, boundaries, sizes, drop):
    boundaries, sizes = sorted(boundaries), sizes[: len(boundaries) + 1]
    ds = sequences([np.arange(length) for length in lengths]).map(lambda x: (x, {"twice": x * 2.0}))

    def batched(bucket, window):
        return window.padded_batch(sizes[bucket], drop_remainder=drop)

    wanted = ds.group_by_window(
        lambda x, d: np.searchsorted(boundaries, x.size, side="right"), batched, window_size_func=sizes.__getitem__
    )
    found = ds.bucket_by_sequence_length(lambda x, d: x.size, boundaries, sizes, drop_remainder=drop)
    assert_same_elements(list(found.iterator(executor="inline")), list(wanted.iterator(executor="inline")))


# -- group_by_reducer

COUNT = Reducer(lambda key: (key, 0), lambda state, x: (state[0], state[1] + 1), lambda key, count: (key, count))
MEAN = Reducer(lambda key: (0, 100), lambda state, x: (state[0] + x, state[1] + 1), lambda total, count: (total, count))


def test_reductions_are_those_of_tf_data():
    ds = ps.Dataset.range(10).apply(group_by_reducer(lambda x: -(x % 3), MEAN))
    assert [plain(element) for element in ds] == [(15, 103), (12, 103), (18, 104)]
    pairs = ps.Dataset.zip(ps.Dataset.range(6), ps.Dataset.range(6, 12))
    product = Reducer(lambda key: 0, lambda state, pair: state + pair[0] * pair[1], lambda state: state)
    ds = pairs.apply(group_by_reducer(lambda a, b: a % 2, product))
    assert [plain(element) for element in ds] == [56, 89]
    assert_resumes_exactly(ds)


def test_reductions_of_nothing_of_one_element_and_of_many():
    for count in (0, 1, 1000):
        ds = ps.Dataset.range(count).apply(group_by_reducer(lambda x: x % 300, COUNT))
        assert_same_on_all_executors(ds)
        assert [plain(element) for element in ds] == [
            (key, len(range(key, count, 300))) for key in range(min(count, 300))
        ]


def test_a_state_of_arrays_may_grow():
    joined = Reducer(lambda key: np.array([key]), lambda state, x: np.append(state, x), lambda state: state)
    ds = ps.Dataset.range(5).apply(group_by_reducer(lambda x: x % 2, joined))
    assert [plain(element) for element in ds] == [[0, 0, 2, 4], [1, 1, 3]]


def test_parameters_are_those_of_tf_data():
    wanted = {
        "window": "size shift=None stride=1 drop_remainder=False",
        "group_by_window": "key_func reduce_func window_size=None window_size_func=None",
        "bucket_by_sequence_length": "element_length_func bucket_boundaries bucket_batch_sizes padded_shapes=None "
        "padding_values=None pad_to_bucket_boundary=False no_padding=False drop_remainder=False",
    }
    for name, text in wanted.items():
        found = list(inspect.signature(getattr(ps.Dataset, name)).parameters.values())[1:]
        assert " ".join(p.name if p.default is p.empty else f"{p.name}={p.default}" for p in found) == text


# -- what is refused

ARGUMENTS = {
    "window_0": lambda ds: ds.window(0),
    "window_text": lambda ds: ds.window("3"),
    "window_shift_0": lambda ds: ds.window(2, 0),
    "window_stride_float": lambda ds: ds.window(2, 1, 1.5),
    "no_size": lambda ds: ds.group_by_window(len, len),
    "both_sizes": lambda ds: ds.group_by_window(len, len, 3, len),
    "size_0": lambda ds: ds.group_by_window(len, len, 0),
    "size_func": lambda ds: ds.group_by_window(len, len, window_size_func=3),
    "key_func": lambda ds: ds.group_by_window("label", len, 3),
    "reduce_func": lambda ds: ds.group_by_window(len, None, 3),
    "bucket_sizes": lambda ds: ds.bucket_by_sequence_length(len, [3], [2, 2, 2]),
    "bucket_size_0": lambda ds: ds.bucket_by_sequence_length(len, [3], [0, 2]),
    "bucket_boundaries": lambda ds: ds.bucket_by_sequence_length(len, [5, 3], [2, 2, 2]),
    "bucket_boundary_float": lambda ds: ds.bucket_by_sequence_length(len, [0.5], [2, 2]),
    "bucket_one_boundary": lambda ds: ds.bucket_by_sequence_length(len, 5, [2, 2]),
    "bucket_length_func": lambda ds: ds.bucket_by_sequence_length(5, [5], [2, 2]),
    "bucket_padding": lambda ds: sequences().bucket_by_sequence_length(len, [5], [2, 2], padding_values=0.5),
    "bucket_shape": lambda ds: sequences().bucket_by_sequence_length(len, [5], [2, 2], padded_shapes=[3, 4]),
    "bucket_unknown_shape": lambda ds: ps.Dataset.from_generator(lambda: SEQUENCES).bucket_by_sequence_length(
        len, [5], [2, 2], pad_to_bucket_boundary=True
    ),
    "reducer": lambda ds: ds.apply(group_by_reducer(len, sum)),
    "reducer_func": lambda ds: Reducer(0, sum, int),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_wrong_arguments_are_refused_where_they_are_given(name):
    with pytest.raises(errors.PenstockError) as caught:
        ARGUMENTS[name](ps.Dataset.range(5))
    assert_golden(f"argument_grouping_{name}", said(caught.value))


def test_a_wrong_number_of_sizes_is_a_value_error_as_in_tf_data():
    for build in (ARGUMENTS["no_size"], ARGUMENTS["both_sizes"], ARGUMENTS["bucket_sizes"]):
        with pytest.raises(ValueError, match="size"):
            build(ps.Dataset.range(5))


def odd(x):
    return x % 2


def whole(key, window):
    return window


def first_element(key, window):
    return next(iter(window))


def fails_at_7(x):
    if x == 7:
        raise KeyError("no such breed")
    return x


ELEMENTS = {  # what is wrong, and the number of elements before
    "key_float": (lambda ds: ds.group_by_window(lambda x: x * 0.5, whole, 2), 0),
    "key_bool": (lambda ds: ds.group_by_window(lambda x: x > 7, whole, 2), 0),
    "key_array": (lambda ds: ds.group_by_window(lambda x: np.full(2, x), whole, 2), 0),
    "key_none": (lambda ds: ds.group_by_window(lambda x: None, whole, 2), 0),
    "key_large": (lambda ds: ds.group_by_window(lambda x: 2**70, whole, 2), 0),
    "key_raises": (lambda ds: ds.group_by_window(fails_at_7, whole, 1), 7),
    "size_0": (lambda ds: ds.group_by_window(odd, whole, window_size_func=lambda key: key), 0),
    "size_float": (lambda ds: ds.group_by_window(odd, whole, window_size_func=lambda key: 2.0), 0),
    "reduce_no_data_set": (lambda ds: ds.group_by_window(odd, first_element, 2), 0),
    "reduce_raises": (lambda ds: ds.group_by_window(odd, lambda key, window: window.take(fails_at_7(key + 7)), 2), 0),
    "inner_raises": (lambda ds: ds.group_by_window(odd, lambda key, window: window.map(fails_at_7), 2), 7),
    "length": (lambda ds: ds.bucket_by_sequence_length(lambda x: "long", [3], [2, 2]), 0),
    "too_long": (
        lambda ds: sequences().bucket_by_sequence_length(len, [3, 5], [2, 2, 2], pad_to_bucket_boundary=True),
        1,
    ),
    "too_large": (lambda ds: sequences().bucket_by_sequence_length(len, [3, 5], [2, 2, 2], padded_shapes=[4]), 1),
    "not_alike": (lambda ds: sequences().bucket_by_sequence_length(len, [3, 5], [2, 2, 2], no_padding=True), 0),
    "of_windows": (lambda ds: ds.window(2).bucket_by_sequence_length(len, [3], [2, 2]), 0),
    "batch_of_windows": (lambda ds: ds.window(2).batch(2), 0),
    "reduction_raises": (lambda ds: ds.apply(group_by_reducer(odd, Reducer(int, lambda s, x: fails_at_7(x), int))), 0),
    "reduction_changes": (lambda ds: ds.apply(group_by_reducer(odd, Reducer(int, lambda s, x: s + 0.5, int))), 0),
    "reduction_result": (lambda ds: ds.apply(group_by_reducer(odd, Reducer(int, lambda s, x: s, lambda s: None))), 0),
}


@pytest.mark.parametrize("executor", ["inline", "thread"])
@pytest.mark.parametrize("name", ELEMENTS)
def test_what_goes_wrong_with_an_element_comes_in_its_place(name, executor):
    build, before = ELEMENTS[name]
    given_before = []
    with build(ps.Dataset.range(20)).iterator(executor=executor) as elements, pytest.raises(Exception) as caught:
        given_before.extend(elements)
    assert len(given_before) == before
    assert_golden(f"element_grouping_{name}", said(caught.value))
