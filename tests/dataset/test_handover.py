"""What a loop receives belongs to the loop: it can be written to, and shares memory with nothing else."""

import sys
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import Pipeline, pipelines

import penstock as ps
from penstock.block.structure import flatten
from penstock.testing import token

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # sums of small integers that overflow


def arrays_of(element):
    """All arrays of an element, those of sparse and ragged tensors included."""
    found = []
    for leaf in flatten(element)[0]:
        if isinstance(leaf, np.ndarray):
            found.append(leaf)
        elif isinstance(leaf, ps.RaggedTensor):
            found += [leaf.row_splits, *arrays_of(leaf.values)]
        elif isinstance(leaf, ps.SparseTensor):
            found += [leaf.indices, leaf.values, leaf.dense_shape]
    return found


def held_by(value, seen=None):
    """Every array that can be reached from a plan: what the user gave, and what caches keep."""
    seen = set() if seen is None else seen
    if id(value) in seen or isinstance(value, (str, bytes, int, float, type, type(sys), type(arrays_of))):
        return []
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, (tuple, list)):
        parts = list(value)
    elif isinstance(value, dict):
        parts = list(value.values())
    elif is_dataclass(value):
        parts = [getattr(value, field.name) for field in fields(value)]
    else:
        slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
        parts = [*getattr(value, "__dict__", {}).values(), *[getattr(value, name, None) for name in slots]]
        if not type(value).__module__.startswith("penstock"):
            return []
    return [array for part in parts for array in held_by(part, seen)]


def sharing(arrays):
    """Pairs of arrays that share memory."""
    spans = sorted([*np.lib.array_utils.byte_bounds(array), i] for i, array in enumerate(arrays) if array.size)
    found = []
    for at, (_, stop, i) in enumerate(spans):
        for start, _, j in spans[at + 1 :]:
            if start >= stop:
                break
            if np.shares_memory(arrays[i], arrays[j]):
                found.append((arrays[i], arrays[j]))
    return found


def spoil(array):
    """Other values in all of an array."""
    if array.dtype == object:
        array[...] = b"spoiled"
    elif array.dtype.kind == "b":
        array[...] = ~array
    else:
        array[...] = array.dtype.type(77)


def assert_owned(dataset, passes, held=()):
    """`passes` gives lists of elements of this data set, each list by another way, the same every time it is called."""
    given_out = passes()
    wanted = [[token(element) for element in elements] for elements in given_out]
    received = [array for elements in given_out for element in elements for array in arrays_of(element)]
    assert all(array.flags.writeable for array in received)
    theirs = [*held, *held_by(dataset._plan)]
    before = [array.copy() for array in theirs]
    assert sharing(received) == []
    for array in received:
        assert not any(np.shares_memory(array, other) for other in theirs if np.may_share_memory(array, other))
        spoil(array)
    for array, copy in zip(theirs, before, strict=True):
        np.testing.assert_array_equal(array, copy)
    assert [[token(element) for element in elements] for elements in passes()] == wanted


def numbered(dataset):
    """The elements by number, where they have one."""
    try:
        return [dataset[i] for i in range(min(len(dataset), 5))]
    except (ps.errors.UnimplementedError, TypeError):
        return []


def ways(dataset, *executors):
    def passes():
        found = [list(dataset.iterator(epoch=epoch, executor=which)) for which in executors for epoch in (0, 1)]
        return [*found, numbered(dataset)]

    return passes


@given(pipelines())
def test_nothing_that_a_loop_receives_shares_memory(pipeline: Pipeline):
    assert_owned(pipeline.dataset, ways(pipeline.dataset, "inline", "thread"))


