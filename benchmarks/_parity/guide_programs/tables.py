"""Tables and records: CSV, TFRecord files, Criteo, sparse features, catalogues."""

# ruff: noqa: F821
import pathlib

import numpy as np

TITANIC = """survived,sex,age,fare,class
0,male,22.0,7.25,Third
1,female,38.0,71.28,First
1,female,26.0,7.92,Third
0,male,,8.05,Third
1,female,35.0,53.1,First
"""
CRITEO_INTS = [f"int{number}" for number in range(3)]
CRITEO_CATEGORIES = [f"cat{number}" for number in range(2)]


def _csv(here, text=TITANIC):
    path = pathlib.Path(here, "titanic.csv")
    path.write_text(text)
    return str(path)


def _feature(value):
    if isinstance(value, bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
    if isinstance(value, float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=list(np.atleast_1d(value))))


def _records(here, rows, name="data.tfrecord", options=None):
    path = str(pathlib.Path(here, name))
    with tf.io.TFRecordWriter(path, options) as writer:
        for row in rows:
            features = tf.train.Features(feature={key: _feature(value) for key, value in row.items()})
            writer.write(tf.train.Example(features=features).SerializeToString())
    return path


def dictionary_of_columns(here):
    columns = {"age": np.array([22.0, 38.0, 26.0]), "sex": np.array(["male", "female", "female"]), "n": np.arange(3)}
    return tf.data.Dataset.from_tensor_slices((columns, np.array([0, 1, 1]))).batch(2)


def make_csv(here):
    return tf.data.experimental.make_csv_dataset(
        _csv(here), batch_size=2, label_name="survived", num_epochs=1, shuffle=False, ignore_errors=True
    )


def make_csv_selected(here):
    return tf.data.experimental.make_csv_dataset(
        _csv(here), batch_size=4, label_name="survived", select_columns=["class", "fare", "survived"], num_epochs=1,
        shuffle=False,
    )  # fmt: skip


def csv_with_types(here):
    types = [tf.int32, tf.string, tf.float32, tf.float32, tf.string]
    path = _csv(here, TITANIC.replace(",,", ",0,"))
    return tf.data.experimental.CsvDataset(path, types, header=True)


def decoded_lines(here):
    defaults = [0, "", -1.0, 0.0, ""]
    lines = tf.data.TextLineDataset(_csv(here)).skip(1)

    def decode(line):
        label, sex, age, fare, _ = tf.io.decode_csv(line, defaults)
        return tf.stack([age, fare]), tf.where(sex == "male", 1, 0), label

    return lines.map(decode).batch(3)


def packed_numbers(here):
    path = _csv(here)
    ds = tf.data.experimental.make_csv_dataset(path, batch_size=2, num_epochs=1, shuffle=False, select_columns=[2, 3])
    return ds.map(lambda features: tf.stack(list(features.values()), axis=-1))


def criteo_lines(here):
    path = pathlib.Path(here, "criteo.txt")
    path.write_text("1\t3\t\t17\tab\tcd\n0\t\t5\t2\t\tef\n1\t8\t1\t0\tab\t\n")
    defaults = [[0]] + [[0]] * 3 + [[""]] * 2

    def parse(line):
        values = tf.io.decode_csv(line, defaults, field_delim="\t", use_quote_delim=False)
        features = dict(zip(["label", *CRITEO_INTS, *CRITEO_CATEGORIES], values, strict=False))
        label = features.pop("label")
        for name in CRITEO_INTS:
            features[name] = tf.math.log(tf.maximum(tf.cast(features[name], tf.float32), 0.0) + 1.0)
        for name in CRITEO_CATEGORIES:
            features[name] = tf.strings.to_hash_bucket_fast(features[name], 50)
        return features, label

    return tf.data.TextLineDataset(str(path)).map(parse).batch(2)


def parsed_examples(here):
    rows = [{"feature0": n, "feature1": b"row %d" % n, "feature2": n / 4} for n in range(5)]
    description = {
        "feature0": tf.io.FixedLenFeature([], tf.int64, default_value=0),
        "feature1": tf.io.FixedLenFeature([], tf.string, default_value=""),
        "feature2": tf.io.FixedLenFeature([], tf.float32, default_value=0.0),
        "missing": tf.io.FixedLenFeature([], tf.float32, default_value=-1.0),
    }

    def parse(proto):
        return tf.io.parse_single_example(proto, description)

    return tf.data.TFRecordDataset(_records(here, rows)).map(parse)


def parsed_batches(here):
    rows = [{"x": np.arange(n % 3), "y": n} for n in range(5)]
    description = {"x": tf.io.VarLenFeature(tf.int64), "y": tf.io.FixedLenFeature([], tf.int64)}
    ds = tf.data.TFRecordDataset(_records(here, rows)).batch(3)
    return ds.map(lambda records: tf.io.parse_example(records, description))


