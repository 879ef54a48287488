"""TunerState: where the tuner is, read off the history: what proved best, what was tried, which level is next.

Histories stay short and reach far back, and are continued from one pass to the next.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.runtime.autotune.figures import Flow, Knobs, Sample
from penstock.runtime.autotune.measure import SteadyPeriod, knobs_of, measure, starvation, steady_periods
from penstock.runtime.autotune.trials import CONTENT, Change, Kind, Trial, Verdict, change_between, tried

_STANDS = 10.0  # seconds: what was in force for longer is no trial
_BREAK = 4.0  # seconds that a trial may have taken, so that what was before still counts


@dataclass(frozen=True, slots=True)
class TunerState:
    """What a history says of the knobs."""

    periods: tuple[SteadyPeriod, ...]
    knobs: Mapping[str, Knobs]  # that proved best
    since: SteadyPeriod  # when they were last in force; a trial in between left out
    trials: tuple[Trial, ...]  # that have a verdict, oldest first
    current: Trial | None  # the change in force, if it is a trial: open, or found worse just now

    @property
    def now(self) -> float:
        return self.periods[-1].stop

    @property
    def age(self) -> float:
        """Seconds since a knob was turned."""
        return self.now - self.periods[-1].start

    def last(self, name: str, *, verdict: Verdict) -> Trial | None:
        """The last trial of a segment that ended so."""
        return next((t for t in reversed(self.trials) if t.change.name == name and t.verdict is verdict), None)


def tuner_state(history: Sequence[Sample]) -> TunerState:
    """Replay the history: each change is a trial against the best so far, which it replaces if it was better."""
    found = steady_periods(history)
    best, knobs = found[0], dict(found[0].knobs)
    trials: list[Trial] = []
    current: Trial | None = None
    for period in found[1:]:
        current = None
        change = change_between(knobs, period.knobs)
        knobs = {**period.knobs, **knobs}  # a segment may begin at any time
        if change is not None and period.seconds < _STANDS:
            trial = tried(change, _base(best, change), period, trials)
            trials.append(trial)
            if trial.verdict is not Verdict.BETTER:
                current = trial
                continue
        elif change is not None:
            trials.append(tried(change, _base(best, change), period, trials))
        best = _continued(best, period) if change is None else period
        knobs.update(period.knobs)
    closed = [trial for trial in trials if trial.verdict is not Verdict.OPEN]
    return TunerState(tuple(found), knobs, best, tuple(closed), current)


def _continued(before: SteadyPeriod, again: SteadyPeriod) -> SteadyPeriod:
    """The same setting before and after a trial of another, as one period, if that was short."""
    if again.start - before.stop > _BREAK:
        return again
    return SteadyPeriod(again.knobs, before.samples + again.samples[1:])


def _base(period: SteadyPeriod, change: Change) -> tuple[Sample, ...]:
    """The periods that a trial is measured against; without any that are warm, all there are.

    Fewer workers for a consumer that waits have to do as well as the setting did over some seconds, if its last moments
    were worse than that: in such a moment anything looks as good.
    """
    name = change.name
    tail = period.tail(name) or period.samples
    if change.kind is Kind.FEWER and starvation(tail) >= CONTENT:
        longer = period.lately(name)
        if measure(longer, name).rate > measure(tail, name).rate:
            return longer
    return tail


_AFTER = 4.0  # seconds behind a change that are kept as they are
_BEFORE = 4.0  # the same for those before a change, and before now
_OLD = 10.0  # seconds after which of a setting that was left one period is enough, behind those in which it was new
_LONGEST = 30.0  # seconds of a merged period


def compacted(history: Sequence[Sample], sample: Sample, most: int = 64) -> list[Sample]:
    """The history with one more period, no longer than `most`.

    Where it would be, old neighbouring periods in which no knob was turned become one, so that what was tried
    stays known for longer; where there are none, the oldest goes.
    """
    found = [*history, sample]
    while len(found) > max(most, 1):
        place = _mergeable(found)
        if place is None:
            del found[0]
        else:
            found[place : place + 2] = [_merged(found[place], found[place + 1])]
    return found


def continued(history: Sequence[Sample], start: float) -> list[Sample]:
    """The history of a pass that has ended, for one that begins at `start`, under the knobs that proved best.

    Its last period is left out, in which it may have run dry, and a trial that the end came before the verdict on,
    unless it went badly. The time between the passes is none: what was tried lately is so still.
    """
    found = list(history[:-1])
    if not found:
        return []
    seen = tuner_state(found)
    trial = seen.current
    if trial is not None and trial.verdict is Verdict.OPEN and not trial.went_badly:
        del found[len(found) - len(seen.periods[-1].samples) :]
    later = start - found[-1].stop if found else 0.0
    return [replace(sample, start=sample.start + later, stop=sample.stop + later) for sample in found]


def _mergeable(samples: Sequence[Sample]) -> int | None:
    """The oldest two neighbours that may become one."""
    turns = [0, *(i for i in range(1, len(samples)) if knobs_of(samples[i - 1]) != knobs_of(samples[i])), len(samples)]
    for begin, end in itertools.pairwise(turns):
        earliest, latest = samples[begin].start + _AFTER, samples[end - 1].stop - _BEFORE
        if end < len(samples) and samples[end].start < samples[-1].stop - _OLD:
            earliest, latest = _warm(samples[begin:end]), samples[end].start
        for i in range(begin, end - 1):
            first, second = samples[i], samples[i + 1]
            if first.start >= earliest and second.stop <= latest and second.stop - first.start <= _LONGEST:
                return i
    return None


def _warm(samples: Sequence[Sample]) -> float:
    """When a setting had come into its own; what was before is left out of its measure."""
    period = SteadyPeriod(knobs_of(samples[0]), tuple(samples))
    warm = [period.warm(name) for name in period.knobs]
    return max((found[0].start if found else period.stop for found in warm), default=period.stop)


def _merged(first: Sample, second: Sample) -> Sample:
    later = {flow.name: flow for flow in second.flows}
    flows = tuple(_added(flow, later[flow.name]) for flow in first.flows)
    idle = None if first.idle is None or second.idle is None else first.idle + second.idle
    return Sample(first.start, second.stop, first.cpu + second.cpu, flows, idle)


_SUMS: tuple[str, ...] = ("elements", "results", "nbytes", "run_seconds", "run_cpu", "pull_seconds", "pull_cpu")
_SUMS += ("delayed", "waiting", "starved", "full", "inputs")


def _added(first: Flow, second: Flow) -> Flow:
    sums: Mapping[str, float] = {name: getattr(first, name) + getattr(second, name) for name in _SUMS}
    return replace(
        second,
        held_most=max(first.held_most, second.held_most),
        held_least=min(first.held_least, second.held_least),
        busy_most=max(first.busy_most, second.busy_most),
        **sums,  # type: ignore[arg-type]  # counts stay whole: sums of whole numbers
    )
