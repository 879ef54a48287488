"""Measure how a busy Python thread slows down the decoding of photographs.

    500×375 JPEGs → decode, resize 224×224 float, / 255, without and with a thread that computes all the time

Python runs one thread at a time. A thread that returns from a codec waits for the interpreter if another thread
computes: up to 5 ms, the switch interval. A call per image waits once or twice per image, a call per Block once per
Block. The rows are one worker that calls libjpeg per image, one worker that calls the kernel per Block of 32, and the
pipeline of `jpeg.py` with AUTOTUNE. penstock shortens the switch interval if workers wait for the interpreter; the last
row disables this. "GIL held" is the CPU time of a Block outside of the kernels, per image. Goals: ≤ 30 µs, and with the
busy thread ≥ 0.45 of the rate without it.

    python benchmarks/image_gil.py [--rounds N] [--seconds S]
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from _common import jpeg_pipelines
from _common.duel import Pass
from _common.photographs import singles

SIZE, BLOCK, FILES = 224, 32, 256
LIMIT_US, SHARE = 30.0, 0.45
WITHOUT_GOAL = ("per image", "pipeline, left alone")


def per_image() -> Pass:
    from penstock.image.jpeg.block import JpegBlock
    from penstock.image.kernels import DIVIDE

    files, batch = _files(), np.empty((BLOCK, SIZE, SIZE, 3), np.float32)
    unit = [(DIVIDE, (255.0,) * 3)]

    def one_pass() -> int:
        for i, contents in enumerate(files):
            assert not JpegBlock([contents]).decode_resize(batch[i % BLOCK][None], last=unit)
        return len(files)

    return one_pass


def per_block() -> Pass:
    from penstock.image.jpeg.block import JpegBlock
    from penstock.image.kernels import DIVIDE

    files, batch = _files(), np.empty((BLOCK, SIZE, SIZE, 3), np.float32)
    unit = [(DIVIDE, (255.0,) * 3)]

    def one_pass() -> int:
        for i in range(0, len(files), BLOCK):
            assert not JpegBlock(files[i : i + BLOCK]).decode_resize(batch, last=unit)
        return len(files)

    return one_pass


def pipeline() -> Pass:
    ds = jpeg_pipelines.penstock()
    return lambda: sum(len(images) for images, _ in ds)


def pipeline_left_alone() -> Pass:
    import penstock as ps

    ds = jpeg_pipelines.penstock().with_options(ps.Options(threading={"switch_interval": 0.005}))
    return lambda: sum(len(images) for images, _ in ds)


def _files() -> list[bytes]:
    return [Path(name).read_bytes() for name in singles()[:FILES]]


@contextmanager
def busy_thread() -> Iterator[None]:
    """Run a thread that computes in pure Python while the context is open."""
    ended = False

    def compute() -> None:
        number = 0
        while not ended:
            number = (number * 3 + 1) % 1000003

    thread = threading.Thread(target=compute)
    thread.start()
    try:
        yield
    finally:
        ended = True
        thread.join()


def rate(one_pass: Pass, seconds: float) -> float:
    count, start = 0, time.perf_counter()
    while (wall := time.perf_counter() - start) < seconds:
        count += one_pass()
    return count / wall


def gil_us_per_image() -> float:
    """Return the CPU time of a Block outside of the kernels, per image."""
    from penstock.image.jpeg import block as jpeg_block

    inside = 0.0

    def timed(kernel: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            nonlocal inside
            start = time.thread_time()
            try:
                return kernel(*args)
            finally:
                inside += time.thread_time() - start

        return call

    kernels = jpeg_block._KERNELS.loaded()
    read, decode = kernels.read_headers, kernels.decode_block
    one_pass = per_block()
    found = []
    kernels.read_headers, kernels.decode_block = timed(read), timed(decode)
    try:
        for _ in range(10):
            inside, start = 0.0, time.thread_time()
            count = one_pass()
            found.append((time.thread_time() - start - inside) / count * 1e6)
    finally:
        kernels.read_headers, kernels.decode_block = read, decode
    return median(found)


SIDES = {
    "per image": per_image,
    "per Block of 32": per_block,
    "pipeline": pipeline,
    "pipeline, left alone": pipeline_left_alone,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="decoding while a Python thread computes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
    chosen = parser.parse_args()
    print(f"{'':24}{'undisturbed':>14}{'busy thread':>14}{'share':>8}")
    for name, build in SIDES.items():
        one_pass = build()
        one_pass()
        alone, busy = [], []
        for _ in range(chosen.rounds):
            alone.append(rate(one_pass, chosen.seconds))
            with busy_thread():
                busy.append(rate(one_pass, chosen.seconds))
        share = median(b / a for a, b in zip(alone, busy, strict=True))
        verdict = "" if name in WITHOUT_GOAL else f"  ≥ {SHARE} {'met' if share >= SHARE else 'MISSED'}"
        print(f"{name:24}{median(alone):>12.0f}/s{median(busy):>12.0f}/s{share:>8.2f}{verdict}")
    held = gil_us_per_image()
    print(f"GIL held per image: {held:.1f} µs  ≤ {LIMIT_US:g} {'met' if held <= LIMIT_US else 'MISSED'}")


if __name__ == "__main__":
    main()
