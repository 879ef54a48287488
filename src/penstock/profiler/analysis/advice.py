"""Changes of a pipeline, with the gain that the model predicts for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.plan.node import AUTOTUNE
from penstock.profiler.analysis.applied import PREFETCH, applied
from penstock.profiler.analysis.bottleneck import bottleneck
from penstock.profiler.analysis.changes import Changes
from penstock.profiler.analysis.figures import LOOP, Analysis, Step, named, number, size
from penstock.profiler.analysis.model import cpu_seconds, fitted, rate, steps_in, workers_wanted

_WORTH = 0.05  # gain that is worth a line
_MOST = 4
_LOCKED = 0.3  # share of a function's work under the GIL from which processes are better
_MANY_CORES = 16
_TOGETHER = "together"
_ENOUGH = 100  # ratio above which no number is shown


@dataclass(frozen=True, slots=True)
class PredictedChange:
    """A change in words, the predicted rate divided by the current one, and the change as arguments of `what_if`."""

    sentence: str
    ratio: float
    change: Changes


def advice(analysis: Analysis) -> list[PredictedChange]:
    """Return the changes that the model predicts to help: first changes of settings, the most helpful first.

    Changes with a price follow: other elements, memory, or another machine.
    """
    if not analysis.elements_per_second:
        return []
    fit = fitted(analysis)
    now = rate(analysis, fit)
    best: dict[str, PredictedChange] = {}  # by step
    for step, text, change in _candidates(analysis):
        ratio = rate(applied(analysis, change), fit) / now
        if ratio >= (1 + _WORTH) * (best[step].ratio if step in best else 1.0):
            best[step] = PredictedChange(f"{text}: expect {gain(ratio)}.", ratio, change)
    apart = (each.ratio for step, each in best.items() if step != _TOGETHER)
    if _TOGETHER in best and best[_TOGETHER].ratio < (1 + _WORTH) * max(apart, default=0.0):
        del best[_TOGETHER]
    found = sorted(best.values(), key=lambda each: -each.ratio)
    costly = (_smaller(analysis, fit, now), _cache(analysis, fit, now), _cores(analysis, fit, now))
    return [*found[:_MOST], *(each for each in costly if each is not None)]


def gain(ratio: float) -> str:
    """Return a ratio as a gain in words.

    >>> gain(1.853), gain(7.1), gain(755), gain(0.5)
    ('+85 %', '7.1 times as many', 'more than 100 times as many', '-50 %')
    """
    if ratio > _ENOUGH:
        return "more than 100 times as many"
    return f"{number(round(ratio, 1))} times as many" if ratio >= 4 else f"{ratio - 1:+.0%}".replace("%", " %")


def _candidates(analysis: Analysis) -> Iterator[tuple[str, str, Changes]]:
    """Yield (step, text, change) for each possible change; of two ways, the simpler one first."""
    serial = []
    for step in analysis.steps:
        # the model does not know which step waits for memory
        if "/" in step.name or not step.ratio or analysis.copies(step):
            continue
        if step.kind == "map" and not step.changes_state:
            if not step.parallel:
                serial.append(step)
            yield from ((step.name, *each) for each in _of_map(analysis, step))
        elif step.kind == "interleave":
            lanes = {lane.name for lane in analysis.lanes}
            inner = any(other.name.startswith(f"{step.name}/") for other in analysis.steps)
            if inner and f"{step.name} inputs" not in lanes:
                change = Changes(parallelism={step.name: AUTOTUNE})
                yield step.name, f"add num_parallel_calls=AUTOTUNE to {step.name}", change
    if analysis.consumer_seconds * analysis.elements_per_second > _WORTH and steps_in(analysis, LOOP):
        yield PREFETCH, "add prefetch(AUTOTUNE) at the end", Changes(prefetch=True)
    if len(serial) > 1:
        names = [step.name for step in serial]
        shown, rest = (names[:-1], names[-1]) if len(names) <= _MOST else (names[:2], f"{len(names) - 2} more maps")
        text = f"add num_parallel_calls=AUTOTUNE to {', '.join(shown)} and {rest}"
        yield _TOGETHER, text, Changes(parallelism=dict.fromkeys(names, AUTOTUNE))


def _of_map(analysis: Analysis, step: Step) -> Iterator[tuple[str, Changes]]:
    name = step.name
    lane = analysis.lane(step.lane)
    movable = analysis.lock and step.process is None and step.held > _LOCKED * step.cpu
    if not step.parallel:
        yield f"add num_parallel_calls=AUTOTUNE to {named(step)}", Changes(parallelism={name: AUTOTUNE})
        if movable:
            text = f'run {named(step)} in processes (num_parallel_calls=AUTOTUNE, executor="process")'
            yield text, Changes(parallelism={name: AUTOTUNE}, executor={name: "process"})
        return
    if not lane.autotuned and workers_wanted(analysis, lane.name) > lane.workers:
        text = f"set num_parallel_calls=AUTOTUNE instead of {lane.workers} for {named(step)}"
        yield text, Changes(parallelism={name: AUTOTUNE})
    if movable and lane.executor != "process":
        yield f'run {named(step)} in processes (executor="process")', Changes(executor={name: "process"})


def _smaller(analysis: Analysis, fit: float, now: float) -> PredictedChange | None:
    """Return the advice to make elements smaller, if copying their bytes is the bottleneck."""
    held = bottleneck(analysis).step
    limit = next((step for step in analysis.steps if step.name == held), None)
    if limit is None or not analysis.copies(limit):
        return None
    change = Changes(faster=dict.fromkeys((step.name for step in analysis.steps if analysis.copies(step)), 2.0))
    ratio = rate(applied(analysis, change), fit) / now
    if ratio < 1 + _WORTH:
        return None
    text = f"make the elements of {named(limit)} smaller: use a smaller dtype, or crop before this step"
    return PredictedChange(f"{text}. With half the bytes expect {gain(ratio)}.", ratio, change)


def _cache(analysis: Analysis, fit: float, now: float) -> PredictedChange | None:
    """Return the most helpful place for a cache; of places with about the same gain, the one nearest to the source."""
    found: PredictedChange | None = None
    for step in _cacheable(analysis):
        total = None if analysis.epoch_elements is None else step.nbytes * step.ratio * analysis.epoch_elements
        if total is not None and total > analysis.memory / 2:
            continue
        change = Changes(cached_after=step.name)
        ratio = rate(applied(analysis, change), fit) / now
        if ratio < 1 + _WORTH or (found is not None and min(ratio, _ENOUGH) < 1.2 * min(found.ratio, _ENOUGH)):
            continue
        fits = f"it takes {size(total)}" if total is not None else f"if all its elements, {size(step.nbytes)} each, fit"
        text = f"put cache() after {named(step)}: expect {gain(ratio)} from the second epoch on; {fits}."
        found = PredictedChange(text, ratio, change)
    return found


def _cacheable(analysis: Analysis) -> Iterator[Step]:
    """Yield the steps after which a cache would serve all epochs correctly.

    No step before such a cache uses random numbers, has state or repeats. The cache keeps the order of the first epoch,
    so a shuffle before it has to move after it.
    """
    if any(step.kind in ("cache", "snapshot") for step in analysis.steps):
        return
    outer = [step for step in analysis.steps if "/" not in step.name]
    spoilt: set[str] = set()
    shuffled: set[str] = set()
    for at, step in enumerate(outer):
        parts = [step, *(other for other in analysis.steps if other.name.startswith(f"{step.name}/"))]
        draws = any(part.changes_state or (part.random and not _shuffles(part)) for part in parts)
        if draws or "repeat" in step.kind or spoilt.intersection(step.inputs):
            spoilt.add(step.name)
            continue
        if any(_shuffles(part) for part in parts) or shuffled.intersection(step.inputs):
            shuffled.add(step.name)
            if not any(_shuffles(later) for later in outer[at + 1 :]):
                continue
        if step.kind not in ("prefetch", "take", "range"):  # counting is as fast as a cache
            yield step


def _shuffles(step: Step) -> bool:
    return "shuffle" in step.kind


def _cores(analysis: Analysis, fit: float, now: float) -> PredictedChange | None:
    """Return the advice to use more cores, if the cores are the bottleneck."""
    if bottleneck(analysis).kind != "cores":
        return None
    cores = _MANY_CORES if analysis.cpus <= _MANY_CORES / 2 else 4 * round(analysis.cpus)
    change = Changes(cores=cores)
    ratio = rate(applied(analysis, change), fit) / now
    used = analysis.cpus * cpu_seconds(analysis)
    if ratio < 1 + _WORTH or not used:
        return None
    text = f"{cores} cores instead of {number(analysis.cpus)} would give {number(round(ratio, 1))} times as many."
    return PredictedChange(text, ratio, change)


def nothing_to_do(analysis: Analysis) -> str:
    """Return the text if no change helps."""
    found = bottleneck(analysis)
    if found.kind == "loop" and found.step is None and analysis.consumer_seconds:
        return "nothing: the pipeline is ahead of the loop"
    return "no change known to the model gives 5 % more"
