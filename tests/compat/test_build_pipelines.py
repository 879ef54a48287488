"""The constructs of tf.data's guide to building pipelines, in programs of our own; only the import line is another."""

import os
import pathlib

import numpy as np
import pytest

from penstock.compat import tf


@pytest.fixture
def picture_records(tmp_path):
    """A file of twelve examples with a JPEG and a label each, and the folder of the same pictures by class."""
    rng = np.random.default_rng(0)
    path = str(tmp_path / "pictures.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for i in range(12):
            picture = rng.integers(0, 256, (20 + i, 24, 3)).astype(np.uint8)
            encoded = tf.io.encode_jpeg(picture)
            name = ["cat", "dog", "owl"][i % 3]
            folder = tmp_path / "pictures" / name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{i}.jpg").write_bytes(encoded.numpy())
            feature = {
                "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[encoded.numpy()])),
                "image/text": tf.train.Feature(bytes_list=tf.train.BytesList(value=[name.encode()])),
                "image/label": tf.train.Feature(int64_list=tf.train.Int64List(value=[i % 3])),
            }
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())
    return path


def test_slices_and_a_reduction(capsys):
    numbers = tf.data.Dataset.from_tensor_slices([4, 1, 7])
    for number in numbers:
        print(number.numpy())
    assert capsys.readouterr().out == "4\n1\n7\n"
    turns = iter(numbers)
    assert next(turns).numpy() == 4
    total = numbers.reduce(0, lambda state, value: state + value)
    assert total.numpy() == 12
    assert total.dtype == tf.int32


def test_structures_of_elements():
    rows = tf.data.Dataset.from_tensor_slices(tf.random.uniform([4, 10]))
    assert rows.element_spec == tf.TensorSpec(shape=(10,), dtype=tf.float32)
    pairs = tf.data.Dataset.from_tensor_slices(
        (tf.random.uniform([4]), tf.random.uniform([4, 100], maxval=100, dtype=tf.int32))
    )
    assert pairs.element_spec[1].dtype == tf.int32
    both = tf.data.Dataset.zip((rows, pairs))
    for a, (b, c) in both:
        assert (a.shape, b.shape, c.shape) == ((10,), (), (100,))
        assert a.get_shape().as_list() == [10]
    sparse = tf.data.Dataset.from_tensors(tf.SparseTensor(indices=[[0, 0], [1, 2]], values=[1, 2], dense_shape=[3, 4]))
    assert tf.sparse.to_dense(next(iter(sparse))).numpy().sum() == 3
    assert isinstance(next(iter(sparse)), tf.SparseTensor)


def test_arrays_in_memory():
    images, labels = np.zeros((6, 4, 4), np.uint8), np.arange(6)
    images = images / 255
    ds = tf.data.Dataset.from_tensor_slices((images, labels))
    image, label = next(iter(ds))
    assert (image.shape, image.dtype, label.dtype) == ((4, 4), tf.float64, tf.int64)


def test_generators():
    def count(stop):
        i = 0
        while i < stop:
            yield i
            i += 1

    counter = tf.data.Dataset.from_generator(count, args=[25], output_types=tf.int32, output_shapes=())
    batches = [batch.numpy() for batch in counter.repeat().batch(10).take(3)]
    assert batches[2].tolist() == [20, 21, 22, 23, 24, 0, 1, 2, 3, 4]

    def series():
        for i in range(7):
            yield i, np.ones((i % 3,))

    ds = tf.data.Dataset.from_generator(series, output_types=(tf.int32, tf.float32), output_shapes=((), (None,)))
    ids, sequences = next(iter(ds.shuffle(20).padded_batch(7)))
    assert sorted(ids.numpy().tolist()) == list(range(7))
    assert sequences.shape == (7, 2)
    assert sequences.dtype == tf.float32

    signed = tf.data.Dataset.from_generator(
        series, output_signature=(tf.TensorSpec((), tf.int32), tf.TensorSpec((None,), tf.float32))
    )
    assert signed.element_spec == ds.element_spec


