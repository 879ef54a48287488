"""A small CNN in torch on images of cats and dogs, with a naive data set and with a pipeline: the same batches, sooner.

Run it with `python examples/train/torch_cats_dogs.py --count 1000 --epochs 4`.
"""

from __future__ import annotations

import argparse
import tempfile
import time

import made_up_data
import numpy as np
import torch
from torch import nn

import penstock as ps

SIZE = 64
FEATURES = {"image": ps.io.FixedLenFeature((), bytes), "label": ps.io.FixedLenFeature((), np.int64)}


def prepare(record):
    """Convert a record to the input of the net: float32 of (3, 64, 64), and the label."""
    row = ps.io.parse_single_example(record, FEATURES)
    image = ps.image.resize(ps.io.decode_jpeg(row["image"], channels=3), (SIZE, SIZE)) / np.float32(255)
    return np.transpose(image, (2, 0, 1)), row["label"]


def naive(files, batch_size):
    """Build a first version: the steps run one after the other, and each epoch decodes each image again."""
    return (
        ps.Dataset.list_files(files, shuffle=False)
        .interleave(ps.TFRecordDataset, cycle_length=4)
        .map(prepare)
        .shuffle(512, seed=1)
        .batch(batch_size)
        # Without this line the engine would optimise some of these steps by itself.
        .with_options(ps.Options(experimental_optimization={"apply_default_optimizations": False}))
    )


def pipelined(files, batch_size):
    """Build the same steps: all cores decode while the net computes, and later epochs read the cache."""
    return (
        ps.Dataset.list_files(files, shuffle=False)
        .interleave(ps.TFRecordDataset, cycle_length=4, num_parallel_calls=ps.AUTOTUNE)
        .map(prepare, num_parallel_calls=ps.AUTOTUNE)
        .cache()
        .shuffle(512, seed=1)
        .batch(batch_size)
        .prefetch(ps.AUTOTUNE)
    )


def network():
    return nn.Sequential(
        *(nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU()),
        *(nn.Conv2d(32, 32, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 7 * 7, 2)),
    )


def train(ds, epochs):
    """Return the model, the seconds of training, and the share of them in which the step had no batch."""
    torch.manual_seed(0)
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    waited, begun = 0.0, time.perf_counter()
    loader = ds.to_torch()
    for _ in range(epochs):
        asked = time.perf_counter()
        for images, labels in loader:
            waited += time.perf_counter() - asked
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            asked = time.perf_counter()
    seconds = time.perf_counter() - begun
    return model, seconds, waited / seconds


@torch.no_grad()
def accuracy(model, ds):
    right = [(model(images).argmax(1) == labels).float() for images, labels in ds.to_torch()]
    return torch.cat(right).mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=400, help="number of training images")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32)
    arguments = parser.parse_args()
    # The model and the preparation share the cores; on a GPU machine they do not.
    torch.set_num_threads(max(1, torch.get_num_threads() // 2))

    with tempfile.TemporaryDirectory() as folder:
        made_up_data.cats_and_dogs(folder, arguments.count)
        test = pipelined(f"{folder}/test.tfrecord-*", 100)
        for name, pipeline in (("naive", naive), ("pipelined", pipelined)):
            ds = pipeline(f"{folder}/train.tfrecord-*", arguments.batch_size)
            model, seconds, waited = train(ds, arguments.epochs)
            print(f"{name:<10} accuracy {accuracy(model, test):.3f}, {seconds:.1f} s, {waited:.0%} of it waiting")


if __name__ == "__main__":
    main()
