"""Functions that are called one element at a time: the same elements as by Block, and the source is read by Block."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.sources.arrays import RangeSource

LABS = ctypes.CDLL(None).labs  # nothing is known of what it does


def known_to_no_reader(function: Callable[..., Any]) -> Callable[..., Any]:
    def called(*element):
        LABS(1)
        return function(*element)

    return called


def raises_at(number: int) -> Callable[[Any], Any]:
    def called(x):
        if x == number:
            raise ValueError(x)
        return x

    return called


FUNCTIONS = {
    "int": lambda x: int(x) + 1,
    "numpy": lambda x: x * np.int16(2),
    "float": lambda x: float(x) / 3,
    "bool": lambda x: bool(x % 2),
    "text": lambda x: f"number {x} ä",
    "bytes": lambda x: b"\0" * int(x),
    "array": lambda x: np.arange(int(x) % 4, dtype=np.float32),
    "view": lambda x: np.arange(8)[:: int(x) % 2 + 1],
    "fixed": lambda x: np.frombuffer(b"12345678", np.uint8),
    "texts": lambda x: np.array([str(x), "b"]),
    "list": lambda x: [x, [1, 2, int(x)]],
    "dict": lambda x: {"b": int(x), "a": (np.ones(2), b"c")},
    "turning dict": lambda x: {"b": x, "a": -x} if x % 2 else {"a": -x, "b": x},
    "another kind": lambda x: 0.5 if x == 3 else int(x),
    "another rank": lambda x: np.zeros((2,) * (1 + int(x == 4))),
    "another nest": lambda x: (x, x) if x == 2 else x,
    "None": lambda x: None if x == 5 else x,
    "raises": raises_at(4),
    "StopIteration": lambda x: next(iter(())) if x == 1 else x,
    "random": lambda x: ps.element_key() % 1000 + int(x),
}


def outcomes(elements: Any) -> list[Any]:
    """What an iterator gives, an error as its text."""
    found: list[Any] = []
    while True:
        try:
            found.append(next(elements))
        except StopIteration:
            return found
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")


def same(left: Any, right: Any) -> bool:
    if isinstance(left, (tuple, dict)):
        assert isinstance(left, tuple) or [*left] == [*right]
        pairs = (
            zip(left, right, strict=True)
            if isinstance(left, tuple)
            else zip(left.values(), right.values(), strict=True)
        )
        return all(same(a, b) for a, b in pairs)
    if isinstance(left, np.ndarray):
        return (left.dtype, left.shape, left.tolist(), left.flags.writeable) == (
            right.dtype,
            right.shape,
            right.tolist(),
            right.flags.writeable,
        )
    return type(left) is type(right) and left == right


@given(st.lists(st.sampled_from(sorted(FUNCTIONS)), min_size=1, max_size=3), st.booleans())
def test_elements_are_those_of_blocks(names, filtered):
    ds = ps.Dataset.range(7)
    if filtered:
        ds = ds.filter(known_to_no_reader(lambda x: bool(x % 3)))
    ds = ds.map(known_to_no_reader(FUNCTIONS[names[0]]))
    for name in names[1:]:
        if name == "random" and filtered:
            continue
        ds = ds.map(known_to_no_reader(lambda *x, name=name: FUNCTIONS[name](len(x)) if len(x) > 1 else (x[0], name)))
    singly = outcomes(iter(ds.iterator(epoch=0)))
    by_block = outcomes(ds.prefetch(1).iterator(epoch=0, executor="inline"))
    assert len(singly) == len(by_block)
    assert all(map(same, singly, by_block))


def test_arrays_between_functions_cannot_be_written_to_and_those_of_the_consumer_can():
    seen: list[bool] = []

    def second(array):
        seen.append(array.flags.writeable)
        return array

    ds = ps.Dataset.range(3).map(known_to_no_reader(lambda x: np.full(3, x))).map(second)
    found = list(ds)
    assert seen == [False] * 3
    found[0][:] = 9
    assert [array.tolist() for array in found] == [[9] * 3, [1] * 3, [2] * 3]


def test_a_buffer_that_the_function_fills_again_is_copied():
    buffer = np.zeros(2)

    def fill(x):
        buffer[:] = x
        return buffer

    assert [array.tolist() for array in list(ps.Dataset.range(3).map(fill))] == [[0, 0], [1, 1], [2, 2]]


def test_the_source_is_read_by_block_and_the_function_is_called_when_an_element_is_asked_for(monkeypatch):
    reads: list[int] = []
    rows = RangeSource.rows

    def counted(self, start, stop):
        reads.append(stop - start)
        return rows(self, start, stop)

    monkeypatch.setattr(RangeSource, "rows", counted)
    calls: list[int] = []

    def called(x):
        calls.append(int(x))
        return x

    elements = iter(ps.Dataset.range(5000).map(called))
    for number in range(5000):
        assert next(elements) == number
        assert calls == list(range(number + 1))
    assert sum(reads) == 5000
    assert max(reads) > 8


CALLS: list[int] = []  # a global, as what a function closes over is part of its state's plan


def test_a_state_holds_between_any_two_elements_and_no_function_is_called_again():
    def called(x):
        CALLS.append(int(x))
        if x == 5:
            raise ValueError(x)
        return int(x) * 10 + ps.element_key() % 10

    ds = ps.Dataset.range(12).map(called)
    expected = outcomes(iter(ds.iterator(epoch=0)))
    for stop in range(12):
        elements = iter(ds.iterator(epoch=0))
        before = []
        for _ in range(stop):
            try:
                before.append(next(elements))
            except ValueError as error:
                before.append(f"ValueError: {error}")
        state = elements.state_dict()
        again = iter(ds.iterator(epoch=0))
        again.load_state_dict(state)
        CALLS.clear()
        assert before + outcomes(again) == expected
        assert list(range(stop, 12)) == CALLS


def test_what_ends_the_run_takes_no_elements_place():
    CALLS.clear()

    def called(x):
        CALLS.append(int(x))
        if CALLS == [0, 1, 2, 3]:
            raise KeyboardInterrupt
        return x

    ds = ps.Dataset.range(6).map(called)
    elements = iter(ds)
    assert [int(next(elements)) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(KeyboardInterrupt):
        next(elements)
    again = iter(ds)
    again.load_state_dict(elements.state_dict())
    assert [int(x) for x in again] == [3, 4, 5]


def test_a_function_that_asks_its_own_iterator_is_told():
    errors: list[Exception] = []

    def called(x):
        try:
            next(elements)
        except ps.errors.FailedPreconditionError as error:
            errors.append(error)
        return x

    elements = iter(ps.Dataset.range(3).map(called))
    assert [int(x) for x in elements] == [0, 1, 2]
    assert len(errors) == 3
    assert "already" in str(errors[0])


def test_a_filter_that_leaves_out_very_many_elements_is_no_recursion():
    ds = ps.Dataset.from_generator(lambda: iter(range(3000))).filter(known_to_no_reader(lambda x: bool(x == 2999)))
    assert [int(x) for x in ds] == [2999]


def test_plain_lists_are_read_by_block_and_other_sequences_when_asked():
    asked: list[int] = []

    class Rows:
        def __len__(self):
            return 100

        def __getitem__(self, i):
            asked.append(i)
            return i

    elements = iter(ps.Dataset.from_sequence(Rows()).map(known_to_no_reader(lambda x: x)))
    assert [int(next(elements)) for _ in range(60)] == list(range(60))
    assert asked == list(range(60))
    assert not ps.Dataset.from_sequence([1, 2])._plan.source.calls


def test_a_state_from_between_two_steps_calls_each_function_once():
    """A parallel map ahead of a filter has results to drop: the sequential stage is parted there."""

    def tenfold(x):
        LABS(1)
        return int(x) * 10

    def kept(x):
        LABS(1)
        return int(x) % 30 != 10

    def made(calls, ahead):
        return ps.Dataset.range(60).map(tenfold, num_parallel_calls=calls).prefetch(ahead).filter(kept)

    whole = list(made(None, 0))
    saving, resumed = iter(made(2, 3)), iter(made(None, 0))
    for _ in range(7):
        next(saving)
    resumed.load_state_dict(saving.state_dict())
    saving.close()
    assert list(resumed) == whole[7:]


def test_a_filter_gets_a_copy_and_hands_over_what_it_was_given():
    rows = {"n": np.arange(6), "v": np.zeros((6, 2))}

    def changes(row):
        LABS(1)
        number, row["n"] = int(row["n"]), -1
        row["more"] = 1
        return number % 2 == 0

    kept = list(ps.Dataset.from_tensor_slices(rows).filter(changes))
    assert [(list(row), int(row["n"])) for row in kept] == [(["n", "v"], 0), (["n", "v"], 2), (["n", "v"], 4)]
    for row in kept:
        row["v"][:] = 1
    assert not rows["v"].any()
