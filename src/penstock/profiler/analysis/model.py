"""The model: computes the highest rate of a pipeline from the costs of its steps.

Each resource limits the rate by the amount that an element needs of it. The smallest limit is the rate:

    loop      1 / (seconds of the loop's own work + of the steps that its thread runs)
    pull      1 / seconds of the steps that a lane's workers pull, one worker at a time       for each lane
    workers   workers / seconds that one of them is busy with an element, pulling included    for each lane
    cores     cores / CPU seconds of all steps
    lock      1 / seconds under the interpreter's lock of all steps outside worker processes

Limitations: limits that are close together give a lower rate than each of them alone. Locks of user code, memory
bandwidth and other programs are unknown. Reading is assumed to cost the same at a higher rate. The model assumes that
these effects reduce the predicted rate by the same factor (`fit`) as the measured one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.profiler.analysis.figures import LOOP, Analysis, LaneFigures, Step

MOST_WORKERS = 64  # number of workers that AUTOTUNE is assumed to choose for steps that wait
_LEAST_HANDING = 5e-8  # seconds per element, even if all else is free
_PART = 0.05  # share of the loop's time from which work in its thread is measurable
_LEAST_FIT, _MOST_FIT = 0.1, 1.5  # outside this range, the figures are contradictory


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit of the rate: "loop", "pull", "workers", "cores" or "lock"; of one lane or of all."""

    kind: str
    per_second: float
    lane: str | None = None


def bounds(analysis: Analysis, fit: float = 1.0) -> list[Bound]:
    """Return all bounds, the lowest first. All except the loop's own work are scaled by `fit`."""
    own = max(analysis.handing, _LEAST_HANDING) + _pulled(analysis, LOOP)
    found = [Bound("loop", _per(1.0, analysis.consumer_seconds + own / fit), LOOP)]
    for lane in analysis.lanes:
        if lane.name != LOOP:
            pulled, run = _pulled(analysis, lane.name), _run(analysis, lane)
            if run:  # without parallel steps, its one worker only pulls
                found.append(Bound("pull", fit * _per(1.0, pulled), lane.name))
            found.append(Bound("workers", fit * _per(lane.workers, pulled + run), lane.name))
    found.append(Bound("cores", fit * _per(analysis.cpus, cpu_seconds(analysis))))
    if analysis.lock:
        found.append(Bound("lock", fit * _per(1.0, lock_seconds(analysis))))
    return sorted(found, key=lambda bound: bound.per_second)


def rate(analysis: Analysis, fit: float = 1.0) -> float:
    """Return the elements of the data set per second."""
    return bounds(analysis, fit)[0].per_second


def fitted(analysis: Analysis) -> float:
    """Return the measured rate divided by the model's rate."""
    lowest = bounds(analysis)[0]
    if not analysis.elements_per_second or not math.isfinite(lowest.per_second):
        return 1.0
    if lowest.kind == "loop" and analysis.consumer_seconds * lowest.per_second > 0.5:
        return _fit_beside(analysis, lowest)
    return min(max(analysis.elements_per_second / lowest.per_second, _LEAST_FIT), _MOST_FIT)


def _fit_beside(analysis: Analysis, loop: Bound) -> float:
    """Return the factor for a loop that takes most of the time, from the remaining time if that is its own work."""
    own = max(analysis.handing, _LEAST_HANDING) + _pulled(analysis, LOOP)
    rest = 1 / analysis.elements_per_second - analysis.consumer_seconds
    if own * loop.per_second >= _PART and rest > 0:
        if _LEAST_FIT <= own / rest <= _MOST_FIT:
            return own / rest
        if own < rest and analysis.consumer_waited > 0.5:
            return _LEAST_FIT  # the loop was measured to wait: computing takes far longer than the costs of the steps
    return 1.0  # the pipeline did not have to run at its limit


def cpu_seconds(analysis: Analysis) -> float:
    """Return the CPU time of one element of the data set, in this process and its workers."""
    return analysis.handing + sum(step.ratio * step.work for step in analysis.steps)


def cpu_share(analysis: Analysis, step: Step) -> float:
    """Return the share of a step in the CPU time."""
    total = cpu_seconds(analysis)
    return step.ratio * step.work / total if total else 0.0


def lock_seconds(analysis: Analysis) -> float:
    """Return the time of one element of the data set under this process's GIL."""
    away = {lane.name for lane in analysis.lanes if lane.executor == "process"}
    held = analysis.handing
    for step in analysis.steps:
        held += step.ratio * (step.shipping / 2 if step.parallel and step.lane in away else step.held)
    return held


def workers_wanted(analysis: Analysis, lane: str) -> int:
    """Return the number of workers that keeps all cores busy, including waiting."""
    steps = steps_in(analysis, lane)
    cpu = sum(step.ratio * step.cpu for step in steps)
    seconds = sum(step.seconds for step in steps)
    wanted = MOST_WORKERS if cpu * MOST_WORKERS <= seconds else math.ceil(analysis.cpus * seconds / cpu - 1e-9)
    return max(math.ceil(analysis.cpus), min(wanted, MOST_WORKERS))


def steps_in(analysis: Analysis, lane: str, *, parallel: bool | None = None) -> Sequence[Step]:
    """Return the steps of a lane: the parallel ones, the pulled ones, or all."""
    return [s for s in analysis.steps if s.lane == lane and parallel in (None, s.parallel)]


def _pulled(analysis: Analysis, lane: str) -> float:
    return sum(step.seconds for step in steps_in(analysis, lane, parallel=False))


def _run(analysis: Analysis, lane: LaneFigures) -> float:
    steps = steps_in(analysis, lane.name, parallel=True)
    return sum(step.seconds + step.ratio * step.shipping for step in steps)


def _per(amount: float, seconds: float) -> float:
    return amount / seconds if seconds > 0 else math.inf
