"""Elements whose ranks differ, where the signature of a generator leaves the shape open."""

import numpy as np
import pytest

import penstock as ps
from penstock.runtime.run import Iterator, RunSettings

OPEN = ps.TensorSpec(None, np.float32)
VALUES = [
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.arange(4, dtype=np.float32),
    np.float32(7),
    np.ones((1, 2, 2), np.float32),
    np.empty(0, np.float32),
    np.arange(4, dtype=np.float32) + 1,
]


def of_any_rank():
    return ps.Dataset.from_generator(lambda: iter(VALUES), output_signature=OPEN)


def told(elements):
    return [(np.shape(x), np.asarray(x).reshape(-1).tolist()) for x in elements]


def opaque(x):
    return np.asarray(np.asarray(x).tolist(), np.float32) * 2


def in_a_dict(x):
    return {"x": x, "n": np.size(x)}


def double(values):
    return [np.asarray(x) * 2 for x in values]


STEPS = {
    "as they are": (lambda ds: ds, VALUES),
    "map": (lambda ds: ds.map(lambda x: x * 2), double(VALUES)),
    "map in threads": (lambda ds: ds.map(lambda x: x * 2, num_parallel_calls=2), double(VALUES)),
    "map per element": (lambda ds: ds.map(opaque), double(VALUES)),
    "map that changes ranks": (lambda ds: ds.map(lambda x: np.zeros((1,) * (int(x.size) % 3), np.int8)), None),
    "filter": (lambda ds: ds.filter(lambda x: x.ndim != 1), [x for x in VALUES if x.ndim != 1]),
    "take, skip": (lambda ds: ds.skip(1).take(3), VALUES[1:4]),
    "prefetch": (lambda ds: ds.prefetch(2), VALUES),
    "repeat": (lambda ds: ds.repeat(2), VALUES * 2),
    "cache": (lambda ds: ds.cache(), VALUES),
    "concatenate": (lambda ds: ds.concatenate(ds), VALUES * 2),
    "interleave": (
        lambda ds: ps.Dataset.range(2).interleave(lambda _: ds, cycle_length=2),
        [x for x in VALUES for _ in range(2)],
    ),
    "flat_map, map": (lambda ds: ps.Dataset.range(2).flat_map(lambda _: ds).map(opaque), double(VALUES * 2)),
    "window": (lambda ds: ds.window(2).flat_map(lambda window: window), VALUES),
    "scan": (lambda ds: ds.scan(0, lambda n, x: (n + 1, x)), VALUES),
    "zip": (lambda ds: ps.Dataset.zip((ds, ds)).map(lambda x, y: x + y), double(VALUES)),
    "enumerate": (lambda ds: ds.enumerate().map(lambda _, x: x), VALUES),
    "batch of one": (lambda ds: ds.batch(1), [x[None] for x in VALUES]),
    "unbatch": (lambda ds: ds.batch(1).unbatch(), VALUES),
}


@pytest.mark.parametrize("name", STEPS)
def test_ranks_may_differ_behind_a_signature_that_leaves_them_open(name):
    step, expected = STEPS[name]
    ds = step(of_any_rank())
    assert ds.element_spec.shape is None
    if expected is None:
        assert [x.ndim for x in ds] == [x.size % 3 for x in VALUES]
    else:
        assert told(ds) == told(expected)
        assert told(ds) == told(expected)  # again: caches are filled by now


@pytest.mark.parametrize("executor", ["inline", "thread", "process"])
def test_every_executor_calls_functions_with_elements_of_any_rank(executor):
    ds = of_any_rank().map(opaque, num_parallel_calls=2).map(in_a_dict)
    with Iterator(ds._plan, ds._options, 0, RunSettings(executor)) as elements:
        found = list(elements)
    assert told(x["x"] for x in found) == told(double(VALUES))
    assert [x["n"] for x in found] == [x.size for x in VALUES]


def test_a_shuffle_gives_all_of_them():
    found = told(of_any_rank().shuffle(3, seed=1))
    assert found != told(VALUES)
    assert sorted(found) == sorted(told(VALUES))


def test_a_pass_goes_on_where_it_was():
    def made():
        return of_any_rank().map(opaque).shuffle(2, seed=1).prefetch(1)

    whole = told(made())
    for count in range(len(VALUES) + 1):
        before, after = iter(made()), iter(made())
        for _ in range(count):
            next(before)
        after.load_state_dict(before.state_dict())
        assert told(after) == told(before) == whole[count:]


@pytest.mark.parametrize(
    ("values", "dtype"), [(VALUES, np.float32), ([b"a\x00", np.array([b"b", b""], object), b""], bytes)]
)
def test_files_hold_them(tmp_path, values, dtype):
    ds = ps.Dataset.from_generator(lambda: iter(values), output_signature=ps.TensorSpec(None, dtype))
    cached = ds.cache(str(tmp_path / "cache"))
    assert told(cached) == told(cached) == told(values)
    ds.save(str(tmp_path / "saved"))
    saved = ps.Dataset.load(str(tmp_path / "saved"))
    assert saved.element_spec == ps.TensorSpec(None, dtype)
    assert told(saved) == told(values)
    assert told(saved.map(lambda x: np.reshape(np.asarray(x), -1))) == told(np.reshape(x, -1) for x in values)
    assert saved[1].shape == values[1].shape