def test_records(picture_records):
    ds = tf.data.TFRecordDataset(filenames=[picture_records])
    raw = next(iter(ds))
    parsed = tf.train.Example.FromString(raw.numpy())
    assert parsed.features.feature["image/text"].bytes_list.value == [b"cat"]

    def parse(record):
        example = tf.io.parse_single_example(
            record,
            {
                "image/encoded": tf.io.FixedLenFeature(shape=(), dtype=tf.string),
                "image/text": tf.io.FixedLenFeature(shape=(), dtype=tf.string),
            },
        )
        image = tf.io.decode_jpeg(example["image/encoded"])
        image = tf.image.resize(image, [16, 16])
        return image, example["image/text"]

    decoded = ds.map(parse)
    image, text = next(iter(decoded))
    assert (image.shape, repr(text.numpy())) == ((16, 16, 3), "b'cat'")
    images, texts = next(iter(decoded.batch(5)))
    assert (images.shape, texts.numpy()[1]) == ((5, 16, 16, 3), b"dog")
    assert "runs by Block" in str(decoded.explain())


def test_lines_of_text(tmp_path):
    files = []
    for name in ("one", "two", "three"):
        path = tmp_path / f"{name}.txt"
        path.write_text("\n".join(f"{name} {i}" for i in range(4)))
        files.append(str(path))
    lines = tf.data.TextLineDataset(files)
    assert [line.numpy() for line in lines.take(2)] == [b"one 0", b"one 1"]
    in_turn = tf.data.Dataset.from_tensor_slices(files).interleave(tf.data.TextLineDataset, cycle_length=3)
    assert [line.numpy() for line in in_turn.take(3)] == [b"one 0", b"two 0", b"three 0"]

    def first(line):
        return tf.not_equal(tf.strings.substr(line, 0, 1), "o")

    assert [line.numpy() for line in lines.skip(3).filter(first).take(1)] == [b"two 0"]


def test_csv(tmp_path, capsys):
    pd = pytest.importorskip("pandas")
    path = tmp_path / "people.csv"
    path.write_text("alive,sex,age,fare\n0,m,22,7.25\n1,f,38,71.5\n1,f,26,7.5\n0,m,35,8.5\n")
    frame = pd.read_csv(path)
    for row in tf.data.Dataset.from_tensor_slices(dict(frame)).take(1):
        for key, value in row.items():
            print(f"{key!r:8s}: {value.numpy()}")
    assert capsys.readouterr().out == "'alive' : 0\n'sex'   : b'm'\n'age'   : 22\n'fare'  : 7.25\n"

    batches = tf.data.experimental.make_csv_dataset(str(path), batch_size=4, label_name="alive", num_epochs=1)
    for features, label in batches.take(1):
        assert sorted(label.numpy().tolist()) == [0, 0, 1, 1]
        assert set(features) == {"sex", "age", "fare"}
    chosen = tf.data.experimental.make_csv_dataset(
        str(path), batch_size=2, label_name="alive", select_columns=["sex", "alive"]
    )
    assert set(next(iter(chosen))[0]) == {"sex"}

    kinds = [tf.int32, tf.string, tf.float32, tf.float32]
    rows = tf.data.experimental.CsvDataset(str(path), kinds, header=True)
    assert [item.numpy() for item in next(iter(rows))] == [0, b"m", 22.0, 7.25]
    missing = tmp_path / "missing.csv"
    missing.write_text("1,2,3,4\n,2,3,4\n1,,3,4\n")
    filled = tf.data.experimental.CsvDataset(str(missing), [999, 999, 999, 999])
    filled = filled.map(lambda *items: tf.stack(items))
    assert [row.numpy().tolist() for row in filled] == [[1, 2, 3, 4], [999, 2, 3, 4], [1, 999, 3, 4]]
    some = tf.data.experimental.CsvDataset(str(missing), [999, 999], select_cols=[1, 3])
    assert next(iter(some.map(lambda *items: tf.stack(items)))).numpy().tolist() == [2, 4]
    lines = tf.data.TextLineDataset(str(path)).skip(1).map(lambda line: tf.io.decode_csv(line, [0, "", 0, 0.0]))
    assert [item.numpy() for item in next(iter(lines))] == [0, b"m", 22, 7.25]


