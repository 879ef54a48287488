"""Whether the profiler's verdict names a known bottleneck, and whether the change that it advises gives what it says.

    python benchmarks/verdict.py [--seconds 2 10] [reading decoding python shuffle copying consumer]

Each pipeline is slow in one place. It is profiled, its verdict read, then run with the change; the gain is measured in
passes without a profiler. Worker processes are there by then: a program starts them once, and keeps them.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import penstock as ps
from penstock import AUTOTUNE
from penstock.profiler.analysis.applied import applied
from penstock.profiler.analysis.changes import Changes
from penstock.profiler.analysis.model import fitted, rate
from penstock.profiler.verdict.verdict import analysis_of

ENDLESS = 10**9


class Case(NamedTuple):
    """`make(mended)` gives the data set; `blamed` are the steps of which one is to be named.

    The gain expected is that of the verdict's own advice; or of `change`, where the mending is none that is advised.
    """

    make: Callable[[bool], Any]
    blamed: tuple[str, ...]
    consumer: float = 0.0
    change: Changes | None = None


def _read(number: int) -> Iterator[int]:
    for index in range(ENDLESS):
        time.sleep(0.004)
        yield number + index


def _reading(mended: bool) -> Any:  # noqa: FBT001 - a case has two forms
    def opened(number: Any) -> Any:
        return ps.Dataset.from_generator(lambda: _read(int(number)))

    return ps.Dataset.range(4).interleave(opened, cycle_length=4, num_parallel_calls=AUTOTUNE if mended else None)


def _decoding(mended: bool) -> Any:  # noqa: FBT001
    pixels = np.random.default_rng(1).integers(0, 255, (480, 640, 3), np.uint8)
    encoded = ps.image.encode_jpeg(pixels)
    ds = ps.Dataset.range(ENDLESS).map(lambda x: encoded)
    ds = ds.map(lambda x: ps.image.decode_jpeg(x, channels=3), num_parallel_calls=AUTOTUNE if mended else None)
    return ds.batch(8)


def _count(x: Any) -> Any:
    total = 0
    for i in range(20_000):
        total += i * int(x) % 7
    return total


def _python(mended: bool) -> Any:  # noqa: FBT001
    ds = ps.Dataset.range(ENDLESS)
    return (ds.map(_count, num_parallel_calls=AUTOTUNE, executor="process") if mended else ds.map(_count)).batch(8)


def _shuffle_for(seconds: float) -> Callable[[bool], Any]:
    def make(mended: bool) -> Any:  # noqa: FBT001
        count = int(seconds * 400)
        slow = ps.Dataset.from_generator(lambda: islice(_slow(), count))
        return slow.shuffle(count // 4, seed=1).prefetch(AUTOTUNE) if mended else slow.shuffle(count, seed=1)

    return make


def _slow() -> Iterator[int]:
    for index in range(ENDLESS):
        time.sleep(0.002)
        yield index


def _copying(mended: bool) -> Any:  # noqa: FBT001
    large = np.ones((256 if mended else 512, 1024), np.float32)
    return ps.Dataset.range(ENDLESS).map(lambda x: large).batch(16)


def _consumer(mended: bool) -> Any:  # noqa: FBT001
    return ps.Dataset.range(ENDLESS).map(lambda x: x + 1).batch(64)


CASES = {
    "reading": Case(_reading, ("interleave#1", "interleave#1/from_generator", "interleave#1/generator")),
    "decoding": Case(_decoding, ("map#2",)),
    "python": Case(_python, ("map#1",)),
    "shuffle": Case(_shuffle_for(2.0), ("shuffle#1",), consumer=0.003),
    "copying": Case(_copying, ("batch#1", "map#1"), change=Changes(faster={"batch#1": 2.0, "map#1": 2.0})),
    "consumer": Case(_consumer, (), consumer=0.005),
}


def measured(ds: Any, seconds: float, consumer: float) -> float:
    """Elements a second, the start included."""
    began = time.perf_counter()
    count = 0
    with iter(ds) as elements:
        for _ in elements:
            count += 1
            if consumer:
                time.sleep(consumer)
            if time.perf_counter() - began > seconds:
                break
    return count / (time.perf_counter() - began)


def main() -> None:
    """Print a line for each case and length."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--seconds", nargs="+", type=float, default=[2.0, 10.0])
    chosen = parser.parse_args()
    print(f"{'case':<10}{'seconds':>8}  {'named':<34}{'right':<7}{'expected':>9}{'measured':>9}{'off by':>8}")
    for name in chosen.cases:
        for seconds in chosen.seconds:
            _one(name, seconds)


def _one(name: str, seconds: float) -> None:
    case = CASES[name]
    make = _shuffle_for(seconds) if name == "shuffle" else case.make
    longest = 10 * seconds if name == "shuffle" else seconds
    with tempfile.TemporaryDirectory() as logs:
        with ps.profiler.Profiler(logs) as profiler:
            before = measured(make(False), longest, case.consumer)
        told = json.loads(Path(profiler.folder / "summary.json").read_text(encoding="utf-8"))["pipelines"][0]
    found = told["verdict"]
    right = found["step"] in case.blamed if case.blamed else found["kind"] == "consumer"
    expected = found["gain"]
    if case.change is not None:
        analysis = analysis_of(told["analysis"])
        fit = fitted(analysis)
        expected = rate(applied(analysis, case.change), fit) / rate(analysis, fit)
    measured(make(True), min(seconds, 2.0), case.consumer)
    before = (before + measured(make(False), longest, case.consumer)) / 2
    gain = measured(make(True), longest, case.consumer) / before
    said = f"{found['kind']}: {found['step']}"
    off = f"{abs(expected / gain - 1):.0%}"
    print(f"{name:<10}{seconds:>8g}  {said:<34}{right!s:<7}{expected:>9.2f}{gain:>9.2f}{off:>8}", flush=True)


if __name__ == "__main__":
    main()
