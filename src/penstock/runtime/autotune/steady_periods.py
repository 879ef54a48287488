"""SteadyPeriod: the stretches of a history in which no knob was turned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.runtime.autotune.figures import Knobs, Sample
from penstock.runtime.autotune.measure import Measure, measure, ratio, seconds_of

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
