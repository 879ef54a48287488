"""What public tutorials do beside plain pipelines, in programs of our own: sound, text, records, mocked data sets."""

import os
import pickle
import re
import string
import types

import numpy as np
import pytest

from penstock.compat import tf, tfds


def assert_by_block(ds, times=1):
    """Its functions run for whole Blocks, all of them."""
    next(iter(ds))
    said = str(ds.explain())
    assert "per element" not in said
    assert said.count("runs by Block") >= times


def test_spoken_words(tmp_path):
    for word, loudness in (("no", 0.25), ("yes", 0.5)):
        (tmp_path / word).mkdir()
        for i in range(3):
            wave = loudness * np.sin(np.arange(900 + 60 * i) * 0.05)[:, None]
            tf.io.write_file(str(tmp_path / word / f"{i}.wav"), tf.audio.encode_wav(wave, 16000))
    commands = np.array(sorted(tf.io.gfile.listdir(str(tmp_path))))

    def get_waveform_and_label(path):
        audio, _ = tf.audio.decode_wav(tf.io.read_file(path))
        return tf.squeeze(audio, axis=-1), tf.strings.split(path, os.path.sep)[-2]

    def get_spectrogram(waveform):
        waveform = tf.cast(waveform[:1000], tf.float32)
        padded = tf.concat([waveform, tf.zeros([1000] - tf.shape(waveform), tf.float32)], 0)
        return tf.abs(tf.signal.stft(padded, frame_length=255, frame_step=128))[..., tf.newaxis]

    files = tf.data.Dataset.list_files(str(tmp_path / "*/*.wav"), shuffle=False)
    waves = files.map(get_waveform_and_label)
    assert_by_block(waves)
    spectrograms = waves.map(lambda audio, label: (get_spectrogram(audio), tf.argmax(label == commands)))
    x, y = next(iter(spectrograms.batch(6)))
    assert (x.shape, x.dtype, y.numpy().tolist()) == ((6, 6, 129, 1), np.float32, [0, 0, 0, 1, 1, 1])
    one, _ = get_waveform_and_label(tf.constant(str(tmp_path / "yes" / "2.wav")))
    np.testing.assert_array_equal(x[5].numpy(), get_spectrogram(one).numpy())
    x, _ = next(iter(waves.padded_batch(4)))  # what follows is of one length
    mel = tf.signal.linear_to_mel_weight_matrix(8, 129, 16000, 20.0, 4000.0)
    spectra = tf.data.Dataset.from_tensor_slices(x).map(lambda wave: tf.abs(tf.signal.stft(wave, 256, 64)))
    frames = spectra.map(lambda spectrum: tf.tensordot(spectrum, mel, 1))
    assert frames.element_spec.shape == ((x.shape[1] - 256) // 64 + 1, 8)
    lengths = tf.data.Dataset.from_tensors(tf.constant(256)).map(lambda n: tf.signal.stft(x[0], n, tf.constant(64)))
    np.testing.assert_array_equal(lengths.get_single_element(), tf.signal.stft(x[0], 256, 64))
    assert_by_block(frames)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"RIFF", "decode this as WAV"), (b"", "decode this as WAV"), (b"\0" * 60, "decode this as WAV")],
)
def test_what_is_no_sound(content, said):
    with pytest.raises(tf.errors.InvalidArgumentError, match=said):
        tf.audio.decode_wav(content)
    with pytest.raises(tf.errors.InvalidArgumentError, match="2-dimensional"):
        tf.audio.encode_wav([0.5], 8000)


