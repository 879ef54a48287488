"""Measure the cost of handing a Block to the next segment or to a worker process.

*Segments*: five steps with almost no work, over Blocks of 32 numbers, run in five segments and in one (`map_fusion`).
The difference of the times is the cost of the additional hand-overs. The two iterations take turns in one process. The
figure uses the lower quartile of the times, because other load on a machine only adds time. Goal: at most 15 µs of CPU
per hand-over. For comparison the program measures a `queue.Queue` between two threads in the same way.

*Processes*: two workers create arrays of 64 KB, 1 MB and 16 MB, or receive them and return them unchanged. The program
compares penstock with `multiprocessing.Pool`, torch's DataLoader and grain's mp_prefetch. The consumer reads every
page. A rate counts arrays; CPU is the time of all processes.

    python benchmarks/handover.py [--only TEXT] [--rounds N] [--seconds S]
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

import numpy as np
from _autotune import shipping
from _autotune.allowed import allowed_row, cost_row
from _autotune.alone import Sides, alone, answer, arguments, in_turn, show, timing_of
from _autotune.chain import STEPS, chain, passed
from _autotune.drive import Figures, Timing
from _autotune.queues import handed_on
from _common.duel import Pass, measure
from _common.table import Row, row_of

ALLOWED = 15.0  # µs
TURNS = 12
SIZES = {"64 KB": (1 << 16, 2000), "1 MB": (1 << 20, 400), "16 MB": (1 << 24, 40)}  # bytes, arrays per iteration
BACK = {
    "penstock": shipping.penstock_back,
    "multiprocessing.Pool": shipping.pool_back,
    "torch": shipping.torch_back,
    "grain": shipping.grain_back,
}
BOTH_WAYS = {"penstock": shipping.penstock_both_ways, "multiprocessing.Pool": shipping.pool_both_ways}
NEEDS = {"torch": "torch", "grain": "grain"}


@dataclass(frozen=True)
class Cost:
    """Microseconds per hand-over."""

    cpu_us: float
    wall_us: float


def segments(parallel: int, timing: Timing) -> Cost:
    datasets = [chain(parallel, fused=fused) for fused in (True, False)]
    return further([partial(passed, dataset) for dataset in datasets])


def queues(timing: Timing) -> Cost:
    return further([partial(handed_on, threads) for threads in (1, STEPS)])


def further(passes: Sequence[Callable[[], tuple[float, float, int]]]) -> Cost:
    """Return the additional time of the second iteration, divided by the number of its additional hand-overs."""
    for run in passes:
        run()
        run()
    turns = np.array([[run() for run in passes] for _ in range(TURNS)])  # (turn, iteration, figure)
    one, many = np.percentile(turns, 25, axis=0)
    cpu, wall, count = many - one
    return Cost(cpu / count * 1e6, wall / count * 1e6)


def shipped(build: Callable[[int, int], Pass], size: int, count: int, timing: Timing) -> Figures:
    return Figures(**measure(lambda: build(size, count), timing.seconds))


def of_segments(timing: Timing, rounds: int) -> list[Row]:
    names = {"1 at a time": "segments: 1", "2 at a time": "segments: 2", "queue": "segments: queue.Queue"}
    turns = [{name: Cost(**alone(side, timing)) for name, side in names.items()} for _ in range(rounds)]
    rows = []
    for name in ("1 at a time", "2 at a time"):
        found, theirs = [turn[name] for turn in turns], [turn["queue"].cpu_us for turn in turns]
        wall = median(cost.wall_us for cost in found)
        cpu = [cost.cpu_us for cost in found]
        rows.append(allowed_row(f"next segment, {name}: CPU (wall {wall:.3g} µs)", cpu, ALLOWED, "µs"))
        rows.append(cost_row(f"next segment, {name}: CPU", cpu, "queue.Queue", theirs))
    return rows


def of_processes(way: str, makers: dict[str, Callable[[int, int], Pass]], timing: Timing, rounds: int) -> list[Row]:
    rows = []
    present = [name for name in makers if importlib.util.find_spec(NEEDS.get(name, "penstock"))]
    for size in SIZES:
        names = {name: f"{way} {size}: {name}" for name in present}
        turns = in_turn(names.values(), timing, rounds)
        runs = {name: [turn[side] for turn in turns] for name, side in names.items()}
        rows += [row_of(f"{size} {way}", runs["penstock"], name, runs[name]) for name in present if name != "penstock"]
    return rows


WAYS = {"from a process": BACK, "there and back": BOTH_WAYS}


def sides() -> Sides:
    found: dict[str, Callable[[Timing], Cost | Figures]] = {}
    for parallel in (1, 2):
        found[f"segments: {parallel}"] = partial(segments, parallel)
    found["segments: queue.Queue"] = queues
    for way, makers in WAYS.items():
        for size, (nbytes, count) in SIZES.items():
            for name, build in makers.items():
                found[f"{way} {size}: {name}"] = partial(shipped, build, nbytes, count)
    return found


if __name__ == "__main__":
    parser = arguments("the cost of a hand-over", seconds=2.0, run_in=0.0)
    parser.add_argument("--only", default="", metavar="TEXT", help="one of: segments, from a process, there and back")
    given = parser.parse_args()
    if given.side:
        show(sides(), given)
        sys.exit()
    questions = {"segments": of_segments, **{way: partial(of_processes, way, makers) for way, makers in WAYS.items()}}
    asked = [ask for name, ask in questions.items() if given.only in name]
    sys.exit(answer(partial(ask, timing_of(given), given.rounds) for ask in asked))
