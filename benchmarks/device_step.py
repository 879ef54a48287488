"""Does a step on a CUDA device wait for its batch, while preparation is faster than the step?

Batches of 256 pictures of 224×224×3 (uint8, 38 MB each) are cut out of arrays in memory, flipped at random, and go
through `to_torch("cuda")`, which copies them ahead on a stream of its own. A step makes floats of a batch and
multiplies matrices until the device has been at work for about --step milliseconds. Compared are

- the steps alone, over one batch that stays on the device;
- the same steps over the loader;
- the same steps with the copy inside: pageable memory, `batch.to(device)` in the loop.

The device is waited for at the end of a run only. "waiting" is what a step takes longer than alone, as a share. Goal:
at most 1 %. Without a CUDA device nothing is measured; --device cpu tries the program itself, with --batch 8.

    python benchmarks/device_step.py [--step MS] [--steps N] [--rounds N]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from statistics import median
from typing import Any

from _common.duel import installed

SIDE, EDGE = 4096, 224


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--step", type=float, default=60.0, help="milliseconds of a step (%(default)s)")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--device", default="cuda")
    asked = parser.parse_args()
    if not installed("torch"):
        print("torch is not installed: nothing to measure")
        return
    import torch

    if asked.device == "cuda" and not torch.cuda.is_available():
        print("torch finds no CUDA device here: nothing to measure")
        return
    device = torch.device(asked.device)
    if device.type == "cpu":
        torch.set_num_threads(1)  # its threads would wait for cores that the pipeline has
    step = step_of(torch, device, asked.step)
    ds = pipeline(asked.batch, asked.steps)
    staying = [next(iter(ds.to_torch(device)))] * asked.steps
    sides: dict[str, Callable[[], Iterable[Any]]] = {
        "steps alone": lambda: staying,
        "over to_torch(device)": lambda: ds.to_torch(device),
        "with the copy inside": lambda: (batch.to(device) for batch in ds.to_torch()),
        "preparation alone": lambda: ds.to_torch(),
    }
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(asked.rounds):
        for name, batches in sides.items():
            times[name].append(milliseconds(torch, device, batches(), None if name == "preparation alone" else step))
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "the CPU"
    print(f"{asked.batch}×{EDGE}×{EDGE}×3 on {name}, ms for a step (median, spread of {asked.rounds} rounds)")
    alone = median(times["steps alone"])
    for name, found in times.items():
        waiting = "" if "alone" in name else f"   waiting {max(median(found) / alone - 1, 0):.1%}"
        print(f"  {name:<22}{median(found):8.2f}   {min(found):.2f} to {max(found):.2f}{waiting}")


def pipeline(batch: int, steps: int) -> Any:
    import numpy as np

    import penstock as ps

    pictures = np.random.default_rng(0).integers(0, 256, (4 * batch, EDGE, EDGE, 3), np.uint8)
    ds = ps.Dataset.from_tensor_slices(pictures).repeat()
    ds = ds.map(ps.image.random_flip_left_right, num_parallel_calls=ps.AUTOTUNE)
    return ds.batch(batch).take(steps).prefetch(ps.AUTOTUNE)


def step_of(torch: Any, device: Any, wanted: float) -> Callable[[Any], Any]:
    """A step of about so many milliseconds, found by trying."""
    matrix = torch.randn(SIDE if device.type == "cuda" else 256, SIDE if device.type == "cuda" else 256, device=device)
    matrix /= matrix.norm()

    def multiplied(times: int) -> Any:
        found = matrix
        for _ in range(times):
            found = found @ matrix
        return found

    def timed(times: int) -> float:
        begun = time.perf_counter()
        multiplied(times)
        wait_for(torch, device)
        return (time.perf_counter() - begun) * 1000

    timed(3)
    times = max(int(wanted / (median(timed(20) for _ in range(5)) / 20)), 1)
    return lambda batch: batch.float().mul_(1 / 255).mean() + multiplied(times).sum()


def wait_for(torch: Any, device: Any) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def milliseconds(torch: Any, device: Any, batches: Iterable[Any], step: Callable[[Any], Any] | None) -> float:
    """For a step, without the first two, which fill what is made ahead."""
    count, begun = 0, time.perf_counter()
    for number, batch in enumerate(batches):
        if step is not None:
            step(batch)
        if number == 1:
            wait_for(torch, device)
            begun = time.perf_counter()
        count = number - 1
    wait_for(torch, device)
    return (time.perf_counter() - begun) / count * 1000


if __name__ == "__main__":
    main()
