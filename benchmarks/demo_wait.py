"""How long does a training step wait for data when the accelerator is the slow side?

The demo's two ways to feed a loop, on the photographs of `jpeg.py`: "naive" makes each batch when the loop asks for it,
"pipelined" makes it beside the step. A step is a simulated accelerator: 20 ms (`--step-ms`) that leave the CPU alone.
Waiting is time spent inside `next()`. The first batch of an epoch, for which nobody can be ready, is shown apart. The
share is of the time from then on, in the epochs behind the first one, which fills the cache. Goal: pipelined ≤ 2 % of the
step, where a batch is made in less than a step; a line says whether that holds here.

    python benchmarks/demo_wait.py [--pairs N] [--step-ms MS]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from _common.photographs import photographs, shards

EPOCHS = 4
GOAL = 0.02


def one_epoch(iterator: Any, step: Callable[[Any, Any], object]) -> tuple[float, list[float]]:
    """Seconds until the first batch, and those waited for each later one."""
    waits = []
    asked = time.perf_counter()
    for images, labels in iterator:
        waits.append(time.perf_counter() - asked)
        step(images, labels)
        asked = time.perf_counter()
    waits.append(time.perf_counter() - asked)  # to hear that there are no more
    return waits[0], waits[1:]


def main() -> None:
    from penstock.demo import Settings, pipelines
    from penstock.demo.loop import SimulatedAccelerator

    parser = argparse.ArgumentParser(description="waiting for data, naive and pipelined")
    parser.add_argument("--pairs", type=int, default=1, metavar="N", help="runs of each way (default: %(default)s)")
    parser.add_argument("--step-ms", type=float, default=20.0, metavar="MS", help="length of a step")
    chosen = parser.parse_args()
    photographs()
    step = SimulatedAccelerator(chosen.step_ms).step
    seconds = chosen.step_ms / 1e3
    print("way        first batch   waiting per step: median      max    share of the step   goal")
    for _ in range(chosen.pairs):
        for name, executor in (("naive", "inline"), ("pipelined", "thread")):
            ds = getattr(pipelines, name)(shards(), Settings())
            epochs = [one_epoch(ds.iterator(executor=executor), step) for _ in range(EPOCHS)][1:]
            first = median(first for first, _ in epochs)
            waits = [wait for _, later in epochs for wait in later]
            share = sum(waits) / len(waits) / seconds
            verdict = "-" if name == "naive" else f"≤ {GOAL:.0%} {'met' if share <= GOAL else 'MISSED'}"
            print(
                f"{name:9}  {first * 1e3:8.1f} ms   {median(waits) * 1e3:20.2f} ms {max(waits) * 1e3:7.1f} ms   "
                f"{share:14.1%}      {verdict}",
                flush=True,
            )
        rate = preparation(pipelines.pipelined(shards(), Settings()))
        print(f"a batch is made in {rate * 1e3:.1f} ms when nobody waits between: {_compared(rate, seconds)}")


def preparation(ds: Any) -> float:
    """Seconds per batch of the pipelined way, its cache full."""
    for _ in range(2):
        start, batches = time.perf_counter(), sum(1 for _ in ds)
    return (time.perf_counter() - start) / batches


def _compared(made: float, step: float) -> str:
    return "less than a step, so the goal applies" if made < step else "more than a step, so the goal does not apply"


if __name__ == "__main__":
    sys.exit(main())
