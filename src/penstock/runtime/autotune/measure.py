"""Measure: what one segment did over some periods, as rates and shares with their error.

SteadyPeriod is a stretch of a history in which no knob was turned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.runtime.autotune.figures import Flow, Knobs, Sample

_NOISE = 0.1  # relative standard deviation of a rate over a tenth of a second, at the least
SLEEPS = 0.1  # CPU seconds per second inside calls that wait for something else than a core
CLEARLY = 0.9  # of a rate: what is below is less, and no noise
_STEP = 0.02  # seconds of work that surely ended in a result or a piece of one
_HUGE = 1e12


def ratio(above: float, below: float, without: float = 0.0) -> float:
    """A quotient that is a finite number whatever comes in."""
    if not below > 0 or not above > 0:
        return without if not below > 0 else 0.0
    quotient = above / below
    return quotient if quotient < _HUGE else _HUGE


@dataclass(frozen=True, slots=True)
class Measure:
    """One segment over some periods. Shares are of the wall time of the periods."""

    seconds: float = 0.0
    steps: float = 0.0  # results, or the pieces of results that can be told apart
    rate: float = 0.0  # elements per second
    error: float = 1.0  # relative standard error of the rate
    starved: float = 0.0  # share that its consumer waited
    full: float = 0.0  # share without room
    waiting: float = 0.0  # share that its puller waited for upstream
    pulling: float = 0.0  # share that its puller was at work
    busy: float = 0.0  # workers inside functions or pulling, on average
    share: float = 1.0  # CPU seconds per second inside the functions, without those in which no core was free
    delayed: float = 0.0  # workers that were ready and got no core, on average
    cores: float = 0.0  # CPU seconds per second, of its functions and pulling
    computing: float = 0.0  # the same of its functions alone
    used: float = 0.0  # CPU seconds per second, of the whole run
    idle: float = math.inf  # cores that nobody used; infinity where that is not known
    cost: float = 0.0  # CPU seconds of the whole run per element of this segment
    step_seconds: float = 0.0  # a worker's time per result
    result_bytes: float = 0.0
    result_elements: float = 0.0
    held_most: int = 0
    held_least: int = 0
    taken: float = 1.0  # of the bytes made, those that its consumer took; more while it takes from what was made before


def seconds_of(samples: Sequence[Sample]) -> float:
    return sum(max(sample.stop - sample.start, 0.0) for sample in samples)


def measure(samples: Sequence[Sample], name: str) -> Measure:
    """What the segment did over these periods; those in which it was not there count for nothing."""
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
    """Elements per period: those that went in where that is known, as results may be batches of many."""
    if any(flow.inputs for flow in flows):
        return [flow.inputs for flow in flows]
    return [flow.elements for flow in flows]


def _spread(rates: Sequence[float], found: Sequence[tuple[Sample, Flow]]) -> float:
    """Relative standard error of the mean rate, from how the periods differ."""
    if len(rates) < 3:
        return 0.0
    weights = [max(sample.stop - sample.start, 0.0) for sample, _ in found]
    total = sum(weights)
    mean = ratio(sum(rate * weight for rate, weight in zip(rates, weights, strict=True)), total)
    squares = sum((weight * (ratio(rate, mean) - 1)) ** 2 for rate, weight in zip(rates, weights, strict=True))
    return math.sqrt(min(ratio(squares, total * total), 1.0) * len(rates) / (len(rates) - 1)) if mean else 0.0


def idle(samples: Sequence[Sample]) -> float:
    """Cores that nobody used, or infinity where that is not known."""
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


_RECENT = 1.5  # seconds that tell how a setting does now
_FRESH = 0.3  # seconds at its end that count whatever those before them say
_SOME = 4.0  # seconds over which a moment shows as one
_ALIKE = 0.25  # relative difference of rates beyond which a period tells of another time
_LONG_PERIOD = 0.4  # seconds of a period in which much may have changed
_WARM_MOST = 2.0  # seconds that a setting may take to come into its own


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
        """Its periods, less those in which the one before still showed: the time of a result, at least one period."""
        found = measure(self.samples, name)
        wait = min(ratio(found.busy * found.seconds, found.steps), _WARM_MOST)
        passed = 0.0
        for i, sample in enumerate(self.samples):
            if i and passed >= wait:
                return self.samples[i:]
            passed += max(sample.stop - sample.start, 0.0)
        return ()

    def early(self, name: str) -> Measure:
        """How the segment did when the setting was new."""
        return measure(_first(self.warm(name), _RECENT), name)

    def late(self, name: str) -> Measure:
        """How the segment does now: the last periods, as far back as they are alike."""
        return measure(self.tail(name), name)

    def lately(self, name: str) -> tuple[Sample, ...]:
        """The periods of some seconds, over which a moment shows as one."""
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
        """Whether the last period, a long one, was unlike the one before: it may have begun in another time."""
        if len(self.samples) < 2:
            return False
        before, last = (measure((sample,), name) for sample in self.samples[-2:])
        return last.seconds >= _LONG_PERIOD and differs(before, last)


def differs(then: Measure, now: Measure) -> bool:
    """Whether the work is another than it was."""
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
    """The history in stretches of equal knobs; a segment that appears or ends changes nothing for the others."""
    found: list[tuple[dict[str, Knobs], list[Sample]]] = []
    for sample in history:
        knobs = knobs_of(sample)
        if found and all(found[-1][0].get(name, value) == value for name, value in knobs.items()):
            found[-1][0].update(knobs)
            found[-1][1].append(sample)
        else:
            found.append((knobs, [sample]))
    return [SteadyPeriod(knobs, tuple(samples)) for knobs, samples in found]
