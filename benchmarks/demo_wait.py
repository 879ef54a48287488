"""How long does a training step wait for data when the accelerator is the slow side?

The demo's two ways to feed a loop, on the photographs of `jpeg.py`: "naive" makes each batch when the loop asks for it,
"pipelined" makes it beside the step. A step is a simulated accelerator: 20 ms (`--step-ms`) that leave the CPU alone.
Waiting is time inside `next()`; the first batch of an epoch, for which nobody can be ready, stands apart. In the first
epoch the pipelined way decodes every picture, later it has them in its cache. "made in" is how long a batch takes with
no steps between: the goal, at most 2 % of the step spent waiting, holds where that is less than a step.

    python benchmarks/demo_wait.py [--pairs N] [--step-ms MS]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from _common.photographs import photographs, shards

EPOCHS = 3
GOAL = 0.02
FORM = "{:32}  {:>11}  {:>19}  {:>11}  {:>17}  {:>9}  {}"


@dataclass(frozen=True)
class Epoch:
    """Seconds until the first batch, and those waited for each later one, the news of the end included."""

    first: float
    waits: list[float]


def one_epoch(iterator: Any, step: Callable[[Any, Any], object]) -> Epoch:
    waits = []
    asked = time.perf_counter()
    for images, labels in iterator:
        waits.append(time.perf_counter() - asked)
        step(images, labels)
        asked = time.perf_counter()
    waits.append(time.perf_counter() - asked)
    return Epoch(waits[0], waits[1:])


def way(name: str, executor: str, step: Callable[[Any, Any], object]) -> list[Epoch]:
    """The epochs of one way to feed the loop, with a cache of its own."""
    from penstock.demo import Settings, pipelines

    ds = getattr(pipelines, name)(shards(), Settings())
    return [one_epoch(ds.iterator(executor=executor), step) for _ in range(EPOCHS)]


def show(name: str, epochs: list[Epoch], made: list[Epoch], seconds: float, *, goal: bool = True) -> None:
    waits = [wait for epoch in epochs for wait in epoch.waits]
    share = sum(waits) / len(waits) / seconds
    each = median(sum(epoch.waits) / len(epoch.waits) for epoch in made)
    verdict = "-" if not goal else "does not apply" if each >= seconds else "met" if share <= GOAL else "MISSED"
    first = median(epoch.first for epoch in epochs)
    figures = (ms(first), ms(median(waits)), ms(max(waits)), f"{share:.1%}", ms(each))
    print(FORM.format(name, *figures, f"≤ {GOAL:.0%} {verdict}" if goal else verdict), flush=True)


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms"


def no_step(images: Any, labels: Any) -> None:
    """The consumer that never is the slow side."""


def main() -> None:
    from penstock.demo.loop import SimulatedAccelerator

    parser = argparse.ArgumentParser(description="waiting for data, naive and pipelined")
    parser.add_argument("--pairs", type=int, default=1, metavar="N", help="runs of each way (%(default)s)")
    parser.add_argument("--step-ms", type=float, default=20.0, metavar="MS", help="length of a step (%(default)s)")
    chosen = parser.parse_args()
    photographs()
    step = SimulatedAccelerator(chosen.step_ms).step
    seconds = chosen.step_ms / 1e3
    way("naive", "inline", no_step)  # compiles
    print(FORM.format("way", "first batch", "wait per step (med)", "max", "share of the step", "made in", "goal"))
    for _ in range(chosen.pairs):
        naive, pipelined = way("naive", "inline", step), way("pipelined", "thread", step)
        freely = way("pipelined", "thread", no_step)
        show("naive", naive, way("naive", "inline", no_step), seconds, goal=False)
        show("pipelined, decoding (epoch 1)", pipelined[:1], freely[:1], seconds)
        show("pipelined, cached (later epochs)", pipelined[1:], freely[1:], seconds)


if __name__ == "__main__":
    main()
