"""How long from the start of a process to the first batch of photographs?

The pipeline of `jpeg.py`, in fresh processes: Python's start, imports, the plan, and everything until the first batch
is there. Warm: an earlier process has compiled the kernels (their cache is in NUMBA_CACHE_DIR). Cold: the cache is
empty. TensorFlow has no such cache, so both rows stand beside the same runs of it. Seconds are wall time; ratios below
1 are good. Goals: warm ≤ 0.5 of TensorFlow's, cold no worse than TensorFlow's.

    python benchmarks/startup.py [--pairs N]
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
import time
from statistics import median

from _common import jpeg_pipelines
from _common.duel import PAIRS, output_of
from _common.photographs import photographs
from _common.table import Row, print_table

PIPELINES = {"penstock": jpeg_pipelines.penstock, "tf.data": jpeg_pipelines.tf_data}


def seconds_to_first_batch(side: str, kernels: str) -> float:
    """Wall time of a process that makes one batch; `kernels` is the folder of compiled kernels.

    The clock is the system's monotonic one, which child and parent share, so that ending the process is not counted.
    """
    start = time.monotonic()
    printed = output_of([sys.executable, sys.argv[0], "--side", side], {"NUMBA_CACHE_DIR": kernels})
    return float(printed.splitlines()[-1]) - start


def main() -> None:
    parser = argparse.ArgumentParser(description="from process start to the first batch")
    parser.add_argument("--pairs", type=int, default=PAIRS, metavar="N", help="runs of each side (%(default)s)")
    parser.add_argument("--side", metavar="NAME", help="make the first batch of this side and print the time")
    chosen = parser.parse_args()
    if chosen.side:
        images, _ = next(iter(PIPELINES[chosen.side]()))
        assert images.shape == (jpeg_pipelines.BATCH, *jpeg_pipelines.SIZE, 3)
        print(time.monotonic())
        return
    photographs()
    if not importlib.util.find_spec("tensorflow"):
        print("left out: tensorflow is not installed")
        return
    warm, cold, theirs = [], [], []
    with tempfile.TemporaryDirectory() as kept:
        seconds_to_first_batch("penstock", kept)  # compiles
        seconds_to_first_batch("tf.data", kept)  # reads its libraries from disk once, so that no run pays for that
        for _ in range(chosen.pairs):
            warm.append(seconds_to_first_batch("penstock", kept))
            theirs.append(seconds_to_first_batch("tf.data", kept))
            with tempfile.TemporaryDirectory() as fresh:
                cold.append(seconds_to_first_batch("penstock", fresh))
    print_table([row("warm", warm, theirs, 0.5), row("cold", cold, theirs, 1.0)])


def row(state: str, ours: list[float], theirs: list[float], goal: float) -> Row:
    return Row(
        workload=f"first batch, kernels {state}",
        penstock=f"{median(ours):.2f} s",
        peer="tf.data",
        theirs=f"{median(theirs):.2f} s",
        ratios=[mine / other for mine, other in zip(ours, theirs, strict=True)],
        goal=goal,
        at_most=True,
    )


if __name__ == "__main__":
    main()
