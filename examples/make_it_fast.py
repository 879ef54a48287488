"""One slow pipeline, and the same pipeline after each step of docs/make-it-fast.md.

    python examples/make_it_fast.py slow prefetch        # names of VARIANTS; default: all

The script writes 160 JPEG images. It trains on them for some seconds, with a simulated training step, and prints the
rate.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import penstock as ps

SHARDS, IMAGES = 16, 10  # images in each file
TRAINING_STEP = 0.03  # seconds
FEATURES = {"image": ps.io.FixedLenFeature((), bytes), "label": ps.io.FixedLenFeature((), np.int64)}

# By default, penstock parallelises and vectorises some of these functions by itself. This turns it off.
AS_WRITTEN = ps.Options(
    experimental_optimization={"apply_default_optimizations": False, "map_vectorization": False},
    autotune={"min_parallelism": 4},
)


# The functions of the pipeline.


def receive(record):
    time.sleep(0.005)  # a remote store sends a record of a file every 5 ms
    return record


def open_file(path):
    return ps.TFRecordDataset(path).map(receive)


def decode(record):
    row = ps.io.parse_single_example(record, FEATURES)
    image = ps.image.decode_jpeg(row["image"], channels=3)
    return ps.image.resize(image, (96, 96)), row["label"]


def annotate(image, label):
    time.sleep(0.005)  # a label server answers after 5 ms
    return image, label


def balance(image, label):
    totals = [1.0, 1.0, 1.0]
    for pixel in image[::4, ::4].reshape(-1, 3).tolist():
        for channel, value in enumerate(pixel):
            totals[channel] += value
    return image * np.float32(128 * 576 / np.array(totals)), label


def flip(image, label):
    return ps.image.random_flip_left_right(image), label


# The same for a whole batch, and with small elements.


def balance_batch(images, labels):
    means = images[:, ::4, ::4].mean(axis=(1, 2), keepdims=True)
    return images * (np.float32(128) / (means + np.float32(0.001))), labels


def decode_bytes(record):
    image, label = decode(record)
    return image.round().astype(np.uint8), label


# The pipeline, step by step.


def slow(files):
    ds = files.interleave(open_file, cycle_length=4)
    ds = ds.map(decode).map(annotate).map(balance).map(flip)
    return ds.batch(32)


def prefetch(files):
    return slow(files).prefetch(ps.AUTOTUNE)


def interleave(files):
    ds = files.interleave(open_file, cycle_length=4, num_parallel_calls=ps.AUTOTUNE)
    ds = ds.map(decode).map(annotate).map(balance).map(flip)
    return ds.batch(32).prefetch(ps.AUTOTUNE)


def threads(files):
    ds = files.interleave(open_file, cycle_length=4, num_parallel_calls=ps.AUTOTUNE)
    ds = ds.map(decode, num_parallel_calls=ps.AUTOTUNE)
    ds = ds.map(annotate, num_parallel_calls=ps.AUTOTUNE)
    ds = ds.map(balance, num_parallel_calls=ps.AUTOTUNE, executor="thread").map(flip)
    return ds.batch(32).prefetch(ps.AUTOTUNE)


def processes(files):
    ds = files.interleave(open_file, cycle_length=4, num_parallel_calls=ps.AUTOTUNE)
    ds = ds.map(decode, num_parallel_calls=ps.AUTOTUNE)
    ds = ds.map(annotate, num_parallel_calls=ps.AUTOTUNE)
    ds = ds.map(balance, num_parallel_calls=ps.AUTOTUNE, executor="process").map(flip)
    return ds.batch(32).prefetch(ps.AUTOTUNE)


def batched(files):
    ds = files.interleave(open_file, cycle_length=4, num_parallel_calls=ps.AUTOTUNE)
    ds = ds.map(decode, num_parallel_calls=ps.AUTOTUNE)
    ds = ds.map(annotate, num_parallel_calls=ps.AUTOTUNE).batch(32)
    ds = ds.map(balance_batch, num_parallel_calls=ps.AUTOTUNE).map(flip)
    return ds.prefetch(ps.AUTOTUNE)


def cached(files, decode=decode):
    ds = files.interleave(open_file, cycle_length=4, num_parallel_calls=ps.AUTOTUNE)
    ds = ds.map(decode, num_parallel_calls=ps.AUTOTUNE)
    ds = ds.map(annotate, num_parallel_calls=ps.AUTOTUNE).cache().batch(32)
    ds = ds.map(balance_batch, num_parallel_calls=ps.AUTOTUNE).map(flip)
    return ds.prefetch(ps.AUTOTUNE)


def small_cache(files):
    return cached(files, decode_bytes)


def late_shuffle(files):
    ds = files.interleave(open_file, cycle_length=4, num_parallel_calls=ps.AUTOTUNE)
    ds = ds.map(decode, num_parallel_calls=ps.AUTOTUNE).shuffle(128, seed=1)
    return ds.batch(32).prefetch(ps.AUTOTUNE)


def early_shuffle(files):
    ds = files.interleave(open_file, cycle_length=4, num_parallel_calls=ps.AUTOTUNE)
    ds = ds.shuffle(128, seed=1).map(decode, num_parallel_calls=ps.AUTOTUNE)
    return ds.batch(32).prefetch(ps.AUTOTUNE)


def snapshot(files, folder):
    ds = files.interleave(open_file, cycle_length=4, num_parallel_calls=ps.AUTOTUNE)
    ds = ds.map(decode_bytes, num_parallel_calls=ps.AUTOTUNE)
    ds = ds.map(annotate, num_parallel_calls=ps.AUTOTUNE).snapshot(folder).batch(32)
    ds = ds.map(balance_batch, num_parallel_calls=ps.AUTOTUNE).map(flip)
    return ds.prefetch(ps.AUTOTUNE)


def distributed(files, service):
    return processes(files).distribute(service)


def fast(files):
    ds = files.interleave(open_file, cycle_length=4, num_parallel_calls=ps.AUTOTUNE)
    ds = ds.map(decode_bytes, num_parallel_calls=ps.AUTOTUNE)
    ds = ds.map(annotate, num_parallel_calls=ps.AUTOTUNE).cache()
    ds = ds.shuffle(128).batch(32)
    ds = ds.map(balance_batch, num_parallel_calls=ps.AUTOTUNE).map(flip)
    return ds.prefetch(ps.AUTOTUNE)


VARIANTS = {f.__name__: f for f in (slow, prefetch, interleave, threads, processes, batched, cached, small_cache, fast)}


def write_images(folder: Path, shards: int = SHARDS, images: int = IMAGES) -> None:
    """Write TFRecord files of labelled JPEG images."""
    rng = np.random.default_rng(0)
    for shard in range(shards):
        with ps.io.TFRecordWriter(folder / f"images-{shard:02d}.tfrecord") as writer:
            for index in range(images):
                light = rng.uniform(0, 255, (4, 5, 3)).astype(np.float32)
                image = ps.image.resize(light, (180, 240)) + rng.normal(0, 6, (180, 240, 1))
                jpeg = ps.io.encode_jpeg(np.clip(image, 0, 255).astype(np.uint8))
                writer.write(ps.io.encode_example({"image": jpeg, "label": np.int64(index % 10)}))


def train(ds, seconds: float = 3.0) -> tuple[float, float]:
    """Return the images per second and the share of time that the loop waits for data, after a warm-up."""
    images, waited, start = 0, 0.0, None
    began = asked = time.perf_counter()
    for batch, _ in ds.repeat():
        came = time.perf_counter()
        if start is None:
            images += len(batch)
            if came - began > 2.0 and images > SHARDS * IMAGES:
                images, start = 0, came  # after one epoch, the workers run and the cache is full
        else:
            images, waited = images + len(batch), waited + came - asked
            if came - start > seconds:
                break
        time.sleep(TRAINING_STEP)  # the accelerator computes
        asked = time.perf_counter()
    return images / (came - start), waited / (came - start)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_images(Path(folder))
        files = ps.Dataset.list_files(f"{folder}/*.tfrecord", seed=0)
        for name in sys.argv[1:] or VARIANTS:
            ds = VARIANTS[name](files).with_options(AS_WRITTEN)
            rate, waiting = train(ds)
            print(f"{name}: {rate:.0f} images/s, {waiting:.0%} of the time waiting for data")


if __name__ == "__main__":
    main()