def test_sets_of_files(picture_records):
    root = pathlib.Path(picture_records).with_name("pictures")
    listed = tf.data.Dataset.list_files(str(root / "*/*"))
    assert next(iter(listed)).numpy().startswith(os.fsencode(root))

    def process(path):
        label = tf.strings.split(path, os.sep)[-2]
        return tf.io.read_file(path), label

    labelled = listed.map(process)
    for raw, label in labelled.take(1):
        assert raw.numpy()[:2] == b"\xff\xd8"
        assert label.numpy() in {b"cat", b"dog", b"owl"}
    assert "runs by Block" in str(labelled.explain())

    def parse(path):
        parts = tf.strings.split(path, os.sep)
        image = tf.io.decode_jpeg(tf.io.read_file(path))
        image = tf.image.convert_image_dtype(image, tf.float32)
        return tf.image.resize(image, [12, 12]), parts[-2]

    images = listed.map(parse)
    image, label = next(iter(images))
    assert (image.shape, image.dtype) == ((12, 12, 3), tf.float32)

    def turned(image):
        return np.rot90(image, 1).copy()

    def turn(image, label):
        shape = image.shape
        [image] = tf.py_function(turned, [image], [tf.float32])
        image.set_shape(shape)
        return image, label

    for (before, _), (after, _) in zip(images.take(3), images.map(turn).take(3), strict=True):
        # The listing is shuffled anew in each pass, so only what is there is compared.
        assert (before.shape, after.shape) == ((12, 12, 3), (12, 12, 3))

    names = np.array(["cat", "dog", "owl"])

    def numbered(path):
        return tf.argmax(tf.strings.split(path, os.sep)[-2] == names)

    assert sorted(x.numpy() for x in listed.map(numbered)) == [0] * 4 + [1] * 4 + [2] * 4


def test_batches():
    up, down = tf.data.Dataset.range(100), tf.data.Dataset.range(0, -100, -1)
    both = tf.data.Dataset.zip((up, down)).batch(4)
    assert [[part.numpy().tolist() for part in batch] for batch in both.take(1)] == [[[0, 1, 2, 3], [0, -1, -2, -3]]]
    assert up.batch(7, drop_remainder=True).element_spec.shape == (7,)
    padded = (
        tf.data.Dataset.range(100)
        .map(lambda x: tf.fill([tf.cast(x, tf.int32)], x))
        .padded_batch(4, padded_shapes=(None,))
    )
    assert next(iter(padded)).numpy().tolist() == [[0, 0, 0], [1, 0, 0], [2, 2, 0], [3, 3, 3]]


def test_epochs_and_shuffles():
    lines = tf.data.Dataset.from_tensor_slices([f"line {i}" for i in range(10)])

    def sizes(ds):
        return [batch.shape[0] for batch in ds]

    assert sizes(lines.repeat(3).batch(4)) == [4] * 7 + [2]
    assert sizes(lines.batch(4).repeat(3)) == [4, 4, 2] * 3
    seen = 0
    for _ in range(3):
        for batch in lines.batch(4):
            seen += int(tf.shape(batch)[0])
    assert seen == 30
    counter = tf.data.experimental.Counter()
    numbered = tf.data.Dataset.zip((counter, lines)).shuffle(buffer_size=5).batch(3)
    n, _ = next(iter(numbered))
    assert max(n.numpy()) < 5 + 3
    ends = tf.data.Dataset.zip((counter, lines)).shuffle(buffer_size=5).repeat(2)
    assert len([n.numpy() for n, _ in ends]) == 20
    mixed = tf.data.Dataset.zip((counter, lines)).repeat(2).shuffle(buffer_size=10)
    assert len(list(mixed)) == 20


