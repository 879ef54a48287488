"""Measure the cost of the engine without the kernels, with 1 to 128 workers on any machine.

In the pipelines of this file, kernels sleep as long as the real kernel takes on this machine, without the interpreter
lock, and then write a result of the real size in full. So a machine with two cores can serve as many workers. The
engine counts such a sleep as CPU time, as it counts the real kernel, because the size of Blocks depends on it. The
control, in the same process, is as many plain Python threads that sleep as long and write as much.

    - photographs: 500x375 JPEGs, decoded and resized to 224x224 bytes, `batch(32)`
    - thumbnails: the same with 32x32 results, which the memory bandwidth does not limit
    - to_torch: photographs as tensors, if torch is installed
    - parse: Examples of 13 numbers in batches of 2,048
    - files: `interleave` over 1,000 files of 33 kB; the first read of each takes 5 ms
    - tiny: numbers plus one, in Blocks. Nothing sleeps: the CPU time is the engine's

A row has the rate of the control as a share of `workers / time`, and penstock's rate as a share of the control's. Goal:
0.9, until memory bandwidth is the limit. "lock" is the CPU time of a Block outside of the kernels. It is an upper bound
for the time that a Block holds the interpreter lock. "the lock serves" is the time of a Block divided by this time, in
workers. The predicted rates on 16, 32, 64 and 96 cores follow from Amdahl's law with this serial share.

    python benchmarks/many_workers.py [--only TEXT] [--workers 16,32,64] [--seconds S] [--rounds N]
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import itertools
import json
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
from _common.duel import data_folder, figures_of

import penstock as ps

WORKERS = (1, 16, 32, 64, 128)
CORES = (16, 32, 64, 96)
BATCH, PARSED, FILES, READ = 32, 2048, 1000, 5e-3
COLUMNS = {f"I{i}": ps.io.FixedLenFeature((), np.float32) for i in range(13)}


class _Computed(threading.local):
    seconds = 0.0  # that this thread has slept in place of a kernel


@dataclass
class Sleeps:
    """The sleeping kernels of this process: seconds per row, and counts so far."""

    seconds: float = 0.0  # for one row
    shape: tuple[int, ...] = ()  # shape of the result of a call
    calls: int = 0
    rows: int = 0
    writing: float = 0.0  # CPU seconds
    computed: Any = field(default_factory=_Computed)

    def call(self, rows: int, *outs: np.ndarray) -> None:
        """Sleep and write, in place of a kernel."""
        time.sleep(rows * self.seconds)
        self.computed.seconds += rows * self.seconds
        began = time.thread_time()
        for out in outs:
            out[...] = 7
        self.writing += time.thread_time() - began
        self.calls += 1
        self.rows += rows

    def count_as_work(self) -> None:
        """Let the engine count a sleep as CPU time, as it counts the real kernel."""
        from penstock.runtime.counts import Clock

        real = Clock.cpu
        Clock.cpu = lambda clock, now: real(clock, now) + self.computed.seconds  # type: ignore[method-assign]


@dataclass(frozen=True)
class Workload:
    """A pipeline for a number of workers, and the function that replaces its kernel by one that sleeps."""

    data: Callable[[int], Any]
    rows: Callable[[Any], int]  # rows in one element
    replace: Callable[[Sleeps], None]
    seconds: Callable[[], float]  # CPU time of the real kernel for a row
    shape: tuple[int, ...]  # bytes that the control writes for its rows
    control_rows: int
    needs: str = "penstock"


def photograph() -> bytes:
    coarse = np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)
    return bytes(ps.image.encode_jpeg(np.asarray(ps.image.cast(ps.image.resize(coarse, (375, 500)), np.uint8))))


def photographs(size: int) -> Callable[[int], Any]:
    def prepare(file: bytes) -> Any:
        return ps.image.cast(ps.image.resize(ps.image.decode_jpeg(file, channels=3), (size, size)), np.uint8)

    def data(workers: int) -> Any:
        ds = ps.Dataset.from_tensor_slices([photograph()] * 1024).repeat()
        return ds.map(prepare, num_parallel_calls=workers).batch(BATCH).prefetch(2)

    return data


def sleeping_decoder(sleeps: Sleeps) -> None:
    from penstock.image.jpeg.block import JpegBlock

    def decode_resize(self: Any, out: np.ndarray, **_: Any) -> dict[int, Any]:
        sleeps.call(len(out), out)
        return {}

    JpegBlock.decode_resize = decode_resize  # type: ignore[method-assign]


def of_photograph(size: int) -> Callable[[], float]:
    def seconds() -> float:
        from penstock.image.jpeg.block import JpegBlock

        block, out = JpegBlock([photograph()] * BATCH), np.empty((BATCH, size, size, 3), np.uint8)
        return least(lambda: block.decode_resize(out)) / BATCH

    return seconds


def examples(workers: int) -> Any:
    record = ps.io.encode_example({name: np.float32(i) for i, name in enumerate(COLUMNS)})
    ds = ps.Dataset.from_tensor_slices([record] * (32 * PARSED)).repeat().batch(PARSED)
    return ds.map(lambda records: ps.io.parse_example(records, COLUMNS), num_parallel_calls=workers).prefetch(2)


def sleeping_parser(sleeps: Sleeps) -> None:
    from penstock.io import batch

    def run(kernel: Any, records: Any, tables: Any, output: Any) -> int:
        starts = records[3]
        sleeps.call(len(starts), output.floats)
        return len(starts)

    batch._run = run


def of_example() -> float:
    record = ps.io.encode_example({name: np.float32(i) for i, name in enumerate(COLUMNS)})
    records = np.array([record] * PARSED, object)
    real = least(lambda: ps.io.parse_example(records, COLUMNS)) / PARSED
    return max(real, READ / PARSED)  # sleep at least 5 ms: the system does not keep shorter times


def files(workers: int) -> Any:
    folder = data_folder() / "many_workers"
    folder.mkdir(parents=True, exist_ok=True)
    names = [folder / f"{i}.tfrecord" for i in range(FILES)]
    if not names[-1].exists():
        for name in names:
            with ps.io.TFRecordWriter(name) as writer:
                for _ in range(BATCH):
                    writer.write(b"x" * 1000)
    ds = ps.Dataset.from_tensor_slices([str(name) for name in names]).repeat()
    ds = ds.interleave(ps.TFRecordDataset, cycle_length=2 * workers, block_length=BATCH, num_parallel_calls=workers)
    return ds.batch(BATCH).prefetch(2)


def sleeping_reader(sleeps: Sleeps) -> None:
    from penstock.io.tfrecord.reader import RecordReader

    real = RecordReader.read
    begun: weakref.WeakSet[Any] = weakref.WeakSet()

    def read(self: Any, *args: Any, **named: Any) -> Any:
        if self not in begun:
            begun.add(self)
            sleeps.call(BATCH)
        return real(self, *args, **named)

    RecordReader.read = read  # type: ignore[method-assign]


def as_torch(workers: int) -> Any:
    return photographs(224)(workers).to_torch()


def tiny(workers: int) -> Any:
    return ps.Dataset.range(1 << 62).map(lambda x: x + 1, num_parallel_calls=workers).prefetch(2)


WORKLOADS = {
    "photographs": Workload(photographs(224), len, sleeping_decoder, of_photograph(224), (BATCH, 224, 224, 3), BATCH),
    "thumbnails": Workload(photographs(32), len, sleeping_decoder, of_photograph(32), (BATCH, 32, 32, 3), BATCH),
    "to_torch": Workload(
        as_torch, len, sleeping_decoder, of_photograph(224), (BATCH, 224, 224, 3), BATCH, needs="torch"
    ),
    "parse": Workload(
        examples, lambda x: len(x["I0"]), sleeping_parser, of_example, (PARSED, 4 * len(COLUMNS)), PARSED
    ),
    "files": Workload(files, len, sleeping_reader, lambda: READ / BATCH, (1,), BATCH),
}


def least(function: Callable[[], object]) -> float:
    """Return the CPU seconds of a call: the minimum of 12 calls."""
    times = []
    for _ in range(12):
        began = time.thread_time()
        function()
        times.append(time.thread_time() - began)
    return min(times)


def control(workers: int, work: Workload, seconds: float, each: float) -> float:
    """Return the rows per second of threads that only sleep and write."""
    done = [0] * workers
    stop = time.perf_counter() + seconds

    def run(thread: int) -> None:
        out = np.empty(work.shape, np.uint8)
        while time.perf_counter() < stop:
            time.sleep(work.control_rows * each)
            out[...] = 7
            done[thread] += work.control_rows

    threads = [threading.Thread(target=run, args=(i,)) for i in range(workers)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.perf_counter() - began)


@contextlib.contextmanager
def running(data: Any) -> Iterator[Iterator[Any]]:
    elements = iter(data)
    try:
        yield elements
    finally:
        if hasattr(elements, "close"):
            elements.close()


def run(name: str, workers: int, seconds: float) -> dict[str, float]:
    """Measure one workload in this process: the control, the pipeline, the control again."""
    work = WORKLOADS[name]
    sleeps = Sleeps(work.seconds())
    # with real kernels: the engine compares the first elements with single calls
    with running(work.data(2)) as elements:
        for _ in itertools.islice(elements, 8):
            pass
    work.replace(sleeps)
    if name != "files":  # a read that waits is no work
        sleeps.count_as_work()
    before = control(workers, work, seconds / 2, sleeps.seconds)
    with running(work.data(workers)) as elements:
        stop = time.perf_counter() + seconds / 2
        while time.perf_counter() < stop:
            next(elements)
        calls, writing, count = sleeps.calls, sleeps.writing, 0
        began, cpu = time.perf_counter(), time.process_time()
        while time.perf_counter() < began + seconds:
            count += work.rows(next(elements))
        took, cpu = time.perf_counter() - began, time.process_time() - cpu
        calls, writing = sleeps.calls - calls, sleeps.writing - writing
    after = control(workers, work, seconds / 2, sleeps.seconds)
    control_rate = (before + after) / 2
    return {
        "control": control_rate * sleeps.seconds / workers,
        "share": count / took / control_rate,
        "rate": count / took,
        "block": sleeps.rows / max(sleeps.calls, 1) * sleeps.seconds,
        "lock": (cpu - writing) / max(calls, 1),
        "copied": count / took * np.prod(work.shape) / work.control_rows / 1e9,
        "row": sleeps.seconds,
    }


def copying() -> float:
    """Return the GB that a plain loop copies per second."""
    source, target = np.ones((2, 1 << 26), np.uint8)
    return source.nbytes / least(lambda: np.copyto(target, source)) / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=lambda text: [int(part) for part in text.split(",")], default=WORKERS)
    parser.add_argument("--seconds", type=float, default=3.0, help="measured seconds per run")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each; medians are shown")
    parser.add_argument("--only", default="", help="run only workloads whose names contain this text")
    parser.add_argument("--run", nargs=2, metavar=("WORKLOAD", "WORKERS"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.run:
        print(json.dumps(run(asked.run[0], int(asked.run[1]), asked.seconds)))
        return
    print(f"a plain loop copies {copying():.1f} GB/s")
    print(f"{'workload':<13}{'workers':>7}{'control':>9}{'penstock':>10}{'rows/s':>11}", end="")
    print(f"{'GB/s':>6}{'Block ms':>10}{'lock µs':>9}  spread of penstock")
    for name, work in WORKLOADS.items():
        if asked.only not in name or importlib.util.find_spec(work.needs) is None:
            continue
        for workers in asked.workers:
            command = [sys.executable, __file__, "--seconds", str(asked.seconds), "--run", name, str(workers)]
            runs = [figures_of(command) for _ in range(asked.rounds)]
            found = {key: median(one[key] for one in runs) for key in runs[0]}
            spread = f"  {min(one['share'] for one in runs):.2f} to {max(one['share'] for one in runs):.2f}"
            print(
                f"{name:<13}{workers:>7}{found['control']:>9.2f}{found['share']:>10.2f}{found['rate']:>11,.0f}"
                f"{found['copied']:>6.1f}{found['block'] * 1e3:>10.1f}{found['lock'] * 1e6:>9.0f}{spread}",
                flush=True,
            )
        block, lock = found["block"], found["lock"]
        rows = [f"{cores}: {predicted(cores, block, lock, found['row']):,.0f}" for cores in CORES]
        print(f"{'':13}the lock serves {block / lock:.0f} workers; rows/s on so many cores: {', '.join(rows)}")
    print(f"tiny: {of_tiny():.0f} µs of CPU for each Block")


def predicted(cores: int, block: float, lock: float, row: float) -> float:
    """Return the rows per second by Amdahl's law. The share of a Block that holds the lock is serial."""
    return block / row / (lock + block / cores)


def of_tiny() -> float:
    """Return the CPU microseconds of a Block of numbers, in all threads, including the consumer's loop."""
    from penstock.physical.vectorise import Ready

    blocks, real = [0], Ready.run

    def counted(self: Any, *args: Any) -> Any:
        blocks[0] += 1
        return real(self, *args)

    Ready.run = counted  # type: ignore[method-assign]
    with running(tiny(2)) as elements:
        for _ in itertools.islice(elements, 200_000):
            pass
        blocks[0], began = 0, time.process_time()
        for _ in itertools.islice(elements, 2_000_000):
            pass
        return (time.process_time() - began) / blocks[0] * 1e6


if __name__ == "__main__":
    main()
