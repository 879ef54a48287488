"""Measure batches of images of a Hugging Face data set: `from_huggingface` and the library's own numpy format.

    python benchmarks/from_huggingface.py [--pairs 4]

Both sides read the same 2,000 JPEGs of 256 x 256 pixels in Arrow memory. Each iteration has all images in batches of
32; the sides take turns. The ratios of CPU time per image and of images per second are minimum, median and maximum of
the pairs.
"""

from __future__ import annotations

import argparse

import numpy as np
from _common.duel import checked, timed

import penstock as ps

COUNT, SIDE, BATCH = 2000, 256, 32


def data():
    import datasets

    rng = np.random.default_rng(0)
    small = rng.integers(0, 256, (64, 32, 32, 3), np.uint8)
    files = [bytes(ps.io.encode_jpeg(ps.image.resize(image, (SIDE, SIDE)).astype(np.uint8))) for image in small]
    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    rows = {"image": [{"bytes": files[i % 64], "path": None} for i in range(COUNT)], "label": list(range(COUNT))}
    return datasets.Dataset.from_dict(rows, features=features)


def theirs(hf):
    return sum(len(batch["label"]) for batch in hf.with_format("numpy").iter(BATCH))


def ours(ds):
    return sum(len(batch["label"]) for batch in ds)


def measured(run, what):
    return timed(lambda: checked(lambda: run(what), COUNT)())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=4)
    pairs = parser.parse_args().pairs
    hf = data()
    ds = ps.Dataset.from_huggingface(hf).batch(BATCH).prefetch(ps.AUTOTUNE)
    measured(ours, ds), measured(theirs, hf)
    found = []
    for _ in range(pairs):
        (wall, cpu), (their_wall, their_cpu) = measured(ours, ds), measured(theirs, hf)
        found.append((their_wall / wall, their_cpu / cpu, cpu / COUNT * 1e6, their_cpu / COUNT * 1e6))
    low, mid, high = (np.quantile(np.array(found), q, axis=0) for q in (0, 0.5, 1))
    print(f"images per second, penstock / Hugging Face: {low[0]:.2f} / {mid[0]:.2f} / {high[0]:.2f} (goal 2)")
    print(f"CPU time per image, ratio {low[1]:.2f} / {mid[1]:.2f} / {high[1]:.2f}; {mid[2]:.0f} and {mid[3]:.0f} µs")


if __name__ == "__main__":
    main()
