"""Memory: which proposals were tried lately and did not help, so that they are left alone for a while."""

from __future__ import annotations

from collections.abc import Callable

from penstock.runtime.autotune.climb import View
from penstock.runtime.autotune.figures import Knobs, Proposal
from penstock.runtime.autotune.measure import CLEARLY, SLEEPS, Measure, SteadyPeriod, differs, measure
from penstock.runtime.autotune.trials import CONTENT, Change, Kind, change_between

_AGAIN = 15.0  # seconds until something is tried again; four times as many after each time
_SOON_AGAIN = 4.0  # the same of more workers for calls that sleep, once: a bad moment may have spoken against them


def barred(view: View, proposal: Proposal) -> bool:
    """Whether the same was in force not long ago, in a run that did as it does now."""
    change = change_between(view.knobs, proposal.knobs)
    if change is None:
        return True
    alike = _alike(change)
    periods = view.state.periods
    met = [i for i, period in enumerate(periods) if change.name in period.knobs and alike(period.knobs[change.name])]
    if not met:
        return False
    tried, then = periods[met[-1]], _then(view, change.name, met[-1])
    now, made = view.measures[change.name], tried.late(change.name)
    if then.seconds > 0 and differs(then, now) and _lasts(view, change, then):
        return False
    if change.kind is Kind.MORE and made.starved < CONTENT <= now.starved:
        return False  # it was not needed then
    if change.kind.gives_back and not view.content and made.seconds > 0 and made.rate < CLEARLY * then.rate:
        return True
    if len(met) == 1 and change.kind is Kind.MORE and now.share < SLEEPS and made.rate >= CLEARLY * then.rate:
        return view.state.now - tried.stop < _SOON_AGAIN
    return view.state.now - tried.stop < _AGAIN * 4.0 ** min(len(met) - 1, 8)


def _lasts(view: View, change: Change, then: Measure) -> bool:
    """Whether the work is another over some seconds, where it is fewer workers that a bad moment speaks for."""
    if change.kind is not Kind.FEWER or view.content:
        return True
    return differs(then, measure(view.state.since.lately(change.name), change.name))


def _alike(change: Change) -> Callable[[Knobs], bool]:
    """Settings whose trial tells of the one that is wanted."""
    kind, wanted = change.kind, change.after

    def alike(knobs: Knobs) -> bool:
        if kind in (Kind.PROCESSES, Kind.THREADS):
            return knobs.executor == wanted.executor
        if knobs.executor != wanted.executor:
            return False
        if kind is Kind.BLOCKS:
            return knobs.block_seconds == wanted.block_seconds
        if kind is Kind.WIDER:
            return knobs.window >= wanted.window
        if kind is Kind.NARROWER:
            return knobs.window <= wanted.window
        if kind is Kind.FEWER:
            return wanted.parallelism <= knobs.parallelism < change.before.parallelism
        return knobs.parallelism == wanted.parallelism

    return alike


def _then(view: View, name: str, index: int) -> Measure:
    """How the setting that is best now did, next to the trial of the other."""
    periods = view.state.periods
    best = view.knobs[name]
    same = [i for i, period in enumerate(periods) if name in period.knobs and _workers(period.knobs[name], best)]
    nearest = min(same, key=lambda i: abs(i - index), default=None)
    if nearest is None:
        return Measure()
    return _side(periods[nearest], name, after=nearest > index)


def _workers(one: Knobs, other: Knobs) -> bool:
    return (one.executor, one.parallelism) == (other.executor, other.parallelism)


def _side(period: SteadyPeriod, name: str, *, after: bool) -> Measure:
    return period.early(name) if after else period.late(name)
