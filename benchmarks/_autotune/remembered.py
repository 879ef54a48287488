"""Measure how much sooner a run with remembered settings reaches its speed.

The pipeline is the map that waits 10 ms, which needs many more workers than there are cores.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from statistics import median

from _common.table import Row

from _autotune.alone import alone
from _autotune.arrival import reached
from _autotune.drive import Timing
from _autotune.setting import AUTO
from _autotune.workloads.sleep import SLEEP

SHARE = 0.95


@dataclass(frozen=True)
class Arrival:
    """Seconds until the rate was near the final one."""

    seconds: float


def remembered_side(timing: Timing) -> Arrival:
    """Measure the time until the rate is near the final rate, which is that of the last `timing.seconds`."""
    times = []
    total = timing.run_in + timing.seconds
    with SLEEP.penstock(AUTO).iterator() as elements:
        start = time.perf_counter()
        for _ in elements:
            times.append(time.perf_counter() - start)
            if times[-1] >= total:
                break
    steady = sum(at >= timing.run_in for at in times) / (times[-1] - timing.run_in)
    return Arrival(reached(times, steady, SHARE))


def remembered_row(side: str, timing: Timing, rounds: int) -> list[Row]:
    """Compare, in each round, a run with an empty cache and a second run with the settings of the first."""
    firsts, seconds = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            environment = {"PENSTOCK_REMEMBER": "", "XDG_CACHE_HOME": cache}
            firsts.append(alone(side, timing, environment)["seconds"])
            seconds.append(alone(side, timing, environment)["seconds"])
    return [
        Row(
            workload=f"{SLEEP.name}: time until {SHARE:g} of the final rate",
            penstock=f"{median(seconds):.2f} s",
            peer="no remembered settings",
            theirs=f"{median(firsts):.2f} s",
            ratios=[later / max(first, 0.01) for later, first in zip(seconds, firsts, strict=True)],
            at_most=True,
        )
    ]
