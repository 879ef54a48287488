"""Compare AUTOTUNE with a grid of settings by hand, and with tf.data's AUTOTUNE."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from statistics import median

from _common.table import Row, rate, row_of

from _autotune.alone import Sides, figures, in_turn
from _autotune.chosen import chosen
from _autotune.drive import Figures, Timing, drive
from _autotune.setting import AUTO, Setting
from _autotune.workload import Workload

GOAL = 0.95
FIRST_PASS = Timing(run_in=1.0, seconds=1.5)
# settings of the grid that are compared with AUTOTUNE: at most 2, with at least 0.9 of the best rate
CLOSE, CANDIDATES = 0.9, 2
TF_DATA = "tf.data, AUTOTUNE"


def sides_of(workloads: Iterable[Workload]) -> Sides:
    """Return the sides of each workload: each of its settings, and tf.data."""
    found: dict[str, partial[Figures]] = {}
    for workload in workloads:
        found[side(workload, TF_DATA)] = partial(tf_data, workload)
        for setting in (AUTO, *workload.grid):
            found[side(workload, setting.name)] = partial(penstock, workload, setting)
    return found


def side(workload: Workload, name: str) -> str:
    return f"{workload.name}: {name}"


def penstock(workload: Workload, setting: Setting, timing: Timing) -> Figures:
    with workload.penstock(setting).iterator() as elements:
        found = drive(elements, timing, each=workload.each, step=workload.step)
        return replace(found, chosen=chosen(elements))


def tf_data(workload: Workload, timing: Timing) -> Figures:
    return drive(iter(workload.tf_data()), timing, each=workload.each, step=workload.step)


def against_grid(workload: Workload, timing: Timing, rounds: int) -> list[Row]:
    """Compare AUTOTUNE with the best of the grid, in rounds, and once with tf.data. Print intermediate results."""
    workload.prepare()
    grid = {setting.name: figures(side(workload, setting.name), FIRST_PASS) for setting in workload.grid}
    print(f"{workload.name}:", "; ".join(f"{name} {rate(found.rate)}" for name, found in grid.items()), flush=True)
    ranked = sorted(grid, key=lambda name: -grid[name].rate)
    close = [name for name in ranked if grid[name].rate >= CLOSE * grid[ranked[0]].rate][:CANDIDATES]
    turns = in_turn([side(workload, name) for name in (AUTO.name, *close)], timing, rounds)
    ours, *others = ([turn[side(workload, name)] for turn in turns] for name in (AUTO.name, *close))
    best = [best_of(others, leaving_out=turn) for turn in range(rounds)]
    print(f"    AUTOTUNE: {'; '.join(rate(run.rate) for run in ours)}; chose {ours[-1].chosen}", flush=True)
    theirs = [others[candidate][turn] for turn, candidate in enumerate(best)]
    names = " or ".join(close[candidate] for candidate in sorted(set(best)))
    rows = [row_of(workload.name, ours, f"{names}, best of {len(grid)}", theirs, goal=GOAL)]
    if importlib.util.find_spec("tensorflow"):
        found = figures(side(workload, TF_DATA), timing)
        rows.append(row_of(workload.name, ours, TF_DATA, [found] * rounds))
    return rows


def best_of(candidates: Sequence[Sequence[Figures]], *, leaving_out: int) -> int:
    """Return the candidate with the best median of all rounds but one, or the first one if there is no other round.

    A round does not choose the setting that it is compared with. Otherwise the faster run of two equal settings would
    always count.
    """
    rates = [[run.rate for turn, run in enumerate(runs) if turn != leaving_out] for runs in candidates]
    return max(range(len(rates)), key=lambda candidate: median(rates[candidate])) if rates[0] else 0
