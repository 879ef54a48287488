"""shuffle(AUTOTUNE): all elements where they have numbers, else a buffer whose size the plan alone decides."""

import pickle
from collections import Counter

import numpy as np
import pytest
from tests import reference
from tests.golden.golden import assert_golden
from tests.positions import assert_continues_everywhere

import penstock as ps
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.plan.indexing import GlobalShuffle
from penstock.plan.ops import Shuffle
from penstock.testing import assert_resumes_exactly, assert_same_elements, assert_same_on_all_executors

MB = 1 << 20


def even(x):
    return x % 2 == 0


def kept(*parts):
    return True


def tenfold(x):
    return x * 10


def tenfold_and_heard(x):
    print(end="")
    return x * 10


def of(dataset):
    """The size of the buffer of the plan's one shuffle; None for a shuffle of all."""
    (node,) = [node for node in dataset._plan.walk() if isinstance(node, (Shuffle, GlobalShuffle))]
    return None if isinstance(node, GlobalShuffle) else node.buffer_size


def holding(shape, dtype=np.uint8, count=5):
    """A data set without numbers whose elements have this shape."""
    values = np.broadcast_to(np.zeros((), dtype), (count, *shape))
    return ps.Dataset.from_tensor_slices(values).filter(kept)


def described(*signature):
    return ps.Dataset.from_generator(lambda: iter(()), output_signature=signature)


# -- all elements, where they have numbers

INDEXED = {
    "range": lambda: ps.Dataset.range(30),
    "map": lambda: ps.Dataset.range(30).map(tenfold_and_heard, ps.AUTOTUNE),
    "batch": lambda: ps.Dataset.range(30).batch(4),
    "shard": lambda: ps.Dataset.range(30).skip(2).shard(2, 1).take(9),
    "zip": lambda: ps.Dataset.zip(ps.Dataset.range(30), ps.Dataset.range(5).repeat()),
    "repeat": lambda: ps.Dataset.range(10).repeat(3),
    "cache": lambda: ps.Dataset.range(30).map(tenfold).cache(),
    "shuffled": lambda: ps.Dataset.range(30).shuffle(ps.ALL).batch(3).prefetch(1),
    "nothing": lambda: ps.Dataset.range(0),
}


@pytest.mark.parametrize("name", INDEXED)
@pytest.mark.parametrize("again", [None, False])
def test_where_elements_have_numbers_it_is_a_shuffle_of_all(name, again):
    ds = INDEXED[name]()
    tuned, exact = (ds.shuffle(size, 7, again) for size in (ps.AUTOTUNE, ps.ALL))
    assert tuned._plan == exact._plan
    assert tuned.fingerprint() == exact.fingerprint()
    for epoch in (0, 1):
        with tuned.iterator(epoch=epoch) as elements:
            assert_same_elements(list(elements), list(exact.iterator(epoch=epoch, executor="inline")))


# -- a buffer, where they have none


