"""How fast are the epochs behind the first from a cache in a file that fits in free memory?

500×375 JPEGs in TFRecords → parse, decode, resize 224×224 float, / 255 → cache(filename) → batch 32

1600 pictures, 963 MB. Each library in a process of its own with an empty folder: the first epoch writes, four more
read; of every batch a byte of each page of memory is looked at, as numpy arrays on both sides. A row is one epoch:
pictures a second and CPU seconds of both, and the ratio in each round. Goal: each epoch behind the first at least 3
times tf.data's. The first is what writing takes; there penstock and tf.data decode as well.

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
from _common.duel import data_folder, installed, output_of
from _common.jpeg_pipelines import BATCH
from _common.photographs import photographs

EPOCHS = 5
PICTURES = {"penstock": jpeg_pipelines.penstock_pictures, "tf.data": jpeg_pipelines.tf_data_pictures}


PAGE = 4096


def run(library: str) -> None:
    """What a process of its own does: the rates of its epochs, and the CPU seconds of each."""
    with tempfile.TemporaryDirectory(dir=data_folder()) as folder:
        ds = PICTURES[library]().cache(str(Path(folder, "cache"))).batch(BATCH)
        rates, cpu = [], []
        for _ in range(EPOCHS):
            begun, cpu_begun = time.perf_counter(), time.process_time()
            count = sum(looked_at(images) for images, _ in ds.as_numpy_iterator())
            rates.append(count / (time.perf_counter() - begun))
            cpu.append(time.process_time() - cpu_begun)
    print(json.dumps([rates, cpu]))


def looked_at(images: np.ndarray) -> int:
    """How many there are; memory that nobody looks at would cost nothing where it is mapped."""
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
    libraries = [name for name in PICTURES if name == "penstock" or installed("tensorflow")]
    found: dict[str, list[list[list[float]]]] = {name: [] for name in libraries}
    for _ in range(asked.rounds):
        for name in libraries:
            found[name].append(json.loads(output_of([sys.executable, sys.argv[0], "--run", name]).splitlines()[-1]))
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
