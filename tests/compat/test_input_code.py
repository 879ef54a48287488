"""What input code asks of `tf` beside data sets: random distributions, messages, files, one replica."""

import pickle
import sqlite3

import numpy as np
import pytest

from penstock.compat import tf


def moments(values):
    found = np.concatenate([np.asarray(value).reshape(-1) for value in values])
    return found.mean(), found.var()


@pytest.mark.parametrize(
    ("draw", "mean", "variance"),
    [
        (lambda: tf.random.gamma([500], 3.0, seed=4), 3.0, 3.0),
        (lambda: tf.random.gamma([500], 3.0, beta=2.0), 1.5, 0.75),
        (lambda: tf.random.poisson([500], 5.0), 5.0, 5.0),
    ],
)
def test_numbers_of_a_distribution_have_its_moments_and_follow_from_the_element(draw, mean, variance):
    ds = tf.data.Dataset.range(40).map(lambda x: draw())
    first, again = (list(ds.iterator(epoch=0)) for _ in range(2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first[0], first[1])
    assert moments(first) == (pytest.approx(mean, rel=0.03), pytest.approx(variance, rel=0.06))


def test_log_uniform_classes_are_as_frequent_as_they_are_expected():
    def sampled(x):
        return tf.random.log_uniform_candidate_sampler(tf.constant([[0, 9]], tf.int64), 2, 5, False, 10)

    rows = [[part.numpy() for part in row] for row in tf.data.Dataset.range(2000).map(sampled)]
    counts = np.bincount(np.concatenate([classes for classes, _, _ in rows]), minlength=10) / len(rows)
    shares = 5 * np.log1p(1 / np.arange(1, 11)) / np.log(11)
    np.testing.assert_allclose(counts, shares, rtol=0.12)
    np.testing.assert_allclose(rows[0][1], shares[None, [0, 9]], rtol=1e-5)
    np.testing.assert_allclose(rows[0][2], shares[rows[0][0]], rtol=1e-5)
    unique = tf.random.log_uniform_candidate_sampler(tf.constant([[1]], tf.int64), 1, 10, True, 10)[0]
    assert sorted(unique.numpy().tolist()) == list(range(10))


def numbers(*values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def test_messages_are_merged_and_copied_as_in_protobuf():
    one = tf.train.Example(features=tf.train.Features(feature={"a": numbers(1), "b": numbers(2)}))
    other = tf.train.Example()
    assert (one.HasField("features"), other.HasField("features")) == (True, False)
    other.CopyFrom(one)
    assert other == one
    other.MergeFrom(tf.train.Example(features=tf.train.Features(feature={"a": numbers(5)})))
    assert other.features.feature["a"].int64_list.value == [5]
    assert one.features.feature["a"].int64_list.value == [1]
    assert pickle.loads(pickle.dumps(other)) == other
    other.Clear()
    assert other == tf.train.Example()


def test_a_feature_of_another_kind_takes_the_place_of_the_first():
    feature = numbers(1)
    feature.MergeFrom(numbers(2))
    assert (feature.int64_list.value, feature.HasField("int64_list")) == ([1, 2], True)
    feature.MergeFrom(tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"x"])))
    assert (feature.WhichOneof("kind"), feature.HasField("int64_list")) == ("bytes_list", False)
    steps = tf.train.FeatureList(feature=[numbers(1)])
    steps.MergeFrom(steps)
    assert steps.feature == [numbers(1), numbers(1)]


def test_a_file_that_is_missing_is_not_found(tmp_path):
    for call in (
        lambda: tf.io.read_file(str(tmp_path / "none")),
        lambda: tf.io.gfile.copy(tmp_path / "none", tmp_path / "x"),
    ):
        with pytest.raises(tf.errors.NotFoundError, match="none"):
            call()


def test_numbers_that_are_none_are_the_error_of_their_element():
    ds = tf.data.Dataset.from_tensor_slices([1.0, np.nan, 2.0]).map(lambda x: tf.debugging.check_numerics(x, "bad x"))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)bad x.*element 1"):
        list(ds)
    assert [x.numpy() for x in ds.ignore_errors()] == [1.0, 2.0]


def test_a_loop_writes_into_an_array():
    def powers(x):
        written = tf.TensorArray(tf.int64, size=3)
        for step in range(3):
            written = written.write(step, x**step)
        return written.stack()

    assert [x.numpy().tolist() for x in tf.data.Dataset.range(2, 4).map(powers)] == [[1, 2, 4], [1, 3, 9]]


def test_a_query_of_one_column_has_one_dtype(tmp_path):
    with sqlite3.connect(tmp_path / "a.db") as base:
        base.execute("create table t (x integer)")
        base.executemany("insert into t values (?)", [(1,), (2,)])
    ds = tf.data.experimental.SqlDataset("sqlite", str(tmp_path / "a.db"), "select x from t", tf.int32)
    assert [x.numpy() for x in ds] == [1, 2]


def test_a_writer_that_is_closed_refuses_to_flush(tmp_path):
    writer = tf.io.TFRecordWriter(str(tmp_path / "a"))
    writer.write(b"one")
    writer.flush()
    writer.close()
    with pytest.raises(tf.errors.FailedPreconditionError, match="closed"):
        writer.flush()


def test_other_strategies_say_where_to_go():
    with pytest.raises(AttributeError, match=r"ds\.shard"):
        tf.distribute.MirroredStrategy()
    with tf.distribute.get_strategy().scope():
        assert tf.distribute.InputContext().num_input_pipelines == 1


TABLES = {
    "mutable": lambda: tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1),
    "dense": lambda: tf.lookup.experimental.DenseHashTable(
        key_dtype=tf.string, value_dtype=tf.int64, default_value=-1, empty_key="", deleted_key="$"
    ),
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_mutable_table_is_read_as_it_is_when_an_element_is_made(kind):
    table = TABLES[kind]()
    table.insert(tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64))
    ds = tf.data.Dataset.from_tensor_slices(["a", "b", "c"]).map(lambda text: table.lookup(text))
    assert [int(x) for x in ds] == [1, 2, -1]
    table.insert(["c"], [7])
    table.remove(["a"])
    assert [int(x) for x in ds] == [-1, 2, 7]
    keys, values = table.export()
    assert sorted(zip(keys.numpy().tolist(), values.numpy().tolist(), strict=True)) == [(b"b", 2), (b"c", 7)]
    assert table.size().numpy() == 2
    assert "runs per element" in str(ds.explain())
    with pytest.raises(TypeError, match=r"belongs to its process(.|\n)*StaticHashTable"):
        pickle.dumps(table)


def test_a_function_can_count_in_a_mutable_table():
    seen = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, 0)

    def counted(x):
        seen.insert(x, seen[x] + 1)
        return seen[x]

    ds = tf.data.Dataset.from_tensor_slices(np.array([5, 6, 5, 5])).map(counted)
    assert [int(x) for x in ds] == [1, 1, 2, 3]
    assert [int(x) for x in ds] == [4, 2, 5, 6]


def test_values_of_a_mutable_table_may_be_vectors():
    table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, [0.0, 0.0])
    table.insert([1], [[1.0, 2.0]])
    assert table.lookup([[3], [1]]).numpy().tolist() == [[[0.0, 0.0]], [[1.0, 2.0]]]
    assert table.export()[1].shape == (1, 2)
