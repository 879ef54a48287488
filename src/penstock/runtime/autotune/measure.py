"""Measure: the rates and shares of one segment over some periods, with their error.

A SteadyPeriod is a part of a history in which no knob changed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.runtime.autotune.figures import Flow, Knobs, Sample

_NOISE = 0.1  # smallest relative standard deviation of a rate over a tenth of a second
SLEEPS = 0.1  # CPU seconds per second inside calls, below which calls sleep
CLEARLY = 0.9  # ratio of rates below which the difference is more than noise
_STEP = 0.02  # seconds of work that give at least one result or a part of one
_HUGE = 1e12


def ratio(above: float, below: float, without: float = 0.0) -> float:
    """Return a quotient as a finite number for all arguments."""
    if not below > 0 or not above > 0:
        return without if not below > 0 else 0.0
    quotient = above / below
    return quotient if quotient < _HUGE else _HUGE


@dataclass(frozen=True, slots=True)
class Measure:
    """Measurements of one segment over some periods. Shares relate to the wall time of the periods."""

    seconds: float = 0.0
    steps: float = 0.0  # results, or distinguishable parts of results
    rate: float = 0.0  # elements per second
    error: float = 1.0  # relative standard error of the rate
    starved: float = 0.0  # share of the time that its consumer waited
    full: float = 0.0  # share of the time without room for results
    waiting: float = 0.0  # share of the time that its puller waited for upstream
    pulling: float = 0.0  # share of the time that its puller worked
    busy: float = 0.0  # workers inside functions or pulling, on average
    share: float = 1.0  # CPU seconds per second inside the functions, without the time that no core was free
    delayed: float = 0.0  # average number of workers that were ready but had no core
    cores: float = 0.0  # CPU seconds per second in functions and pulls
    computing: float = 0.0  # CPU seconds per second in functions alone
    used: float = 0.0  # CPU seconds per second of the whole run
    idle: float = math.inf  # unused cores; infinity: not known
    cost: float = 0.0  # CPU seconds of the whole run per element of this segment
    step_seconds: float = 0.0  # worker time per result
    result_bytes: float = 0.0
    result_elements: float = 0.0
    held_most: int = 0
    held_least: int = 0
    taken: float = 1.0  # bytes taken by the consumer per byte made; more than 1 while older results shrink


def seconds_of(samples: Sequence[Sample]) -> float:
    return sum(max(sample.stop - sample.start, 0.0) for sample in samples)


def measure(samples: Sequence[Sample], name: str) -> Measure:
    """Measure a segment over these periods. Periods without the segment do not count."""
    found = [(sample, flow) for sample in samples for flow in sample.flows if flow.name == name]
    seconds = seconds_of([sample for sample, _ in found])
    if not seconds > 0:
        return Measure()
    flows = [flow for _, flow in found]
    counts = _counts(flows)
    made = sum(counts)
    run = sum(flow.run_seconds for flow in flows)
    run_cpu = sum(flow.run_cpu for flow in flows)
    delayed = sum(flow.delayed for flow in flows)
    had_core = max(run - delayed, run_cpu)
    pull = sum(flow.pull_seconds for flow in flows)
    results = sum(flow.results for flow in flows)
    cpu = sum(sample.cpu for sample, _ in found)
    steps = max(float(results), min(float(made), run / _STEP) if made > results else 0.0)
    spread = _spread([ratio(c, s.stop - s.start) for c, (s, _) in zip(counts, found, strict=True)], found)
    return Measure(
        seconds=seconds,
        steps=steps,
        rate=ratio(made, seconds),
        error=min(max(_NOISE * math.sqrt(0.1 / seconds), ratio(0.5, steps, without=1.0), spread), 1.0),
        starved=min(ratio(sum(flow.starved for flow in flows), seconds), 1.0),
        full=min(ratio(sum(flow.full for flow in flows), seconds), 1.0),
        waiting=min(ratio(sum(flow.waiting for flow in flows), seconds), 1.0),
        pulling=min(ratio(pull, seconds), 1.0),
        busy=ratio(run + pull, seconds),
        share=min(ratio(run_cpu, had_core, without=1.0), 1.0),
        delayed=ratio(delayed, seconds),
        cores=ratio(run_cpu + sum(flow.pull_cpu for flow in flows), seconds),
        computing=ratio(run_cpu, seconds),
        used=ratio(cpu, seconds),
        idle=idle([sample for sample, _ in found]),
        cost=ratio(cpu, made),
        step_seconds=ratio(run, results),
        result_bytes=ratio(sum(flow.nbytes for flow in flows), results),
        result_elements=ratio(made, results),
        held_most=max(flow.held_most for flow in flows),
        held_least=min(flow.held_least for flow in flows),
        taken=_taken(found, seconds),
    )


def _taken(found: Sequence[tuple[Sample, Flow]], seconds: float) -> float:
    made = ratio(sum(flow.nbytes for _, flow in found), seconds)
    (first, before), (last, after) = found[0], found[-1]
    between = (last.start + last.stop - first.start - first.stop) / 2
    grown = (after.held_most + after.held_least - before.held_most - before.held_least) / 2
    if not between > 0 or not made > 0:
        return 1.0
    return min(max(1 - grown / between / made, 0.0), _HUGE)


def _counts(flows: Sequence[Flow]) -> list[int]:
    """Return the elements per period. Input elements count if they are known, because results may be batches."""
    if any(flow.inputs for flow in flows):
        return [flow.inputs for flow in flows]
    return [flow.elements for flow in flows]


def _spread(rates: Sequence[float], found: Sequence[tuple[Sample, Flow]]) -> float:
    """Return the relative standard error of the mean rate, from the differences of the periods."""
    if len(rates) < 3:
        return 0.0
    weights = [max(sample.stop - sample.start, 0.0) for sample, _ in found]
    total = sum(weights)
    mean = ratio(sum(rate * weight for rate, weight in zip(rates, weights, strict=True)), total)
    squares = sum((weight * (ratio(rate, mean) - 1)) ** 2 for rate, weight in zip(rates, weights, strict=True))
    return math.sqrt(min(ratio(squares, total * total), 1.0) * len(rates) / (len(rates) - 1)) if mean else 0.0


def idle(samples: Sequence[Sample]) -> float:
    """Return the average number of unused cores, or infinity if it is not known."""
    known = [(sample.idle, sample) for sample in samples if sample.idle is not None]
    if not known:
        return math.inf
    return ratio(sum(spare for spare, _ in known), seconds_of([sample for _, sample in known]))


def starvation(samples: Sequence[Sample]) -> float:
    """Return the share of the time that the thread of the training loop waited for the results of workers."""
    seconds = seconds_of(samples)
    waits: dict[str, float] = {}
    for sample in samples:
        names = {flow.name for flow in sample.flows}
        for flow in sample.flows:
            if flow.consumer is None or flow.consumer not in names:
                waits[flow.name] = waits.get(flow.name, 0.0) + flow.starved
    return min(ratio(max(waits.values(), default=0.0), seconds), 1.0)


_RECENT = 1.5  # seconds that show the present behaviour of a setting
_FRESH = 0.3  # last seconds, which always count
_SOME = 4.0  # seconds that are longer than one bad moment
_ALIKE = 0.25  # relative difference of rates above which a period is of another kind
_LONG_PERIOD = 0.4  # length in seconds of a period in which much may change
_WARM_MOST = 2.0  # most seconds that a setting may need to warm up


@dataclass(frozen=True, slots=True)
class SteadyPeriod:
    """Periods under the same knobs."""

    knobs: Mapping[str, Knobs]
    samples: tuple[Sample, ...]

    @property
    def start(self) -> float:
        return self.samples[0].start

    @property
    def stop(self) -> float:
        return self.samples[-1].stop

    @property
    def seconds(self) -> float:
        return seconds_of(self.samples)

    def warm(self, name: str) -> tuple[Sample, ...]:
        """Return the periods without the first ones, which the earlier setting still affects.

        The first ones last as long as a result takes, and are at least one period.
        """
        found = measure(self.samples, name)
        wait = min(ratio(found.busy * found.seconds, found.steps), _WARM_MOST)
        passed = 0.0
        for i, sample in enumerate(self.samples):
            if i and passed >= wait:
                return self.samples[i:]
            passed += max(sample.stop - sample.start, 0.0)
        return ()

    def early(self, name: str) -> Measure:
        """Measure the segment when the setting was new."""
        return measure(_first(self.warm(name), _RECENT), name)

    def late(self, name: str) -> Measure:
        """Measure the segment now: over the last periods, as far back as these are similar."""
        return measure(self.tail(name), name)

    def lately(self, name: str) -> tuple[Sample, ...]:
        """Return the periods of the last seconds, which average out a bad moment."""
        return tuple(sample for sample in self.warm(name) if sample.stop > self.stop - _SOME)

    def tail(self, name: str) -> tuple[Sample, ...]:
        warm = self.warm(name)
        taken: list[Sample] = []
        seconds, made = 0.0, 0.0
        for sample in reversed(warm):
            if seconds >= _RECENT:
                break
            now = measure((sample,), name)
            if seconds >= _FRESH and abs(ratio(now.rate, ratio(made, seconds)) - 1) > _ALIKE:
                break
            taken.append(sample)
            seconds += now.seconds
            made += now.rate * now.seconds
        return tuple(reversed(taken))

    def in_change(self, name: str) -> bool:
        """Return True if the last period is long and unlike the one before: the work may have changed within it."""
        if len(self.samples) < 2:
            return False
        before, last = (measure((sample,), name) for sample in self.samples[-2:])
        return last.seconds >= _LONG_PERIOD and differs(before, last)


def differs(then: Measure, now: Measure) -> bool:
    """Return True if the work has changed."""
    rates = ratio(now.rate, then.rate, without=1.0)
    return not (1 - _ALIKE <= rates <= 1 / (1 - _ALIKE)) or abs(then.share - now.share) > 0.25


def _first(samples: tuple[Sample, ...], seconds: float) -> tuple[Sample, ...]:
    passed = 0.0
    for i, sample in enumerate(samples):
        passed += max(sample.stop - sample.start, 0.0)
        if passed >= seconds:
            return samples[: i + 1]
    return samples


def knobs_of(sample: Sample) -> dict[str, Knobs]:
    return {flow.name: flow.knobs for flow in sample.flows}


def steady_periods(history: Sequence[Sample]) -> list[SteadyPeriod]:
    """Split a history at changes of knobs. A segment that appears or ends is no change for the others."""
    found: list[tuple[dict[str, Knobs], list[Sample]]] = []
    for sample in history:
        knobs = knobs_of(sample)
        if found and all(found[-1][0].get(name, value) == value for name, value in knobs.items()):
            found[-1][0].update(knobs)
            found[-1][1].append(sample)
        else:
            found.append((knobs, [sample]))
    return [SteadyPeriod(knobs, tuple(samples)) for knobs, samples in found]
