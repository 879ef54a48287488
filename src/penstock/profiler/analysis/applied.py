"""applied: the figures of an analysis after a change."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from penstock.plan.node import AUTOTUNE
from penstock.profiler.analysis.changes import Changes, inner, upstream
from penstock.profiler.analysis.figures import LOOP, Analysis, LaneFigures, Step
from penstock.profiler.analysis.model import workers_wanted

_COPIED = 1 / 1e10  # seconds for reading a byte from a cache
_SHIPPED = 1 / 1.5e9  # seconds per byte, in one direction
PREFETCH = "prefetch"  # the lane of a thread that runs ahead of the training loop
_SHIPPED_CALL = 150e-6  # seconds per Block, in both directions


def applied(analysis: Analysis, change: Changes) -> Analysis:
    """Return the figures after a change that `check` has accepted."""
    free = set(change.left_out)
    if change.cached_after is not None:
        free.update(upstream(analysis, change.cached_after))
    if free:
        steps = tuple(_times(0.0)(step) if step.name in free else step for step in analysis.steps)
        analysis = replace(analysis, steps=steps)
    if change.cached_after is not None:
        analysis = _with_step(analysis, change.cached_after, lambda step: replace(step, cpu=step.nbytes * _COPIED))
    for name, factor in change.faster.items():
        analysis = _with_step(analysis, name, _times(1 / float(factor)))
    if change.cores is not None:
        analysis = _on_cores(analysis, float(change.cores))
    if change.consumer_seconds is not None:
        analysis = replace(analysis, consumer_seconds=float(change.consumer_seconds))
    for name, count in change.parallelism.items():
        analysis = _parallel(analysis, name, count)
    for name, executor in change.executor.items():
        analysis = _executed(analysis, name, executor)
    if change.prefetch:
        here = [step.name for step in analysis.steps if step.lane == LOOP]
        if here:
            analysis = _own_lane(analysis, PREFETCH, LOOP, side_by_side=[], pulled=here)
    return analysis


def _with_step(analysis: Analysis, name: str, change: Callable[[Step], Step]) -> Analysis:
    steps = tuple(change(step) if step.name == name else step for step in analysis.steps)
    return replace(analysis, steps=steps)


def _times(factor: float) -> Callable[[Step], Step]:
    def change(step: Step) -> Step:
        costs = (step.cpu, step.waiting, step.held, step.shipping)
        cpu, waiting, held, shipping = (factor * cost for cost in costs)
        if factor:
            shipping = step.shipping  # a faster function receives the same elements
        return replace(step, cpu=cpu, waiting=waiting, held=held, shipping=shipping)

    return change


def _on_cores(analysis: Analysis, cores: float) -> Analysis:
    """Scale the workers chosen by AUTOTUNE with the cores; numbers set by the user stay."""
    factor = cores / analysis.cpus
    lanes = tuple(
        replace(lane, workers=max(1, math.ceil(lane.workers * factor))) if lane.autotuned else lane
        for lane in analysis.lanes
    )
    return replace(analysis, cpus=cores, lanes=lanes)


def _with_lane(analysis: Analysis, changed: LaneFigures) -> Analysis:
    lanes = tuple(changed if lane.name == changed.name else lane for lane in analysis.lanes)
    return replace(analysis, lanes=lanes)


def _parallel(analysis: Analysis, name: str, count: int) -> Analysis:
    """Return the figures with `count` parallel calls of a step."""
    step = analysis.step(name)
    lane_name = f"{name} inputs" if step.kind == "interleave" else step.lane
    if step.kind == "interleave" and not any(lane.name == lane_name for lane in analysis.lanes):
        analysis = _own_lane(analysis, lane_name, step.lane, side_by_side=inner(analysis, name), pulled=[])
    elif step.kind != "interleave" and not step.parallel:
        analysis = _own_lane(analysis, name, step.lane, side_by_side=[name], pulled=upstream(analysis, name)[1:])
        lane_name = name
    lane = analysis.lane(lane_name)
    workers = workers_wanted(analysis, lane_name) if count == AUTOTUNE else count
    if step.kind == "interleave":
        workers = min(workers, step.cycle or workers)
    return _with_lane(analysis, replace(lane, workers=workers, autotuned=count == AUTOTUNE))


def _own_lane(analysis: Analysis, name: str, old: str, *, side_by_side: list[str], pulled: list[str]) -> Analysis:
    """Move steps from a lane into their own lane, which feeds the old one."""
    moved = {*side_by_side, *pulled}
    steps = tuple(
        replace(step, lane=name, parallel=step.name in side_by_side)
        if step.name in moved and step.lane == old and not step.parallel
        else step
        for step in analysis.steps
    )
    lanes = [
        replace(lane, consumer=name) if lane.consumer == old and lane.name in _lanes_of(analysis, pulled) else lane
        for lane in analysis.lanes
    ]
    return replace(analysis, steps=steps, lanes=(*lanes, LaneFigures(name, consumer=old)))


def _lanes_of(analysis: Analysis, names: list[str]) -> set[str]:
    return {analysis.step(name).lane for name in names}


def _executed(analysis: Analysis, name: str, executor: str) -> Analysis:
    """Return the figures with a map's function in worker processes, in threads, or in the consumer's thread."""
    step = analysis.step(name)
    if executor == "inline":
        return _inline(analysis, step.lane) if step.parallel else analysis
    if not step.parallel:
        if executor == "thread":
            return analysis
        analysis = _own_lane(analysis, name, step.lane, side_by_side=[name], pulled=upstream(analysis, name)[1:])
    lane = analysis.lane(analysis.step(name).lane)
    if lane.executor == executor:
        return analysis
    for other in analysis.steps:
        if other.lane == lane.name and other.parallel and other.kind != "batch":
            shipping = 0.0
            # steps that are fused with it move, too, without additional transfers
            if executor == "process" and other.name == name:
                shipping = _shipping(analysis, other)
            analysis = _with_step(analysis, other.name, partial(replace, shipping=shipping))
    return _with_lane(analysis, replace(lane, executor=executor))


def _shipping(analysis: Analysis, step: Step) -> float:
    """Return the seconds for sending an element to a worker process and its result back."""
    sent = sum(analysis.step(name).nbytes * analysis.step(name).ratio for name in step.inputs) / (step.ratio or 1.0)
    return (sent + step.nbytes) * _SHIPPED + _SHIPPED_CALL / max(step.per_call, 1.0)


def _inline(analysis: Analysis, name: str) -> Analysis:
    """Return the figures with a lane's work moved to its consumer."""
    consumer = analysis.lane(name).consumer or LOOP
    steps = tuple(
        replace(step, lane=consumer, parallel=False, shipping=0.0) if step.lane == name else step
        for step in analysis.steps
    )
    lanes = tuple(
        replace(lane, consumer=consumer) if lane.consumer == name else lane
        for lane in analysis.lanes
        if lane.name != name
    )
    return replace(analysis, steps=steps, lanes=lanes)
