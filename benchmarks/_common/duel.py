"""Run each side of a benchmark in its own processes, in turn, and print a table of penstock and its peers.

A side is a function that imports its library, builds its pipeline, and returns a function that iterates once and counts
the elements. A round runs penstock and then each peer. A ratio compares runs of one round, so that a busy minute of the
machine affects both sides. In its process a side first iterates once for warm-up (caches, JIT, autotuning), then until
`SECONDS` are over. Only these iterations are timed: wall time by `perf_counter`, CPU time of the process and its
children. `startup.py` measures imports and start.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _common.table import print_table, row_of

Pass = Callable[[], int]
SECONDS = 2.0
PAIRS = 3
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "GRPC_VERBOSITY": "ERROR"}


@dataclass(frozen=True)
class Side:
    """A side: `build` returns a function that iterates once and counts its elements.

    The side is left out if the module `needs` is not installed. `goal` is the least ratio of penstock's rate to this
    side's.
    """

    name: str
    build: Callable[[], Pass]
    needs: str = "penstock"
    goal: float | None = None
    hoped: float | None = None


@dataclass(frozen=True)
class Measured:
    """One run of a side: elements per second, CPU microseconds per element."""

    rate: float
    cpu_us: float


def duel(workload: str, ours: Side, *peers: Side, prepare: Callable[[], object] | None = None) -> None:
    """Run the sides in turn and print the table. `prepare` writes data first, which is not timed."""
    parser = argparse.ArgumentParser(description=f"{workload}: penstock and its peers")
    parser.add_argument("--pairs", type=int, default=PAIRS, metavar="N", help="runs of each side (%(default)s)")
    parser.add_argument("--seconds", type=float, default=SECONDS, metavar="S", help="minimum measured seconds per run")
    parser.add_argument("--side", metavar="NAME", help="run this side alone, in this process, and print its figures")
    chosen = parser.parse_args()
    sides = {side.name: side for side in (ours, *peers)}
    if chosen.side:
        print(json.dumps(measure(sides[chosen.side].build, chosen.seconds)))
        return
    if prepare is not None:
        prepare()
    present = {name: side for name, side in sides.items() if installed(side.needs)}
    rounds = [{name: run_alone(name, chosen.seconds) for name in present} for _ in range(chosen.pairs)]
    notes = [f"{side.name} left out: {side.needs} is not installed" for side in peers if side.name not in present]
    runs = {name: [found[name] for found in rounds] for name in present}
    rows = [
        row_of(workload, runs[ours.name], peer.name, runs[peer.name], goal=peer.goal, hoped=peer.hoped)
        for peer in peers
        if peer.name in present
    ]
    print_table(rows, notes)


def installed(module: str) -> bool:
    """Return True if `module`, which may be inside a package, can be imported."""
    package = module.rpartition(".")[0]
    return (not package or installed(package)) and importlib.util.find_spec(module) is not None


def measure(build: Callable[[], Pass], seconds: float) -> dict[str, float]:
    """Warm up, then iterate for at least `seconds`."""
    one_pass = build()
    one_pass()
    elements = 0
    cpu, start = cpu_seconds(), time.perf_counter()
    while (wall := time.perf_counter() - start) < seconds:
        elements += one_pass()
    wall = time.perf_counter() - start
    return {"rate": elements / wall, "cpu_us": (cpu_seconds() - cpu) / elements * 1e6}


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its present and past children."""
    ended = os.times()
    total = ended.children_user + ended.children_system
    if importlib.util.find_spec("psutil"):
        import psutil

        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                times = child.cpu_times()
                total += times.user + times.system
    return total + time.process_time()  # finer than the ticks of os.times


def checked(one_pass: Pass, expected: int) -> Pass:
    """Return `one_pass` with a check of the number that it returns."""

    def run() -> int:
        count = one_pass()
        assert count == expected, f"{count} of {expected} elements"
        return count

    return run


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds of wall time and of CPU time of a call, the latter of all threads of this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def drain(elements: Iterable[object]) -> None:
    """Iterate once and drop the elements."""
    for _ in elements:
        pass


def run_alone(side: str, seconds: float) -> Measured:
    """Run a side of the calling script once, in its own process."""
    return Measured(**figures_of([sys.executable, sys.argv[0], "--side", side, "--seconds", str(seconds)]))


def figures_of(command: list[str], environment: Mapping[str, str] | None = None) -> Any:
    """Return the JSON in the last line of the output of `command`."""
    return json.loads(output_of(command, environment).splitlines()[-1])


def output_of(command: list[str], environment: Mapping[str, str] | None = None) -> str:
    """Return the output of `command`. If it fails, print its errors and end the benchmark."""
    done = subprocess.run(
        command, env={**os.environ, **QUIET, **(environment or {})}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed with status {done.returncode}:\n{done.stderr}")
    return done.stdout


def data_folder() -> Path:
    """Return the folder of the input data: `benchmarks/.data`."""
    return Path(__file__).parents[1] / ".data"


def written_once(path: Path, write: Callable[[Path], object]) -> Path:
    """Return `path`. If it does not exist, `write` writes it under another name, which is then changed to `path`."""
    if not path.exists():
        unfinished = path.with_name(f"{path.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        write(unfinished)
        unfinished.rename(path)
    return path
