"""TunerState: the state of the tuner, computed from the history: the best setting, past trials, the current trial.

The module also shortens histories, and continues them in the next iteration.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.runtime.autotune.figures import Flow, Knobs, Sample
from penstock.runtime.autotune.measure import SteadyPeriod, knobs_of, measure, starvation, steady_periods
from penstock.runtime.autotune.trials import CONTENT, Action, Change, Trial, Verdict, change_between, tried

_STANDS = 10.0  # seconds after which a setting is no trial
_BREAK = 4.0  # longest trial in seconds after which the setting before still counts


@dataclass(frozen=True, slots=True)
class TunerState:
    """The state of the tuner after a history."""

    periods: tuple[SteadyPeriod, ...]
    knobs: Mapping[str, Knobs]  # the best setting
    since: SteadyPeriod  # its last periods in force, without a trial in between
    trials: tuple[Trial, ...]  # with a verdict, oldest first
    current: Trial | None  # the trial in force: open, or just found worse

    @property
    def now(self) -> float:
        return self.periods[-1].stop

    @property
    def age(self) -> float:
        """Seconds since the last change of a knob."""
        return self.now - self.periods[-1].start

    def last(self, name: str, *, verdict: Verdict) -> Trial | None:
        """Return the last trial of a segment with this verdict."""
        return next((t for t in reversed(self.trials) if t.change.name == name and t.verdict is verdict), None)


def tuner_state(history: Sequence[Sample]) -> TunerState:
    """Replay the history: each change is a trial against the best setting, and replaces it if it was better."""
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
    """Join the periods of a setting before and after a trial of another setting, if the trial was short."""
    if again.start - before.stop > _BREAK:
        return again
    return SteadyPeriod(again.knobs, before.samples + again.samples[1:])


def _base(period: SteadyPeriod, change: Change) -> tuple[Sample, ...]:
    """Return the periods that a trial is compared with. If no periods are warm, return all.

    Fewer workers for a waiting consumer are compared with some seconds if these were better than the last moments. In a
    bad moment, any other setting would look equal.
    """
    name = change.name
    tail = period.tail(name) or period.samples
    if change.kind is Action.FEWER and starvation(tail) >= CONTENT:
        longer = period.lately(name)
        if measure(longer, name).rate > measure(tail, name).rate:
            return longer
    return tail


_AFTER = 4.0  # seconds after a change whose periods are not merged
_BEFORE = 4.0  # the same before a change, and before now
_OLD = 10.0  # seconds after which the warm periods of an old setting are merged into one
_LONGEST = 30.0  # seconds of a merged period


def compacted(history: Sequence[Sample], sample: Sample, most: int = 64) -> list[Sample]:
    """Return the history with one more period, and at most `most` periods.

    If the history is too long, old neighbouring periods with equal knobs are merged, so that past trials stay known for
    longer. If no periods can be merged, the oldest is removed.
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
    """Return the history of an ended iteration for an iteration that begins at `start`, with the best knobs.

    The last period is left out, because the input may have run dry. A trial without a verdict is left out too, unless
    it went badly. The time between the iterations does not count, so recent trials stay recent.
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
    """Return the position of the oldest two neighbours that can be merged, or None."""
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
    """Return the time at which a setting was warm. Its measure leaves out the time before."""
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
