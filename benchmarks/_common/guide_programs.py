"""Input pipelines in the words of public tf.data guides: one text for TensorFlow and for `penstock.compat`.

The environment variable `GUIDES_ENGINE` chooses the library with the name `tf`. Each function in `PROGRAMS` builds a
data set and returns it with the number of elements in one iteration. The data comes from this file or from
`photographs.py`.
"""

# mypy: ignore-errors

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from _common import photographs
from _common.duel import data_folder, written_once

if os.environ.get("GUIDES_ENGINE", "penstock") == "tensorflow":
    import tensorflow as tf
else:
    from penstock.compat import tf

AUTOTUNE = tf.data.AUTOTUNE
BATCH = 32
PROGRAMS: dict[str, Callable[[], tuple[Any, int]]] = {}
rng = np.random.default_rng(0)


def program(name: str) -> Callable[[Any], Any]:
    """Add the function to `PROGRAMS` under `name`."""

    def enter(function: Any) -> Any:
        PROGRAMS[name] = function
        return function

    return enter


# --- photographs in TFRecord files ---

FEATURES = {
    "image": tf.io.FixedLenFeature([], tf.string),
    "label": tf.io.FixedLenFeature([], tf.int64),
}


def read_record(serialized):
    example = tf.io.parse_single_example(serialized, FEATURES)
    return tf.io.decode_jpeg(example["image"], channels=3), example["label"]


def from_records(*functions):
    ds = tf.data.TFRecordDataset(photographs.shards())
    for function in (read_record, *functions):
        ds = ds.map(function, num_parallel_calls=AUTOTUNE)
    return ds.batch(BATCH).prefetch(AUTOTUNE), photographs.COUNT


def cast_resize_divide(image, label):
    image = tf.cast(image, tf.float32)
    image = tf.image.resize(image, [224, 224])
    return image / 255.0, label


def resize_divide(image, label):
    image = tf.image.resize(image, [224, 224])
    return image / 255.0, label


def convert_resize(image, label):
    image = tf.image.convert_image_dtype(image, tf.float32)
    return tf.image.resize(image, [224, 224]), label


def resize_divide_in_place(image, label):
    image = tf.image.resize(image, [224, 224])
    image /= 255.0
    return image, label


MEAN = tf.constant([0.485, 0.456, 0.406])
STD = tf.constant([0.229, 0.224, 0.225])


def crop_flip_resize(image, label):
    image = tf.image.random_crop(image, [320, 320, 3])
    image = tf.image.random_flip_left_right(image)
    return tf.image.resize(image, [224, 224]), label


def normalize(image, label):
    image = tf.cast(image, tf.float32) / 255.0
    return (image - MEAN) / STD, label


def six_augmentations(image, label):
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_flip_up_down(image)
    image = tf.image.random_brightness(image, 0.2)
    image = tf.image.random_contrast(image, 0.8, 1.2)
    image = tf.image.random_saturation(image, 0.8, 1.2)
    image = tf.image.random_hue(image, 0.05)
    return image, label


def maybe_gray(image, label):
    if tf.random.uniform(()) > 0.5:
        image = tf.image.flip_left_right(image)
    image = tf.cast(image, tf.float32)
    return tf.image.resize(image, [224, 224]), label


program("decode, cast, resize, / 255")(lambda: from_records(cast_resize_divide))
program("decode, convert_image_dtype, resize")(lambda: from_records(convert_resize))
program("decode, resize, /= 255")(lambda: from_records(resize_divide_in_place))
program("crop, flip, resize, cast / 255, normalize")(lambda: from_records(crop_flip_resize, normalize))
program("decode, resize, / 255")(lambda: from_records(resize_divide))
program("six augmentations, resize, / 255")(lambda: from_records(six_augmentations, resize_divide))
program("if uniform > 0.5, cast, resize")(lambda: from_records(maybe_gray))


def rotated(image, label):
    """Rotate by a random angle through a grid of pixels, as in guides of image classification."""
    image = tf.image.resize(image, [96, 96])
    angle = tf.random.uniform((), -0.3, 0.3)
    ys, xs = tf.meshgrid(tf.range(96.0) - 47.5, tf.range(96.0) - 47.5, indexing="ij")
    y = tf.cos(angle) * ys - tf.sin(angle) * xs + 47.5
    x = tf.sin(angle) * ys + tf.cos(angle) * xs + 47.5
    y = tf.clip_by_value(tf.cast(tf.round(y), tf.int32), 0, 95)
    x = tf.clip_by_value(tf.cast(tf.round(x), tf.int32), 0, 95)
    return tf.gather_nd(image, tf.stack([y, x], axis=-1)) / 255.0, label


