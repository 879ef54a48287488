"""Runs each side of a benchmark in processes of its own, in turn, and prints penstock beside its peers.

A side is a function that imports what it needs, builds its pipeline, and returns a function that makes one pass and
counts what it got. A round runs penstock and then each peer; a ratio compares runs of one round, so that a slow minute
of the machine meets both. Within its process a side makes one pass to warm up (caches, JIT, autotuning), then passes
until `SECONDS` have gone by. Times are of those passes alone: wall by `perf_counter`, CPU of the process and its
children. Imports and start-up are the matter of `startup.py`.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from _common.table import Row, print_table, rate

Pass = Callable[[], int]
SECONDS = 2.0
PAIRS = 3


@dataclass(frozen=True)
class Side:
    """One of the rivals: `build` returns a function that makes one pass and counts its elements.

    `needs` is the module without which the side is left out; `goal` what penstock's rate over this one's should be.
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
    """Run the sides in turn and print the table; `prepare` makes data before, untimed."""
    parser = argparse.ArgumentParser(description=f"{workload}: penstock beside its peers")
    parser.add_argument("--pairs", type=int, default=PAIRS, metavar="N", help="runs of each side (%(default)s)")
    parser.add_argument("--seconds", type=float, default=SECONDS, metavar="S", help="measured at least so long per run")
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
    print_table([_row(workload, ours, peer, rounds) for peer in peers if peer.name in present], notes)


def installed(module: str) -> bool:
    """Whether `module`, maybe a part of a package, can be imported."""
    package = module.rpartition(".")[0]
    return (not package or installed(package)) and importlib.util.find_spec(module) is not None


def measure(build: Callable[[], Pass], seconds: float) -> dict[str, float]:
    """Warm up, then make passes for at least `seconds`."""
    one_pass = build()
    one_pass()
    elements = 0
    cpu, start = cpu_seconds(), time.perf_counter()
    while (wall := time.perf_counter() - start) < seconds:
        elements += one_pass()
    wall = time.perf_counter() - start
    return {"rate": elements / wall, "cpu_us": (cpu_seconds() - cpu) / elements * 1e6}


def cpu_seconds() -> float:
    """CPU time of this process and of the children it has or had."""
    ended = os.times()
    total = ended.children_user + ended.children_system
    if importlib.util.find_spec("psutil"):
        import psutil

        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                times = child.cpu_times()
                total += times.user + times.system
    return total + time.process_time()  # finer than the ticks of os.times


def run_alone(side: str, seconds: float) -> Measured:
    """One run of a side of the calling script, in a process of its own."""
    command = [sys.executable, sys.argv[0], "--side", side, "--seconds", str(seconds)]
    return Measured(**json.loads(output_of(command).splitlines()[-1]))


def output_of(command: list[str], environment: Mapping[str, str] | None = None) -> str:
    """What `command` prints; if it fails, its errors are shown and end the benchmark."""
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "GRPC_VERBOSITY": "ERROR"}
    done = subprocess.run(
        command, env={**os.environ, **quiet, **(environment or {})}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed with status {done.returncode}:\n{done.stderr}")
    return done.stdout


def _row(workload: str, ours: Side, peer: Side, rounds: list[dict[str, Measured]]) -> Row:
    here, there = ([found[side.name] for found in rounds] for side in (ours, peer))
    return Row(
        workload=workload,
        penstock=rate(median(run.rate for run in here)),
        peer=peer.name,
        theirs=rate(median(run.rate for run in there)),
        ratios=[mine.rate / other.rate for mine, other in zip(here, there, strict=True)],
        cpu_penstock=median(run.cpu_us for run in here),
        cpu_peer=median(run.cpu_us for run in there),
        goal=peer.goal,
        hoped=peer.hoped,
    )


def data_folder() -> Path:
    """Where data made once is kept: `benchmarks/.data`."""
    return Path(__file__).parents[1] / ".data"