def test_series_and_windows():
    numbers = tf.data.Dataset.range(1000)
    batches = numbers.batch(10, drop_remainder=True)

    def one_ahead(batch):
        return batch[:-1], batch[1:]

    for features, label in batches.map(one_ahead).take(1):
        assert (features.numpy().tolist(), label.numpy().tolist()) == (list(range(9)), list(range(1, 10)))
    longer = numbers.batch(15, drop_remainder=True).map(lambda batch: (batch[:-5], batch[-5:]))
    assert next(iter(longer))[1].numpy().tolist() == [10, 11, 12, 13, 14]

    features = numbers.batch(10, drop_remainder=True)
    labels = numbers.batch(10).skip(1).map(lambda labels: labels[:5])
    ahead = tf.data.Dataset.zip((features, labels))
    assert next(iter(ahead))[1].numpy().tolist() == [10, 11, 12, 13, 14]

    windows = numbers.window(5, shift=1)
    for window in windows.take(2):
        assert isinstance(window, tf.data.Dataset)
    flat = windows.flat_map(lambda window: window).take(7)
    assert [x.numpy() for x in flat] == [0, 1, 2, 3, 4, 1, 2]

    def strided(ds, size, shift, stride):
        windows = ds.window(size, shift=shift, stride=stride)

        def to_batch(window):
            return window.batch(size, drop_remainder=True)

        return windows.flat_map(to_batch)

    ds = strided(numbers, size=3, shift=50, stride=3)
    assert [x.numpy().tolist() for x in ds.take(2)] == [[0, 3, 6], [50, 53, 56]]


def test_resampling():
    rng = np.random.default_rng(1)
    labels = (rng.random(2000) < 0.05).astype(np.int32)
    ds = tf.data.Dataset.from_tensor_slices((rng.normal(size=(2000, 3)).astype(np.float32), labels)).batch(100)

    def count(counts, batch):
        _, labels = batch
        ones = tf.cast(labels == 1, tf.int32)
        zeros = tf.cast(labels == 0, tf.int32)
        counts["one"] += tf.reduce_sum(ones)
        counts["zero"] += tf.reduce_sum(zeros)
        return counts

    counts = ds.take(10).reduce(initial_state={"one": 0, "zero": 0}, reduce_func=count)
    counts = np.array([counts["zero"].numpy(), counts["one"].numpy()]).astype(np.float32)
    assert counts.sum() == 1000
    assert counts[1] == labels[:1000].sum()

    zero = ds.unbatch().filter(lambda features, label: label == 0).repeat()
    one = ds.unbatch().filter(lambda features, label: label == 1).repeat()
    balanced = tf.data.Dataset.sample_from_datasets([zero, one], [0.5, 0.5]).batch(50)
    shares = [label.numpy().mean() for _, label in balanced.take(8)]
    assert 0.35 < np.mean(shares) < 0.65

    resampled = ds.unbatch().rejection_resample(
        lambda features, label: label, target_dist=[0.5, 0.5], initial_dist=counts / counts.sum()
    )
    pairs = resampled.map(lambda extra, features_and_label: features_and_label)
    found = np.concatenate([label.numpy() for _, label in pairs.batch(10)])
    assert 0.3 < found.mean() < 0.7


def test_a_checkpoint_of_an_iterator(tmp_path):
    ds = tf.data.Dataset.range(20)
    iterator = iter(ds)
    checkpoint = tf.train.Checkpoint(step=tf.Variable(0), iterator=iterator)
    manager = tf.train.CheckpointManager(checkpoint, str(tmp_path / "states"), max_to_keep=3)
    assert [next(iterator).numpy() for _ in range(5)] == [0, 1, 2, 3, 4]
    checkpoint.step.assign_add(5)
    manager.save()
    assert [next(iterator).numpy() for _ in range(5)] == [5, 6, 7, 8, 9]
    checkpoint.step.assign_add(5)
    checkpoint.restore(manager.latest_checkpoint)
    assert [next(iterator).numpy() for _ in range(5)] == [5, 6, 7, 8, 9]
    assert checkpoint.step.numpy() == 5
    for _ in range(4):
        manager.save()
    assert len(manager.checkpoints) == 3
    with pytest.raises(tf.errors.NotFoundError):
        checkpoint.restore(str(tmp_path / "nothing"))


