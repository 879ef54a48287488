"""cache(): one complete pass is kept and served; nothing less, nothing twice."""

import pickle
import threading
import weakref
from collections import deque

import numpy as np
import pytest

import penstock as ps
from penstock.block.block import Block
from penstock.store.memory import MemoryStore
from penstock.testing import assert_resumes_exactly, assert_same_elements, resumed


@pytest.fixture
def counted():
    """A function that notes its calls, and the list it notes them in."""
    calls = deque()  # and no list: the content of a list a function closes over is part of its fingerprint

    def function(x):
        calls.append(int(x))
        return np.full(3, x)

    return function, calls


@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_an_impure_function_is_called_once_per_element(counted, executor):
    function, calls = counted
    ds = ps.Dataset.range(20).map(function).cache()
    passes = [[int(x[0]) for x in ds.iterator(executor=executor)] for _ in range(3)]
    assert passes == [list(range(20))] * 3
    assert list(calls) == list(range(20))


def test_epochs_of_repeat_read_the_store(counted):
    function, calls = counted
    ds = ps.Dataset.range(10).map(function).cache().repeat(3)
    assert [int(x[0]) for x in ds] == list(range(10)) * 3
    assert list(calls) == list(range(10))


@pytest.mark.parametrize("given", [0, 1, 5, 10])
def test_a_pass_that_stops_early_keeps_nothing(counted, given):
    function, calls = counted
    ds = ps.Dataset.range(10).map(function).cache()
    with ds.iterator(executor="inline") as elements:
        for _ in range(given):
            next(elements)
    calls.clear()
    assert [int(x[0]) for x in ds] == list(range(10))
    assert list(calls) == list(range(10))


def test_data_sets_built_on_one_cache_share_it(counted):
    function, calls = counted
    cached = ps.Dataset.range(10).map(function).cache()
    list(cached.batch(2))
    assert [int(x[0]) for x in cached.take(3)] == [0, 1, 2]
    assert len(calls) == 10


def test_two_calls_of_cache_do_not_share(counted):
    function, calls = counted
    mapped = ps.Dataset.range(10).map(function)
    list(mapped.cache())
    list(mapped.cache())
    assert len(calls) == 20


def test_what_is_kept_cannot_be_written():
    ds = ps.Dataset.range(4).map(lambda x: np.full(3, x)).cache().with_options(ps.Options(zero_copy=True))
    for _ in range(2):
        for element in ds:
            with pytest.raises(ValueError, match="read-only"):
                element[0] = 9


def test_a_step_behind_the_cache_does_not_change_what_is_kept():
    ds = ps.Dataset.range(6).cache().map(lambda x: x * 2).shuffle(3)
    assert sorted(int(x) for x in ds) == sorted(int(x) for x in ds) == [0, 2, 4, 6, 8, 10]


def test_the_pass_kept_is_epoch_0_whichever_epoch_fills_it():
    def build():
        return ps.Dataset.range(30).shuffle(30).cache()

    early = [int(x) for x in build().iterator(epoch=0)]
    late = [int(x) for x in build().iterator(epoch=5)]
    assert early == late


def test_a_shuffle_behind_the_cache_still_reshuffles():
    ds = ps.Dataset.range(30).cache().shuffle(30)
    assert [int(x) for x in ds] != [int(x) for x in ds]


def test_an_error_in_the_first_pass_keeps_nothing():
    fail = [True]

    def function(x):
        if x == 5 and fail[0]:
            raise ValueError("once")
        return x

    ds = ps.Dataset.range(10).map(function).cache()
    with pytest.raises(ValueError, match="once"):
        list(ds)
    fail[0] = False
    assert [int(x) for x in ds] == list(range(10))


def test_a_pass_continued_in_the_middle_keeps_nothing_and_is_right(counted):
    function, calls = counted
    ds = ps.Dataset.range(10).map(function).cache()
    with ds.iterator(executor="inline") as elements:
        for _ in range(4):
            next(elements)
        state = elements.state_dict()
    rest = ps.Dataset.range(10).map(function).cache()
    assert [int(x[0]) for x in resumed(rest, state, "inline")] == list(range(4, 10))
    calls.clear()
    assert [int(x[0]) for x in rest] == list(range(10))
    assert list(calls) == list(range(10))