@pytest.mark.parametrize(
    ("dataset", "size"),
    [
        (lambda: holding(()), 65536),
        (lambda: holding((4096,)), 65536),
        (lambda: holding((4097,)), 65520),
        (lambda: holding((224, 224, 3)), 1783),
        (lambda: holding((224, 224, 3), np.float32), 445),
        (lambda: holding((16 * MB,)), 16),
        (lambda: holding((64 * MB,)), 16),
        (lambda: holding((0, 3)), 65536),
        (lambda: described(ps.TensorSpec((), bytes)), 2048),
        (lambda: described(ps.TensorSpec((None, None, 3), np.uint8)), 2048),
        (lambda: described({"a": ps.TensorSpec((), bytes), "b": ps.TensorSpec((None,)), "c": ps.TensorSpec(())}), 2047),
        (lambda: described(ps.TensorSpec((MB,), np.uint8), ps.TensorSpec((), bytes)), 227),
        (lambda: ps.Dataset.from_generator(lambda: iter(())), 2048),
        (lambda: ps.Dataset.range(10).flat_map(ps.Dataset.range), 2048),
        (lambda: ps.Dataset.range(10).interleave(ps.Dataset.range), 2048),
        (lambda: ps.Dataset.range(10).map(tenfold).filter(even), 2048),
        (lambda: ps.TFRecordDataset("nothing there.tfrecord"), 2048),
        (lambda: holding((1024,)).batch(8), 256),
        (lambda: holding((1024,)).batch(8).map(np.sum).prefetch(1), 256),
        (lambda: holding((1024,)).batch(8).batch(4).filter(kept), 64),
        (lambda: holding((1024,)).batch(8).unbatch().map(tenfold), 2048),
        (lambda: ps.Dataset.zip(holding(()), holding((3,)).padded_batch(64)), 31),
        (lambda: holding((1024,)).batch(4096).map(tenfold), 16),
        (lambda: holding((1024,)).batch(8, drop_remainder=True), 32768),
        (lambda: holding((2,)).sparse_batch(2, [4]), 1024),
    ],
)
def test_a_buffer_holds_256_mib_of_what_the_spec_says(dataset, size):
    assert of(dataset().shuffle(ps.AUTOTUNE)) == size


@pytest.mark.parametrize(("count", "size"), [(0, 1), (1, 1), (3000, 3000), (65536, 65536), (70000, 65536)])
def test_a_buffer_is_not_larger_than_the_data_set(count, size):
    ds = ps.Dataset.range(count).filter(kept).assert_cardinality(count)
    assert of(ds.shuffle(ps.AUTOTUNE)) == size


def test_what_never_ends_has_a_buffer():
    ds = ps.Dataset.range(5).repeat()
    assert of(ds.shuffle(ps.AUTOTUNE)) == 65536
    assert of(ps.Dataset.zip(ds, ds).shuffle(ps.AUTOTUNE)) == 65536
    assert of(ps.Dataset.counter().shuffle(ps.AUTOTUNE)) == 65536
    assert of(ds.take(7).shuffle(ps.AUTOTUNE)) is None
    assert {int(x) for x in ds.shuffle(ps.AUTOTUNE).take(50)} == set(range(5))


def test_rows_that_are_decoded_by_the_thousand_have_a_buffer(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"x": list(range(40))}), tmp_path / "a.parquet", row_group_size=8)
    rows = ps.ParquetDataset(tmp_path / "a.parquet")
    assert of(rows.shuffle(ps.AUTOTUNE)) == 40
    assert of(rows.map(tenfold_and_heard).take(10).shuffle(ps.AUTOTUNE)) == 10
    assert of(ps.Dataset.zip(ps.Dataset.range(40), rows).shuffle(ps.AUTOTUNE)) == 40
    assert of(rows.cache().shuffle(ps.AUTOTUNE)) is None
    assert sorted(int(row["x"]) for row in rows.shuffle(ps.AUTOTUNE)) == list(range(40))


@pytest.mark.parametrize("again", [None, False])
@pytest.mark.parametrize("seed", [None, 7])
def test_a_buffer_gives_the_order_that_its_size_gives(seed, again):
    ds = ps.Dataset.range(5000).filter(even).batch(50).unbatch()
    tuned = ds.shuffle(ps.AUTOTUNE, seed, again)
    exact = ds.shuffle(65536, seed, again)
    for epoch in (0, 1):
        found = [int(x) for x in tuned.iterator(epoch=epoch)]
        assert found == [int(x) for x in exact.iterator(epoch=epoch)]
        assert found == [int(x) for x in reference.run(tuned._plan, tuned.options(), epoch)]
        assert Counter(found) == Counter(range(0, 5000, 2))
    epochs = [[int(x) for x in tuned.iterator(epoch=epoch)] for epoch in (0, 1)]
    assert (epochs[0] == epochs[1]) == (again is False)


# -- the order is the plan's


