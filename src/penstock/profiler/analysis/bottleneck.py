"""The bottleneck: the resource that limits a pipeline, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.profiler.analysis.figures import LOOP, Analysis, Step, named, number, percent, seconds, size
from penstock.profiler.analysis.model import Bound, bounds, cpu_share, fitted, lock_seconds, steps_in

SLIGHTLY = 0.05  # share of waiting time of the loop from which the pipeline is the slower side
_MOSTLY = 0.5
_LEVEL = 1.1  # bounds within this factor count as equal
_BY_CAUSE = ("cores", "lock", "workers", "pull", "loop")  # first the bounds that a change of later steps cannot raise


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """The bottleneck as reported by all tools: `explain(analyze=True)`, the profiler and `penstock top`.

    `kind` is that of the bound: "loop", "pull", "workers", "cores", "lock"; or "window", "filling", "nothing". `step`
    is the step that uses most of the scarce resource.
    """

    kind: str
    step: str | None
    sentence: str


def bottleneck(analysis: Analysis, fit: float | None = None) -> Bottleneck:
    """Return the bottleneck of a pipeline.

    With `fit`, the figures are predicted ones, so waiting of the loop is unknown.
    """
    if not analysis.elements_per_second:
        return _nothing(analysis)
    lowest, *others = found = bounds(analysis, fitted(analysis) if fit is None else fit)
    if fit is None and analysis.consumer_seconds and analysis.consumer_waited < SLIGHTLY:
        return _consumer(analysis, found)
    if lowest.kind == "loop" and analysis.consumer_seconds * lowest.per_second > _MOSTLY:
        return _slow_loop(analysis, found)
    for lane in analysis.lanes:
        if lane.full > 0.2 and lane.starved > 0.2 and lane.window is not None:
            return _window(analysis, lane.name)
    level = [bound for bound in (lowest, *others) if bound.per_second <= _LEVEL * lowest.per_second]
    if lowest.kind in ("loop", "pull"):  # a thread that works alone does not wait for the GIL
        level = [bound for bound in level if bound.kind != "lock"]
    cause = min(level, key=lambda bound: _BY_CAUSE.index(bound.kind))
    if cause.kind == "cores":
        return _cores(analysis)
    if cause.kind == "lock":
        return _lock(analysis)
    if cause.kind == "workers":
        return _workers(analysis, cause.lane or LOOP)
    return _serial(analysis, cause.lane or LOOP)


def _nothing(analysis: Analysis) -> Bottleneck:
    """Return the bottleneck if no element was yielded."""
    took = seconds(analysis.seconds)
    for step in analysis.steps:
        came = max((analysis.step(below).elements for below in step.inputs), default=0.0)
        if "shuffle" in step.kind and came and not step.elements:
            sentence = f"{named(step)} was still filling after {took}: {number(came)} elements had come."
            return Bottleneck("filling", step.name, sentence)
    if analysis.passes:
        return Bottleneck("nothing", None, "The data set has no elements.")
    reached = [step for step in analysis.steps if step.elements]
    if not reached:
        return Bottleneck("nothing", analysis.steps[0].name, f"No step yielded an element within {took}.")
    last = reached[-1]
    sentence = f"No element came within {took}; the last step that yielded any is {named(last)}."
    return Bottleneck("nothing", last.name, sentence)


def _slow_loop(analysis: Analysis, found: Sequence[Bound]) -> Bottleneck:
    here = steps_in(analysis, LOOP)
    own = sum(step.seconds for step in here)
    if own * found[0].per_second > SLIGHTLY and own > analysis.handing:
        took = seconds(analysis.consumer_seconds)
        most = max(here, key=lambda step: step.seconds)
        sentence = (
            f"Nothing is computed ahead: the loop takes {took} per element, and then its thread takes {seconds(own)} "
            f"to compute the next element, {percent(most.seconds / own)} of it in {named(most)}."
        )
        return Bottleneck("loop", most.name, sentence)
    return _consumer(analysis, found)


def _consumer(analysis: Analysis, found: Sequence[Bound]) -> Bottleneck:
    loop = next(bound for bound in found if bound.kind == "loop")
    idle = 1 - loop.per_second / next(bound for bound in found if bound is not loop).per_second
    sentence = (
        f"The loop is the slow side: it takes {seconds(analysis.consumer_seconds)} per element, and the pipeline "
        f"waits for it {percent(max(idle, 0.0))} of the time."
    )
    return Bottleneck("loop", None, sentence)


def _window(analysis: Analysis, lane: str) -> Bottleneck:
    found = analysis.lane(lane)
    sentence = (
        f"{lane} had no room for its next result {percent(found.full)} of the time, while other steps waited for its "
        f"results: too few of them fit into the {found.window or 0:,} bytes it may hold (Options.autotune.ram_budget)."
    )
    return Bottleneck("window", lane, sentence)


def _cores(analysis: Analysis) -> Bottleneck:
    most = max(analysis.steps, key=lambda step: step.ratio * step.work)
    share = cpu_share(analysis, most)
    whose = "This machine's" if analysis.cpus != 1 else "This machine's only"
    used = f"{number(analysis.cpus)} cores are" if analysis.cpus != 1 else "core is"
    sentence = f"{whose} {used} used up; {named(most)} takes {percent(share)} of the work."
    return Bottleneck("cores", most.name, sentence + _copying(analysis, most))


def _lock(analysis: Analysis) -> Bottleneck:
    most = max(analysis.steps, key=lambda step: step.ratio * step.held)
    share = most.ratio * most.held / lock_seconds(analysis)
    sentence = f"Threads wait for the GIL: {named(most)} holds it for {percent(share)} of the time in which it is held."
    return Bottleneck("lock", most.name, sentence)


def _workers(analysis: Analysis, lane: str) -> Bottleneck:
    found = analysis.lane(lane)
    parallel = steps_in(analysis, lane, parallel=True)
    if found.workers == 1 or not any(step.seconds for step in parallel):
        return _serial(analysis, lane)
    most = max(parallel, key=lambda step: step.seconds)
    waits = most.waiting / (most.cpu + most.waiting)
    does = f"its calls wait {percent(waits)} of their time" if waits > _MOSTLY else "its calls keep them busy"
    sentence = f"All {found.workers} workers of {named(most)} are in use: {does}."
    return Bottleneck("workers", most.name, sentence + _copying(analysis, most))


def _serial(analysis: Analysis, lane: str) -> Bottleneck:
    """Return the bottleneck if a single thread does all the work."""
    one_worker = lane != LOOP and analysis.lane(lane).workers == 1
    steps = steps_in(analysis, lane, parallel=None if one_worker else False)
    total = sum(step.seconds for step in steps)
    if lane == LOOP and analysis.handing >= total:
        return Bottleneck("loop", None, _handing(analysis))
    most = max(steps, key=lambda step: step.seconds)
    if lane == LOOP:
        whose, total = "the loop's own thread", total + analysis.handing
    else:
        whose = "one thread" if most.name == lane else f"one thread, for {lane}"
    share, waits = most.seconds / total, most.waiting / (most.cpu + most.waiting)
    does = f"takes {percent(share)} of its time" + (f", of which it waits {percent(waits)}" if waits > 0.2 else "")
    sentence = f"{named(most)} runs one call at a time in {whose}, and {does}.{_copying(analysis, most)}"
    return Bottleneck("loop" if lane == LOOP else "pull", most.name, sentence)


def _handing(analysis: Analysis) -> str:
    """Return the sentence if the loop's thread spends more time on receiving elements than on the steps."""
    took = seconds(analysis.handing)
    if analysis.hands_copies():
        return (
            f"Each element has {size(analysis.steps[-1].nbytes)}, and the loop receives a copy, which takes "
            f"{took}. Options(zero_copy=True) returns read-only views instead."
        )
    if any("batch" in step.kind and "/" not in step.name for step in analysis.steps):
        return (
            f"There is almost no work: the steps take less time than passing a batch to the loop, which takes {took}."
        )
    return f"Passing elements to the loop one by one takes {took} each: batch() passes many at once."


def _copying(analysis: Analysis, step: Step) -> str:
    """Return a sentence with a leading space if a step only moves memory, or an empty string."""
    if not analysis.copies(step):
        return ""
    speed = f"{size(step.nbytes)} for each of its elements, at {size(step.nbytes / step.cpu)} a second"
    return f" It moves {speed}, about as fast as memory is copied: the time is spent on copying, not on computing."
