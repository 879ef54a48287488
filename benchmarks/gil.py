"""Check that AUTOTUNE soon moves a function of pure Python to worker processes, for any remembered setting.

The pipeline is a map of 0.7 ms that holds the interpreter lock, then `.batch(32).prefetch(2)`, in its first iteration.
Each run starts a process with AUTOTUNE, then one for each setting by hand: one thread, and as many worker processes as
there are cores. The figures are ratios to the setting with the most elements in that run, for each second, and the
median elements of each side. Goal: at least 0.9 from the second second on, in each run.

    - fresh: the folder of settings is empty
    - remembered: the folder has the settings of an earlier run
    - poisoned: the folder has a setting by which one thread was best
    - noisy: as fresh, while another program computes for half a second at random times, the same for each side

The sides of a run follow one another, so other load on the machine affects single runs. The program takes 15 minutes.
`--calls` sets a number instead of AUTOTUNE.

    python benchmarks/gil.py [--only TEXT] [--runs N] [--seconds S] [--calls N]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from statistics import median
from typing import Any

from _common.duel import figures_of

TURNS = 3000
CASES = ("fresh", "remembered", "poisoned", "noisy")
GOAL = 0.9
AUTOTUNE = "AUTOTUNE"
BY_HAND = ("one thread", "processes")
POISON = "worker processes gave 0.967 times as much"


def counted(x: Any) -> int:
    """Return a sum over a dictionary of counts, which has no vectorised form."""
    counts: dict[int, int] = {}
    for i in range(TURNS):
        counts[i % 101] = counts.get(i % 101, 0) + i * int(x) % 7
    return sum(counts.values())


def dataset(ps: Any, side: str, calls: int) -> Any:
    by_hand = {
        "one thread": {"num_parallel_calls": 1, "executor": "thread"},
        "processes": {"num_parallel_calls": len(os.sched_getaffinity(0)), "executor": "process"},
    }
    arguments = by_hand.get(side, {"num_parallel_calls": calls})
    return ps.Dataset.range(1 << 40).map(counted, **arguments).batch(32).prefetch(2)


def run(side: str, seconds: int, calls: int) -> dict[str, Any]:
    """Return the elements of each second since the start of the iterator, and the names of the settings for it."""
    import penstock as ps

    rates = [0] * seconds
    with dataset(ps, side, calls).iterator() as elements:
        start = time.perf_counter()
        for batch in elements:
            second = int(time.perf_counter() - start)
            if second >= seconds:
                break
            rates[second] += len(batch)
        driver = elements._run.driver
        return {"rates": rates, "plan": driver._digest, "lanes": {lane.name: str(lane.knobs) for lane in driver.lanes}}


def alone(side: str, chosen: argparse.Namespace, folder: str, seed: int | None) -> dict[str, Any]:
    """Run one side in its own process. With a seed, another program computes at random times."""
    command = [sys.executable, sys.argv[0], "--seconds", str(chosen.seconds), "--calls", str(chosen.calls)]
    with ExitStack() as stack:
        if seed is not None:
            neighbour = stack.enter_context(subprocess.Popen([*command, "--neighbour", str(seed)]))
            stack.callback(neighbour.kill)
        # compiled modules are cached, as for an installed package, because worker processes load them
        environment = {"XDG_CACHE_HOME": folder, "PENSTOCK_REMEMBER": "", "PYTHONDONTWRITEBYTECODE": ""}
        found: dict[str, Any] = figures_of([*command, "--side", side], environment)
        return found


def compute_now_and_then(seed: int) -> None:
    generator = random.Random(seed)
    while True:
        time.sleep(generator.expovariate(1.0))
        stop = time.perf_counter() + generator.expovariate(2.0)
        while time.perf_counter() < stop:
            pass


def prepared(case: str, chosen: argparse.Namespace, folder: str) -> None:
    """Prepare the folder of settings for a case."""
    if case not in ("remembered", "poisoned"):
        return
    before = alone(AUTOTUNE, chosen, folder, None)
    if case == "poisoned":
        from penstock.runtime.autotune.figures import Knobs
        from penstock.runtime.autotune.remembered import Remembered, remember

        os.environ.update(XDG_CACHE_HOME=folder)
        remember(before["plan"], dict.fromkeys(before["lanes"], Remembered(Knobs(1), POISON, 1.0, 1.0)))


def show(case: str, chosen: argparse.Namespace) -> None:
    ratios, sides = [], []
    for number in range(chosen.runs):
        seed = number if case == "noisy" else None
        with tempfile.TemporaryDirectory() as folder:
            prepared(case, chosen, folder)
            ours = alone(AUTOTUNE, chosen, folder, seed)
            by_hand = [alone(side, chosen, folder, seed)["rates"] for side in BY_HAND]
        best = max(by_hand, key=lambda rates: sum(rates[1:]))
        sides.append([ours["rates"], *by_hand])
        pairs = zip(ours["rates"], best, strict=True)
        ratios.append([mine / max(other, 1) for mine, other in pairs] + [sum(ours["rates"][1:]) / sum(best[1:])])
        print(f"  {case} {number + 1}: {ours['rates']} of {best}, by hand {by_hand}", flush=True)
    each = ", ".join(
        f"{median(column):.2f} (minimum {min(column):.2f})" for column in list(zip(*ratios, strict=True))[1:]
    )
    met = sum(row[-1] >= GOAL for row in ratios)
    print(f"{case}: each second from the second one on, and all of them: {each}")
    for name, runs in zip((AUTOTUNE, *BY_HAND), zip(*sides, strict=True), strict=True):
        print(f"{case}: {name} {[int(median(second)) for second in zip(*runs, strict=True)]}, median of the runs")
    print(f"{case}: at least {GOAL} in {met} of {len(ratios)} runs", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="AUTOTUNE and the interpreter's lock")
    parser.add_argument("--only", default="", metavar="TEXT", help="run only cases whose names contain TEXT")
    parser.add_argument("--runs", type=int, default=10, metavar="N", help="runs of each case (%(default)s)")
    parser.add_argument("--seconds", type=int, default=5, metavar="S", help="length of each run (%(default)s)")
    parser.add_argument("--calls", type=int, default=-1, metavar="N", help="a number instead of AUTOTUNE")
    parser.add_argument("--side", help="run this side alone, in this process, and print its figures")
    parser.add_argument("--neighbour", type=int, metavar="SEED", help="compute now and then, until killed")
    given = parser.parse_args()
    if given.neighbour is not None:
        compute_now_and_then(given.neighbour)
    elif given.side:
        print(json.dumps(run(given.side, given.seconds, given.calls)))
    else:
        for each_case in [name for name in CASES if given.only in name]:
            show(each_case, given)