program("rotation by an affine grid")(lambda: from_records(rotated))


def brighter(image):
    return tf.image.adjust_brightness(image, 0.1)


def contrasted(image):
    return tf.image.adjust_contrast(image, 1.2)


def saturated(image):
    return tf.image.adjust_saturation(image, 1.2)


def flipped(image):
    return tf.image.flip_left_right(image)


def rand_augment(image, label):
    image = tf.image.resize(image, [224, 224]) / 255.0
    for _ in range(2):
        chosen = tf.random.uniform((), 0, 4, dtype=tf.int32)
        image = tf.switch_case(
            chosen,
            [
                lambda image=image: brighter(image),
                lambda image=image: contrasted(image),
                lambda image=image: saturated(image),
                lambda image=image: flipped(image),
            ],
        )
    return image, label


program("RandAugment by switch_case")(lambda: from_records(rand_augment))


CLASS_NAMES = np.array([f"class_{i}" for i in range(10)])


def class_folders():
    """Return a folder with one folder of photographs for each class. The first call writes it."""

    def write(folder):
        for i, path in enumerate(photographs.singles()):
            target = folder / str(CLASS_NAMES[i % 10]) / Path(path).name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(path)

    return written_once(data_folder() / "guides-classes-1", write)


def get_label(file_path):
    parts = tf.strings.split(file_path, os.path.sep)
    return tf.argmax(tf.cast(parts[-2] == CLASS_NAMES, tf.int32))


def process_path(file_path):
    image = tf.io.decode_jpeg(tf.io.read_file(file_path), channels=3)
    image = tf.image.convert_image_dtype(image, tf.float32)
    return tf.image.resize(image, [128, 128]), get_label(file_path)


@program("parse_image: split path, read, decode, convert, resize")
def parse_image():
    ds = tf.data.Dataset.list_files(str(class_folders() / "*/*"), shuffle=False)
    return ds.map(process_path, num_parallel_calls=AUTOTUNE).batch(BATCH).prefetch(AUTOTUNE), photographs.COUNT


# --- tables ---

NUMERIC = [f"I{i}" for i in range(1, 14)]
CATEGORICAL = [f"C{i}" for i in range(1, 27)]
CLICKS = 20_000


def clicks():
    columns = {name: rng.integers(-2, 1000, CLICKS).astype(np.int64) for name in NUMERIC}
    columns |= {name: rng.integers(0, 1 << 20, CLICKS).astype(np.int64) for name in CATEGORICAL}
    return columns | {"label": rng.integers(0, 2, CLICKS).astype(np.int64)}


def criteo_features(row):
    out = {}
    for name in NUMERIC:
        out[name] = tf.math.log(tf.maximum(tf.cast(row[name], tf.float32), 0.0) + 1.0)
    for name in CATEGORICAL:
        out[name] = row[name] % 10007
    return out, row["label"]


@program("Criteo: loop over names, log(maximum)")
def criteo():
    ds = tf.data.Dataset.from_tensor_slices(clicks())
    return ds.map(criteo_features, num_parallel_calls=AUTOTUNE).batch(256).prefetch(AUTOTUNE), CLICKS


LINES = 40_000
DEFAULTS = [[0], [0.0], [0.0], [""], [0]]


def csv_lines():
    ints, floats = rng.integers(0, 1000, (LINES, 2)), rng.random((LINES, 2))
    return [f"{a},{x:.4f},{y:.4f},name{b % 100},{b}" for (a, b), (x, y) in zip(ints, floats, strict=True)]


def parse_line(line):
    fields = tf.io.decode_csv(line, DEFAULTS)
    return tf.stack([tf.cast(fields[0], tf.float32), fields[1], fields[2]]), fields[4]


@program("decode_csv per line")
def decode_csv():
    ds = tf.data.Dataset.from_tensor_slices(csv_lines())
    return ds.map(parse_line, num_parallel_calls=AUTOTUNE).batch(256).prefetch(AUTOTUNE), LINES


