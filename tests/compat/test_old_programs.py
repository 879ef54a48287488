"""Input pipelines of older programs, in the words of their time; only the import lines are those of penstock."""

from collections import OrderedDict, defaultdict

import numpy as np
import pytest

from penstock.compat import tf


def jpeg(i):
    return tf.io.encode_jpeg(np.full((20, 24, 3), 20 * i, np.uint8)).numpy()


def int_feature(values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def test_pictures_for_a_residual_network(tmp_path):
    for part in range(2):
        with tf.io.TFRecordWriter(str(tmp_path / f"train-{part:05d}-of-00002")) as writer:
            for i in range(4):
                image = tf.train.Feature(bytes_list=tf.train.BytesList(value=[jpeg(i)]))
                features = tf.train.Features(
                    feature={"image/encoded": image, "image/class/label": int_feature([i + 1])}
                )
                writer.write(tf.train.Example(features=features).SerializeToString())

    def parse_record(raw_record):
        feature_map = {
            "image/encoded": tf.FixedLenFeature([], dtype=tf.string, default_value=""),
            "image/class/label": tf.FixedLenFeature([], dtype=tf.int64, default_value=-1),
        }
        features = tf.parse_single_example(raw_record, feature_map)
        image = tf.image.decode_jpeg(features["image/encoded"], channels=3)
        image = tf.image.resize_images(image, [16, 16])
        image = tf.random_crop(image, [8, 8, 3])
        image = tf.image.random_flip_left_right(image)
        return (tf.cast(image, tf.float32) - 127.0) / 128.0, tf.cast(features["image/class/label"], tf.int32) - 1

    def input_fn():
        with tf.device("/cpu:0"), tf.name_scope("input"):
            dataset = tf.data.Dataset.from_tensor_slices(tf.gfile.Glob(str(tmp_path / "train-*")))
            dataset = dataset.shuffle(buffer_size=2)
            dataset = dataset.apply(tf.data.experimental.parallel_interleave(tf.data.TFRecordDataset, cycle_length=2))
            dataset = dataset.shuffle(8).repeat(2)
            dataset = dataset.apply(tf.data.experimental.map_and_batch(parse_record, batch_size=4, drop_remainder=True))
            return dataset.prefetch(buffer_size=tf.data.experimental.AUTOTUNE)

    batches = list(input_fn())
    assert [(x.shape, x.dtype, y.shape, y.dtype) for x, y in batches] == [
        ((4, 8, 8, 3), tf.float32, (4,), tf.int32)
    ] * 4
    assert sorted(np.concatenate([y for _, y in batches]).tolist()) == sorted([0, 1, 2, 3] * 4)


def test_masked_sentences(tmp_path):
    path = str(tmp_path / "pretraining.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for i in range(5):
            features = {"input_ids": int_feature([i] * 6), "masked_lm_positions": int_feature([1, 2])}
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    assert len(list(tf.data.TFRecordDataset(path))) == 5

    name_to_features = {
        "input_ids": tf.FixedLenFeature([6], tf.int64),
        "masked_lm_positions": tf.FixedLenFeature([2], tf.int64),
    }

    def decode_record(record, name_to_features):
        example = tf.parse_single_example(record, name_to_features)
        for name in list(example.keys()):
            t = example[name]
            if t.dtype == tf.int64:
                t = tf.cast(t, tf.int32)
            example[name] = t
        return example

    d = tf.data.TFRecordDataset(path).apply(
        tf.data.experimental.map_and_batch(lambda record: decode_record(record, name_to_features), batch_size=2)
    )
    batches = list(d)
    assert [batch["input_ids"].shape for batch in batches] == [(2, 6), (2, 6), (1, 6)]
    assert batches[0]["input_ids"].dtype == tf.int32
    assert batches[2]["input_ids"].numpy().tolist() == [[4] * 6]


def test_words_to_numbers():
    vocabulary = tf.constant(["a", "cat", "sat"])

    def numbers(line):
        words = tf.strings.split(tf.strings.lower(tf.strings.regex_replace(line, "[^A-Za-z ]", "")))
        return tf.argmax(tf.cast(words[:, None] == vocabulary[None, :], tf.int32), axis=1)

    ds = tf.data.Dataset.from_tensor_slices(["A cat!", "a cat sat, sat"]).map(numbers).padded_batch(2)
    assert next(iter(ds)).numpy().tolist() == [[0, 1, 0, 0], [0, 1, 2, 2]]


def test_windows_of_a_series():
    ds = tf.data.Dataset.range(10).window(5, shift=1, drop_remainder=True)
    ds = ds.flat_map(lambda window: window.batch(5)).map(lambda w: (w[:-1], w[-1:])).batch(2).prefetch(1)
    x, y = next(iter(ds))
    assert (x.numpy().tolist(), y.numpy().tolist()) == ([[0, 1, 2, 3], [1, 2, 3, 4]], [[4], [5]])


def test_native_and_borrowed_words_give_one_plan_of_operations():
    import penstock as ps

    images = np.zeros((6, 8, 10, 3), np.uint8)
    native = ps.Dataset.from_tensor_slices(images).map(lambda x: ps.image.resize(x, (4, 5)) / 255.0).batch(3)
    borrowed = tf.data.Dataset.from_tensor_slices(images).map(lambda x: tf.image.resize(x, (4, 5)) / 255.0).batch(3)
    for ds in (native, borrowed):
        assert "runs by Block" in str(ds.explain())
        assert "per element" not in str(ds.explain())
    assert [x.tobytes() for x in native] == [x.numpy().tobytes() for x in borrowed]


@pytest.mark.parametrize(
    "call",
    [lambda: tf.slice([1, 2, 3], [2], [5]), lambda: tf.slice([1, 2, 3], [-1], [1]), lambda: tf.one_hot([0.5], 2)],
)
def test_refuses_what_tensorflow_refuses(call):
    with pytest.raises(tf.errors.InvalidArgumentError):
        call()


@pytest.mark.parametrize("name", ["test", "sets", "logging", "app"])
def test_a_name_that_is_not_there_says_what_to_use(name):
    with pytest.raises(AttributeError, match="Write"):
        getattr(tf, name)


def test_a_vocabulary_in_a_file(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("the\ncat\n")
    kinds = tf.lookup.TextFileIndex
    words = tf.lookup.TextFileInitializer(str(path), tf.string, kinds.WHOLE_LINE, tf.int64, kinds.LINE_NUMBER)
    table = tf.lookup.StaticVocabularyTable(words, num_oov_buckets=1)
    assert table.lookup(tf.constant(["cat", "dog", "the"])).numpy().tolist() == [1, 2, 0]
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("a\t1.5\nb\t2\n")
    ds = tf.data.Dataset.from_tensor_slices(["cat", "dog"]).map(lambda word: table.lookup(word))
    assert [x.numpy() for x in ds] == [1, 2]
    numbers = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(str(pairs), tf.string, 0, tf.float32, 1), 0)
    assert numbers.lookup(tf.constant("b")).numpy() == 2.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="two values for the key"):
        tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "a"], [1, 2]), 0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="num_oov_buckets"):
        tf.lookup.StaticVocabularyTable(words, 0)


