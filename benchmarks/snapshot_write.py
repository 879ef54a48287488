"""Measure the cost of writing a snapshot during an iteration.

    images: 500×375 JPEGs in TFRecords → parse, decode, resize 224×224 bytes → batch 32 → snapshot, 241 MB
    records: TFRecords of 3 KB → parse 768 floats and a number, × 2 + 1 → snapshot → batch 128, 123 MB

A ratio is the CPU time of an iteration that writes and syncs all files, divided by that of an iteration without the
snapshot. The two take turns in one process, whose threads do all the work. Goal: at most 1.1. Nothing is compressed,
and each snapshot is deleted before the next is written.

    python benchmarks/snapshot_write.py [--turns N]
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from _common.duel import data_folder, drain, timed, written_once
from _common.photographs import COUNT, photographs, shards
from _common.table import Row, print_table, rate

import penstock as ps

TURNS, GOAL = 7, 1.1
SIZE, BATCH = (224, 224), 32
RECORDS, FLOATS = 40_000, 768


def images() -> Any:
    features = {"image": ps.io.FixedLenFeature((), bytes), "label": ps.io.FixedLenFeature((), np.int64)}

    def prepare(record: bytes) -> Any:
        row = ps.io.parse_single_example(record, features)
        image = ps.image.resize(ps.image.decode_jpeg(row["image"], channels=3), SIZE)
        return ps.image.cast(image, np.uint8), row["label"]

    photographs()
    return ps.TFRecordDataset(shards()).map(prepare, num_parallel_calls=ps.AUTOTUNE, executor="thread").batch(BATCH)


def records() -> Any:
    features = {"x": ps.io.FixedLenFeature((FLOATS,), np.float32), "y": ps.io.FixedLenFeature((), np.int64)}

    def prepare(record: bytes) -> Any:
        row = ps.io.parse_single_example(record, features)
        return row["x"] * 2 + 1, row["y"]

    return ps.TFRecordDataset(str(_records())).map(prepare, num_parallel_calls=ps.AUTOTUNE, executor="thread")


def _records() -> Path:
    def write(path: Path) -> None:
        rng = np.random.default_rng(0)
        with ps.io.TFRecordWriter(str(path)) as writer:
            for number in range(RECORDS):
                writer.write(ps.io.encode_example({"x": rng.random(FLOATS, np.float32), "y": number}))

    return written_once(data_folder() / f"records-{RECORDS}.tfrecord", write)


def compared(name: str, plain: Any, batch: int | None, elements: int, turns: int) -> Row:
    """Return a row of the table: iterations that write, compared with iterations that do not."""
    folder = data_folder() / "snapshot-written"
    sides = [plain.snapshot(str(folder), compression=None), plain]
    found: list[list[tuple[float, float]]] = [[], []]
    for turn in range(-1, turns):  # the first turn warms up
        for side, ds in enumerate(sides):
            shutil.rmtree(folder, ignore_errors=True)
            measured = timed(lambda: drain(ds if batch is None else ds.batch(batch)))  # noqa: B023  # called at once
            if turn >= 0:
                found[side].append(measured)
    shutil.rmtree(folder, ignore_errors=True)
    (walls, cpus), (plain_walls, plain_cpus) = (zip(*side, strict=True) for side in found)
    return Row(
        workload=name,
        penstock=rate(elements / median(walls)),
        peer="penstock, not written",
        theirs=rate(elements / median(plain_walls)),
        ratios=[written / without for written, without in zip(cpus, plain_cpus, strict=True)],
        cpu_penstock=median(cpus) / elements * 1e6,
        cpu_peer=median(plain_cpus) / elements * 1e6,
        goal=GOAL,
        at_most=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="iterations with and without writing a snapshot")
    parser.add_argument("--turns", type=int, default=TURNS, metavar="N", help="iterations of each side (%(default)s)")
    chosen = parser.parse_args()
    print_table(
        [
            compared("snapshot of images", images(), None, COUNT, chosen.turns),
            compared("snapshot of records", records(), 128, RECORDS, chosen.turns),
        ]
    )