def ragged_features(here):
    rows = [{"tokens": np.arange(n + 1), "id": n} for n in range(4)]
    description = {"tokens": tf.io.RaggedFeature(tf.int64), "id": tf.io.FixedLenFeature([1], tf.int64)}
    ds = tf.data.TFRecordDataset(_records(here, rows)).batch(2)
    return ds.map(lambda records: tf.io.parse_example(records, description))


def sparse_to_dense(here):
    rows = [{"tags": np.arange(n)} for n in (2, 0, 3)]

    def parse(record):
        found = tf.io.parse_single_example(record, {"tags": tf.io.VarLenFeature(tf.int64)})
        return tf.sparse.to_dense(found["tags"], default_value=-1)

    return (
        tf.data.TFRecordDataset(_records(here, rows))
        .map(parse)
        .padded_batch(3, padding_values=tf.constant(-1, tf.int64))
    )


def sparse_slices(here):
    matrix = tf.SparseTensor(indices=[[0, 0], [1, 2], [2, 1]], values=[1, 2, 3], dense_shape=[3, 4])
    return tf.data.Dataset.from_tensors(matrix)


def sparse_rows(here):
    matrix = tf.SparseTensor(indices=[[0, 0], [1, 2], [2, 1]], values=[1.0, 2.0, 3.0], dense_shape=[3, 4])
    return tf.data.Dataset.from_tensor_slices(matrix).map(tf.sparse.to_dense)


def compressed_records(here):
    path = _records(here, [{"n": n} for n in range(3)], "data.gz", tf.io.TFRecordOptions(compression_type="GZIP"))
    ds = tf.data.TFRecordDataset(path, compression_type="GZIP")
    return ds.map(lambda record: tf.io.parse_single_example(record, {"n": tf.io.FixedLenFeature([], tf.int64)})["n"])


def interleaved_shards(here):
    for shard in range(3):
        _records(here, [{"n": 10 * shard + n} for n in range(3)], f"train-{shard:05d}-of-00003")
    files = tf.data.Dataset.list_files(str(pathlib.Path(here, "train-*")), shuffle=False)
    ds = files.interleave(
        lambda path: tf.data.TFRecordDataset(path), cycle_length=2, num_parallel_calls=2, deterministic=True
    )
    return ds.map(lambda record: tf.io.parse_single_example(record, {"n": tf.io.FixedLenFeature([], tf.int64)}))


def serialised_tensors(here):
    images = np.random.default_rng(0).random((3, 2, 2), dtype=np.float32)
    path = str(pathlib.Path(here, "tensors.tfrecord"))
    with tf.io.TFRecordWriter(path) as writer:
        for image in images:
            writer.write(tf.io.serialize_tensor(image).numpy())

    def parse(data):
        tensor = tf.io.parse_tensor(data, out_type=tf.float32)
        return tf.ensure_shape(tensor, [2, 2])

    return tf.data.TFRecordDataset(path).map(parse)


def sequence_examples(here):
    path = str(pathlib.Path(here, "sequences.tfrecord"))
    with tf.io.TFRecordWriter(path) as writer:
        for n in range(1, 4):
            steps = [_feature(np.array([n, step])) for step in range(n)]
            lists = {"steps": tf.train.FeatureList(feature=steps)}
            example = tf.train.SequenceExample(
                context=tf.train.Features(feature={"id": _feature(n)}),
                feature_lists=tf.train.FeatureLists(feature_list=lists),
            )
            writer.write(example.SerializeToString())

    def parse(record):
        context, sequence = tf.io.parse_single_sequence_example(
            record,
            context_features={"id": tf.io.FixedLenFeature([], tf.int64)},
            sequence_features={"steps": tf.io.FixedLenSequenceFeature([2], tf.int64)},
        )
        return context["id"], sequence["steps"]

    return tf.data.TFRecordDataset(path).map(parse)


def raw_bytes(here):
    path = pathlib.Path(here, "records.bin")
    path.write_bytes(np.arange(3 * 5, dtype=np.uint8).tobytes())

    def parse(record):
        record = tf.io.decode_raw(record, tf.uint8)
        label = tf.cast(record[0], tf.int32)
        return tf.transpose(tf.reshape(record[1:5], [1, 2, 2]), [1, 2, 0]), label

    return tf.data.FixedLengthRecordDataset(str(path), 5).map(parse)


def string_features(here):
    ages = np.array([22.0, 38.0, 4.0, 71.0], np.float32)

    def bucket(age):
        boundaries = tf.constant([10.0, 30.0, 60.0])
        index = tf.reduce_sum(tf.cast(age >= boundaries, tf.int32))
        return tf.strings.join(["group-", tf.strings.as_string(index)]), tf.one_hot(index, 4)

    return tf.data.Dataset.from_tensor_slices(ages).map(bucket)


def user_and_item(here):
    ratings = {"user": np.array(["a", "b", "a", "c"]), "rating": np.array([4.0, 3.0, 5.0, 1.0], np.float32)}
    ds = tf.data.Dataset.from_tensor_slices(ratings)
    users = ds.map(lambda row: row["user"]).unique()
    return users.enumerate()
