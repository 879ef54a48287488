"""Transfer learning with Keras: train a new head on a frozen base, then tune both.

The example trains its own base, on another task. In your program, keras.applications.MobileNetV2 takes its place. The
naive data set and the pipeline lead to the same accuracy. Run it with `KERAS_BACKEND=torch python
examples/train/keras_transfer.py`, or on jax, or on tensorflow.
"""

from __future__ import annotations

import argparse
import tempfile
import time

import keras
import made_up_data
import numpy as np
from keras import layers

import penstock as ps

SIZE = 64
FEATURES = {"image": ps.io.FixedLenFeature((), bytes), "label": ps.io.FixedLenFeature((), np.int64)}


def prepare(record):
    row = ps.io.parse_single_example(record, FEATURES)
    image = ps.image.resize(ps.io.decode_jpeg(row["image"], channels=3), (SIZE, SIZE))
    return image / np.float32(127.5) - np.float32(1), row["label"]


def naive(files, batch_size):
    plain = ps.Options(experimental_optimization={"apply_default_optimizations": False})
    records = ps.Dataset.list_files(files, shuffle=False).interleave(ps.TFRecordDataset, cycle_length=4)
    return records.map(prepare).shuffle(512, seed=1).batch(batch_size).with_options(plain)


def pipelined(files, batch_size):
    return (
        ps.Dataset.list_files(files, shuffle=False)
        .interleave(ps.TFRecordDataset, cycle_length=4, num_parallel_calls=ps.AUTOTUNE)
        .map(prepare, num_parallel_calls=ps.AUTOTUNE)
        .cache()
        .shuffle(512, seed=1)
        .batch(batch_size)
        .prefetch(ps.AUTOTUNE)
    )


def trained_base(count):
    """Train a net on another task: the direction and width of bars."""
    images, labels = made_up_data.thumbnails(count)
    images = ps.image.resize(images, (SIZE, SIZE)) / np.float32(127.5) - np.float32(1)
    base = keras.Sequential(
        [keras.Input((SIZE, SIZE, 3))]
        + [layers.Conv2D(width, 3, strides=2, activation="relu") for width in (16, 32, 32)]
        + [layers.Flatten()]
    )
    model = keras.Sequential([base, layers.Dense(4)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(3e-3), loss)
    ds = ps.Dataset.from_tensor_slices((images, labels)).shuffle(count, seed=1).batch(32)
    model.fit(ds.to_keras(), epochs=3, verbose=0)
    return base


class Seconds(keras.callbacks.Callback):
    """Measures the seconds of the last epoch."""

    def on_epoch_begin(self, epoch, logs=None):
        self.begun = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.seconds = time.perf_counter() - self.begun


def train(base_weights, base, ds, test, epochs):
    keras.utils.set_random_seed(0)
    base.set_weights(base_weights)
    model = keras.Sequential([base, layers.Dense(32, activation="relu"), layers.Dense(2)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    epoch = Seconds()
    for tuned, rate in ((False, 1e-2), (True, 3e-3)):  # first the head alone, then all layers with a smaller rate
        base.trainable = tuned
        model.compile(keras.optimizers.Adam(rate), loss, metrics=["accuracy"])
        model.fit(ds.to_keras(), epochs=epochs, verbose=0, callbacks=[epoch])
    return model.evaluate(test.to_keras(), verbose=0)[1], epoch.seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300, help="number of training images")
    parser.add_argument("--epochs", type=int, default=3, help="epochs of each of the two phases")
    parser.add_argument("--batch-size", type=int, default=32)
    arguments = parser.parse_args()

    keras.utils.set_random_seed(0)
    base = trained_base(arguments.count)
    weights = base.get_weights()
    with tempfile.TemporaryDirectory() as folder:
        made_up_data.cats_and_dogs(folder, arguments.count)
        test = pipelined(f"{folder}/test.tfrecord-*", 100)
        for name, pipeline in (("naive", naive), ("pipelined", pipelined)):
            ds = pipeline(f"{folder}/train.tfrecord-*", arguments.batch_size)
            accuracy, seconds = train(weights, base, ds, test, arguments.epochs)
            print(f"{name:<10} accuracy {accuracy:.3f}, last epoch {seconds:.2f} s on {keras.backend.backend()}")


if __name__ == "__main__":
    main()
