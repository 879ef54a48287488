"""Measure how long a step on a CUDA device waits for its batch if preparation is faster than the step.

The pipeline slices batches of 256 images of 224×224×3 (uint8, 38 MB each) from arrays in memory and flips them at
random. `to_torch("cuda")` copies them ahead on its own stream. A step converts a batch to floats and multiplies
matrices until the device has worked for about --step milliseconds. The program compares

    - the steps alone, over one batch that stays on the device;
    - the same steps over the loader;
    - the same steps with the copy inside: pageable memory, `batch.to(device)` in the loop.

With --framework jax it measures `to_jax()` and `device_put` in the loop instead.

The program synchronises with the device only at the end of a run. "waiting" is the additional time of a step over the
steps alone, as a share. Goal: at most 1 %. Without a CUDA device nothing is measured. `--device cpu --batch 8` tests
the program itself.

    python benchmarks/device_step.py [--framework torch|jax] [--step MS] [--steps N] [--rounds N]
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
    parser.add_argument("--framework", choices=("torch", "jax"), default="torch")
    parser.add_argument("--step", type=float, default=60.0, help="length of a step in milliseconds (%(default)s)")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--device", default="cuda")
    asked = parser.parse_args()
    if not installed(asked.framework):
        print(f"{asked.framework} is not installed: nothing to measure")
        return
    device = {"torch": Torch, "jax": Jax}[asked.framework](asked.device)
    if not device.name:
        print(f"{asked.framework} finds no such device here: nothing to measure")
        return
    step = step_of(device, asked.step)
    ds = pipeline(asked.batch, asked.steps)
    staying = [next(iter(device.ahead(ds)))] * asked.steps
    sides: dict[str, Callable[[], Iterable[Any]]] = {
        "steps alone": lambda: staying,
        "copied ahead": lambda: device.ahead(ds),
        "with the copy inside": lambda: device.inside(ds),
        "preparation alone": lambda: device.ahead(ds),
    }
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(asked.rounds):
        for name, batches in sides.items():
            times[name].append(milliseconds(device, batches(), None if name == "preparation alone" else step))
    print(f"{asked.batch}×{EDGE}×{EDGE}×3 on {device.name}, ms for a step (median, spread of {asked.rounds} rounds)")
    alone = median(times["steps alone"])
    for name, found in times.items():
        waiting = "" if "alone" in name else f"   waiting {max(median(found) / alone - 1, 0):.1%}"
        print(f"  {name:<22}{median(found):8.2f}   {min(found):.2f} to {max(found):.2f}{waiting}")


class Torch:
    """A device of torch. `name` is empty if there is no device of this kind."""

    def __init__(self, kind: str) -> None:
        import torch

        self._torch, self._device = torch, torch.device(kind)
        self.side = SIDE if kind == "cuda" else 256
        if kind == "cpu":
            torch.set_num_threads(1)  # more threads would compete with the pipeline for cores
            self.name = "the CPU"
        else:
            self.name = torch.cuda.get_device_name(self._device) if torch.cuda.is_available() else ""

    def ahead(self, ds: Any) -> Iterable[Any]:
        return ds.to_torch(self._device)

    def inside(self, ds: Any) -> Iterable[Any]:
        return (batch.to(self._device) for batch in ds.to_torch())

    def wait(self, found: Any) -> None:
        if self._device.type == "cuda":
            self._torch.cuda.synchronize(self._device)

    def matrix(self) -> Any:
        found = self._torch.randn(self.side, self.side, device=self._device)
        return found / found.norm()

    def multiplied(self, matrix: Any, times: int) -> Any:
        found = matrix
        for _ in range(times):
            found = found @ matrix
        return found

    def mean(self, batch: Any) -> Any:
        return batch.float().mul_(1 / 255).mean()


class Jax:
    """A device of JAX. `name` is empty if there is no device of this kind."""

    def __init__(self, kind: str) -> None:
        import jax

        self._jax = jax
        try:
            self._device = jax.devices(kind)[0]
        except RuntimeError:
            self.name = ""
            return
        self.name = self._device.device_kind
        self.side = SIDE if kind == "cuda" else 256
        self._sharding = jax.sharding.SingleDeviceSharding(self._device)
        self._multiply = jax.jit(lambda a, b: a @ b)
        self._mean = jax.jit(lambda batch: (batch.astype("float32") / 255).mean())

    def ahead(self, ds: Any) -> Iterable[Any]:
        return ds.to_jax(sharding=self._sharding)

    def inside(self, ds: Any) -> Iterable[Any]:
        return (self._jax.device_put(batch, self._device) for batch in ds)

    def wait(self, found: Any) -> None:
        self._jax.block_until_ready(found)

    def matrix(self) -> Any:
        found = self._jax.random.normal(self._jax.random.key(0), (self.side, self.side))
        return self._jax.device_put(found / self._jax.numpy.linalg.norm(found), self._device)

    def multiplied(self, matrix: Any, times: int) -> Any:
        found = matrix
        for _ in range(times):
            found = self._multiply(found, matrix)
        return found

    def mean(self, batch: Any) -> Any:
        return self._mean(batch)


def pipeline(batch: int, steps: int) -> Any:
    import numpy as np

    import penstock as ps

    images = np.random.default_rng(0).integers(0, 256, (4 * batch, EDGE, EDGE, 3), np.uint8)
    ds = ps.Dataset.from_tensor_slices(images).repeat()
    ds = ds.map(ps.image.random_flip_left_right, num_parallel_calls=ps.AUTOTUNE)
    return ds.batch(batch).take(steps).prefetch(ps.AUTOTUNE)


def step_of(device: Any, wanted: float) -> Callable[[Any], Any]:
    """Return a step of about `wanted` milliseconds. The number of multiplications is measured first."""
    matrix = device.matrix()

    def timed(times: int) -> float:
        begun = time.perf_counter()
        device.wait(device.multiplied(matrix, times))
        return (time.perf_counter() - begun) * 1000

    timed(3)
    times = max(int(wanted / (median(timed(20) for _ in range(5)) / 20)), 1)
    return lambda batch: device.mean(batch) + device.multiplied(matrix, times).sum()


def milliseconds(device: Any, batches: Iterable[Any], step: Callable[[Any], Any] | None) -> float:
    """Return the milliseconds of a step, without the first two, whose batches are prepared before the start."""
    count, begun, found = 0, time.perf_counter(), None
    for number, batch in enumerate(batches):
        found = step(batch) if step is not None else batch
        if number == 1:
            device.wait(found)
            begun = time.perf_counter()
        count = number - 1
    device.wait(found)
    return (time.perf_counter() - begun) / count * 1000


if __name__ == "__main__":
    main()
