"""Check that the engine finds the right kind of workers for a function without a hint.

    - *A function of pure Python*, 5 ms: threads cannot run it at the same time. Goal: AUTOTUNE has ≥ 1.8 times the
      rate of one thread on two cores. For this it has to move the function to worker processes. The upper limit is
      the rate of two independent processes that exchange no data. It is below twice the rate of one process if the
      two cores are two hardware threads of one core. Goal: ≥ 0.9 of this limit.
    - *Uneven cost*: one element in a hundred takes 50 times as long, with computation or with waiting. The ratio is
      the unordered rate to the ordered rate, goal ≤ 1.15: workers compute later elements during a slow element.
    - *A lock held for the whole call*: more than one or two workers are of no use. AUTOTUNE is compared with the best
      setting of a grid, goal ≥ 0.95. The program prints the number of workers that AUTOTUNE chose.

Each side runs in its own process, in turn, for 3 s after a warm-up of 3 s. The program takes about four minutes.

    python benchmarks/executors.py [--only TEXT] [--rounds N] [--seconds S]
"""

from __future__ import annotations

import itertools
import multiprocessing
import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

from _autotune.against_grid import against_grid, side, sides_of
from _autotune.alone import Sides, answer, arguments, in_turn, show, timing_of
from _autotune.drive import Figures, Timing, drive
from _autotune.setting import AUTO, threads
from _autotune.workloads import skew, uneven_waits
from _autotune.workloads.contended import CONTENDED
from _autotune.workloads.python_function import PYTHON_FUNCTION, churned
from _common.table import Row, row_of

GAIN, ORDER, OF_PLAIN = 1.8, 1.15, 0.9
(SIXTEEN,) = threads(16)
UNEVEN = {
    "uneven cost, AUTOTUNE": partial(skew.penstock, AUTO),
    "uneven waits, AUTOTUNE": partial(uneven_waits.penstock, AUTO),
    "uneven waits, 16 threads": partial(uneven_waits.penstock, SIXTEEN),
}


def uneven(pipeline: Callable[..., Any], timing: Timing, *, ordered: bool) -> Figures:
    with pipeline(ordered=ordered).iterator() as elements:
        return drive(elements, timing)


def order(name: str, timing: Timing, rounds: int) -> list[Row]:
    """Return the row that compares the ordered with the unordered rate."""
    turns = in_turn([f"{name}: {kind}" for kind in ("ordered", "unordered")], timing, rounds)
    kept, free = ([turn[f"{name}: {kind}"] for turn in turns] for kind in ("ordered", "unordered"))
    slower = row_of(
        name, kept, "unordered", free, ratio=lambda mine, other: other.rate / mine.rate, goal=ORDER, at_most=True
    )
    return [slower]


def gain(timing: Timing, rounds: int) -> list[Row]:
    """Return rows that compare AUTOTUNE with one thread and with plain processes, for a function that holds the GIL."""
    auto, one = (side(PYTHON_FUNCTION, setting.name) for setting in (AUTO, *threads(1)))
    turns = in_turn([auto, one, *PLAIN], timing, rounds)
    ours, thread, single, pair = ([turn[name] for turn in turns] for name in (auto, one, *PLAIN))
    name = PYTHON_FUNCTION.name
    print(f"{name}: chose {ours[-1].chosen}", flush=True)
    return [
        row_of(name, ours, "1 thread", thread, goal=GAIN),
        row_of(name, ours, "2 plain processes", pair, goal=OF_PLAIN),
        row_of("the same, 2 plain processes", pair, "1 plain process", single),
    ]


def plain(workers: int, timing: Timing) -> Figures:
    """Measure `workers` independent processes that call the function."""
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        pool.map(_calls, [0.1] * workers, chunksize=1)  # starts the processes
        found = pool.map(_calls, [timing.run_in + timing.seconds] * workers, chunksize=1)
    return Figures(sum(rate for rate, _ in found), median(cpu_us for _, cpu_us in found))


def _calls(seconds: float) -> tuple[float, float]:
    """Return the calls per second, and the CPU microseconds of a call."""
    start, cpu = time.perf_counter(), time.process_time()
    for count in itertools.count(1):
        churned(count)
        wall = time.perf_counter() - start
        if wall >= seconds:
            return count / wall, (time.process_time() - cpu) / count * 1e6
    raise AssertionError("unreachable: the loop has no end")


PLAIN = {"1 plain process": partial(plain, 1), "2 plain processes": partial(plain, 2)}


def sides() -> Sides:
    found = dict(sides_of([PYTHON_FUNCTION, *CONTENDED])) | PLAIN
    for name, pipeline in UNEVEN.items():
        for kind in (True, False):
            found[f"{name}: {'ordered' if kind else 'unordered'}"] = partial(uneven, pipeline, ordered=kind)
    return found


if __name__ == "__main__":
    parser = arguments("the kind of workers that AUTOTUNE chooses")
    parser.add_argument("--only", default="", metavar="TEXT", help="run only questions whose names contain TEXT")
    given = parser.parse_args()
    if given.side:
        show(sides(), given)
        sys.exit()
    timing = timing_of(given)
    questions = {PYTHON_FUNCTION.name: partial(gain, timing, given.rounds)}
    questions |= {name: partial(order, name, timing, given.rounds) for name in UNEVEN}
    questions |= {workload.name: partial(against_grid, workload, timing, given.rounds) for workload in CONTENDED}
    sys.exit(answer(ask for name, ask in questions.items() if given.only.lower() in name.lower()))
