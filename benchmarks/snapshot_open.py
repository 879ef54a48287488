"""Measure the time to open a saved data set of 10 000 chunks.

The time is from the name of the folder to the first element, by number, in a new process each time. It includes parsing
the manifest, importing pyarrow, mapping the first chunk and verifying its checksums. A chunk has 32 MiB, the usual
size; all files are links to one chunk. Goal: at most 200 ms.

    python benchmarks/snapshot_open.py [--runs N]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
from _common.duel import data_folder, output_of, written_once
from _common.table import Row, print_table

import penstock as ps
from penstock.store.manifest import read_manifest, write_manifest

CHUNKS, MOST_SECONDS = 10_000, 0.2


def saved() -> Path:
    """Return the folder of the data set. The first call writes it."""
    return written_once(data_folder() / f"chunks-{CHUNKS}", _write)


def _write(folder: Path) -> None:
    array = np.zeros((32, 1 << 20), np.uint8)
    ps.Dataset.from_tensors(array).save(folder)
    manifest = read_manifest(str(folder))
    (chunk,) = manifest.chunks
    names = [f"{manifest.run}/link-{number:05d}.arrow" for number in range(CHUNKS)]
    for name in names:
        os.link(folder / chunk.file, folder / name)
    links = tuple(replace(chunk, file=name) for name in names)
    write_manifest(str(folder), replace(manifest, chunks=links), replace=True)


def seconds() -> tuple[float, float]:
    """Return the wall time and CPU time from the name to the first element, in this process."""
    folder = saved()
    start, cpu = time.perf_counter(), time.process_time()
    ds = ps.Dataset.load(folder)
    assert len(ds) == CHUNKS
    ds.at(0)
    return time.perf_counter() - start, time.process_time() - cpu


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="processes (%(default)s)")
    parser.add_argument("--once", action="store_true", help="open the data set in this process, and print the seconds")
    chosen = parser.parse_args()
    if chosen.once:
        print(*seconds())
    else:
        saved()
        command = [sys.executable, sys.argv[0], "--once"]
        runs = [output_of(command).split() for _ in range(chosen.runs)]
        found = [float(wall) for wall, _ in runs]
        row = Row(
            workload=f"open {CHUNKS} chunks",
            penstock=f"{median(found) * 1e3:.0f} ms",
            peer="the goal",
            theirs=f"{MOST_SECONDS * 1e3:.0f} ms",
            ratios=[run / MOST_SECONDS for run in found],
            cpu_penstock=median(float(cpu) * 1e6 for _, cpu in runs),
            goal=1,
            at_most=True,
        )
        print_table([row])
