"""Measure the epochs after the first of a cache in a file that fits into free memory.

    500×375 JPEGs in TFRecords → parse, decode, resize 224×224 float, / 255 → cache(filename) → batch 32

The cache has 1600 images, 963 MB. Each library runs in its own process with an empty folder. The first epoch writes the
cache, four more epochs read it. The program reads one byte of each memory page of every batch; batches are numpy arrays
on both sides. A row is one epoch: images per second and CPU seconds of both sides, and the ratio in each round. Goal:
each epoch after the first is at least 3 times as fast as tf.data's. The first epoch includes decoding and writing on
both sides.

    python benchmarks/cache_file.py [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
from _common import jpeg_pipelines
from _common.duel import data_folder, figures_of, installed
from _common.jpeg_pipelines import BATCH
from _common.photographs import photographs

EPOCHS = 5
DATA_SETS = {"penstock": jpeg_pipelines.penstock_images, "tf.data": jpeg_pipelines.tf_data_images}


PAGE = 4096


def run(library: str) -> None:
    """Print the rates of the epochs of one library, and the CPU seconds of each. Runs in its own process."""
    with tempfile.TemporaryDirectory(dir=data_folder()) as folder:
        ds = DATA_SETS[library]().cache(str(Path(folder, "cache"))).batch(BATCH)
        rates, cpu = [], []
        for _ in range(EPOCHS):
            begun, cpu_begun = time.perf_counter(), time.process_time()
            count = sum(read_pages(images) for images, _ in ds.as_numpy_iterator())
            rates.append(count / (time.perf_counter() - begun))
            cpu.append(time.process_time() - cpu_begun)
    print(json.dumps([rates, cpu]))


def read_pages(images: np.ndarray) -> int:
    """Return the number of images after reading a byte of each page. A mapped page that is never read costs nothing."""
    images.reshape(-1).view(np.uint8)[::PAGE].sum()
    return len(images)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--run", metavar="LIBRARY", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.run:
        run(asked.run)
        return
    photographs()
    libraries = [name for name in DATA_SETS if name == "penstock" or installed("tensorflow")]
    found: dict[str, list[list[list[float]]]] = {name: [] for name in libraries}
    for _ in range(asked.rounds):
        for name in libraries:
            found[name].append(figures_of([sys.executable, sys.argv[0], "--run", name]))
    for epoch in range(EPOCHS):
        rates = {name: [one[epoch] for one, _ in rounds] for name, rounds in found.items()}
        cpu = {name: median(one[epoch] for _, one in rounds) for name, rounds in found.items()}
        text = ", ".join(f"{name} {median(each):,.0f} ({cpu[name]:.2f} s of CPU)" for name, each in rates.items())
        if len(rates) > 1:
            ratios = [a / b for a, b in zip(rates["penstock"], rates["tf.data"], strict=True)]
            text += f"   {min(ratios):.2f} / {median(ratios):.2f} / {max(ratios):.2f} times"
        print(f"epoch {epoch + 1}: {text}", flush=True)


if __name__ == "__main__":
    main()
