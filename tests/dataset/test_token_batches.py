"""Batches by tokens: how elements are grouped, padded, sorted and drawn, resumed passes, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.golden.golden import assert_golden, said
from tests.positions import assert_continues_everywhere

import penstock as ps
from penstock import errors
from penstock.testing import assert_resumes_exactly, assert_same_elements, assert_same_on_all_executors


def sequences(*sizes):
    """Arrays of these sizes, each full of its number from 1 on."""
    arrays = [np.full(size, i + 1, np.int32) for i, size in enumerate(sizes)]
    return ps.Dataset.from_generator(lambda: iter(arrays), output_signature=ps.TensorSpec((None,), np.int32))


def sizes_of(ds):
    """The sizes of the elements in each batch, without the padding."""
    return [[int((row > 0).sum()) for row in batch] for batch in ds]


GROUPS = {  # (sizes, max_tokens, options, sizes in each batch)
    "padded": ((1, 2, 3, 4, 1), 6, {}, [[1, 2], [3], [4], [1]]),
    "sum": ((1, 2, 3, 4, 1), 6, {"cost": "sum"}, [[1, 2, 3], [4, 1]]),
    "exactly": ((3, 3, 2, 2, 2), 6, {}, [[3, 3], [2, 2, 2]]),
    "most": ((1, 1, 1, 1, 1), 6, {"max_elements": 2}, [[1, 1], [1, 1], [1]]),
    "multiple": ((1, 2, 5, 1), 8, {"multiple_of": 4}, [[1, 2], [5], [1]]),
    "multiple_of_the_sum": ((1, 1, 1), 8, {"multiple_of": 4, "cost": "sum"}, [[1, 1], [1]]),
    "empty_ones_count": ((0, 0, 0, 0, 2), 3, {}, [[0, 0, 0], [0], [2]]),
    "alone": ((9, 1, 9), 3, {"too_long": "alone"}, [[9], [1], [9]]),
    "drop": ((9, 1, 9, 1), 3, {"too_long": "drop"}, [[1, 1]]),
    "sorted": ((3, 1, 2, 1, 3), 6, {"sort_window": 5, "shuffle_batches": False}, [[1, 1, 2], [3, 3]]),
    "windows": ((4, 1, 2, 1, 1), 6, {"sort_window": 3, "shuffle_batches": False}, [[1, 2], [4], [1, 1]]),
    "nothing": ((), 6, {}, []),
    "nothing_to_sort": ((), 6, {"sort_window": 4}, []),
    "one": ((2,), 6, {}, [[2]]),
    "one_to_sort": ((2,), 6, {"sort_window": 4}, [[2]]),
}


@pytest.mark.parametrize("name", GROUPS)
def test_elements_are_grouped(name):
    sizes, tokens, options, wanted = GROUPS[name]
    ds = sequences(*sizes).batch_by_tokens(tokens, **options)
    assert sizes_of(ds) == wanted
    assert_same_on_all_executors(ds)
    assert_resumes_exactly(ds)


def test_batches_are_padded_to_a_multiple():
    ds = sequences(3, 5).batch_by_tokens(100, multiple_of=4, padding_values=-1)
    assert next(iter(ds)).tolist() == [[1] * 3 + [-1] * 5, [2] * 5 + [-1] * 3]
    fixed = ps.Dataset.from_tensor_slices(np.ones((2, 3, 3), np.float32))
    ds = fixed.batch_by_tokens(100, multiple_of=4)
    assert ds.element_spec == ps.TensorSpec((None, 4, 3), np.float32)  # the length is the first extent
    assert next(iter(ds)).shape == (2, 4, 3)
    ds = fixed.batch_by_tokens(100, multiple_of=4, padded_shapes=[3, None])
    assert next(iter(ds)).shape == (2, 3, 3)


def test_nests_and_lengths_by_a_function():
    ds = sequences(1, 3, 2).map(lambda x: {"x": x, "y": np.repeat(x, 2).astype(np.float32), "n": x.size})
    batches = list(ds.batch_by_tokens(12))  # y is the longest
    assert [batch["n"].tolist() for batch in batches] == [[1, 3], [2]]
    assert [batch["y"].shape for batch in batches] == [(2, 6), (1, 4)]
    by_x = list(ds.batch_by_tokens(9, lambda d: d["n"], padding_values={"x": 9, "y": 0.5, "n": None}))
    assert [batch["n"].tolist() for batch in by_x] == [[1, 3, 2]]
    assert by_x[0]["x"].tolist() == [[1, 9, 9], [2, 2, 2], [3, 3, 9]]
    texts = ps.Dataset.from_tensor_slices([b"a", b"bbb", b"cc"]).batch_by_tokens(4, len)
    assert [batch.tolist() for batch in texts] == [[b"a"], [b"bbb"], [b"cc"]]
    numbers = ps.Dataset.range(1, 7).batch_by_tokens(8, lambda x: x)
    assert [batch.tolist() for batch in numbers] == [[1, 2], [3, 4], [5], [6]]


@given(
    st.lists(st.integers(0, 12), max_size=60),
    st.integers(1, 40),
    st.sampled_from(["padded", "sum"]),
    st.sampled_from([None, 1, 7, 50]),
    st.sampled_from([1, 3]),
)
def test_no_batch_costs_too_much_and_every_element_comes_once(sizes, tokens, cost, window, multiple):
    ds = sequences(*sizes).batch_by_tokens(
        tokens, cost=cost, sort_window=window, multiple_of=multiple, too_long="alone"
    )
    found = []
    for batch in ds.iterator(executor="inline"):
        inside = [int((row > 0).sum()) for row in batch]
        counted = [-(-max(size, 1) // multiple) * multiple for size in inside]
        found += inside
        load = sum(counted) if cost == "sum" else len(counted) * max(counted)
        assert load <= tokens or len(counted) == 1
    assert sorted(found) == sorted(sizes)
    if window is None:
        assert found == sizes


def test_sorting_saves_padding_and_more_in_larger_windows():
    sizes = np.random.default_rng(0).integers(1, 100, 1000).tolist()

    def tokens(window):
        return sum(batch.size for batch in sequences(*sizes).batch_by_tokens(1000, sort_window=window))

    assert sum(sizes) < tokens(1000) < tokens(100) < tokens(None)
    assert tokens(1000) < 1.1 * sum(sizes)


def test_the_order_of_sorted_batches_follows_from_the_seed():
    def passes(**options):
        ds = sequences(*range(1, 30)).batch_by_tokens(30, sort_window=29, **options)
        return [[int(batch.max()) for batch in ds] for _ in range(2)]

    first, second = passes(seed=3)
    assert [first, second] == passes(seed=3)
    assert first != second
    assert sorted(first) == sorted(second) == passes(shuffle_batches=False)[0]
    assert first != passes(seed=4)[0]
    once = passes(seed=3, reshuffle_each_iteration=False)
    assert once[0] == once[1]


def test_two_steps_of_one_plan_draw_differently():
    one = sequences(*[5] * 20).batch_by_tokens(5, sort_window=20)
    firsts = [
        [int(batch[0, 0]) for batch in ds.iterator(epoch=0)]
        for ds in (one, sequences(*[5] * 20).skip(0).batch_by_tokens(5, sort_window=20))
    ]
    assert firsts[0] != firsts[1]


def test_what_is_known_before_a_pass():
    ds = sequences(1, 2)
    assert ds.batch_by_tokens(4).element_spec == ps.TensorSpec((None, None), np.int32)
    assert ds.take(0).batch_by_tokens(4).cardinality() in (0, ps.UNKNOWN_CARDINALITY)
    assert ds.batch_by_tokens(4).cardinality() == ps.UNKNOWN_CARDINALITY
    assert ds.repeat().batch_by_tokens(4).cardinality() == ps.INFINITE_CARDINALITY
    assert ds.repeat().batch_by_tokens(4, too_long="drop").cardinality() == ps.UNKNOWN_CARDINALITY
    assert ps.Dataset.range(0).batch_by_tokens(4, lambda x: x).cardinality() == 0


@pytest.mark.parametrize("window", [None, 4])
def test_an_endless_input_has_batches(window):
    ds = sequences(3, 1, 2).repeat().batch_by_tokens(6, sort_window=window)
    assert_resumes_exactly(ds, limit=7)


def test_left_out_elements_are_counted(caplog):
    for window in (None, 2):
        caplog.clear()
        assert sizes_of(sequences(9, 1, 9).batch_by_tokens(3, too_long="drop", sort_window=window)) == [[1]]
        assert [record.message for record in caplog.records] == [
            "batch_by_tokens(3): dropped 2 of 3 elements, which are too long"
        ]


def test_a_state_holds_no_elements():
    numbers = sequences(*[2] * 30).map(lambda x: x + 10**9)
    for window in (None, 10):
        ds = numbers.batch_by_tokens(7, sort_window=window)
        with ds.iterator(executor="inline") as elements:
            next(elements)
            assert "100000" not in str(elements.state_dict())


# -- failures


class Spoiled(Exception):
    pass


def outcomes(iterator):
    """What a pass gives: the sizes in a batch, or the names of errors."""
    found = []
    while True:
        try:
            batch = next(iterator)
        except StopIteration:
            return found
        except Exception as error:
            found.append(type(error).__name__)
        else:
            found.append([int((row > 0).sum()) for row in batch])


def spoiled(*numbers):
    def spoil(x):
        if x.size and int(x[0]) in numbers:
            raise Spoiled
        return x

    return spoil


@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_a_failure_comes_in_its_turn_and_the_others_go_on(executor):
    ds = sequences(1, 2, 9, 1, 1, 2).map(spoiled(2))
    wanted = ["Spoiled", "InvalidArgumentError", [1, 1, 1], [2]]
    assert outcomes(ds.batch_by_tokens(3).iterator(executor=executor)) == wanted
    in_windows = ds.batch_by_tokens(4, sort_window=4, shuffle_batches=False)
    assert outcomes(in_windows.iterator(executor=executor)) == ["Spoiled", "InvalidArgumentError", [1, 1], [1, 2]]


def test_a_length_that_is_none_is_a_failure_of_one_element():
    ds = sequences(1, 2, 3).batch_by_tokens(4, lambda x: -1 if x.size == 2 else x.size)
    assert outcomes(iter(ds)) == ["InvalidArgumentError", [1], [3]]


def test_elements_that_cannot_be_padded_are_one_failed_batch():
    ds = sequences(1, 2, 3, 1).batch_by_tokens(4, padded_shapes=[2])
    assert outcomes(iter(ds)) == [[1, 2], "DataLossError", [1]]


@settings(max_examples=30)
@given(
    st.lists(st.integers(0, 9), max_size=14),
    st.lists(st.integers(1, 14), max_size=3),
    st.sampled_from([None, 1, 4]),
    st.sampled_from(["error", "alone", "drop"]),
)
def test_a_pass_with_failures_continues_from_every_step(sizes, numbers, window, how):
    ds = sequences(*sizes).map(spoiled(*numbers)).batch_by_tokens(7, sort_window=window, too_long=how)
    assert_continues_everywhere(ds)


def test_batches_of_one_size_are_padded_batches():
    ds = sequences(3, 1, 2, 5, 4)
    wanted = list(ds.padded_batch(2))
    assert_same_elements(list(ds.batch_by_tokens(100, max_elements=2)), wanted)


# -- what is refused

ARGUMENTS = {
    "tokens_0": lambda ds: ds.batch_by_tokens(0),
    "tokens_none": lambda ds: ds.batch_by_tokens(None),
    "cost": lambda ds: ds.batch_by_tokens(9, cost="max"),
    "too_long": lambda ds: ds.batch_by_tokens(9, too_long="split"),
    "length_func": lambda ds: ds.batch_by_tokens(9, 4),
    "no_length": lambda ds: ps.Dataset.range(3).batch_by_tokens(9),
    "max_elements": lambda ds: ds.batch_by_tokens(9, max_elements=0),
    "multiple_of": lambda ds: ds.batch_by_tokens(9, multiple_of=None),
    "sort_window": lambda ds: ds.batch_by_tokens(9, sort_window=2.5),
    "seed": lambda ds: ds.batch_by_tokens(9, sort_window=3, seed="a"),
    "padding": lambda ds: ds.batch_by_tokens(9, padding_values=0.5),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_wrong_arguments_are_refused_where_they_are_given(name):
    with pytest.raises(errors.PenstockError) as caught:
        ARGUMENTS[name](sequences(3))
    assert_golden(f"argument_token_batches_{name}", said(caught.value))


ELEMENTS = {
    "too_long": lambda: sequences(7, 1).batch_by_tokens(5),
    "too_long_rounded": lambda: sequences(7, 1).batch_by_tokens(7, multiple_of=4, sort_window=2),
    "negative": lambda: sequences(7, 1).batch_by_tokens(7, lambda x: -2),
    "float": lambda: sequences(7, 1).batch_by_tokens(7, lambda x: x.size / 2),
    "no_length": lambda: ps.Dataset.from_generator(lambda: [1, 2]).batch_by_tokens(5),
    "padding": lambda: sequences(3, 1).batch_by_tokens(5, padded_shapes=[2]),
}


@pytest.mark.parametrize("executor", ["inline", "thread"])
@pytest.mark.parametrize("name", ELEMENTS)
def test_what_goes_wrong_with_an_element_is_said(name, executor):
    with ELEMENTS[name]().iterator(executor=executor) as elements, pytest.raises(Exception) as caught:
        next(elements)
    assert_golden(f"element_token_batches_{name}", said(caught.value))