def test_the_size_does_not_follow_the_machine(monkeypatch):
    ds = holding((1000,)).shuffle(ps.AUTOTUNE)
    for name in ("granted_memory", "granted_cpus", "granted_cores", "available_memory"):
        monkeypatch.setattr(f"penstock.runtime.machine.granted.{name}", lambda *args: 1)
    small = holding((1000,)).with_options(ps.Options(autotune={"ram_budget": 1, "cpu_budget": 1})).shuffle(ps.AUTOTUNE)
    assert of(small) == of(ds) == 65536


def test_the_size_does_not_follow_what_is_understood_of_functions():
    """Whether a function can be traced may differ between versions of Python; an order must not."""
    sizes = {
        of(ps.Dataset.range(10).map(function).filter(kept).shuffle(ps.AUTOTUNE))
        for function in (tenfold, tenfold_and_heard)
    }
    assert sizes == {2048}


def test_a_rewrite_that_moves_the_shuffle_keeps_its_size():
    ds = ps.Dataset.range(5000).filter(even).map(tenfold).shuffle(ps.AUTOTUNE)
    off = ps.Options(experimental_optimization={"apply_default_optimizations": False})
    assert [int(x) for x in ds] == [int(x) for x in ds.with_options(off)]
    assert of(ds) == 2048


# -- states


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda ds: ds, lambda ds: ds.filter(kept)])
@pytest.mark.parametrize("again", [None, False])
def test_it_continues_everywhere(make, again):
    ds = make(ps.Dataset.range(25)).shuffle(ps.AUTOTUNE, 5, again)
    assert_continues_everywhere(ds, 30)
    assert_resumes_exactly(ds.repeat(2))
    assert_same_on_all_executors(ds.batch(4).repeat(2))


def test_a_state_belongs_to_the_plan_that_was_made_again():
    def made():
        return ps.Dataset.range(500).filter(even).shuffle(ps.AUTOTUNE)

    first = made().iterator(epoch=0)
    some = [int(next(first)) for _ in range(77)]
    again = pickle.loads(pickle.dumps(made())).iterator(epoch=0)
    again.load_state_dict(first.state_dict())
    assert sorted(some + [int(x) for x in again]) == list(range(0, 500, 2))
    first.close()


# -- what is said

SAID = {
    "all": lambda: ps.Dataset.range(9).shuffle(ps.AUTOTUNE),
    "filter": lambda: ps.Dataset.range(9).filter(even).shuffle(ps.AUTOTUNE),
    "pictures": lambda: holding((224, 224, 3)).shuffle(ps.AUTOTUNE).repeat(2),
    "records": lambda: ps.Dataset.range(9).interleave(lambda x: ps.Dataset.range(x)).shuffle(ps.AUTOTUNE, seed=3),
    "endless": lambda: ps.Dataset.range(9).repeat().shuffle(ps.AUTOTUNE),
    "counted": lambda: ps.Dataset.range(9).filter(even).assert_cardinality(5).shuffle(ps.AUTOTUNE),
}


@pytest.mark.parametrize("name", SAID)
def test_explain_says_what_was_chosen_and_why(name):
    assert_golden(f"explain_shuffle_autotune_{name}", SAID[name]().explain())


@pytest.mark.parametrize("size", [0, -3, np.int64(-5)])
def test_other_sizes_below_1_are_refused(size):
    with pytest.raises(InvalidArgumentError, match=r"at least 1, got buffer_size=.*\n.*\n.*AUTOTUNE"):
        ps.Dataset.range(3).shuffle(size)


@pytest.mark.parametrize("size", [-1.0, "AUTOTUNE", None, True])
def test_what_is_no_size_is_refused(size):
    with pytest.raises(InvalidTypeError, match="buffer_size must be an integer"):
        ps.Dataset.range(3).shuffle(size)


def test_any_integer_of_minus_1_is_autotune():
    assert of(ps.Dataset.range(3).shuffle(np.int32(-1))) is None
    assert of(ps.Dataset.range(3).filter(even).shuffle(np.int64(ps.AUTOTUNE))) == 65536