def test_words_for_a_classifier():
    def standardised(text):
        without = tf.strings.regex_replace(tf.strings.lower(text), "<br />", " ")
        return tf.strings.regex_replace(without, f"[{re.escape(string.punctuation)}]", "")

    texts = ["Great <br /> movie!", "bad film, bad.", "ok"]
    ds = tf.data.Dataset.from_tensor_slices((texts, [1, 0, 1])).map(lambda text, label: (standardised(text), label))
    tokens = ds.batch(3).map(lambda text, label: (tf.strings.split(text), label))
    words, _ = next(iter(tokens))
    assert isinstance(words, tf.RaggedTensor)
    assert words.row_lengths().numpy().tolist() == [2, 3, 1]
    assert words.to_tensor("", shape=[None, 2]).numpy().tolist() == [
        [b"great", b"movie"],
        [b"bad", b"film"],
        [b"ok", b""],
    ]
    buckets = ds.map(lambda text, label: tf.strings.to_hash_bucket_fast(text, 100))
    assert_by_block(buckets, times=2)
    wanted = tf.strings.to_hash_bucket_fast([b"great   movie", b"bad film bad", b"ok"], 100)
    assert [x.numpy() for x in buckets] == wanted.numpy().tolist()
    lengths = tokens.map(lambda words, label: (tf.reduce_sum(tf.strings.length(words), axis=1), label))
    assert next(iter(lengths))[0].numpy().tolist() == [10, 10, 2]
    vocabulary = tf.data.Dataset.from_tensor_slices(["bad", "ok"])
    table = tf.data.experimental.index_table_from_dataset(vocabulary, num_oov_buckets=2)
    assert table.lookup(words.flat_values).numpy().tolist()[2:] == [0, 3 - int(table["film"].numpy() == 2), 0, 1]


