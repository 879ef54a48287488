"""Measure the cost of each step per element, in penstock and tf.data.

The elements are numbers, or short sequences for steps on sequences, and the functions do almost no work. The figure is
the CPU time of an iteration with the step, minus that of an iteration without it, per input element. No Python loop
over elements is included: penstock's Blocks are dropped, and tf.data's elements are collected by `window(1024)`. The
window costs about 0.5 µs per element. So a step that returns fewer elements than it takes, such as `batch`, looks that
much better in tf.data than it is. The two iterations take turns. The figure is the difference of their minima; the
figure in brackets is the median of the differences. Goal: at most 1 µs for each step on numbers. If a function creates
a data set for each window of 32 elements, most of the figure is the cost of a data set. Steps on dicts of 100 and of
500 columns have figures per column.

    python benchmarks/steps.py [--turns N] [--only TEXT]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from _common.duel import figures_of, timed
from _steps.steps import BATCH, STEPS, Step, sequences

TURNS, SECONDS = 3, 0.2
FEW, MANY = 1 << 12, 1 << 16  # elements of an iteration: MANY if that takes at most a few tenths of a second
GOAL = 1.0
NOISE = 0.05  # µs: smaller differences count as noise

Found = tuple[float, float]


def drain_penstock(dataset: Any) -> None:
    """Iterate with the requests of `batch(1024)` and drop the Blocks."""
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
    """Return µs per element and column of each step: difference of minima, median of differences."""
    found = {}
    for step in steps:
        if ONLY in step.name:
            size, base, with_step = sized(data, drain, step)
            pairs = [(cpu(drain, base), cpu(drain, with_step)) for _ in range(TURNS)]
            least = min(with_step for _, with_step in pairs) - min(without for without, _ in pairs)
            typical = median(with_step - without for without, with_step in pairs)
            values = size * step.columns
            found[step.name] = least / values * 1e6, typical / values * 1e6
    return found


def sized(data: Any, drain: Callable[[Any], None], step: Step) -> tuple[int, Any, Any]:
    """Return the number of elements, the data set without the step and the data set with it, both warm."""
    for size in (FEW, MANY):
        base = step.base(data, size)
        with_step = step.add(data, base, size)
        for dataset in (base, with_step, with_step):
            took = cpu(drain, dataset)
        if took * MANY / FEW > SECONDS:
            break
    return size, base, with_step


def cpu(drain: Callable[[Any], None], dataset: Any) -> float:
    """Return the CPU seconds of an iteration, of all threads."""
    return timed(lambda: drain(dataset))[1]


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
    """Return the figures of a side from its own process."""
    found: dict[str, Found] = figures_of([sys.executable, *sys.argv, "--side", side])
    return found


def cell(found: Found | None) -> str:
    return "-" if found is None else f"{found[0]:.2f} ({found[1]:.2f})"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="the cost of each step per element")
    parser.add_argument("--turns", type=int, default=TURNS, metavar="N", help="pairs of iterations (%(default)s)")
    parser.add_argument("--only", default="", metavar="TEXT", help="run only steps whose names contain TEXT")
    parser.add_argument("--side", choices=SIDES, help="measure this side alone, in this process, and print its figures")
    chosen = parser.parse_args()
    TURNS, ONLY = chosen.turns, chosen.only
    if chosen.side:
        print(json.dumps(SIDES[chosen.side]()))
    else:
        main()
