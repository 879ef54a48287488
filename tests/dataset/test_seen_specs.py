"""element_spec holds for every element, also where one had to be made to tell it; what tf.data takes as a count."""

import sqlite3

import numpy as np
import pytest
from hypothesis import given
from tests.strategies import Pipeline, pipelines

import penstock as ps
from penstock.block.spec import TensorSpec
from penstock.block.structure import flatten


def opaque(x):
    return np.asarray(float(str(x)))


def by_letter(batch):
    return np.array([float(str(x)) for x in batch])


@pytest.mark.parametrize(
    ("made", "shape"),
    [
        (lambda ds: ds.window(3).flat_map(lambda w: w.batch(3)), (None,)),
        (lambda ds: ds.map(opaque).batch(4), (None,)),
        (lambda ds: ds.map(opaque).batch(4, drop_remainder=True), (4,)),
        (lambda ds: ds.map(opaque).batch(2).unbatch().batch(3), (None,)),
        (lambda ds: ds.flat_map(lambda x: ps.Dataset.range(3).batch(2)).batch(2), (None, None)),
        (lambda ds: ds.interleave(lambda x: ps.Dataset.range(5).map(opaque).batch(2)), (None,)),
        (lambda ds: ds.map(opaque), ()),
        (lambda ds: ds.group_by_window(lambda x: x % 2, lambda k, w: w.batch(3), 3), (None,)),
        (lambda ds: ds.group_by_window(lambda x: x % 2, lambda k, w: w.batch(2, drop_remainder=True), 3), (2,)),
        (lambda ds: ds.map(of_any_length).padded_batch(2), (None, None)),
        (lambda ds: ds.map(of_any_length).padded_batch(2, padded_shapes=(7,)), (None, 7)),
        (lambda ds: ds.map(of_any_length).bucket_by_sequence_length(len, [3], [2, 2]), (None, None)),
        # that all rows are as long is certain where a step makes them so, and not where the first happens to be
        (lambda ds: ds.map(opaque).batch(3, drop_remainder=True).padded_batch(2), (None, 3)),
        (lambda ds: ds.map(opaque).batch(3).rebatch([3, 3], drop_remainder=True).padded_batch(2), (None, 3)),
        (lambda ds: ds.map(opaque).batch(2).padded_batch(2), (None, None)),
        (lambda ds: ds.map(of_any_length).map(lambda x: x + 1).padded_batch(2, drop_remainder=True), (2, None)),
        (lambda ds: ds.map(of_any_length).batch(2, drop_remainder=True).padded_batch(2), (None, 2, None)),
    ],
)
def test_only_the_step_that_tells_nothing_is_seen(made, shape):
    assert made(ps.Dataset.range(5)).element_spec.shape == shape


def of_any_length(x):
    return np.arange(int(str(x)) + 1)


@pytest.mark.parametrize("behind", [lambda ds: ds, lambda ds: ds.prefetch(1), lambda ds: ds.map(lambda x: x).take(1)])
def test_the_rows_of_a_ragged_batch_are_seen_to_be_ragged(behind):
    spec = behind(ps.Dataset.range(4).map(of_any_length).ragged_batch(2)).element_spec
    assert spec == behind(ps.Dataset.range(4).map(of_any_length).ragged_batch(2)).map(opaque_rows).element_spec
    assert spec.value_type is ps.RaggedTensor


def opaque_rows(rows):
    str(rows)
    return rows


def fits(spec, element):
    specs, structure = flatten(spec)
    leaves, other = flatten(element)
    assert structure.same_as(other)
    for leaf, value in zip(specs, leaves, strict=True):
        if isinstance(leaf, TensorSpec) and leaf.shape is not None and isinstance(value, (np.ndarray, np.generic)):
            assert len(leaf.shape) == value.ndim
            assert all(n is None or n == m for n, m in zip(leaf.shape, value.shape, strict=True))
            assert leaf.dtype is bytes or value.dtype == leaf.dtype


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@given(pipelines())
def test_a_spec_that_is_known_holds_for_every_element(pipeline: Pipeline):
    spec = pipeline.dataset._plan.spec
    if spec is not None:
        for element in pipeline.dataset.iterator(epoch=0, executor="inline"):
            fits(spec, element)


@pytest.mark.parametrize("size", [2, 3, 4, 7])
@pytest.mark.parametrize("count", [1, 2, 5, 7, 8])
def test_a_spec_behind_a_seen_step_holds_for_every_element(size, count):
    ds = ps.Dataset.range(count).map(opaque)
    for made in (ds.batch(size), ds.batch(size).map(lambda b: b * 2).prefetch(1)):
        for element in made:
            fits(made.element_spec, element)