def test_a_batch_of_equal_shapes_is_one_array():
    ds = ps.Dataset.from_generator(lambda: iter([VALUES[1], VALUES[5], 1.0, 2.0]), output_signature=OPEN)
    first, second = ds.batch(2)
    assert first.tolist() == [VALUES[1].tolist(), VALUES[5].tolist()]
    assert second.tolist() == [1, 2]


@pytest.mark.parametrize(
    "batch",
    [
        lambda ds: ds.batch(2),
        lambda ds: ds.batch(2, num_parallel_calls=2),
        lambda ds: ds.map(opaque, num_parallel_calls=2).batch(2),
        lambda ds: ds.padded_batch(2),
        lambda ds: ds.padded_batch(2, padded_shapes=(None, None)),
        lambda ds: ds.ragged_batch(2),
        lambda ds: ds.batch(1).rebatch(2),
        lambda ds: ds.bucket_by_sequence_length(lambda x: 1, [2], [2, 2]),
    ],
)
def test_elements_of_differing_rank_make_no_batch(batch):
    with pytest.raises(ps.errors.InvalidArgumentError, match="A batch holds elements of one rank: reshape them"):
        list(batch(of_any_rank().take(2)))


def outcomes(ds):
    """What comes, and what fails in its place."""
    found = []
    with iter(ds) as elements:
        while True:
            try:
                found.append(told(elements_of(next(elements))))
            except StopIteration:
                return found
            except ps.errors.PenstockError as error:
                found.append((type(error).__name__, error.message))


def elements_of(element):
    return element.values() if isinstance(element, dict) else [element]


@pytest.mark.parametrize(
    ("batch", "good"),
    [
        (lambda ds: ds.pack(8), 1),
        (lambda ds: ds.batch_by_tokens(4), 1),
        (lambda ds: ds.batch_by_tokens(4, sort_window=6), 2),
        (lambda ds: ds.filter(lambda x: x.ndim == 1).batch_by_tokens(8), 2),
    ],
)
def test_sequences_fail_by_themselves_whatever_they_came_with(batch, good):
    whole = of_any_rank().cache()
    list(whole)  # the cache hands them on together
    found = outcomes(batch(whole))
    assert sum(isinstance(one, list) for one in found) == good
    assert found == outcomes(batch(of_any_rank()))
    batch(whole.filter(lambda x: x.ndim == 1)).element_spec  # noqa: B018


def test_each_sparse_batch_has_the_rank_that_was_said():
    ds = ps.Dataset.from_generator(lambda: iter([VALUES[0], VALUES[0], 1.0, 2.0]), output_signature=OPEN)
    with pytest.raises(ps.errors.InvalidArgumentError, match=r"row_shape has 2 dimensions, .* the elements have 0"):
        list(ds.cache().sparse_batch(2, (None, None)))


def test_dtypes_do_not_differ_though_ranks_may():
    with pytest.raises(ps.errors.InvalidArgumentError, match="signature says"):
        list(ps.Dataset.from_generator(lambda: iter([np.float32(1), np.zeros(2)]), output_signature=OPEN))
    with pytest.raises(ps.errors.InvalidTypeError, match="result changed: before it was float32 of rank 2, now it is"):
        list(of_any_rank().map(lambda x: x if x.ndim == 2 else x.astype(np.int64)))
    with pytest.raises(ps.errors.InvalidTypeError, match="result changed: before it was float32 of rank 2, now it is"):
        list(of_any_rank().map(lambda x: opaque(x) if x.ndim == 2 else np.int8(1)))


def test_without_such_a_signature_ranks_are_one():
    with pytest.raises(ps.errors.InvalidTypeError, match="of rank 2, now it is float32 of rank 1") as caught:
        list(ps.Dataset.from_generator(lambda: iter(VALUES)))
    assert "Where they are to differ in rank, say output_signature=TensorSpec(None, dtype)." in str(caught.value)
    with pytest.raises(ps.errors.InvalidTypeError, match="of rank 0, now it is float64 of rank 1"):
        list(ps.Dataset.range(3).map(lambda x: np.zeros((2,) * int(x))))


def mean_or_zero(x):
    return x.mean() if len(x) else 0.0  # float64, or float32 as Python's literals are


RAGGED = [np.arange(n) for n in (3, 2, 4, 1, 0, 5)]


@pytest.mark.parametrize("executor", ["inline", "thread"])
@pytest.mark.parametrize("source", ["list", "generator", "sequence"])
def test_the_dtype_of_the_first_element_decides_whatever_the_source(source, executor):
    make = {
        "list": ps.Dataset.from_list,
        "generator": lambda rows: ps.Dataset.from_generator(lambda: iter(rows)),
        "sequence": ps.Dataset.from_sequence,
    }[source]
    ds = make(RAGGED).map(mean_or_zero)
    with pytest.raises(ps.errors.InvalidTypeError, match=r"float64 of rank 0, (now it is|this one) float32"):
        list(ds.iterator(executor=executor))
    assert [float(x) for x in ds.ignore_errors().iterator(executor=executor)] == [1.0, 0.5, 1.5, 0.0, 2.0]
