"""Sequences packed into rows: where they go, what is with them, resumed passes, failures, and what is refused."""

from functools import cache
from itertools import islice
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.golden.golden import assert_golden, said
from tests.positions import assert_continues_everywhere

import penstock as ps
from penstock import errors
from penstock.testing import assert_resumes_exactly, assert_same_elements, assert_same_on_all_executors, resumed

TOKENS = ps.TensorSpec((None,), np.int32)


def sequences(*sizes):
    """Arrays of these sizes; the tokens of number i are 10 i + 1, 10 i + 2, …"""
    arrays = [np.arange(size, dtype=np.int32) + 10 * i + 1 for i, size in enumerate(sizes)]
    return ps.Dataset.from_generator(lambda: iter(arrays), output_signature=TOKENS)


def plain(row):
    return {name: array.tolist() for name, array in row.items()}


def held(ds):
    """For each row the numbers of the sequences in it, as `sequences` numbers them."""
    found = []
    for row in ds:
        ids = row["segment_ids"]
        found.append([int(row["tokens"][ids == i][0] - 1) // 10 for i in range(1, ids.max() + 1)])
    return found


# -- where sequences go


def test_a_row_holds_tokens_segments_and_positions():
    ds = sequences(3, 4, 2).pack(5, padding_values=-1)
    assert [plain(row) for row in ds] == [
        {"tokens": [1, 2, 3, 21, 22], "segment_ids": [1, 1, 1, 2, 2], "positions": [0, 1, 2, 0, 1]},
        {"tokens": [11, 12, 13, 14, -1], "segment_ids": [1, 1, 1, 1, 0], "positions": [0, 1, 2, 3, 0]},
    ]
    assert {name: (array.dtype, array.shape) for name, array in next(iter(ds)).items()} == {
        "tokens": (np.int32, (5,)),
        "segment_ids": (np.int32, (5,)),
        "positions": (np.int32, (5,)),
    }


ROWS = {  # (sizes, length, options, which sequences are together)
    "first_fit": ((6, 3, 5, 4, 2, 9), 10, {}, [[0, 1], [2, 3], [4], [5]]),
    "first_room": ((6, 8, 2, 2, 2), 10, {}, [[0, 2, 3], [1, 4]]),
    "fullest_room": ((6, 8, 2, 2, 2), 10, {"strategy": "best_fit"}, [[1, 2], [0, 3, 4]]),
    "ties_to_the_oldest": ((6, 6, 1), 10, {"strategy": "best_fit"}, [[0, 2], [1]]),
    "full_alone": ((10, 4, 10, 6), 10, {"open_rows": 1}, [[0], [2], [1, 3]]),
    "one_open": ((6, 7, 2, 3), 10, {"open_rows": 1}, [[1], [0, 2], [3]]),
    "fullest_leaves": ((6, 8, 7, 4), 10, {"open_rows": 2}, [[1], [0, 3], [2]]),
    "patience": ((5, 9, 8, 7, 7, 7, 9, 9), 10, {"open_rows": 1}, [[1], [2], [3], [0], [4], [6], [7], [5]]),
    "most": ((1, 1, 1, 1, 1), 10, {"max_sequences": 2}, [[0, 1], [2, 3], [4]]),
    "one_each": ((4, 4), 10, {"max_sequences": 1}, [[0], [1]]),
    "empty": ((3, 0, 2, 0), 5, {}, [[0, 2]]),
    "nothing_but_empty": ((0, 0), 5, {}, []),
    "drop_remainder": ((3, 4, 2), 5, {"drop_remainder": True}, [[0, 2]]),
}


@pytest.mark.parametrize("name", ROWS)
def test_sequences_go(name):
    sizes, length, options, wanted = ROWS[name]
    ds = sequences(*sizes).pack(length, **options)
    assert held(ds) == wanted
    assert_same_on_all_executors(ds)
    assert_resumes_exactly(ds)


def test_best_fit_pads_less_than_first_fit_and_that_less_than_none():
    sizes = np.random.default_rng(0).integers(1, 100, 600).tolist()
    ds = sequences(*sizes)
    counts = [len(list(ds.pack(100, strategy=how, open_rows=32))) for how in ("best_fit", "first_fit")]
    assert -(-sum(sizes) // 100) < counts[0] < counts[1] < len(sizes) * 0.6


@given(st.lists(st.integers(0, 30), max_size=60), st.integers(1, 6), st.booleans())
def test_every_token_comes_once_and_sequences_stay_whole(sizes, most_open, best):
    ds = sequences(*sizes).pack(30, strategy="best_fit" if best else "first_fit", open_rows=most_open)
    found = []
    for row in ds.iterator(executor="inline"):
        used = int((row["segment_ids"] > 0).sum())
        assert (row["segment_ids"][used:] == 0).all()
        assert (row["tokens"][used:] == 0).all()
        for number in range(1, row["segment_ids"].max() + 1):
            inside = row["segment_ids"] == number
            assert row["positions"][inside].tolist() == list(range(inside.sum()))
            found.append(row["tokens"][inside].tolist())
    assert sorted(found) == sorted([(np.arange(n) + 10 * i + 1).tolist() for i, n in enumerate(sizes) if n])


@cache
def sizes_and_rows():
    """The sizes of sequences, and the number of rows that the first 0, 1, 2, ... sequences fill."""
    sizes = np.random.default_rng(0).integers(0, 9, 60).tolist()
    arrays = [np.full(size, i, np.int32) for i, size in enumerate(sizes)]
    once = ps.Dataset.from_tensors(0).flat_map(lambda _: ps.Dataset.from_sequence(arrays))
    return sizes, [len(list(once.take(n).pack(8, open_rows=2, drop_remainder=True))) for n in range(len(sizes) + 1)]


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_in_lock_step_rows_come_before_the_next_sequence_is_asked_for(executor, rows):
    sizes, wanted = sizes_and_rows()
    asked = []

    def lock_step():
        for i, size in enumerate(sizes):
            asked.append(i)
            yield np.full(size, i, np.int32)

    ds = ps.Dataset.from_generator(lock_step).pack(8, open_rows=2, drop_remainder=True).batch(rows)
    for count, _ in enumerate(ds.iterator(executor=executor), 1):
        completed = next((n for n, have in enumerate(wanted) if have >= count * rows), len(sizes))
        assert len(asked) == completed


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=40),
    st.integers(1, 3),
    st.sampled_from([None, 2]),
    st.sampled_from(["first_fit", "best_fit"]),
    st.sampled_from(["split", "truncate", "drop"]),
    st.integers(1, 3),
)
def test_rows_in_lock_step_are_those_of_whole_blocks(sizes, most_open, most, strategy, too_long, rows):
    arrays = [(np.arange(a, dtype=np.int32), np.full(b, i, np.uint8)) for i, (a, b) in enumerate(sizes)]
    signature = (TOKENS, ps.TensorSpec((None,), np.uint8))
    generated = ps.Dataset.from_generator(lambda: iter(arrays), output_signature=signature)
    held_in_memory = generated.cache()
    list(held_in_memory.iterator(executor="inline"))
    packed = [
        ds.pack(
            (7, 8), open_rows=most_open, max_sequences=most, strategy=strategy, too_long=too_long, padding_values=(9, 9)
        ).batch(rows)
        for ds in (generated, held_in_memory)
    ]
    assert_same_elements(*(list(ds.iterator(executor="inline")) for ds in packed))


# -- nests


class Pair(NamedTuple):
    source: np.ndarray
    target: np.ndarray


def two(x):
    return x, np.repeat(x, 2)


def test_features_of_a_dict_have_neighbours_and_lengths_of_their_own():
    ds = sequences(3, 2).map(lambda x: {"x": x, "y": two(x)[1].astype(np.float32)})
    assert [plain(row) for row in ds.pack({"x": 6, "y": 10}, padding_values={"x": 7, "y": 0.5})] == [
        {
            "x": [1, 2, 3, 11, 12, 7],
            "x_segment_ids": [1, 1, 1, 2, 2, 0],
            "x_positions": [0, 1, 2, 0, 1, 0],
            "y": [1, 1, 2, 2, 3, 3, 11, 11, 12, 12],
            "y_segment_ids": [1, 1, 1, 1, 1, 1, 2, 2, 2, 2],
            "y_positions": [0, 1, 2, 3, 4, 5, 0, 1, 2, 3],
        }
    ]
    assert len(list(ds.pack({"x": 6, "y": 9}))) == 2  # y has no room


def test_components_of_a_tuple_are_dicts():
    tokens, twice = next(iter(sequences(1, 1).map(two).pack(4)))
    assert plain(tokens) == {"tokens": [1, 11, 0, 0], "segment_ids": [1, 2, 0, 0], "positions": [0, 0, 0, 0]}
    assert plain(twice) == {"tokens": [1, 1, 11, 11], "segment_ids": [1, 1, 2, 2], "positions": [0, 1, 0, 1]}
    pair = next(iter(sequences(1, 1).map(lambda x: Pair(*two(x))).pack(Pair(2, 4))))
    assert type(pair) is Pair
    assert pair.source["tokens"].tolist() == [1, 11]
    nested = next(iter(sequences(2).map(lambda x: {"in": {"a": x}, "out": (x,)}).pack(2)))
    assert sorted(nested["in"]) == ["a", "a_positions", "a_segment_ids"]
    assert nested["out"][0]["tokens"].tolist() == [1, 2]


def test_a_feature_may_be_empty_where_another_is_not():
    ds = sequences(2, 3).map(lambda x: {"x": x, "y": x[:0]}).pack(5)
    row = plain(next(iter(ds)))
    assert row["x_segment_ids"] == [1, 1, 2, 2, 2]
    assert row["y_segment_ids"] == [0] * 5


def test_dict_keys_may_change_their_order():
    def dicts():
        for i in range(6):
            x, y = np.full(2, i, np.int32), np.full(3, 0.5 * i)
            yield {"x": x, "y": y} if i % 2 else {"y": y, "x": x}

    ds = ps.Dataset.from_generator(dicts).pack(6)
    for row in ds:
        for name in ("x", "y"):
            assert row[name].dtype == (np.int32 if name == "x" else np.float64)
    assert_resumes_exactly(ds)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float32", "int64", "complex128"])
def test_tokens_of_any_dtype(dtype):
    ds = ps.Dataset.from_generator(lambda: (np.ones(n, dtype) for n in (2, 3, 1, 4))).pack(5)
    assert {row["tokens"].dtype for row in ds} == {np.dtype(dtype)}
    assert sum(int(abs(row["tokens"]).sum()) for row in ds) == 10


def test_arrays_of_one_length_and_rows_of_a_batch():
    ds = ps.Dataset.from_tensor_slices(np.arange(12, dtype=np.int16).reshape(6, 2)).pack(5)
    assert [row["tokens"].tolist() for row in ds] == [[0, 1, 2, 3, 0], [4, 5, 6, 7, 0], [8, 9, 10, 11, 0]]
    batch = next(iter(ds.batch(3)))
    assert batch["segment_ids"].shape == (3, 5)


# -- sequences that are too long


def test_longer_sequences_are_cut_split_or_left_out(caplog):
    def rows(how):
        return [row["tokens"].tolist() for row in sequences(7, 2).pack(3, too_long=how)]

    assert rows("truncate") == [[1, 2, 3], [11, 12, 0]]
    assert rows("split") == [[1, 2, 3], [4, 5, 6], [7, 11, 12]]
    assert not caplog.records
    assert rows("drop") == [[11, 12, 0]]
    assert [record.message for record in caplog.records] == ["pack(3): dropped 1 of 2 elements, which are too long"]
    for how in ("truncate", "split", "drop"):
        assert_resumes_exactly(sequences(7, 2, 9, 1, 1, 8).pack(3, too_long=how, open_rows=1))


def test_features_are_split_side_by_side():
    ds = sequences(3).map(lambda x: {"x": x, "y": two(x)[1]}).pack(4, too_long="split")
    assert [(row["x"].tolist(), row["y"].tolist()) for row in ds] == [
        ([1, 2, 3, 0], [1, 1, 2, 2]),
        ([0, 0, 0, 0], [3, 3, 0, 0]),
    ]


# -- failures


class Spoiled(Exception):
    pass


def outcomes(iterator):
    """What a pass gives: tokens, or the names of errors."""
    found = []
    while True:
        try:
            row = next(iterator)
        except StopIteration:
            return found
        except Exception as error:
            found.append(type(error).__name__)
        else:
            found.append(row["tokens"].tolist())


def spoiled(*numbers):
    def spoil(x):
        if x.size and int(x[0] - 1) // 10 in numbers:
            raise Spoiled
        return x

    return spoil


@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_a_failure_comes_in_its_turn_and_the_others_go_on(executor):
    ds = sequences(2, 3, 6, 2, 4, 1).map(spoiled(1)).pack(4)
    wanted = ["Spoiled", "InvalidArgumentError", [1, 2, 31, 32], [41, 42, 43, 44], [51, 0, 0, 0]]
    assert outcomes(ds.iterator(executor=executor)) == wanted
    assert [row["tokens"].tolist() for row in ds.ignore_errors(log_warning=False)] == wanted[2:]


@pytest.mark.slow
@settings(max_examples=30)
@given(
    st.lists(st.integers(0, 9), max_size=14),
    st.lists(st.integers(0, 14), max_size=3),
    st.integers(1, 3),
    st.sampled_from(["error", "split"]),
)
def test_a_pass_with_failures_continues_from_every_step(sizes, numbers, most_open, how):
    ds = sequences(*sizes).map(spoiled(*numbers)).pack(6, open_rows=most_open, too_long=how)
    assert_continues_everywhere(ds)


# -- number, kind, states


def test_packing_nothing_and_one_sequence():
    assert list(sequences().pack(5)) == []
    assert held(sequences(2).pack(5)) == [[0]]
    assert ps.Dataset.range(3).map(lambda x: np.zeros(2)).take(0).pack(5).cardinality() == 0


def test_an_endless_input_has_rows():
    ds = sequences(3, 4, 2).repeat()
    assert ds.pack(5).cardinality() == ps.INFINITE_CARDINALITY
    assert ds.pack(5, too_long="drop").cardinality() == ps.UNKNOWN_CARDINALITY
    assert ds.take(3).pack(5).cardinality() == ps.UNKNOWN_CARDINALITY
    assert_resumes_exactly(ds.pack(7, open_rows=2), limit=8)


def test_the_spec_of_rows():
    ids = ps.TensorSpec((5,), np.int32)
    tokens = {"tokens": ps.TensorSpec((5,), np.int32), "segment_ids": ids, "positions": ids}
    assert sequences(1).pack(5).element_spec == tokens


def test_a_state_holds_no_tokens_and_little_is_read_again():
    read = []

    def note(x):
        read.append(int(x[0]) // 10)
        return x

    ds = sequences(*[3, 4, 2, 1] * 100).map(note).pack(5, open_rows=2)
    with ds.iterator(executor="inline") as elements:
        list(islice(elements, 60))
        state = elements.state_dict()
    assert len(str(state)) < 900
    read.clear()
    with resumed(ds, state, "inline") as elements:
        next(elements)
    assert read[0] > 20


def test_rows_do_not_depend_on_how_many_are_asked_for():
    ds = sequences(*np.random.default_rng(1).integers(0, 50, 900).tolist()).pack(64, open_rows=5)
    whole = [row["tokens"].tolist() for row in ds]
    assert [row["tokens"].tolist() for batch in ds.batch(7) for row in slices(batch)] == whole


def slices(batch):
    return [{name: array[i] for name, array in batch.items()} for i in range(len(batch["tokens"]))]


# -- what is refused

ARGUMENTS = {
    "length_0": lambda ds: ds.pack(0),
    "length_text": lambda ds: ds.pack("512"),
    "length_nest": lambda ds: ds.pack({"x": 5}),
    "strategy": lambda ds: ds.pack(5, strategy="worst_fit"),
    "too_long": lambda ds: ds.pack(5, too_long="wrap"),
    "open_rows": lambda ds: ds.pack(5, open_rows=0),
    "max_sequences": lambda ds: ds.pack(5, max_sequences=0),
    "padding": lambda ds: ds.pack(5, padding_values=0.5),
    "scalars": lambda ds: ps.Dataset.range(5).pack(5),
    "strings": lambda ds: ps.Dataset.from_tensor_slices([[b"a", b"b"]]).pack(5),
    "component": lambda ds: ps.Dataset.from_tensor_slices({"x": np.zeros((2, 3)), "label": [1, 2]}).pack(5),
    "taken_name": lambda ds: ps.Dataset.from_tensor_slices(
        {"x": np.zeros((2, 3)), "x_positions": np.zeros((2, 3))}
    ).pack(5),
    "no_array": lambda ds: ps.Dataset.from_tensors({}).pack(5),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_wrong_arguments_are_refused_where_they_are_given(name):
    with pytest.raises(errors.PenstockError) as caught:
        ARGUMENTS[name](sequences(3))
    assert_golden(f"argument_packing_{name}", said(caught.value))


ELEMENTS = {
    "too_long": lambda: sequences(3, 7).pack(5),
    "too_long_component": lambda: sequences(3).map(lambda x: {"x": x, "y": two(x)[1]}).pack(5),
    "scalar": lambda: ps.Dataset.from_generator(lambda: [1, 2]).pack(5),
    "padding": lambda: ps.Dataset.from_generator(lambda: [[1, 2]]).pack(5, padding_values=0.5),
}


@pytest.mark.parametrize("executor", ["inline", "thread"])
@pytest.mark.parametrize("name", ELEMENTS)
def test_what_goes_wrong_with_an_element_is_said(name, executor):
    with ELEMENTS[name]().iterator(executor=executor) as elements, pytest.raises(Exception) as caught:
        next(elements)
    assert_golden(f"element_packing_{name}", said(caught.value))


def test_elements_of_a_wrong_kind_fail_one_by_one():
    ds = ps.Dataset.from_generator(lambda: [1, 2, 3]).pack(5)
    assert outcomes(iter(ds)) == ["InvalidTypeError"] * 3