def test_ragged_and_sparse_elements():
    rows = tf.ragged.constant([[1, 2], [], [3]])
    ds = tf.data.Dataset.from_tensor_slices({"row": rows, "i": [0, 1, 2]})
    assert (len(ds), [x["row"].numpy().tolist() for x in ds]) == (3, [[1, 2], [], [3]])
    batch = next(iter(ds.ragged_batch(3)))["row"]
    assert (batch.shape, batch.to_list(), batch.values.numpy().tolist()) == ((3, None), [[1, 2], [], [3]], [1, 2, 3])
    whole = tf.data.Dataset.from_tensors(rows)
    assert next(iter(whole.map(lambda x: x.to_tensor(-1)))).numpy().tolist() == [[1, 2], [-1, -1], [3, -1]]
    assert next(iter(whole.map(lambda x: x + 1))).to_list() == [[2, 3], [], [4]]
    sparse = tf.data.Dataset.from_tensors(tf.SparseTensor([[0, 1]], [7], [2, 2]))
    found = next(iter(sparse.map(lambda x: tf.SparseTensor(x.indices, x.values * 2, x.dense_shape))))
    assert isinstance(found, tf.SparseTensor)
    assert (found.values.numpy().tolist(), found.get_shape().as_list(), sparse.element_spec.value_type.__name__) == (
        [14], [2, 2], "SparseTensor")  # fmt: skip
    for value in (rows, tf.SparseTensor([[0, 1]], [7], [2, 2])):
        assert repr(pickle.loads(pickle.dumps(value))) == repr(value)
    assert tf.maximum(rows, 2).to_list() == [[2, 2], [], [3]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="differ in length"):
        rows + tf.ragged.constant([[1], [2], [3]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="ragged_rank"):
        tf.RaggedTensor.from_tensor([1, 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="first axis"):
        tf.data.Dataset.from_tensor_slices((rows, [1, 2]))


def test_records_in_all_their_forms(tmp_path):
    def numbers(*values):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    def example(i):
        feature = {"at": numbers(i, i + 2), "value": numbers(10 * i, 20), "line": numbers(i)}
        return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()

    path = str(tmp_path / "a.tfrecord")
    made = tf.data.Dataset.from_tensor_slices([example(i) for i in range(3)])
    tf.data.experimental.TFRecordWriter(path).write(made)
    features = {"s": tf.io.SparseFeature("at", "value", tf.int64, 5), "line": tf.io.FixedLenFeature([], tf.int64)}
    parsed = tf.data.TFRecordDataset(path).map(lambda record: tf.io.parse_single_example(record, features))
    assert [tf.sparse.to_dense(x["s"]).numpy().tolist() for x in parsed] == [
        [0, 0, 20, 0, 0], [0, 10, 0, 20, 0], [0, 0, 20, 0, 20],
    ]  # fmt: skip
    assert_by_block(parsed)
    batched = tf.data.TFRecordDataset(path).batch(3).map(lambda records: tf.io.parse_example(records, features)["s"])
    assert tf.sparse.to_dense(next(iter(batched))).shape == (3, 5)
    narrow = {"s": tf.io.SparseFeature("at", "value", tf.int64, 3)}
    with pytest.raises(tf.errors.InvalidArgumentError, match="outside of its size"):
        list(tf.data.TFRecordDataset(path).map(lambda record: tf.io.parse_single_example(record, narrow)))
    with pytest.raises(TypeError, match="byte strings as records"):
        tf.data.experimental.TFRecordWriter(path).write(tf.data.Dataset.range(2))

    sequence = tf.train.SequenceExample()
    sequence.context.feature["id"].int64_list.value.append(7)
    for word in (b"a", b"bc"):
        sequence.feature_lists.feature_list["words"].feature.add().bytes_list.value.append(word)
    again = tf.train.SequenceExample.FromString(sequence.SerializeToString())
    assert again == sequence
    assert tf.train.Example.FromString(example(1)).features.SerializeToString() in example(1)

    lines = tf.data.Dataset.from_tensor_slices(["1,a,0.5", "2,,1"]).map(
        lambda line: tf.io.decode_csv(line, [0, "?", 0.0])
    )
    assert_by_block(lines)
    assert [[x.numpy() for x in row] for row in lines] == [[1, b"a", 0.5], [2, b"?", 1.0]]


def test_parts_of_a_tensor_by_number():
    ds = tf.data.Dataset.from_tensor_slices(([1, 0, 1], [[1, 2], [3, 4], [5, 6]]))
    parts = ds.batch(3).map(lambda kind, rows: tf.dynamic_partition(rows, kind, 2))
    zeros, ones = next(iter(parts))
    assert (zeros.numpy().tolist(), ones.numpy().tolist()) == ([[3, 4]], [[1, 2], [5, 6]])
    assert abs(tf.timestamp().numpy() - tf.timestamp().numpy()) < 3600
    assert tf.get_static_value(tf.constant(3)) == 3
    with pytest.raises(tf.errors.InvalidArgumentError, match="NHWC"):
        tf.nn.max_pool2d(tf.zeros([1, 1, 4, 4]), 2, 2, "VALID", data_format="NCHW")


def test_captured_tensors_are_constants(tmp_path):
    weights, words, kinds = tf.constant([1.0, 2.0]), tf.constant(["cat", "dog"]), {"dog": tf.constant("dog")}
    ds = tf.data.Dataset.from_tensor_slices((["dog", "cat", "owl"], [[1.0, 1.0]] * 3))
    mapped = ds.map(
        lambda word, x: (
            tf.reduce_any(words == word),
            x * weights,
            tf.gather(weights, tf.cast(x[0], tf.int32)),
            word == kinds["dog"],
        )
    )
    assert_by_block(mapped)
    assert [[y.numpy().tolist() for y in row] for row in mapped] == [
        [known, [1.0, 2.0], 2.0, dog] for known, dog in ((True, True), (True, False), (False, False))
    ]
    kept = mapped.cache(str(tmp_path / "kept"))
    assert len(list(kept)) == len(list(kept)) == 3
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(words)[0] = b"owl"
    words.numpy()[0] = b"owl"
    assert [bool(row[0]) for row in mapped] == [True, True, False]


def test_half_of_a_float():
    pytest.importorskip("ml_dtypes")
    ds = tf.data.Dataset.range(4).map(lambda x: tf.cast(x, tf.bfloat16)).batch(4)
    assert_by_block(ds)
    batch = next(iter(ds))
    assert (batch.dtype == tf.bfloat16, tf.cast(batch, tf.float32).numpy().tolist()) == (True, [0.0, 1.0, 2.0, 3.0])


def test_settings_of_strategies_change_nothing():
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    options.experimental_slack = True
    options.threading.max_intra_op_parallelism = 1
    options.autotune.autotune_algorithm = tf.data.experimental.AutotuneAlgorithm.STAGE_BASED
    options.experimental_external_state_policy = tf.data.experimental.ExternalStatePolicy.WARN
    options.deterministic = False
    ds = tf.data.Dataset.range(3).with_options(options)
    assert [x.numpy() for x in ds] == [0, 1, 2]
    assert ds.options().deterministic is False
    with pytest.raises(AttributeError, match="deterministic"):
        options.determinstic = True


def test_profiles_as_the_guide_makes_them(tmp_path):
    profiler = tf.profiler.experimental
    ds = tf.data.Dataset.range(20).batch(5)
    with profiler.Profile(str(tmp_path)):
        for step, _ in enumerate(ds):
            with profiler.Trace("train", step_num=step, _r=1):
                pass
    profiler.start(str(tmp_path), options=profiler.ProfilerOptions(host_tracer_level=3))
    with pytest.raises(tf.errors.AlreadyExistsError):
        profiler.start(str(tmp_path))
    list(ds)
    profiler.stop()
    assert len(list(tmp_path.glob("*/report.html"))) == 2
    with pytest.raises(tf.errors.FailedPreconditionError, match="No profiler is running"):
        profiler.stop()
    with pytest.warns(UserWarning, match="penstock top"):
        profiler.server.start(6009)


def test_mocked_data_sets():
    with tfds.testing.mock_data(num_examples=8):
        (train, test), info = tfds.load(
            "cats_vs_dogs", split=["train[:75%]", "train[75%:]"], as_supervised=True, with_info=True
        )
        images, labels = next(iter(train.map(lambda image, label: (tf.image.resize(image, (8, 8)), label)).batch(6)))
        assert (images.shape, len(test), set(labels.numpy().tolist()) <= {0, 1}) == ((6, 8, 8, 3), 2, True)
        assert info.splits["train"].num_examples == 8
        raw = tfds.load("cats_vs_dogs", split="train", decoders={"image": tfds.decode.SkipDecoding()})
        assert next(iter(raw))["image"].shape == ()
        source = tfds.data_source("cats_vs_dogs", split="test")
        assert (len(source), source[3]["image"].dtype, len(source.__getitems__([0, 1]))) == (8, np.uint8, 2)
        assert set(tfds.builder("imdb_reviews").as_data_source()) >= {"train", "test"}
        first = [x["label"].numpy() for x in tfds.load("mnist", split="train")]
    with tfds.testing.mock_data(num_examples=8):
        assert [x["label"].numpy() for x in tfds.load("mnist", split="train")] == first
    with tfds.testing.mock_data(as_dataset_fn=lambda builder, *args, **kwargs: tf.data.Dataset.range(3)):
        assert len(tfds.load("mnist", split="train")) == 3


def test_a_data_set_of_ones_own(tmp_path):
    class Colours(tfds.core.GeneratorBasedBuilder):
        VERSION = tfds.core.Version("1.2.0")

        def _info(self):
            features = tfds.features.FeaturesDict({
                "n": tf.int64,
                "at": tfds.features.Tensor(shape=(2,), dtype=tf.float32),
                "image": tfds.features.Image(shape=(4, 4, 3)),
                "label": tfds.features.ClassLabel(names=["red", "blue"]),
            })  # fmt: skip
            return tfds.core.DatasetInfo(builder=self, features=features, supervised_keys=("image", "label"))

        def _split_generators(self, dl_manager: tfds.download.DownloadManager):
            return {"train": self._generate_examples(5)}

        def _generate_examples(self, count):
            for i in range(count):
                image = np.full((4, 4, 3), 50 * i, np.uint8)
                yield i, {"n": i, "at": [0.5, i], "image": image, "label": "blue" if i % 2 else "red"}

    builder = Colours(data_dir=tmp_path)
    builder.download_and_prepare()
    assert (str(builder.data_path).endswith("colours/1.2.0"), Colours.VERSION.minor) == (True, 2)
    ds = builder.as_dataset("train")
    assert sorted(example["n"].numpy() for example in ds) == [0, 1, 2, 3, 4]
    assert (builder.version >= "1.1.9", builder.data_dir) == (True, str(builder.data_path))
    pandas = pytest.importorskip("pandas")
    frame = tfds.as_dataframe(ds, builder.info)
    assert isinstance(frame, pandas.DataFrame)
    assert sorted(frame["n"]) == [0, 1, 2, 3, 4]
    shown = tfds.show_examples(ds, builder.info, rows=2, cols=2)
    assert type(shown).__name__ == "Grid"
    assert tfds.benchmark(ds, batch_size=1).stats.loc["first+lasts", "num_examples"] == 5


@pytest.fixture
def words(tmp_path):
    class Words(tfds.core.GeneratorBasedBuilder):
        VERSION = tfds.core.Version("1.0.0")

        def _info(self):
            features = {"n": tf.int64, "ns": tfds.features.Sequence(tf.int64), "text": tfds.features.Text()}
            return tfds.core.DatasetInfo(features=tfds.features.FeaturesDict(features), disable_shuffling=True)

        def _split_generators(self, dl_manager):
            return {"train": self._generate_examples()}

        def _num_shards(self, split):
            return 3

        def _generate_examples(self):
            for i in range(9):
                yield i, {"n": i, "ns": list(range(i % 3)), "text": f"word {i}"}

    builder = Words(data_dir=tmp_path)
    builder.download_and_prepare()
    return tfds.builder_from_directory(builder.data_dir)


def order(ds):
    return [int(example["n"]) for example in ds]


def test_what_a_read_config_says(words):
    def read(*, shuffle_files=False, **settings):
        return words.as_dataset("train", shuffle_files=shuffle_files, read_config=tfds.ReadConfig(**settings))

    backwards = read(experimental_interleave_sort_fn=lambda files: files[::-1])
    assert order(backwards) == [6, 7, 8, 3, 4, 5, 0, 1, 2]
    context = types.SimpleNamespace(num_input_pipelines=2, input_pipeline_id=1)
    assert order(read(input_context=context)) == [3, 4, 5]
    assert order(read(repeat_filenames=True).take(11)) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1]
    config = tfds.ReadConfig()
    config.options.deterministic = False
    assert words.as_dataset("train", read_config=config).options().deterministic is False
    with pytest.raises(tf.errors.InvalidArgumentError, match="order"):
        read(shuffle_files=True)
    assert sorted(order(read(shuffle_files=True, enable_ordering_guard=False))) == list(range(9))


def test_small_data_sets_are_cached(words):
    def cached(*, shuffle_files=False, split="train", **settings):
        config = tfds.ReadConfig(enable_ordering_guard=False, **settings)
        return "cache" in words.as_dataset(split, shuffle_files=shuffle_files, read_config=config).explain()

    assert cached()
    assert not cached(try_autocache=False)
    assert not cached(shuffle_files=True)
    assert cached(shuffle_files=True, shuffle_reshuffle_each_iteration=False)
    assert cached(shuffle_files=True, split="train[:2]")  # of one shard
    assert not cached(repeat_filenames=True)


def test_batches_of_lengths_that_differ_are_padded(words):
    first = next(iter(words.as_dataset("train", batch_size=3)))
    assert first["ns"].numpy().tolist() == [[0, 0], [0, 0], [0, 1]]
    whole = words.as_dataset({"a": "train", "b": ["train[:2]"]}, batch_size=-1)
    assert (whole["a"]["ns"].shape, whole["b"][0]["text"].numpy().tolist()) == ((9, 2), [b"word 0", b"word 1"])


def test_decoders_made_of_functions(words):
    @tfds.decode.make_decoder(output_dtype=tf.int64)
    def length(example, feature, more=0):
        return tf.strings.length(example) + more

    for decoder, found in ((length, 6), (length(), 6), (length(2), 8)):
        ds = words.as_dataset("train", decoders={"text": decoder})
        assert {int(example["text"]) for example in ds} == {found}


def test_versions_compare_by_their_numbers():
    version = tfds.core.Version("1.10.0")
    assert version > "1.9.9"
    assert version >= "1.10.0"
    assert version < "2.0.0"
    assert version == "1.10.0"
    assert (version.match("1.*.*"), version.match("1.9.*")) == (True, False)
    with pytest.raises(tf.errors.InvalidArgumentError, match="three numbers"):
        tfds.core.Version("1.0")


def test_pictures_in_folders(tmp_path):
    for name in ("train/cat", "train/dog", "val/dog"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "1.png").write_bytes(tf.io.encode_png(np.zeros((4, 6, 3), np.uint8)).numpy())
    for kind in (tfds.ImageFolder, tfds.folder_dataset.ImageFolder):
        builder = kind(str(tmp_path))
        assert builder.info.features["label"].names == ["cat", "dog"]
        ds = builder.as_dataset(split="train", as_supervised=True)
        assert isinstance(ds, tf.data.Dataset)
        assert (len(ds), next(iter(ds))[0].shape) == (2, (4, 6, 3))
    tfds.display_progress_bar(True)
    assert not tfds.is_dataset_on_gcs("mnist")
    assert tfds.download.DownloadConfig(manual_dir="x").manual_dir == "x"
    with pytest.raises(tf.errors.InvalidArgumentError, match="slice"):
        tfds.download.DownloadConfig(max_examples_per_split=10)


MISSING = {
    "tf.image.quantise": "with numpy",
    "tf.data.experimental.from_variant": "There are no variants",
    "tf.data.experimental.TensorStructure": "element_spec",
    "tf.data.experimental.Unheard": "tf-data.md",
    "tf.profiler.experimental.Profle": "Did you mean Profile",
    "tf.profiler.experimental.client.trace": "Profile",
    "tf.RaggedTensor.from_tensr": "Did you mean from_tensor",
    "tf.RaggedTensor.from_variant": "There are no variants",
    "tf.SparseTensor.sprse": "dir(tf.SparseTensor)",
    "tf.ragged.constant([[1]]).to_tensr": "Did you mean to_tensor",
    "tf.raw_ops.MaxPool": "dir(tf.raw_ops)",
    "tf.sparse.softmax": "tf.sparse.to_dense",
    "tf.signal.mdct": "scipy.fft",
    "tf.config.experimental.enable_op_determinism": "dir(tf.config.experimental)",
    "tf.autograph.to_graph": "dir(tf.autograph)",
    "tfds.core.BeamBasedBuilder": "GeneratorBasedBuilder",
    "tfds.beam": "GeneratorBasedBuilder",
    "tfds.unheard_of": "tfds.md",
    "tfds.decode.unheard_of": "tfds.md",
    "tfds.testing.DatasetBuilderTestCase": "pytest",
    "tfds.folder_dataset.TranslateFolder": "TextLineDataset",
}


@pytest.mark.parametrize("name", MISSING)
def test_names_that_are_not_there(name):
    with pytest.raises(AttributeError) as caught:
        eval(name)
    assert MISSING[name] in str(caught.value)
    if "numpy" not in MISSING[name]:
        assert "with numpy" not in str(caught.value)