def test_tables_are_looked_up_by_block():
    texts = ["cat", "dog", "owl"] * 5
    numbers = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["cat", "dog"], [4, 5]), -1)
    names = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([4, 5], ["a", "b"]), "?")
    ds = tf.data.Dataset.from_tensor_slices(texts)
    for function, wanted in [
        (lambda x: numbers.lookup(x), [4, 5, -1] * 5),
        (lambda x: names[numbers.lookup(x)], [b"a", b"b", b"?"] * 5),
        (lambda x: numbers[tf.stack([x, "dog"])], [[4, 5], [5, 5], [-1, 5]] * 5),
        (lambda x: names.lookup(tf.stack([numbers.lookup(x), 5])), [[b"a", b"b"], [b"b", b"b"], [b"?", b"b"]] * 5),
    ]:
        mapped = ds.map(function)
        assert [x.numpy().tolist() if x.shape else x.numpy() for x in mapped] == wanted
        assert "runs by Block" in mapped.explain()


def test_structures_stay_of_their_kind():
    made = tf.nest.map_structure(lambda x: x + 1, defaultdict(list, {"b": 1, "a": (2,)}))
    assert (made, made.default_factory, list(made)) == ({"b": 2, "a": (3,)}, list, ["b", "a"])
    assert list(tf.nest.map_structure(lambda x: x + 1, OrderedDict(b=1, a=2)).items()) == [("b", 2), ("a", 3)]


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_seeds_of_seeds_have_their_dtype_and_differ(dtype):
    seed = tf.constant([1, 2], dtype)
    found = tf.random.split(seed, 3)
    assert (found.dtype, found.shape) == (dtype, (3, 2))
    assert len({tuple(row) for row in found.numpy().tolist()}) == 3
    assert tf.random.fold_in(seed, 7).dtype == dtype


def test_a_shape_that_is_none_is_any():
    assert tf.ensure_shape(tf.zeros([2, 3]), None).shape == (2, 3)


def test_structures_that_differ():
    with pytest.raises(tf.errors.InvalidArgumentError, match="differ"):
        tf.nest.map_structure(lambda x, y: x, {"a": 1}, {"b": 1})
    with pytest.raises(TypeError, match="differ"):
        tf.nest.assert_same_structure([1], (1,))
    with pytest.raises(tf.errors.InvalidArgumentError, match="2 leaves"):
        tf.nest.pack_sequence_as([1, 2], [1])
    tf.debugging.assert_shapes([(tf.zeros([2, 3]), ("n", 3)), (tf.zeros([2]), ("n",))])
    with pytest.raises(tf.errors.InvalidArgumentError, match="has shape"):
        tf.debugging.assert_shapes([(tf.zeros([2, 3]), ("n", 3)), (tf.zeros([4]), ("n",))])
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not hold"):
        tf.Assert(tf.constant([True, False]), ["x"])


@pytest.mark.parametrize("deterministic", [True, None])
def test_deprecated_steps_hand_on_whether_they_keep_the_order(deterministic):
    numbers = tf.data.Dataset.range(8)
    parse = tf.data.experimental.parse_example_dataset({}, 4, deterministic=deterministic)
    assert parse(tf.data.Dataset.from_tensors(b"").batch(1))._plan.deterministic is deterministic
    in_turn = tf.data.experimental.parallel_interleave(tf.data.Dataset.range, 2, sloppy=not deterministic)
    assert in_turn(numbers)._plan.deterministic is deterministic