@pytest.mark.parametrize("number", [-1, -2, -5, np.int64(-9)])
def test_any_negative_count_means_minus_one(number):
    ds = ps.Dataset.range(4)
    assert ds.repeat(number).cardinality() == ps.INFINITE_CARDINALITY
    assert len(list(ds.take(number))) == 4
    assert list(ds.skip(number)) == []


def test_prefetch_of_none_is_autotune():
    assert ps.Dataset.range(3).prefetch(None).fingerprint() == ps.Dataset.range(3).prefetch(ps.AUTOTUNE).fingerprint()
    assert [int(x) for x in ps.Dataset.range(3).prefetch(None)] == [0, 1, 2]


def test_an_interleave_of_an_endless_input_is_endless():
    assert ps.Dataset.range(3).repeat().interleave(ps.Dataset.range).cardinality() == ps.INFINITE_CARDINALITY
    assert ps.Dataset.range(3).interleave(ps.Dataset.range).cardinality() == ps.UNKNOWN_CARDINALITY


def test_components_of_known_and_different_lengths_are_refused_at_the_call():
    with pytest.raises(ps.errors.InvalidArgumentError, match="need one length"):
        ps.Dataset.from_tensors((np.zeros(3), np.zeros(4))).unbatch()


def test_numbers_are_no_names_of_files():
    with pytest.raises(ps.errors.InvalidTypeError, match="file names"):
        ps.TextLineDataset(ps.Dataset.range(3))


def test_a_query_with_one_column_may_have_one_dtype(tmp_path):
    with sqlite3.connect(tmp_path / "db") as database:
        database.execute("create table t (n integer)")
        database.executemany("insert into t values (?)", [(1,), (2,)])
    ds = ps.experimental.SqlDataset if hasattr(getattr(ps, "experimental", None), "SqlDataset") else ps.SqlDataset
    assert [int(x) for x in ds("sqlite", tmp_path / "db", "select n from t order by n", np.int64)] == [1, 2]


def test_options_in_use_are_a_value_error_and_a_state_of_another_plan_is_not_found():
    options = ps.Options()
    ps.Dataset.range(3).with_options(options)
    list(ps.Dataset.range(3).with_options(options))
    with pytest.raises(ValueError, match="in use"):
        options.seed = 3
    with pytest.raises(ps.errors.NotFoundError):
        iter(ps.Dataset.range(4)).load_state_dict(iter(ps.Dataset.range(3)).state_dict())


def of_open_rank():
    return ps.Dataset.from_generator(lambda: iter([[1, 2], [3, 4]]), output_types=np.int64)


@pytest.mark.parametrize(
    ("made", "shape"),
    [
        (lambda ds: ds.batch(2), None),
        (lambda ds: ds.concatenate(ps.Dataset.from_tensor_slices([[1, 2]])), None),
        (lambda ds: ps.Dataset.sample_from_datasets([ds, ds]).take(3).repeat(2), None),
        (lambda ds: ds.unbatch(), None),
        (lambda ds: ds.batch(2).unbatch(), None),
        (lambda ds: ds.rebatch(1), None),
        (lambda ds: ds.padded_batch(2, padded_shapes=(4,)), (None, None)),
        (lambda ds: ds.map(lambda x: x + 1).batch(1), None),
    ],
)
def test_a_rank_that_the_signature_leaves_open_is_open_behind_it_or_seen(made, shape):
    assert made(of_open_rank()).element_spec.shape == shape


def odd(x):
    if str(x) in "02468":
        raise ValueError(x)
    return x


class Empty(ValueError):
    def __len__(self):
        return 0


def test_what_fails_behind_the_element_that_tells_is_not_raised():
    def only(*good):
        def keep(x):
            if x not in good:
                raise Empty(x)
            return x

        return ps.Dataset.range(4).map(keep)

    for good in ([0], [1], [3], [0, 2]):
        ds = only(*good)
        assert [int(x) for x in ds._first_of(ds._plan)] == good[:1]
    nothing = only()
    with pytest.raises(Empty, match=r"^0"):  # the first, though it is as good as false
        list(nothing._first_of(nothing._plan))


def test_an_element_that_fails_tells_nothing_and_the_next_one_does():
    assert ps.Dataset.range(5).map(odd).ignore_errors().element_spec == TensorSpec((), np.int64)
    assert ps.Dataset.range(5).map(odd).batch(2).element_spec == TensorSpec((None,), np.int64)
    with pytest.raises(ValueError, match="0"):
        assert ps.Dataset.range(0, 9, 2).map(odd).element_spec
    with pytest.raises(ValueError, match="0"):
        assert ps.Dataset.counter(0, 0).map(odd).element_spec
