"""What a function may do to the arrays that it is given: no content of them changes, whatever flags it sets."""

import numpy as np
import pytest

import penstock as ps

N = 12


def opened(*element):
    """Try to make each array writable, and write; the arrays and how many could be opened."""
    count = 0
    for value in element:
        if isinstance(value, np.ndarray):
            for one in (value, value[...], value[:1]):
                try:
                    one.setflags(write=True)
                except ValueError:
                    continue
                count += 1
                one[...] = np.zeros((), one.dtype)
    return count


SOURCES = {
    "floats": np.arange(2.0 * N).reshape(N, 2),
    "columns": np.asfortranarray(np.arange(2.0 * N).reshape(N, 2)),
    "reversed": np.arange(3 * N).reshape(N, 3)[::-1, ::-1],
    "bools": np.ones((N, 2), bool),
    "complex": np.ones((N, 2), np.complex64),
    "dates": np.arange(2 * N).reshape(N, 2).astype("M8[s]"),
    "texts": np.array([[b"a", b"bc"]] * N, object),
    "large": np.ones((N, 3000)),
    "records": np.zeros((N, 2), [("a", "i1"), ("when", "M8[s]"), ("b", "f8", 3)]),
    "void": np.zeros((N, 2), "V5"),
}
STEPS = {
    "source": lambda ds: ds,
    "cache of texts": lambda ds: ds.map(lambda x: x.astype(str)).cache(),
    "batch": lambda ds: ds.batch(2),
    "cache": lambda ds: ds.cache(),
    "map": lambda ds: ds.map(lambda x: x[::-1]),
    "shuffle": lambda ds: ds.shuffle(5),
    "shuffle all": lambda ds: ds.shuffle(ps.ALL),
    "repeat": lambda ds: ds.repeat(2),
    "unbatch": lambda ds: ds.batch(3).unbatch(),
    "prefetch": lambda ds: ds.batch(2).prefetch(2),
}


@pytest.mark.parametrize(
    ("source", "step"), [*((source, "source") for source in SOURCES), *(("floats", step) for step in STEPS)]
)
def test_no_array_that_a_function_is_given_can_be_opened(source, step):
    held = SOURCES[source].copy() if source != "reversed" else SOURCES[source]
    before = held.copy()
    ds = STEPS[step](ps.Dataset.from_tensor_slices(held))
    for _ in range(2):
        assert {int(x) for x in ds.map(opened)} == {0}
    assert not [*ds.filter(lambda x: opened(x) > 0)]
    np.testing.assert_array_equal(held, before)


def ragged():
    return [np.arange(n, dtype=np.float32) for n in range(1, N)]


MORE = {
    "a list of arrays": lambda: ps.Dataset.from_list(ragged()),
    "a cache of arrays": lambda: ps.Dataset.from_generator(lambda: iter(ragged())).cache(),
    "padded": lambda: ps.Dataset.from_list(ragged()).padded_batch(2),
    "a tuple": lambda: ps.Dataset.from_tensor_slices((np.ones((N, 2)), np.arange(N))),
    "many columns": lambda: ps.Dataset.from_tensor_slices([(np.ones((N, 2)),) * 5]).map(lambda *x: x[0]),
    "zip": lambda: ps.Dataset.zip(ps.Dataset.from_list(ragged()), ps.Dataset.from_list(ragged()).cache()),
}


@pytest.mark.parametrize("case", MORE)
@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_nor_one_of_other_sources_and_tuples(case, executor):
    ds = MORE[case]()
    wanted = [str(x) for x in ds]
    for _ in range(2):
        counts = ds.map(opened, num_parallel_calls=2).iterator(executor=executor)
        assert {int(x) for x in counts} == {0}
    assert [str(x) for x in ds] == wanted


def test_nor_a_state_or_an_element_of_what_runs_at_once():
    held = np.ones((N, 2))
    ds = ps.Dataset.from_tensor_slices(held)
    assert int(ds.reduce(0, lambda count, x: count + opened(x))) == 0
    assert {int(x) for x in ds.scan(0, lambda state, x: (state, opened(x)))} == {0}
    assert not np.asarray(ps.map_fn(opened, held)).any()
    assert (held == 1).all()


def total(v):
    return v.sum()


def relayout(v):
    v.shape = (3, 2)


def shaped(x, z):
    first = total(x[0])
    x.shape = (3, 2)
    return x, z, first


def shaped_and_used(x, z):
    first = total(x[0])
    x.shape = 6
    return x * 2, z, first


def shaped_by_a_helper(x, z):
    first = total(x[0])
    relayout(x)
    return x, z, first


def shaped_by_another_name(x, z):
    first = total(x[0])
    y = x
    y.shape = (1, 6)
    return x, z, first


def retyped(x, z):
    first = total(x[0])
    x.dtype = np.int64
    return x, z, first


LAYOUTS = [shaped, shaped_and_used, shaped_by_a_helper, shaped_by_another_name, retyped]


@pytest.mark.parametrize("function", LAYOUTS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_a_new_layout_of_an_argument_stays(function, executor):
    x, z = np.arange(6.0 * N).reshape(N, 2, 3), np.arange(N)
    ds = ps.Dataset.from_tensor_slices((x, z)).map(function)
    for row, found in enumerate(ds.iterator(executor=executor)):
        wanted = function(x[row].copy(), z[row])
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype
    assert row == N - 1
