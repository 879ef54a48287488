"""applied: the figures of an analysis after a change."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from penstock.plan.node import AUTOTUNE
from penstock.profiler.analysis.changes import Changes, inner, upstream
from penstock.profiler.analysis.figures import LOOP, Analysis, LaneFigures, Step
from penstock.profiler.analysis.model import workers_wanted

_COPIED = 1 / 1e10  # seconds for reading a byte from a cache
_SHIPPED = 1 / 1.5e9  # seconds per byte, in one direction
Item = TypeVar("Item", Step, LaneFigures)
PREFETCH = "prefetch"  # the lane of a thread that runs ahead of the training loop
_SHIPPED_CALL = 150e-6  # seconds per Block, in both directions


def applied(analysis: Analysis, change: Changes) -> Analysis:
    """Return the figures after a change that `check` has accepted."""
    free = set(change.left_out)
    if change.cached_after is not None:
        free.update(upstream(analysis, change.cached_after))
    steps = _with(analysis.steps, lambda step: step.name in free, cpu=0.0, waiting=0.0, held=0.0, shipping=0.0)
    analysis = replace(analysis, steps=steps)
    if change.cached_after is not None:
        nbytes = analysis.step(change.cached_after).nbytes
        analysis = _with_step(analysis, change.cached_after, cpu=nbytes * _COPIED)
    for name, factor in change.faster.items():  # a faster function receives the same elements
        step = analysis.step(name)
        costs = {cost: getattr(step, cost) / float(factor) for cost in ("cpu", "waiting", "held")}
        analysis = _with_step(analysis, name, **costs)
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


def _with(items: tuple[Item, ...], which: Callable[[Item], bool], **changes: Any) -> tuple[Item, ...]:
    """Return steps or lanes, some of them with changes."""
    return tuple(replace(item, **changes) if which(item) else item for item in items)


def _with_step(analysis: Analysis, name: str, **changes: Any) -> Analysis:
    return replace(analysis, steps=_with(analysis.steps, lambda step: step.name == name, **changes))


def _with_lane(analysis: Analysis, name: str, **changes: Any) -> Analysis:
    return replace(analysis, lanes=_with(analysis.lanes, lambda lane: lane.name == name, **changes))


def _on_cores(analysis: Analysis, cores: float) -> Analysis:
    """Scale the workers chosen by AUTOTUNE with the cores; numbers set by the user stay."""
    factor = cores / analysis.cpus
    for lane in analysis.lanes:
        if lane.autotuned:
            analysis = _with_lane(analysis, lane.name, workers=max(1, math.ceil(lane.workers * factor)))
    return replace(analysis, cpus=cores)


def _parallel(analysis: Analysis, name: str, count: int) -> Analysis:
    """Return the figures with `count` parallel calls of a step."""
    step = analysis.step(name)
    lane_name = f"{name} inputs" if step.kind == "interleave" else step.lane
    if step.kind == "interleave" and not any(lane.name == lane_name for lane in analysis.lanes):
        analysis = _own_lane(analysis, lane_name, step.lane, side_by_side=inner(analysis, name), pulled=[])
    elif step.kind != "interleave" and not step.parallel:
        analysis = _own_lane(analysis, name, step.lane, side_by_side=[name], pulled=upstream(analysis, name)[1:])
        lane_name = name
    workers = workers_wanted(analysis, lane_name) if count == AUTOTUNE else count
    if step.kind == "interleave":
        workers = min(workers, step.cycle or workers)
    return _with_lane(analysis, lane_name, workers=workers, autotuned=count == AUTOTUNE)


def _own_lane(analysis: Analysis, name: str, old: str, *, side_by_side: list[str], pulled: list[str]) -> Analysis:
    """Move steps from a lane into their own lane, which feeds the old one."""
    feeding = {analysis.step(each).lane for each in pulled}
    lanes = _with(analysis.lanes, lambda lane: lane.consumer == old and lane.name in feeding, consumer=name)
    moved = {*side_by_side, *pulled}
    steps = tuple(
        replace(step, lane=name, parallel=step.name in side_by_side)
        if step.name in moved and step.lane == old and not step.parallel
        else step
        for step in analysis.steps
    )
    return replace(analysis, steps=steps, lanes=(*lanes, LaneFigures(name, consumer=old)))


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
            # steps that are fused with it move, too, without additional transfers
            sent = executor == "process" and other.name == name
            analysis = _with_step(analysis, other.name, shipping=_shipping(analysis, other) if sent else 0.0)
    return _with_lane(analysis, lane.name, executor=executor)


def _shipping(analysis: Analysis, step: Step) -> float:
    """Return the seconds for sending an element to a worker process and its result back."""
    sent = sum(analysis.step(name).nbytes * analysis.step(name).ratio for name in step.inputs) / (step.ratio or 1.0)
    return (sent + step.nbytes) * _SHIPPED + _SHIPPED_CALL / max(step.per_call, 1.0)


def _inline(analysis: Analysis, name: str) -> Analysis:
    """Return the figures with a lane's work moved to its consumer."""
    consumer = analysis.lane(name).consumer or LOOP
    steps = _with(analysis.steps, lambda step: step.lane == name, lane=consumer, parallel=False, shipping=0.0)
    lanes = _with(analysis.lanes, lambda lane: lane.consumer == name, consumer=consumer)
    return replace(analysis, steps=steps, lanes=tuple(lane for lane in lanes if lane.name != name))
