"""Check that the profiler's verdict names a known bottleneck, and that its advice gives the expected gain.

    python benchmarks/verdict.py [--seconds 2 10] [reading decoding python shuffle copying consumer]
    python benchmarks/verdict.py --agree 6 [--seconds 8]

Each of the six cases is slow at one place, in two otherwise different pipelines. The program profiles each pipeline,
reads the verdict, and applies the first change that the verdict advises. The expected gain is the verdict's own. The
measured gain is the ratio of the medians of three iterations before the change and three after, in turn. If the verdict
advises nothing, the expected gain of the change in `Case.tried` is 1.0. Worker processes are started before: a program
starts them once.

`cores` is a check of the machine between the iterations: the work of as many computing processes as there are cores, as
a multiple of the work of one process alone. On a virtual machine that shares its cores it is lower, and no pipeline
gains more.

`--agree` asks three tools about one pipeline in each of several new processes: `explain(analyze=True)`, the profiler
and the source of `penstock top`. It checks that they name the slow step and the same share of waiting.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import penstock as ps
from penstock import AUTOTUNE
from penstock.profiler.analysis.advice import advice
from penstock.profiler.analysis.changes import Changes
from penstock.profiler.analysis.figures import Analysis
from penstock.profiler.live.monitor import ask
from penstock.runtime.machine.granted import granted_cpus

ENDLESS = 10**9
ROUNDS = 3
AS_IT_IS = Changes()
Make = Callable[[Changes, float], Any]  # builds the data set with a change applied, for an iteration of some seconds


class Case(NamedTuple):
    """A pipeline. The verdict has to name one of the steps `blamed`.

    `tried` is the change to measure if the verdict advises nothing.
    """

    make: Make
    blamed: tuple[str, ...]
    consumer: float = 0.0
    tried: Changes = AS_IT_IS


def _map(change: Changes, name: str) -> dict[str, Any]:
    """Return the settings of a map after a change."""
    settings = {"num_parallel_calls": change.parallelism.get(name), "executor": change.executor.get(name)}
    return {setting: value for setting, value in settings.items() if value is not None}


def _with_prefetch(ds: Any, change: Changes) -> Any:
    return ds.prefetch(AUTOTUNE) if change.prefetch else ds


def _numbers_after(wait: float, first: int = 0) -> Iterator[int]:
    for index in range(ENDLESS):
        time.sleep(wait)
        yield first + index


def _reading(inputs: int, cycle: int, wait: float) -> Make:
    def opened(number: Any) -> Any:
        return ps.Dataset.from_generator(lambda: _numbers_after(wait, int(number)))

    def make(change: Changes, seconds: float) -> Any:
        calls = change.parallelism.get("interleave#1")
        ds = ps.Dataset.range(inputs).interleave(opened, cycle_length=cycle, num_parallel_calls=calls)
        return _with_prefetch(ds, change)

    return make


def _encoded(height: int, width: int) -> Any:
    return ps.image.encode_jpeg(np.random.default_rng(1).integers(0, 255, (height, width, 3), np.uint8))


def _decoding(change: Changes, seconds: float) -> Any:
    encoded = _encoded(480, 640)
    ds = ps.Dataset.range(ENDLESS).map(lambda x: encoded)
    ds = ds.map(lambda x: ps.image.decode_jpeg(x, channels=3), **_map(change, "map#2"))
    return _with_prefetch(ds.batch(8), change)


def _decoding_by_library(change: Changes, seconds: float) -> Any:
    import cv2

    cv2.setNumThreads(1)
    encoded = _encoded(240, 320)
    ds = ps.Dataset.range(ENDLESS).map(lambda x: encoded)
    ds = ds.map(lambda x: cv2.imdecode(np.frombuffer(x, np.uint8), cv2.IMREAD_COLOR), **_map(change, "map#2"))
    return _with_prefetch(ds.batch(16), change)


def _count(x: Any) -> Any:
    total = 0
    for i in range(20_000):
        total += i * int(x) % 7
    return total


def _python(change: Changes, seconds: float) -> Any:
    return _with_prefetch(ps.Dataset.range(ENDLESS).map(_count, **_map(change, "map#1")).batch(8), change)


def _words(x: Any) -> Any:
    return len({f"{int(x)} {i % 97}" for i in range(3000)})


def _python_after_another(change: Changes, seconds: float) -> Any:
    ds = ps.Dataset.range(ENDLESS).map(lambda x: x + 1, **_map(change, "map#1"))
    return _with_prefetch(ds.map(_words, **_map(change, "map#2")).batch(32), change)


def _shuffle(wait: float) -> Make:
    """Build a shuffle that reads its whole input before the first element.

    Reading takes 80 % of the time. The advice is a quarter of the buffer.
    """

    def make(change: Changes, seconds: float) -> Any:
        count = int(0.8 * seconds / wait)
        slow = ps.Dataset.from_generator(lambda: islice(_numbers_after(wait), count))
        return (
            slow.shuffle(count, seed=1) if change is AS_IT_IS else slow.shuffle(count // 4, seed=1).prefetch(AUTOTUNE)
        )

    return make


def _copying(rows: int, batch: int) -> Make:
    """Build batches that are larger than the processor's caches, before and after the change."""

    def make(change: Changes, seconds: float) -> Any:
        large = np.ones((rows // 2 if change.faster else rows, 1024), np.float32)
        ds = ps.Dataset.range(ENDLESS).map(lambda x: large, **_map(change, "map#1")).batch(batch)
        return _with_prefetch(ds, change)

    return make


def _cheap(size: int) -> Make:
    def make(change: Changes, seconds: float) -> Any:
        ds = ps.Dataset.range(ENDLESS).map(lambda x: x + 1, **_map(change, "map#1")).batch(size)
        return _with_prefetch(ds, change)

    return make


_OPENED = ("interleave#1", "interleave#1/from_generator", "interleave#1/generator")
_AHEAD = Changes(parallelism={"map#1": AUTOTUNE}, prefetch=True)
CASES = {
    "reading": (Case(_reading(4, 4, 0.004), _OPENED), Case(_reading(30, 3, 0.01), _OPENED)),
    "decoding": (
        Case(_decoding, ("map#2",), tried=Changes(parallelism={"map#2": AUTOTUNE})),
        Case(_decoding_by_library, ("map#2",), tried=Changes(parallelism={"map#2": AUTOTUNE})),
    ),
    "python": (Case(_python, ("map#1",)), Case(_python_after_another, ("map#2",))),
    "shuffle": (
        Case(_shuffle(0.002), ("shuffle#1",), consumer=0.003),
        Case(_shuffle(0.01), ("shuffle#1",), consumer=0.004),
    ),
    "copying": (Case(_copying(1024, 16), ("batch#1", "map#1")), Case(_copying(128, 100), ("batch#1", "map#1"))),
    "consumer": (
        Case(_cheap(64), (), consumer=0.005, tried=_AHEAD),
        Case(_cheap(1024), (), consumer=0.02, tried=_AHEAD),
    ),
}


def measured(ds: Any, seconds: float, consumer: float) -> float:
    """Return the elements per second, including the start."""
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


def _compute(seconds: float) -> int:
    """Return how many times a piece of work was done in this time."""
    count, until = 0, time.perf_counter() + seconds
    while time.perf_counter() < until:
        _count(3)
        count += 1
    return count


def given_cores(computing: Executor) -> float:
    """Return the work of all cores together, as a multiple of the work of one core alone."""
    alone = computing.submit(_compute, 0.3).result()
    return sum(computing.map(_compute, [0.3] * granted_cpus())) / alone


def _read(name: bytes) -> bytes:
    return Path(name.decode()).read_bytes()


def _decode(data: bytes) -> Any:
    return ps.image.decode_jpeg(data, channels=3)


def _loop(image: Any) -> Any:
    total = 0
    for value in image[0, :, 0].tolist() * 20:
        total += value * 7 % 13
    return image, total


def _noise(image: Any, total: Any) -> Any:
    """Add noise: the slow step. It runs in the consumer's thread, because numpy's generator is seeded there."""
    return image.astype(np.float32) + np.random.normal(0.0, 1.0, image.shape), total


def _trained(ds: Any, seconds: float) -> Any:
    """Return the running iterator after some seconds of training."""
    began = time.perf_counter()
    elements = iter(ds)
    while time.perf_counter() - began < seconds:
        next(elements)
        time.sleep(0.002)  # the training step
    return elements


def three_answers(seconds: float) -> list[tuple[str, str | None, str]]:
    """Return each tool's name, the step that it names, and the share of time that the consumer waited."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(64):
            Path(folder, f"{number:02}.jpg").write_bytes(_encoded(192, 240))
        ds = ps.Dataset.list_files(f"{folder}/*.jpg").repeat()
        for step in (_read, _decode, _loop):
            ds = ds.map(step, num_parallel_calls=AUTOTUNE)
        ds = ds.map(_noise).batch(8).shuffle(10)
        told = json.loads(ds.explain(analyze=True, seconds=seconds, consumer_seconds=0.002, format="json"))["analysis"]
        found = [("explain", told["bottleneck"]["step"], f"{told['consumer_waited']:.0%}")]
        with ps.profiler.Profiler(folder) as profiler:
            _trained(ds, seconds).close()
        recorded = json.loads(Path(profiler.folder / "summary.json").read_text(encoding="utf-8"))["pipelines"][0]
        found.append(("profiler", recorded["verdict"]["step"], f"{recorded['verdict']['waited_share']:.0%}"))
        with ps.monitor(), _trained(ds, seconds):
            (seen,) = ask(os.getpid())["pipelines"]
        return [*found, ("top", seen["verdict"]["step"], f"{seen['waited_share']:.0%}")]


def _agree(runs: int, seconds: float) -> None:
    """Print the answers of the tools in each run, and the number of runs in which all are right."""
    right = 0
    for run in range(runs):
        with ProcessPoolExecutor(1, get_context("spawn")) as new:
            found = new.submit(three_answers, seconds).result()
        right += all(step == "map#4" for _, step, _ in found)
        print(run + 1, *(f"{tool}: {step}, waited {share}" for tool, step, share in found), sep="  ", flush=True)
    print(f"all three name map#4 (noise) in {right} of {runs} runs")


def main() -> None:
    """Print a line for each pipeline and length."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--seconds", nargs="+", type=float, default=[2.0, 10.0])
    parser.add_argument("--agree", type=int, metavar="RUNS")
    chosen = parser.parse_args()
    if chosen.agree:
        _agree(chosen.agree, chosen.seconds[-1])
        return
    head = f"{'case':<12}{'seconds':>7}  {'named':<36}{'right':<7}"
    print(f"{head}{'expected':>9}{'measured':>9}{'off by':>8}{'cores':>7}  advised", flush=True)
    with ProcessPoolExecutor(granted_cpus(), get_context("spawn")) as computing:
        given_cores(computing)  # starts the processes
        for name in chosen.cases:
            for number, case in enumerate(CASES[name], 1):
                for seconds in chosen.seconds:
                    _one(f"{name} {number}", case, seconds, computing)


def _one(name: str, case: Case, seconds: float, computing: Executor) -> None:
    shuffles = name.startswith("shuffle")
    longest = 10 * seconds if shuffles else seconds  # an iteration over a shuffle ends by itself
    with tempfile.TemporaryDirectory() as logs:
        with ps.profiler.Profiler(logs) as profiler:
            before = measured(case.make(AS_IT_IS, seconds), longest, case.consumer)
        told = json.loads(Path(profiler.folder / "summary.json").read_text(encoding="utf-8"))["pipelines"][0]
    found = told["verdict"]
    right = found["step"] in case.blamed if case.blamed else found["kind"] == "consumer"
    change = _advised(told, case, filling=found["kind"] == "filling")
    if not shuffles:
        measured(case.make(change, seconds), min(seconds, 2.0), case.consumer)
    rates: dict[bool, list[float]] = {False: [before], True: []}
    cores = []
    for turn in range(2 * ROUNDS - 1):
        mended = turn % 2 == 0
        made = case.make(change if mended else AS_IT_IS, seconds)
        rates[mended].append(measured(made, longest, case.consumer))
        cores.append(given_cores(computing))
    gain = statistics.median(rates[True]) / statistics.median(rates[False])
    said = f"{found['kind']}: {found['step']}"
    advised = found["changes"][0] if found["gain"] != 1 else "(nothing)"
    told = f"{name:<12}{seconds:>7g}  {said:<36}{right!s:<7}{found['gain']:>9.2f}{gain:>9.2f}"
    print(f"{told}{found['gain'] / gain - 1:>+8.0%}{statistics.median(cores):>7.2f}  {advised}", flush=True)


def _advised(told: dict[str, Any], case: Case, *, filling: bool) -> Changes:
    """Return the first change that a verdict advises."""
    if filling:
        return Changes()
    found = [each.change for each in advice(Analysis.of(told["analysis"])) if each.change.cores is None]
    if not found or told["verdict"]["gain"] == 1:
        return case.tried
    if found[0].cached_after is not None:
        message = "A cache was advised first: this benchmark has no case for it."
        raise NotImplementedError(message)
    return found[0]


if __name__ == "__main__":
    main()
