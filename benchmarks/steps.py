"""What does each step cost per element of its own, beside tf.data's?

For numbers, or for short sequences where a step is about those, with functions that do next to nothing: the CPU time of
a pass with the step less that of a pass without it, per element that goes in. No Python loop over elements is part of
it: penstock's Blocks are dropped as they come, and tf.data's elements are collected by `window(1024)`. That costs some
0.5 µs per element, so that a step which gives fewer elements than it takes, such as `batch`, looks as much better there
than it is. The two passes take turns; the figure is the difference of their minima, the one in brackets the median of
the differences. Goal: at most 1 µs for each step on numbers. Where a function makes a data set of each window of 32
elements, most of the figure is the cost of a data set. Steps on dicts of 100 and of 500 columns: figures per column.

    python benchmarks/steps.py [--turns N] [--only TEXT]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from _common.duel import output_of
from _steps.steps import BATCH, STEPS, Step, sequences

TURNS, SECONDS = 3, 0.2
FEW, MANY = 1 << 12, 1 << 16  # elements of a pass: many where that is a matter of tenths of a second
GOAL = 1.0
NOISE = 0.05  # µs: differences below it

Found = tuple[float, float]


def drain_penstock(dataset: Any) -> None:
    """A pass whose Blocks are dropped, asked for as `batch(1024)` would."""
    with dataset.iterator() as iterator:
        while (pulled := iterator._run.pull(BATCH)) is not None:
            if isinstance(pulled, Exception):
                raise pulled


def drain_tf_data(dataset: Any) -> None:
    for _ in dataset.window(BATCH):
        pass


def penstock() -> dict[str, Found]:
    import penstock as ps

    return measured(ps, drain_penstock, STEPS)


def tf_data() -> dict[str, Found]:
    import tensorflow as tf

    return measured(tf.data, drain_tf_data, [step for step in STEPS if not step.ours_alone])


SIDES = {"penstock": penstock, "tf.data": tf_data}


def measured(data: Any, drain: Callable[[Any], None], steps: Sequence[Step]) -> dict[str, Found]:
    """µs per element and column of each step: difference of minima, median of differences."""
    found = {}
    for step in steps:
        if ONLY in step.name:
            size, base, behind = sized(data, drain, step)
            pairs = [(cpu(drain, base), cpu(drain, behind)) for _ in range(TURNS)]
            least = min(with_step for _, with_step in pairs) - min(without for without, _ in pairs)
            typical = median(with_step - without for without, with_step in pairs)
            values = size * step.columns
            found[step.name] = least / values * 1e6, typical / values * 1e6
    return found


def sized(data: Any, drain: Callable[[Any], None], step: Step) -> tuple[int, Any, Any]:
    """Number of elements, the data set without the step and with it, both warm."""
    for size in (FEW, MANY):
        base = step.base(data, size)
        behind = step.add(data, base, size)
        for dataset in (base, behind, behind):
            took = cpu(drain, dataset)
        if took * MANY / FEW > SECONDS:
            break
    return size, base, behind


def cpu(drain: Callable[[Any], None], dataset: Any) -> float:
    """CPU seconds of a pass, of all threads."""
    start = time.process_time()
    drain(dataset)
    return time.process_time() - start


def main() -> None:
    ours = figures("penstock")
    theirs = figures("tf.data") if importlib.util.find_spec("tensorflow") else {}
    width = max(map(len, ours), default=0)
    print(f"{'µs per element':{width}}  {'penstock':>16}  {'tf.data':>16}  {'ratio':>7}  goal")
    on_numbers = {step.name for step in STEPS if step.base is not sequences and step.columns == 1}
    for name, mine in ours.items():
        its = theirs.get(name)
        ratio = f"{its[0] / max(mine[0], NOISE):.1f}×" if its and its[0] > NOISE else "-"
        verdict = f"≤ {GOAL:g} µs {'met' if mine[0] <= GOAL else 'MISSED'}" if name in on_numbers else "-"
        print(f"{name:{width}}  {cell(mine):>16}  {cell(its):>16}  {ratio:>7}  {verdict}")


def figures(side: str) -> dict[str, Found]:
    """Those of a side, from a process of its own."""
    found: dict[str, Found] = json.loads(output_of([sys.executable, *sys.argv, "--side", side]).splitlines()[-1])
    return found


def cell(found: Found | None) -> str:
    return "-" if found is None else f"{found[0]:.2f} ({found[1]:.2f})"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="the cost of each step of its own, per element")
    parser.add_argument("--turns", type=int, default=TURNS, metavar="N", help="pairs of passes (%(default)s)")
    parser.add_argument("--only", default="", metavar="TEXT", help="the steps whose names contain it")
    parser.add_argument("--side", choices=SIDES, help="measure this side alone, in this process, and print its figures")
    chosen = parser.parse_args()
    TURNS, ONLY = chosen.turns, chosen.only
    if chosen.side:
        print(json.dumps(SIDES[chosen.side]()))
    else:
        main()