def test_the_functions_of_keras_that_make_data_sets(tmp_path):
    windows = tf.keras.utils.timeseries_dataset_from_array(list(range(10)), None, 3, batch_size=None)
    assert [window.numpy().tolist() for window in windows.take(2)] == [[0, 1, 2], [1, 2, 3]]
    assert windows.element_spec.dtype == tf.int32
    left, right = tf.keras.utils.split_dataset(tf.data.Dataset.range(5).batch(2), left_size=0.6)
    assert [batch.numpy().tolist() for batch in left.map(lambda x: x + 1)] == [[1, 2], [3]]
    assert [batch.numpy().tolist() for batch in right] == [[3, 4]]
    for name in ("a/1.txt", "b/2.txt"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(name)
    ds = tf.keras.preprocessing.text_dataset_from_directory(str(tmp_path), shuffle=False, verbose=False)
    ((texts, labels),) = list(ds)
    assert (texts.numpy().tolist(), labels.numpy().tolist()) == ([b"a/1.txt", b"b/2.txt"], [0, 1])
    assert (ds.class_names, isinstance(ds, tf.data.Dataset)) == (["a", "b"], True)
    with pytest.raises(tf.errors.InvalidArgumentError, match='format must be "tf"'):
        tf.keras.utils.text_dataset_from_directory(str(tmp_path), format="grain")


@pytest.mark.parametrize("name", ["TextVectorization", "StringLookup", "IntegerLookup", "Hashing", "HashedCrossing"])
def test_layers_that_need_tensorflow_tell_what_to_write(name):
    with pytest.raises(AttributeError, match=r"Write tf\.(strings|lookup)"):
        getattr(tf.keras.layers, name)


@pytest.mark.filterwarnings("ignore:__array__ implementation")  # Keras's own
def test_layers_adapted_to_a_data_set():
    pytest.importorskip("keras")
    x = np.random.default_rng(0).normal(5, 3, (1000, 4)).astype(np.float32)
    rows = tf.data.Dataset.from_tensor_slices((x, np.arange(1000)))
    for ds in (rows.batch(64), rows.batch(64).map(lambda x, y: x), rows.map(lambda x, y: x)):
        layer = tf.keras.layers.Normalization()
        layer.adapt(ds)
        np.testing.assert_allclose(layer.adapt_mean.numpy(), x.mean(0), rtol=1e-5)
        np.testing.assert_allclose(layer.adapt_variance.numpy(), x.var(0), rtol=1e-5)
    again = tf.keras.saving.deserialize_keras_object(tf.keras.saving.serialize_keras_object(layer))
    assert isinstance(again, tf.keras.Layer)
    bins = tf.keras.layers.Discretization(num_bins=4)
    bins.adapt(rows.batch(1000))
    np.testing.assert_allclose(bins.bin_boundaries, np.quantile(x, [0.25, 0.5, 0.75]), rtol=0.05)
    bins.adapt(rows.batch(1), steps=1)
    assert max(bins.bin_boundaries) <= x[0].max()


@pytest.mark.filterwarnings("ignore:__array__ implementation")  # Keras's own, where torch gives predictions
def test_keras():
    pytest.importorskip("keras")
    images, labels = np.random.default_rng(0).random((96, 4, 4)).astype(np.float32), np.arange(96) % 3
    ds = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(50).batch(32)
    model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(3)])
    model.compile(
        optimizer="adam", loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"]
    )
    history = model.fit(ds, epochs=2, verbose=0)
    assert len(history.history["loss"]) == 2
    model.fit(ds.repeat(), epochs=2, steps_per_epoch=5, verbose=0)
    loss, _ = model.evaluate(ds, verbose=0)
    assert loss > 0
    assert model.predict(tf.data.Dataset.from_tensor_slices(images).batch(32), steps=2, verbose=0).shape == (64, 3)
    assert model.predict(ds, verbose=0).shape == (96, 3)
