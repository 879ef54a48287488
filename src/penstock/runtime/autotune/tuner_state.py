"""TunerState: where the tuner is, read off the history: what proved best, what was tried, what is on trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.runtime.autotune.figures import Knobs, Sample
from penstock.runtime.autotune.measure import measure, starvation
from penstock.runtime.autotune.steady_periods import SteadyPeriod, steady_periods
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
            trial = tried(change, _base(best, change), period)
            trials.append(trial)
            if trial.verdict is not Verdict.BETTER:
                current = trial
                continue
        elif change is not None:
            trials.append(tried(change, _base(best, change), period))
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
