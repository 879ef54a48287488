"""Measure the cost of profiling: time with the profiler on and off, memory and files of a run of a million steps.

    python benchmarks/profiling.py [--steps 1000000] [--rounds 5] [cost long]

`cost` runs each pipeline with and without a profiler in turn (A/B/A/B, a new iteration each time). It prints the ratios
of the medians, of the clock and of CPU time (all threads, including the profiler's), and the ratios of each round.
`long` trains for a million steps, each marked and annotated. It prints the peak growth of the process, including
reports, and the size of the files after each tenth of the steps.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps
from penstock import AUTOTUNE


def _images() -> Any:
    pixels = np.random.default_rng(1).integers(0, 255, (120, 160, 3), np.uint8)
    encoded = ps.image.encode_jpeg(pixels)

    def prepare(number: Any) -> Any:
        image = ps.image.random_flip_left_right(ps.image.decode_jpeg(encoded, channels=3))
        return ps.image.resize(image, (96, 96)) / 255.0, number

    return ps.Dataset.range(10**9).map(prepare, num_parallel_calls=AUTOTUNE).batch(32).prefetch(AUTOTUNE)


def _python() -> Any:
    def words(number: Any) -> Any:
        return sum(i * int(number) % 7 for i in range(200))

    return ps.Dataset.range(10**9).shuffle(1000).map(words).batch(64)


def _numbers() -> Any:
    return ps.Dataset.range(10**9).map(lambda x: x * 2 + 1).filter(lambda x: x % 3 > 0).batch(256)


PIPELINES: dict[str, tuple[Callable[[], Any], int, float]] = {  # batches per iteration, seconds of a training step
    "images": (_images, 60, 0.0),
    "images, 5 ms step": (_images, 60, 0.005),
    "python": (_python, 600, 0.0),
    "numbers": (_numbers, 60_000, 0.0),
}


def _pass(ds: Any, steps: int, step_seconds: float) -> tuple[float, float]:
    """Return the seconds by the clock and of CPU of an iteration after its first ten batches."""
    with iter(ds) as elements:
        for _ in islice(elements, 10):
            pass
        began, worked = time.perf_counter(), time.process_time()
        for _ in islice(elements, steps):
            if step_seconds:
                with ps.profiler.annotate("train"):
                    time.sleep(step_seconds)
            ps.profiler.step()
        return time.perf_counter() - began, time.process_time() - worked


def cost(rounds: int) -> None:
    """Print a line for each pipeline."""
    print(f"{'on / off':<22}{'clock':>8}{'CPU':>8}   CPU, round by round", flush=True)
    for name, (make, steps, step_seconds) in PIPELINES.items():
        ds = make()
        _pass(ds, steps, step_seconds)
        times: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
        with tempfile.TemporaryDirectory() as logs:
            for number in range(2 * rounds):
                on = bool(number % 2)
                profiler = ps.profiler.Profiler(logs)
                if on:
                    profiler.start()
                times[on].append(_pass(ds, steps, step_seconds))
                if on:
                    profiler.stop()
        clock, cpu = (
            statistics.median(each[which] for each in times[True])
            / statistics.median(each[which] for each in times[False])
            for which in (0, 1)
        )
        ratios = sorted(on[1] / off[1] for off, on in zip(times[False], times[True], strict=True))
        print(f"{name:<22}{clock:>8.3f}{cpu:>8.3f}   {' '.join(f'{each:.2f}' for each in ratios)}", flush=True)


def _resident() -> float:
    """Return the resident memory in megabytes."""
    pages = int(Path("/proc/self/statm").read_bytes().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _most() -> float:
    """Return the peak of the resident memory in megabytes, since the start or `_forget_most`."""
    line = next(row for row in Path("/proc/self/status").read_text().splitlines() if row.startswith("VmHWM"))
    return int(line.split()[1]) / 1e3


def _forget_most() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def long(steps: int) -> None:
    """Print the memory and disk space of a long run."""
    ds = ps.Dataset.range(64).repeat().map(lambda x: x + 1).batch(4)
    with tempfile.TemporaryDirectory() as logs:
        warm = ps.profiler.Profiler(logs)
        with warm:  # imports modules and the pages that belong to them
            _pass(ds, 1000, 0.0)
        profiler = ps.profiler.Profiler(logs).start()
        _forget_most()
        before = _resident()
        print(f"{'steps':>10}{'grown, MB':>11}{'files, MB':>11}{'files':>7}")
        for number, _ in enumerate(islice(iter(ds), steps), 1):
            with ps.profiler.annotate("forward"):
                pass
            with ps.profiler.annotate("backward"):
                pass
            ps.profiler.step()
            if number % max(steps // 10, 1) == 0:
                print(f"{number:>10,}{_resident() - before:>11.1f}{_on_disk(profiler.folder)}", flush=True)
        running = _most() - before
        began = time.perf_counter()
        profiler.stop()
        took = time.perf_counter() - began
        print(f"peak growth: {running:.1f} MB during the run, {_most() - before:.1f} MB with the report ({took:.1f} s)")
        print(f"on disk:{_on_disk(profiler.folder)} (MB, files)")


def _on_disk(folder: Path) -> str:
    sizes = []
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # the profiler removes older spans at the same time
            sizes += [path.stat().st_size] if path.is_file() else []
    return f"{sum(sizes) / 1e6:>11.1f}{len(sizes):>7}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("questions", nargs="*", default=["cost", "long"])
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    if "cost" in chosen.questions:
        cost(chosen.rounds)
    if "long" in chosen.questions:
        long(chosen.steps)


if __name__ == "__main__":
    main()
