"""The model: how many elements a second a pipeline gives at most, from what its steps cost.

Each part of the machine that an element needs bounds the rate by what it needs of it; the least bound is the rate:

    loop      1 / (seconds of the loop's own work + of the steps that its thread runs)
    pull      1 / seconds of the steps that a lane's workers pull, one worker at a time       for each lane
    workers   workers / seconds that one of them is busy with an element, pulling included    for each lane
    cores     cores / CPU seconds of all steps
    lock      1 / seconds under the interpreter's lock of all steps outside worker processes

What it leaves out: bounds that lie close together give less than each of them alone; locks of user code, memory
bandwidth and other programs are not seen, and reading at a higher rate is taken to cost what it costs now. What these
took from the rate that was measured is taken to be taken from the predicted one too (`fit`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.profiler.analysis.figures import LOOP, Analysis, Lane, Step

MOST_WORKERS = 64  # that AUTOTUNE is taken to choose for steps that wait
_LEAST_HANDING = 5e-8  # seconds for an element, whatever else is free
_PART = 0.05  # of a loop's time, from which making elements in its thread says how fast that goes
_LEAST_FIT, _MOST_FIT = 0.1, 1.5  # beyond, the figures contradict each other


@dataclass(frozen=True, slots=True)
class Bound:
    """What keeps the rate below `per_second`: "loop", "pull", "workers", "cores" or "lock"; of one lane, or of all."""

    kind: str
    per_second: float
    lane: str | None = None


def bounds(analysis: Analysis, fit: float = 1.0) -> list[Bound]:
    """All bounds, the lowest first. All but the loop's own work are scaled by `fit`."""
    own = max(analysis.handing, _LEAST_HANDING) + _pulled(analysis, LOOP)
    found = [Bound("loop", _per(1.0, analysis.consumer_seconds + own / fit), LOOP)]
    for lane in analysis.lanes:
        if lane.name != LOOP:
            pulled, run = _pulled(analysis, lane.name), _run(analysis, lane)
            if run:  # without it pulling is all that its one worker does
                found.append(Bound("pull", fit * _per(1.0, pulled), lane.name))
            found.append(Bound("workers", fit * _per(lane.workers, pulled + run), lane.name))
    found.append(Bound("cores", fit * _per(analysis.cpus, cpu_seconds(analysis))))
    if analysis.lock:
        found.append(Bound("lock", fit * _per(1.0, lock_seconds(analysis))))
    return sorted(found, key=lambda bound: bound.per_second)


def rate(analysis: Analysis, fit: float = 1.0) -> float:
    """Elements of the data set a second."""
    return bounds(analysis, fit)[0].per_second


def fitted(analysis: Analysis) -> float:
    """What the model's rate has to be multiplied by to give the measured one."""
    lowest = bounds(analysis)[0]
    if not analysis.elements_per_second or not math.isfinite(lowest.per_second):
        return 1.0
    if lowest.kind == "loop" and analysis.consumer_seconds * lowest.per_second > 0.5:
        return _fit_beside(analysis, lowest)
    return min(max(analysis.elements_per_second / lowest.per_second, _LEAST_FIT), _MOST_FIT)


def _fit_beside(analysis: Analysis, loop: Bound) -> float:
    """Fit a loop that takes most of the time itself by the rest, if that is making elements in its thread."""
    own = max(analysis.handing, _LEAST_HANDING) + _pulled(analysis, LOOP)
    rest = 1 / analysis.elements_per_second - analysis.consumer_seconds
    if own * loop.per_second >= _PART and rest > 0:
        if _LEAST_FIT <= own / rest <= _MOST_FIT:
            return own / rest
        if own < rest and analysis.consumer_waited > 0.5:
            return _LEAST_FIT  # the loop was seen to wait: making takes far longer than what its steps show
    return 1.0  # the pipeline was not asked for all that it can give


def cpu_seconds(analysis: Analysis) -> float:
    """CPU time of one element of the data set, in this process and its workers."""
    return analysis.handing + sum(step.ratio * (step.cpu + step.shipping) for step in analysis.steps)


def lock_seconds(analysis: Analysis) -> float:
    """Time of one element of the data set under this process's interpreter lock."""
    away = {lane.name for lane in analysis.lanes if lane.executor == "process"}
    held = analysis.handing
    for step in analysis.steps:
        held += step.ratio * (step.shipping / 2 if step.parallel and step.lane in away else step.held)
    return held


def workers_wanted(analysis: Analysis, lane: str) -> int:
    """How many workers keep all cores busy, waiting included."""
    steps = steps_in(analysis, lane)
    cpu = sum(step.ratio * step.cpu for step in steps)
    seconds = sum(step.seconds for step in steps)
    wanted = MOST_WORKERS if cpu * MOST_WORKERS <= seconds else math.ceil(analysis.cpus * seconds / cpu - 1e-9)
    return max(math.ceil(analysis.cpus), min(wanted, MOST_WORKERS))


def steps_in(analysis: Analysis, lane: str, *, parallel: bool | None = None) -> Sequence[Step]:
    """The steps of a lane: the parallel ones, the pulled ones, or all."""
    return [s for s in analysis.steps if s.lane == lane and parallel in (None, s.parallel)]


def _pulled(analysis: Analysis, lane: str) -> float:
    return sum(step.seconds for step in steps_in(analysis, lane, parallel=False))


def _run(analysis: Analysis, lane: Lane) -> float:
    steps = steps_in(analysis, lane.name, parallel=True)
    return sum(step.seconds + step.ratio * step.shipping for step in steps)


def _per(amount: float, seconds: float) -> float:
    return amount / seconds if seconds > 0 else math.inf
