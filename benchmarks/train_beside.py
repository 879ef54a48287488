"""Check that an epoch with a pipeline takes no longer than the longer of training alone and preparation alone.

torch trains on the CPU with one thread, on one core. penstock prepares photographs on another core (JPEGs of a TFRecord
file, 500×375, decoded, resized to 128×128, flipped at random). The program measures, each in its own process and in
turn:

    - the training alone: the same batches, stored in memory, on one core;
    - the preparation alone, on one core, because training uses the other of two;
    - both, on two cores: an epoch over `to_torch()`.

"training longer" has a net that takes longer than the preparation, "preparation longer" a small net. The ratio is the
time of both divided by the longer of the two alone. Goal: at most 1.05.

    python benchmarks/train_beside.py [--rounds N]      # needs torch
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from statistics import median
from typing import Any

from _common.duel import figures_of, installed
from _common.photographs import photographs, shards
from _common.table import Row, print_table

COUNT, BATCH, SIZE = 400, 32, 128
WIDTHS = {"training longer": 96, "preparation longer": 4}  # channels of the net
PARTS = {"training": 1, "preparation": 1, "both": 2}  # cores


def pipeline() -> Any:
    import numpy as np

    import penstock as ps

    features = {"image": ps.io.FixedLenFeature((), bytes), "label": ps.io.FixedLenFeature((), np.int64)}

    def prepare(record: bytes) -> Any:
        row = ps.io.parse_single_example(record, features)
        image = ps.image.resize(ps.image.decode_jpeg(row["image"], channels=3), (SIZE, SIZE))
        image = ps.image.random_flip_left_right(image) / np.float32(255)
        return np.transpose(image, (2, 0, 1)), row["label"] % 2

    records = ps.TFRecordDataset(shards()).take(COUNT)
    return records.map(prepare, num_parallel_calls=ps.AUTOTUNE).batch(BATCH).prefetch(ps.AUTOTUNE)


def step_of(width: int) -> Any:
    import torch
    from torch import nn

    torch.set_num_threads(1)
    model = nn.Sequential(
        *(nn.Conv2d(3, width, 3, stride=2), nn.ReLU(), nn.Conv2d(width, width, 3, stride=2), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(width * 16, 2)),
    )
    optimizer = torch.optim.SGD(model.parameters(), 0.01)

    def step(images: Any, labels: Any) -> None:
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def seconds(part: str, case: str) -> float:
    """Return the seconds of an epoch, the minimum of two after a warm-up: AUTOTUNE has converged by then."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: PARTS[part]])
    step = step_of(WIDTHS[case])
    loader: Any = pipeline().to_torch()
    batches = list(loader)
    if part == "training":
        loader = batches
    else:
        del batches
    found = []
    for _ in range(3):
        begun = time.perf_counter()
        for images, labels in loader:
            if part != "preparation":
                step(images, labels)
        found.append(time.perf_counter() - begun)
    return min(found[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--part", nargs=2, metavar=("PART", "CASE"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.part:
        print(json.dumps(seconds(*asked.part)))
        return
    if not installed("torch"):
        print("torch is not installed: nothing to train with")
        return
    photographs()
    rows = []
    for case in WIDTHS:
        rounds: list[dict[str, float]] = []
        for _ in range(asked.rounds):
            command = [sys.executable, sys.argv[0], "--part"]
            rounds.append({part: figures_of([*command, part, case]) for part in PARTS})
        train, prepare, both = (median(one[part] for one in rounds) for part in PARTS)
        rows.append(
            Row(
                workload=case,
                penstock=f"{both:.2f} s",
                peer="longer side alone",
                theirs=f"{train:.2f} s training, {prepare:.2f} s preparation",
                ratios=[one["both"] / max(one["training"], one["preparation"]) for one in rounds],
                goal=1.05,
                at_most=True,
            )
        )
    print_table(rows)


if __name__ == "__main__":
    main()
