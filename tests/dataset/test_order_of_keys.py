"""Data sets whose dicts have equal keys in different orders keep their own when they are joined."""

import numpy as np
import pytest

import penstock as ps

ORDERS = ("a", "b", "c"), ("c", "a", "b"), ("b", "a", "c")


def part(number, size=7):
    """Elements that say where they are from, in the order of keys of this part."""
    keys = ORDERS[number]

    def element(i):
        return {key: {"a": number, "b": i, "c": np.arange(2) + i}[key] for key in keys}

    return ps.Dataset.range(size).map(element)


def parts(count=3):
    return [part(number) for number in range(count)]


def joined():
    def of(number):
        return part(int(number))

    yield "concatenate", part(0).concatenate(part(1)).concatenate(part(2))
    yield "sample", ps.Dataset.sample_from_datasets(parts(), [0.5, 0.2, 0.3], seed=4)
    yield "choose", ps.Dataset.choose_from_datasets(parts(), ps.Dataset.from_tensor_slices([0, 0, 1, 2, 1]).repeat(4))
    yield "interleave", ps.Dataset.range(3).interleave(of, cycle_length=2, block_length=2)
    yield "in parallel", ps.Dataset.range(3).interleave(of, cycle_length=3, num_parallel_calls=2)
    yield "flat_map", ps.Dataset.range(3).flat_map(of)


JOINED = dict(joined())


def as_they_are(element):
    return [(key, np.asarray(value).tolist()) for key, value in element.items()]


def check(element):
    assert tuple(element) == ORDERS[int(element["a"])]


@pytest.mark.parametrize("name", JOINED)
def test_each_element_has_its_own_order(name):
    ds = JOINED[name]
    found = list(ds)
    assert len(found) == 21 or name == "choose"
    for element in found:
        check(element)
    for then in (ds.shuffle(5, seed=1), ds.shuffle(100, seed=1), ds.prefetch(3), ds.cache(), ds.skip(2), ds.repeat(2)):
        for _ in range(2):
            for element in then:
                check(element)


@pytest.mark.parametrize("name", JOINED)
def test_a_batch_has_the_order_of_its_first_element(name):
    ds = JOINED[name]
    elements = list(ds)
    for number, batch in enumerate(ds.batch(4)):
        assert tuple(batch) == tuple(elements[4 * number])
        for row, element in enumerate(elements[4 * number : 4 * number + 4]):
            for key, value in element.items():
                np.testing.assert_array_equal(batch[key][row], value)


@pytest.mark.parametrize("name", JOINED)
def test_a_pass_that_goes_on_gives_the_same_orders(name):
    ds = JOINED[name].shuffle(6, seed=3, reshuffle_each_iteration=False)
    whole = list(map(as_they_are, ds))
    for done in (0, 1, 6, 13, len(whole) - 1):
        iterator = iter(ds)
        for _ in range(done):
            next(iterator)
        again = iter(ds)
        again.load_state_dict(iterator.state_dict())
        assert list(map(as_they_are, again)) == whole[done:]


def test_elements_that_are_found_by_their_number_have_their_own_order():
    ds = part(0).concatenate(part(1)).concatenate(part(2))
    for number, element in enumerate(ds):
        assert as_they_are(ds.at(number)) == as_they_are(element)
    for element in ds.shuffle(21, seed=1):
        check(element)


def labelled(number):
    """An input whose function closes over a label."""
    return ps.Dataset.range(5).map(lambda x: {"x": x, "label": number})


def ordered(number):
    """An input whose function closes over an order of keys, before a function that all inputs share."""
    keys = ORDERS[number % 3] if number != 4 else ORDERS[0]
    ds = ps.Dataset.range(5).map(lambda x: {key: {"a": number, "b": x, "c": x * x}[key] for key in keys})
    return ds.map(lambda row: {**row, "d": row["b"] + 1})


def shared(number):
    return ps.Dataset.range(number, number + 5).map(lambda x: {"b": x, "a": x // 2})


def in_tuples(number):
    keys = ("a", "b") if number < 3 else ("b", "a")
    return ps.Dataset.range(5).map(lambda x: (number, dict.fromkeys(keys, x)))


@pytest.mark.parametrize("of", [labelled, ordered, shared, in_tuples])
@pytest.mark.parametrize("cycle_length", [1, 3])
def test_small_inputs_read_together_give_what_each_gives_alone(of, cycle_length):
    found = list(ps.Dataset.range(6).interleave(lambda i: of(int(i)), cycle_length, block_length=2))
    alone = [list(of(number)) for number in range(6)]
    ds = ps.Dataset.range(6).interleave(
        lambda i: ps.Dataset.range(5).map(lambda x: (i, x)), cycle_length, block_length=2
    )
    assert list(map(repr, found)) == [repr(alone[int(i)][int(x)]) for i, x in ds]