@settings(max_examples=max(20, settings.default.max_examples // 5))
@given(pipelines(most_steps=4))
def test_nor_with_worker_processes(pipeline: Pipeline):
    assert_owned(pipeline.dataset, ways(pipeline.dataset, "process"))


@settings(max_examples=20)
@given(pipelines(most_steps=3))
def test_read_only_elements_show_nothing_that_is_written_later(pipeline: Pipeline):
    elements = list(pipeline.dataset.as_numpy_iterator())
    received = [array for element in elements for array in arrays_of(element)]
    assert not any(array.flags.writeable for array in received)
    theirs = held_by(pipeline.dataset._plan)
    assert not any(np.shares_memory(array, other) for array in received for other in theirs)


# -- where memory might be shared, one by one

ROWS = np.arange(60.0).reshape(10, 6)
TEXTS = np.array([[b"a", b"bc"], [b"", b"d"], [b"e", b"f"]], object)
SPARSE = ps.SparseTensor(np.array([[0, 1], [2, 0]]), np.array([3.0, 4.0]), np.array([3, 2]))
RAGGED = ps.RaggedTensor(np.arange(5), np.array([0, 2, 2, 5]))
LARGE = np.arange(6 * 5000.0).reshape(6, 5000)


class Foreign:
    """Another library's array: numpy gets at its memory."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


def slices(array=ROWS):
    return ps.Dataset.from_tensor_slices(array)


CASES = {
    "a source": lambda: slices(),
    "a source of large elements": lambda: slices(LARGE),
    "one element": lambda: ps.Dataset.from_tensors((ROWS, {"a": ROWS[::2]})),
    "one element, again and again": lambda: ps.Dataset.from_tensors(ROWS).repeat(3),
    "batches of a source": lambda: slices().batch(4),
    "batches of batches": lambda: slices().batch(2).batch(2),
    "batches in parallel": lambda: slices().batch(4, num_parallel_calls=2),
    "batches fetched ahead": lambda: slices().batch(4).prefetch(2),
    "texts": lambda: slices(TEXTS),
    "batches of texts": lambda: slices(TEXTS).batch(2),
    "the same twice": lambda: slices().map(lambda x: (x, x)),
    "the same twice, large": lambda: slices(LARGE).map(lambda x: (x, x)),
    "the same twice, made": lambda: slices().map(lambda x: (y := x + 1, y)),
    "the same twice, not traced": lambda: slices().map(lambda x: (y := x + len(str(x)), y, y[::-1])),
    "backwards": lambda: slices().map(lambda x: (x, x[::-1])),
    "backwards, made": lambda: slices(LARGE).map(lambda x: x * 2).map(lambda x: (x, x[::-1], x[2:])),
    "backwards, batches": lambda: slices().map(lambda x: x * 2).batch(4).map(lambda x: (x, x[::-1], x.T)),
    "parts that overlap": lambda: slices().map(lambda x: (x[:4], x[2:])),
    "a constant": lambda: slices().map(lambda x: ROWS),
    "a constant beside the element": lambda: slices().map(lambda x: (x, ROWS[0])).batch(2),
    "a row of a constant": lambda: ps.Dataset.range(6).map(lambda i: LARGE[int(i)]),
    "another library's memory": lambda: ps.Dataset.range(3).map(lambda i: Foreign(LARGE[0])),
    "broadcast": lambda: slices().map(lambda x: np.broadcast_to(x, (3, 6))),
    "broadcast by Block": lambda: ps.Dataset.range(4).map(lambda x: (x, np.zeros(3))).batch(2),
    "a memory cache": lambda: slices().map(lambda x: x + 1).cache(),
    "batches of a memory cache": lambda: slices().map(lambda x: x + 1).cache().batch(3),
    "a shuffled cache": lambda: slices(LARGE).map(lambda x: x + 1).cache().shuffle(4),
    "two caches": lambda: slices(LARGE).cache().map(lambda x: x).cache().batch(2),
    "a cache of ragged arrays": lambda: ps.Dataset.range(5).map(lambda i: np.arange(int(i))).cache(),
    "a sparse tensor": lambda: ps.Dataset.from_tensors(SPARSE).repeat(2),
    "a ragged tensor": lambda: ps.Dataset.from_tensors(RAGGED).repeat(2),
    "tensors of a function": lambda: ps.Dataset.range(3).map(lambda i: (SPARSE, RAGGED)),
    "batches of tensors": lambda: ps.Dataset.range(4).map(lambda i: (SPARSE, RAGGED)).batch(2),
    "cached tensors": lambda: ps.Dataset.range(3).map(lambda i: (SPARSE, RAGGED)).cache(),
    "rows of tensors": lambda: ps.Dataset.range(2).map(lambda i: (SPARSE, RAGGED)).unbatch(),
    "a generator": lambda: ps.Dataset.from_generator(lambda: iter([LARGE[0], LARGE[1], LARGE[0]])),
    "a generator's tensors": lambda: ps.Dataset.from_generator(lambda: iter([SPARSE, SPARSE])),
    "windows": lambda: slices().window(3, shift=1).flat_map(lambda window: window.batch(3)),
    "windows of one array": lambda: slices(LARGE).window(2, 1, drop_remainder=True).flat_map(lambda w: w),
    "the data set of an element": lambda: slices().flat_map(lambda x: ps.Dataset.from_tensors(x).repeat(2)),
    "unbatched": lambda: slices(LARGE).batch(3).unbatch(),
    "cut anew": lambda: slices(LARGE).batch(3).rebatch(2),
    "both ways": lambda: ps.Dataset.zip(slices(), slices()),
    "shuffled": lambda: slices(LARGE).shuffle(3),
    "shuffled globally": lambda: slices(LARGE).shuffle(ps.ALL),
    "filtered": lambda: slices(LARGE).filter(lambda x: x[0] > 1),
    "a state": lambda: slices().scan(np.zeros(6), lambda state, x: (state + x, state)),
    "the state itself": lambda: slices().scan(np.zeros(6), lambda state, x: (y := state + x, y)),
    "records": lambda: np.zeros(4, [("a", np.int32), ("b", np.float64)]),
}


@pytest.mark.parametrize("executor", ["inline", "thread", "process"])
@pytest.mark.parametrize("name", CASES)
def test_a_loop_may_write_into_what_it_receives(name, executor):
    made = CASES[name]()
    dataset = slices(made) if isinstance(made, np.ndarray) else made
    tensors = [*arrays_of(SPARSE), *arrays_of(RAGGED)]
    assert_owned(dataset, ways(dataset, executor), [ROWS, LARGE, TEXTS, *tensors])


def test_files_stay_as_they_are(tmp_path):
    slices(LARGE).save(tmp_path / "saved")
    np.save(tmp_path / "a.npy", LARGE)
    mapped = np.memmap(tmp_path / "a.bin", np.float64, "w+", shape=(4, 3))
    mapped[...] = 1
    for dataset in (
        ps.Dataset.load(tmp_path / "saved"),
        ps.Dataset.load(tmp_path / "saved").batch(4),
        ps.NumpyDataset(tmp_path / "a.npy"),
        slices(LARGE).cache(tmp_path / "cache"),
        slices(LARGE).cache(tmp_path / "cache").batch(2),
        slices(LARGE).snapshot(tmp_path / "snapshot"),
        ps.Dataset.range(3).map(lambda i: mapped[int(i)]),
        slices(mapped),
    ):
        assert_owned(dataset, ways(dataset, "inline", "thread"), [mapped, LARGE])
    assert (mapped == 1).all()


def test_what_a_call_returns_is_the_callers():
    whole = slices(LARGE).batch(6).cache()
    for _ in range(2):
        found = whole.get_single_element()
        assert not np.shares_memory(found, LARGE)
        found[...] = -1
    assert whole.get_single_element()[0, 0] == 0
    assert whole.batch_at(0).flags.writeable
    for function in (lambda _, x: x, lambda state, x: state):
        found = slices(ROWS).reduce(ROWS[0], function)
        assert not np.shares_memory(found, ROWS)
        assert found.flags.writeable
    sparse = ps.Dataset.range(2).reduce(SPARSE, lambda state, x: state)
    assert all(array.flags.writeable for array in arrays_of(sparse))
    assert sharing([*arrays_of(sparse), *arrays_of(SPARSE)]) == []
    assert not np.shares_memory(ps.map_fn(lambda x: x, ROWS), ROWS)


def test_a_window_that_is_an_element_gives_arrays_of_its_own():
    for window in slices(LARGE).map(lambda x: x + 1).window(2, shift=1):
        assert_owned(window, ways(window, "inline"))


def test_a_fresh_batch_is_not_copied():
    made = []

    def function(batch):
        made.append(np.full((4, 5000), 7.0))
        return made[-1]

    for batch in ps.Dataset.range(8).batch(4).map(function).iterator(executor="inline"):
        assert not np.shares_memory(batch, made[-1])  # somebody holds it

    addresses = []

    def fresh(batch):
        found = np.full((4, 5000), 7.0)
        addresses.append(found.__array_interface__["data"][0])
        return found

    for batch in ps.Dataset.range(8).batch(4).map(fresh).iterator(executor="inline"):
        assert batch.ctypes.data in addresses


# -- views, where they are asked for


@pytest.mark.parametrize("build", [lambda ds: ds, lambda ds: ds.batch(2), lambda ds: ds.cache().batch(2)])
def test_zero_copy_gives_views_that_cannot_be_written_to(build):
    ds = build(slices(LARGE)).with_options(ps.Options(zero_copy=True))
    for _ in range(2):
        elements = [*ds, *ds.as_numpy_iterator()]
        assert all(np.shares_memory(element, LARGE) for element in elements)
        assert not any(element.flags.writeable for element in elements)
        for element in elements:
            with pytest.raises(ValueError, match="cannot set WRITEABLE flag"):
                element.setflags(write=True)


@settings(max_examples=20)
@given(pipelines(most_steps=4))
def test_zero_copy_changes_no_element(pipeline: Pipeline):
    views = pipeline.dataset.with_options(ps.Options(zero_copy=True))
    assert list(map(token, views.iterator(epoch=0))) == list(map(token, pipeline.dataset.iterator(epoch=0)))


# -- functions get arrays to read


def writes(x):
    x += 1
    return x


def writes_and_says(*parts):
    parts[0][...] = 0
    return True


STEPS = {
    "map": lambda ds: ds.map(writes),
    "map in parallel": lambda ds: ds.map(writes, num_parallel_calls=2),
    "filter": lambda ds: ds.filter(writes_and_says),
    "take_while": lambda ds: ds.take_while(writes_and_says),
    "flat_map": lambda ds: ds.flat_map(writes_and_says),
    "interleave": lambda ds: ds.interleave(writes_and_says),
    "group_by_window": lambda ds: ds.group_by_window(writes_and_says, lambda key, rows: rows, 2),
    "scan": lambda ds: ds.scan(np.zeros(6), lambda state, x: (state, writes(x))),
    "state": lambda ds: ds.scan(np.zeros(6), lambda state, x: (writes(state), x)),
    "map of a batch": lambda ds: ds.batch(2).map(writes),
}


@settings(max_examples=40)
@given(st.sampled_from(sorted(STEPS)), st.sampled_from(["inline", "thread", "process"]), st.booleans(), st.booleans())
def test_a_function_cannot_write_into_what_it_gets(step, executor, made, cached):
    """Whether the array was made for it or is the user's, and wherever it is called."""
    rows = ROWS.copy()
    ds = slices(rows)
    ds = ds.map(lambda x: np.array(x.tolist())) if made else ds
    ds = STEPS[step](ds.cache() if cached else ds)
    with pytest.raises(ValueError, match="read-only"):
        list(ds.iterator(executor=executor))
    np.testing.assert_array_equal(rows, ROWS)


def test_a_function_that_reduces_cannot_either():
    with pytest.raises(ValueError, match="read-only"):
        slices().reduce(np.float64(0), lambda state, x: writes(x).sum())