@pytest.mark.parametrize("numbers", [1, 1 << 11, 1 << 16], ids=["tiny", "small", "large"])
def test_a_shuffle_of_a_full_cache_resumes_at_every_step(numbers):
    ds = ps.Dataset.range(25).map(lambda x: (np.full(numbers, x), b"%d" % x)).cache().shuffle(7).batch(2).repeat(2)
    list(ds)
    assert_resumes_exactly(ds, across=False)


def test_a_shuffle_asks_a_cache_that_is_being_filled_for_no_more_than_is_wanted(counted):
    function, calls = counted
    ds = ps.Dataset.range(500).map(function).cache().shuffle(10)
    with ds.iterator(executor="inline") as elements:
        for _ in range(5):
            next(elements)
        assert len(calls) < 50


def test_passes_that_fill_at_the_same_time_agree():
    ds = ps.Dataset.range(200).map(lambda x: x * 2, 2).cache()
    found = []
    threads = [threading.Thread(target=lambda: found.append([int(x) for x in ds.iterator(epoch=0)])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [[2 * x for x in range(200)]] * 4
    assert [int(x) for x in ds] == found[0]


class Account:
    """Something that can be held on to."""


def test_a_store_keeps_the_first_complete_pass_and_its_account_until_it_is_cleared():
    store, account = MemoryStore(most=9), Account()
    held = weakref.ref(account)
    store.keep(account)  # of nothing there is no account
    del account
    assert (held(), store.blocks(), store.nbytes, store.overflowed) == (None, None, 0, False)
    blocks = (Block.from_elements([np.int64(3)]),)
    store.commit(blocks, 8)
    store.commit((), 1)
    account = Account()
    held = weakref.ref(account)
    store.keep(account)
    del account
    assert held() is not None
    assert store.blocks() is blocks
    assert store.nbytes == 8
    copy = pickle.loads(pickle.dumps(store))
    assert (copy.blocks(), copy.nbytes, copy.most) == (None, 0, 9)
    store.clear()
    assert (held(), store.blocks(), store.nbytes) == (None, None, 0)


# -- what is kept lies side by side


def pictures(count=40):
    """Elements of 96 KB, the number of which is not known beforehand."""
    return ps.Dataset.range(count).filter(lambda x: x >= 0).map(lambda x: np.full((64, 128, 3), x, np.float32))


def kept(ds):
    """The arrays in the store of the data set's cache."""
    (store,) = [node.store for node in ds._plan.walk() if node.name == "cache"]
    return [block.columns[0].array for block in store.blocks()]


@pytest.mark.parametrize("build", [lambda: ps.Dataset.range(100), pictures], ids=["count known", "count unknown"])
@pytest.mark.parametrize("size", [4, 7])
def test_batches_of_a_full_cache_are_views_of_it(build, size):
    ds = build().cache()
    wanted = [np.asarray(element) for element in ds]
    (array,) = kept(ds)
    batches = list(ds.batch(size).with_options(ps.Options(zero_copy=True)))
    assert all(np.shares_memory(batch, array) for batch in batches)
    assert not any(batch.flags.writeable for batch in batches)
    np.testing.assert_array_equal(np.concatenate(batches), np.stack(wanted))


def test_a_shuffle_of_large_elements_copies_none(monkeypatch):
    ds = pictures().cache()
    list(ds)
    arrays = kept(ds)
    for element in ds.shuffle(16).with_options(ps.Options(zero_copy=True)).iterator(executor="inline"):
        assert any(np.shares_memory(element, array) for array in arrays)
    batches = list(ds.shuffle(16, seed=1).batch(8))
    assert sorted(int(row[0, 0, 0]) for batch in batches for row in batch) == list(range(40))
    assert all(batch.flags.writeable for batch in batches)


def test_a_shuffle_of_what_is_kept_holds_nothing_of_its_own():
    ds = pictures(200).cache()
    list(ds)
    shuffled = ds.shuffle(100)
    with shuffled.iterator(executor="inline") as elements:
        next(elements)
        held = {row.kind: row.nbytes for row in shuffled.memory().rows}
    assert held["cache"] == 200 * 64 * 128 * 3 * 4
    assert held.get("shuffle", 0) == 0


# -- a pass that leaves nothing says so


@pytest.fixture
def told(caplog):
    caplog.set_level("INFO", "penstock.physical")
    return lambda: [record.getMessage() for record in caplog.records]


def test_a_pass_that_stops_early_says_so_once(told):
    ds = ps.Dataset.range(10).cache()
    for _ in range(2):
        with ds.iterator(executor="inline") as elements:
            next(elements), next(elements), next(elements)
    (message,) = told()
    assert message.startswith("cache (")
    assert __file__ in message
    assert "stores nothing: the iteration stopped after " in message


def test_a_pass_that_stops_early_is_silent_by_default(caplog):
    next(iter(ps.Dataset.range(10).cache()))
    assert [record for record in caplog.records if record.levelname != "INFO"] == []


def test_an_iterator_that_is_still_open_says_nothing(told):
    elements = ps.Dataset.range(10).cache().iterator(executor="inline")
    next(elements)
    assert told() == []
    assert len(list(elements)) == 9
    assert told() == []


@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_a_whole_pass_says_nothing(told, executor):
    ds = ps.Dataset.range(10).map(lambda x: x + 1, 2).cache().batch(3)
    assert [len(list(ds.iterator(executor=executor))) for _ in range(2)] == [4, 4]
    assert told() == []


def test_a_failure_that_keeps_a_cache_empty_is_told(told):
    def function(x):
        if x == 5:
            raise ValueError("spoiled")
        return x

    ds = ps.Dataset.range(10).map(function).cache().ignore_errors()
    assert len(list(ds)) == len(list(ds)) == 9
    (message,) = [text for text in told() if "stores nothing" in text]
    assert "an element failed" in message


def test_looking_at_a_data_set_says_nothing(told):
    ds = ps.Dataset.range(10).map(lambda x: np.zeros(int(x) % 1)).cache().batch(2).map(len)
    assert ds.element_spec is not None
    ds.explain(analyze=True, seconds=0.01)
    assert told() == []


def test_a_cache_that_cannot_fit_says_so_at_its_first_element():
    options = ps.Options(autotune={"ram_budget": 1 << 20})
    ds = ps.Dataset.range(1000).map(lambda x: np.zeros(1000)).cache().with_options(options)
    elements = ds.iterator(executor="inline")
    with pytest.raises(ps.errors.ResourceExhaustedError, match=r"cache holds 8 MB when it is full, and .* is 1.05 MB"):
        next(elements)


@pytest.mark.parametrize("numbers", [3, 1 << 11, 1 << 16], ids=["tiny", "small", "large"])
@pytest.mark.parametrize("parallel", [None, 2], ids=["one by one", "in parallel"])
def test_shuffled_batches_of_what_is_kept_are_the_consumers_own(numbers, parallel):
    made = ps.Dataset.range(90).map(lambda x: {"x": np.full(numbers, x, np.float32), "y": x, "z": b"%d" % x})
    ds = made.cache()
    wanted = list(made.shuffle(32, seed=1).batch(8))
    for _ in range(3):
        for batch, other in zip(ds.shuffle(32, seed=1).batch(8, num_parallel_calls=parallel), wanted, strict=True):
            assert_same_elements([batch], [other])
            batch["x"][...] = -1  # nobody else sees it
    if parallel is None:
        assert len(kept(ds)) == 1


def test_two_caches_one_behind_the_other_are_shuffled_as_one():
    first, second = (
        ps.Dataset.range(start, start + 30).map(lambda x: np.full(1 << 11, x)).cache() for start in (0, 30)
    )
    plain = ps.Dataset.range(90).map(lambda x: np.full(1 << 11, x))
    ds = first.concatenate(second).concatenate(plain.skip(60))
    wanted = [row.tolist() for row in plain.shuffle(25, seed=4).batch(1)]
    for _ in range(2):
        assert [row.tolist() for row in ds.shuffle(25, seed=4).batch(1)] == wanted


def test_workers_that_fill_batches_take_large_elements_from_the_cache():
    kept = ps.Dataset.range(70).map(lambda x: np.full((20_000,), x, np.float32)).cache()
    wanted = list(kept.shuffle(16, seed=3).batch(8))
    for _ in range(2):
        found = list(kept.shuffle(16, seed=3).batch(8, num_parallel_calls=2))
        assert [batch[:, -1].tolist() for batch in found] == [batch[:, 0].tolist() for batch in wanted]
        assert all(batch.flags.writeable for batch in found)
