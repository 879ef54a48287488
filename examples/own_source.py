"""Your own source: a Python generator that becomes batches, and the same elements as a data set on disk.

Run it with `python examples/own_source.py`.
"""

from __future__ import annotations

import tempfile

import numpy as np

import penstock as ps
from penstock.catalog import Builder, DatasetInfo, features


def walks(count):
    """Yield random walks of 50 steps with 1 if they end above zero. The walks are the same in each run."""
    for number in range(count):
        steps = np.random.default_rng(number).choice([-1, 1], 50).astype(np.float32)
        walk = np.cumsum(steps, dtype=np.float32)
        yield walk, int(walk[-1] > 0)


class Walks(Builder):
    """The walks as a data set: prepared once, stored as TFRecords, read in parallel."""

    VERSION = "1.0.0"

    def _info(self):
        values = {
            "walk": features.Tensor(shape=(50,), dtype=np.float32),
            "ends": features.ClassLabel(names=["below", "above"]),
        }
        return DatasetInfo(features=features.FeaturesDict(values), supervised_keys=("walk", "ends"))

    def _split_generators(self):
        return {"train": self._generate_examples(1000)}

    def _generate_examples(self, count):
        for number, (walk, ends) in enumerate(walks(count)):
            yield number, {"walk": walk, "ends": ends}


def share_above(ds):
    """Return the share of walks that end above zero."""
    labels = np.concatenate([ends for _, ends in ds.batch(64)])
    return labels.mean()


def main():
    signature = (ps.TensorSpec((50,), np.float32), ps.TensorSpec((), np.int64))
    generated = ps.Dataset.from_generator(walks, args=(1000,), output_signature=signature)
    print(f"from the generator: {share_above(generated):.1%} end above zero")

    with tempfile.TemporaryDirectory() as folder:
        builder = Walks(data_dir=folder)
        builder.download_and_prepare()
        stored = builder.as_dataset("train", as_supervised=True)
        print(f"from {len(stored)} stored examples: {share_above(stored):.1%} end above zero")


if __name__ == "__main__":
    main()
