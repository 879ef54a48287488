"""Prepare the data set `shapes` by its name, read it through a pipeline, and print the plan of the pipeline.

Run it with `python examples/quickstart.py`. The first run generates the images (some seconds) and stores them
in $PENSTOCK_DATA_DIR or ~/penstock_datasets.
"""

from __future__ import annotations

import time

import numpy as np

import penstock as ps
from penstock import catalog

BATCH = 32


def prepare(image, label):
    return ps.image.resize(image, (128, 128)) / np.float32(255), label


def main():
    dataset, info = catalog.load(
        "shapes", split="train", as_supervised=True, with_info=True, builder_kwargs={"num_examples": 200}
    )
    names = info.features["label"].names
    print(f"{info.name} {info.version}: {len(dataset)} images of {', '.join(names)}")

    ds = (
        dataset.map(prepare, num_parallel_calls=ps.AUTOTUNE)
        .cache()
        .shuffle(200, seed=1)
        .batch(BATCH, drop_remainder=True)
        .prefetch(ps.AUTOTUNE)
    )
    for epoch in range(3):
        start = time.perf_counter()
        counts = np.zeros(len(names), int)
        for images, labels in ds:
            assert images.shape == (BATCH, 128, 128, 3)
            counts += np.bincount(labels, minlength=len(names))
        seconds = time.perf_counter() - start
        shown = ", ".join(f"{count} {name}s" for count, name in zip(counts, names, strict=True))
        print(f"epoch {epoch + 1}: {shown} in {seconds:.2f} s")

    print()
    print(ds.explain())


if __name__ == "__main__":
    main()
