"""Does the engine find the workers that a function can use, without a hint?

- *A function of pure Python*, 5 ms: threads exclude each other in it. AUTOTUNE beside one thread, goal ≥ 1.8 times its
  rate on two cores; there it has to move the function to worker processes. What two cores give at most is what two
  processes do that know nothing of each other and hand nothing over: two cores that are two threads of one give less
  than twice one. Goal beside these: ≥ 0.9.
- *Uneven cost*: one element in a hundred takes 50 times as long, computing or waiting. Unordered over ordered, goal
  ≤ 1.15: what is behind a slow element is made meanwhile.
- *A lock held for the whole call*: more than one or two workers are of no use. AUTOTUNE beside the best of a grid, goal
  ≥ 0.95; the number of workers it chose is printed on the way.

Every side runs in a process of its own, in turn, for 3 s after 3 s of running in. Some four minutes.

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

from _autotune.against_grid import against_grid, row, side, sides_of
from _autotune.alone import Sides, answer, arguments, in_turn, show, timing_of
from _autotune.drive import Figures, Timing, drive
from _autotune.setting import AUTO, threads
from _autotune.workloads import skew, uneven_waits
from _autotune.workloads.contended import CONTENDED
from _autotune.workloads.python_function import PYTHON_FUNCTION, churned
from _common.table import Row, rate

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
    """What keeping the order costs."""
    turns = in_turn([f"{name}: {kind}" for kind in ("ordered", "unordered")], timing, rounds)
    kept, free = ([turn[f"{name}: {kind}"] for turn in turns] for kind in ("ordered", "unordered"))
    return [
        Row(
            workload=name,
            penstock=rate(median(run.rate for run in kept)),
            peer="unordered",
            theirs=rate(median(run.rate for run in free)),
            ratios=[other.rate / mine.rate for mine, other in zip(kept, free, strict=True)],
            cpu_penstock=median(run.cpu_us for run in kept),
            cpu_peer=median(run.cpu_us for run in free),
            goal=ORDER,
            at_most=True,
        )
    ]


def gain(timing: Timing, rounds: int) -> list[Row]:
    """What AUTOTUNE makes of a function that holds the interpreter's lock, and what could be made of it."""
    auto, one = (side(PYTHON_FUNCTION, setting.name) for setting in (AUTO, *threads(1)))
    turns = in_turn([auto, one, *PLAIN], timing, rounds)
    ours, thread, single, pair = ([turn[name] for turn in turns] for name in (auto, one, *PLAIN))
    name = PYTHON_FUNCTION.name
    print(f"{name}: chose {ours[-1].chosen}", flush=True)
    return [
        row(name, ours, "1 thread", thread, goal=GAIN),
        row(name, ours, "2 plain processes", pair, goal=OF_PLAIN),
        row("the same, 2 plain processes", pair, "1 plain process", single),
    ]


def plain(workers: int, timing: Timing) -> Figures:
    """So many processes that call the function for themselves."""
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        pool.map(_calls, [0.1] * workers, chunksize=1)  # they are there
        found = pool.map(_calls, [timing.run_in + timing.seconds] * workers, chunksize=1)
    return Figures(sum(rate for rate, _ in found), median(cpu_us for _, cpu_us in found))


def _calls(seconds: float) -> tuple[float, float]:
    """Calls in a second, and CPU microseconds of one."""
    start, cpu = time.perf_counter(), time.process_time()
    for count in itertools.count(1):
        churned(count)
        wall = time.perf_counter() - start
        if wall >= seconds:
            return count / wall, (time.process_time() - cpu) / count * 1e6
    raise AssertionError("it counts without end")


PLAIN = {"1 plain process": partial(plain, 1), "2 plain processes": partial(plain, 2)}


def sides() -> Sides:
    found = dict(sides_of([PYTHON_FUNCTION, *CONTENDED])) | PLAIN
    for name, pipeline in UNEVEN.items():
        for kind in (True, False):
            found[f"{name}: {'ordered' if kind else 'unordered'}"] = partial(uneven, pipeline, ordered=kind)
    return found


if __name__ == "__main__":
    parser = arguments("the workers that a function can use")
    parser.add_argument("--only", default="", metavar="TEXT", help="the questions whose names contain it")
    given = parser.parse_args()
    if given.side:
        show(sides(), given)
        sys.exit()
    timing = timing_of(given)
    questions = {PYTHON_FUNCTION.name: partial(gain, timing, given.rounds)}
    questions |= {name: partial(order, name, timing, given.rounds) for name in UNEVEN}
    questions |= {workload.name: partial(against_grid, workload, timing, given.rounds) for workload in CONTENDED}
    sys.exit(answer(ask for name, ask in questions.items() if given.only.lower() in name.lower()))