@program("to_hash_bucket_fast on batches")
def hash_buckets():
    words = [f"user-{i}" for i in rng.integers(0, 1 << 20, 200_000)]
    ds = tf.data.Dataset.from_tensor_slices(words).batch(1024)
    return ds.map(lambda batch: tf.strings.to_hash_bucket_fast(batch, 10_000), num_parallel_calls=AUTOTUNE), 200_000


# --- series ---

SERIES = rng.random(100_000).astype(np.float32)
SERIES_TENSOR = tf.constant(SERIES)


@program("gather(series, range(i, i + 24))")
def gathered():
    ds = tf.data.Dataset.range(len(SERIES) - 24)
    ds = ds.map(lambda i: tf.gather(SERIES_TENSOR, tf.range(i, i + 24)), num_parallel_calls=AUTOTUNE)
    return ds.batch(256).prefetch(AUTOTUNE), len(SERIES) - 24


@program("window(24, shift=1).flat_map(batch), (w[:-1], w[-1])")
def windowed():
    series = SERIES[:20_000]
    ds = tf.data.Dataset.from_tensor_slices(series)
    ds = ds.window(24, shift=1, drop_remainder=True)
    ds = ds.flat_map(lambda window: window.batch(24))
    ds = ds.map(lambda window: (window[:-1], window[-1]))
    return ds.batch(256).prefetch(AUTOTUNE), len(series) - 23


# --- text ---

WORDS = ["The", "penstock", "feeds", "a", "turbine,", "water", "runs", "downhill!", "It", "never", "waits...", "(much)"]


def reviews(count):
    return [" ".join(rng.choice(WORDS, rng.integers(5, 40))) for _ in range(count)]


def tokens(text):
    text = tf.strings.lower(text)
    text = tf.strings.regex_replace(text, "[^a-z ]", "")
    return tf.strings.split(text)[:16]


@program("lower, regex_replace, split, [:16], padded_batch")
def text_tokens():
    ds = tf.data.Dataset.from_tensor_slices(reviews(10_000))
    return ds.map(tokens, num_parallel_calls=AUTOTUNE).padded_batch(64, [16]).prefetch(AUTOTUNE), 10_000


VOCABULARY = ["the", "penstock", "feeds", "turbine", "water", "runs", "downhill", "never", "waits"]


@program("text vectorising on batches")
def vectorised_text():
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(tf.constant(VOCABULARY), tf.range(2, len(VOCABULARY) + 2, dtype=tf.int64)),
        1,
    )

    def vectorise(batch):
        batch = tf.strings.regex_replace(tf.strings.lower(batch), "[^a-z ]", "")
        return table.lookup(tf.strings.split(batch).to_tensor(default_value="", shape=[None, 32]))

    ds = tf.data.Dataset.from_tensor_slices(reviews(20_000)).batch(64)
    return ds.map(vectorise, num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE), 20_000


NAME_TO_FEATURES = {
    "input_ids": tf.io.FixedLenFeature([128], tf.int64),
    "input_mask": tf.io.FixedLenFeature([128], tf.int64),
    "segment_ids": tf.io.FixedLenFeature([128], tf.int64),
    "label_ids": tf.io.FixedLenFeature([], tf.int64),
}


def bert_records():
    """Return a TFRecord file of 10,000 records. The first call writes it."""
    import penstock as ps

    def write(path):
        with ps.io.TFRecordWriter(str(path)) as writer:
            for _ in range(10_000):
                row = {name: rng.integers(0, 30_000, 128) for name in ("input_ids", "input_mask", "segment_ids")}
                writer.write(ps.io.encode_example(row | {"label_ids": int(rng.integers(0, 2))}))

    return str(written_once(data_folder() / "guides-bert-1.tfrecord", write))


def decode_record(record):
    example = tf.io.parse_single_example(record, NAME_TO_FEATURES)
    for name in list(example.keys()):
        t = example[name]
        if t.dtype == tf.int64:
            t = tf.cast(t, tf.int32)
        example[name] = t
    return example


@program("BERT records, global dict of features")
def bert():
    ds = tf.data.TFRecordDataset(bert_records()).map(decode_record, num_parallel_calls=AUTOTUNE)
    return ds.batch(64, drop_remainder=True).prefetch(AUTOTUNE), 10_000 // 64 * 64
