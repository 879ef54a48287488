"""A function of from_generator that returns the same iterator at each call: its second iteration has no elements."""

import numpy as np
import pytest

import penstock as ps
from penstock.block.spec import TensorSpec
from penstock.errors import InvalidArgumentError
from penstock.sources.generator import GeneratorSource


class Counting:
    """An iterator of the user."""

    def __init__(self):
        self.given = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.given += 1
        if self.given > 3:
            raise StopIteration
        return self.given


ONCE = {
    "a generator": lambda: (i for i in range(3)),
    "zip": lambda: zip([1, 2], [3, 4], strict=True),
    "an iterator of a list": lambda: iter([1, 2]),
    "a class": Counting,
}


@pytest.mark.parametrize("kind", ONCE)
@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_an_iterator_that_is_used_up_says_so(kind, executor):
    iterator = ONCE[kind]()
    ds = ps.Dataset.from_generator(lambda: iterator).map(lambda *x: x)
    assert len([*ds.iterator(executor=executor)]) in (2, 3)
    for _ in range(2):
        with pytest.raises(InvalidArgumentError, match=r"needs a new iterator in each epoch.*\n.*\n.*iter\(rows\)"):
            [*ds.iterator(executor=executor)]
    repeated = ps.Dataset.from_generator(ONCE[kind]).repeat(2)
    assert len([*repeated]) in (4, 6)


def test_a_generator_that_was_left_in_the_middle_is_used_up():
    generator = (i for i in range(3))
    ds = ps.Dataset.from_generator(lambda: generator)
    assert [int(x) for x in ds.take(1)] == [0]
    with pytest.raises(InvalidArgumentError, match="needs a new iterator"):
        list(ds)


@pytest.mark.parametrize("make", [list, lambda: iter([]), lambda: (i for i in ())])
def test_no_elements_are_no_fault(make):
    ds = ps.Dataset.from_generator(make)
    assert [[*ds], [*ds]] == [[], []]


def test_after_an_error_that_ends_it_the_place_is_negative_and_nothing_follows():
    def failing():
        yield from (5, 6)
        raise KeyError

    source = GeneratorSource(failing)
    reader = source.open()
    assert reader.read(9).elements() == [5, 6]
    with pytest.raises(KeyError):
        reader.read(9)
    assert reader.position() == -3
    assert source.open(-3).read(9) is None


def test_a_skipped_element_against_the_signature_decides_nothing():
    elements = [np.zeros(2, np.int32), np.ones(2, np.float32)]
    source = GeneratorSource(lambda: iter(elements), signature=TensorSpec((2,), np.float32))
    assert [part.tolist() for part in source.open(1).read(9).elements()] == [[1, 1]]


def test_the_function_is_called_once_for_each_epoch():
    calls = []

    def once():
        calls.append(1)
        return iter([])

    ds = ps.Dataset.from_generator(once)
    assert [[*ds], [*ds]] == [[], []]
    assert len(calls) == 2
