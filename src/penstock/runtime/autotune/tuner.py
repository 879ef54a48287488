"""decide: from what was measured to the knobs. Pure: the same history always gives the same decision.

What was tried, what came of it and what is on trial are read off the history, in which the knobs in force are part of
every period. There is no state beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.runtime.autotune.bounds import bounded
from penstock.runtime.autotune.climb import climb, let_go
from penstock.runtime.autotune.figures import Decision, Means, Sample
from penstock.runtime.autotune.measure import SLEEPS, Measure, measure, ratio
from penstock.runtime.autotune.memory import barred
from penstock.runtime.autotune.proposal import Proposal
from penstock.runtime.autotune.reasons import reasons
from penstock.runtime.autotune.steady_periods import knobs_of
from penstock.runtime.autotune.trials import CONTENT, Kind, Verdict
from penstock.runtime.autotune.tuner_state import TunerState, tuner_state
from penstock.runtime.autotune.view import View, view
from penstock.runtime.autotune.windows import narrower, wider

SHORTEST = 0.1  # seconds of a period
LONGEST = 1.0
_UNSURE = 0.3  # seconds of a period after one that was unlike those before
_LASTS = 1.0  # seconds of one rate that are no moment
_STALE = 3.0  # seconds after which a setting is measured again before others are held against it, and may recover


def decide(history: Sequence[Sample], means: Means) -> Decision:
    """The knobs from here on: those that proved best so far, or a trial of what promises to be better.

    `history` holds the last periods, oldest first; about 64 of them let failed trials be remembered for a minute
    (`kept` makes them last longer). In the order of what matters: the consumer does not wait, elements cost little CPU,
    little memory is held. All knobs are within the limits of their segments, and the windows together within
    `means.ram`.
    """
    periods = [sample for sample in history if sample.flows and sample.stop > sample.start]
    if not periods:
        flows = {flow.name: flow for sample in history[-1:] for flow in sample.flows}
        return Decision(bounded({name: flow.knobs for name, flow in flows.items()}, flows, means.ram), period=SHORTEST)
    found = tuner_state(periods)
    seen = view(found, means)
    if found.current is not None and found.current.verdict is Verdict.OPEN:
        knobs = bounded({**found.knobs, **knobs_of(periods[-1])}, seen.flows, means.ram)
        return Decision(knobs, reasons(seen, knobs), _trial_period(found.current.made))
    return _next(seen)


def _next(seen: View) -> Decision:
    """The best setting, or a trial measured against it."""
    found, ram = seen.state, seen.means.ram
    best = bounded(seen.knobs, seen.flows, ram)
    asked = False
    waits = not _measured(seen)
    if not waits:
        for proposal in proposals(seen):
            if barred(seen, proposal):
                continue
            knobs = bounded({**seen.knobs, **proposal.knobs}, seen.flows, ram)
            if knobs == best:
                continue
            if proposal.needs_processes:
                asked = True
                if proposal.sure:
                    waits = True
                    break
                continue
            if found.age < proposal.seconds < LONGEST:
                waits = True
                break
            if found.age < proposal.seconds:
                continue
            return Decision(knobs, reasons(seen, knobs), SHORTEST, want_processes=asked)
    period = SHORTEST if found.current is not None or waits else min(max(found.age / 4, SHORTEST), LONGEST)
    if waits and found.age > LONGEST:
        period = _UNSURE
    return Decision(best, reasons(seen, best), period, settled=not waits, crowded=seen.crowded, want_processes=asked)


def proposals(seen: View) -> Iterator[Proposal]:
    """What to try, the most promising first; whether it was tried lately is for `barred` to know."""
    if seen.content:
        yield from let_go(seen)
        yield from narrower(seen)
    if seen.hunger < CONTENT:
        return
    path = seen.path()
    if not (seen.saturated or seen.crowded):
        for name in path:
            if seen.blocked(name):
                yield from wider(seen, name)
    if path:
        yield from climb(seen, path[-1])
    yield from narrower(seen)


def _measured(seen: View) -> bool:
    """Whether the best setting is known well enough to hold others against it."""
    found = seen.state
    if found.current is not None and (
        found.now - found.since.stop > _STALE or found.current.change.kind in (Kind.PROCESSES, Kind.THREADS)
    ):
        return False
    for name in seen.path()[-1:]:
        measured = seen.measures[name]
        if found.current is None and found.since.in_change(name):
            return False
        known = _known(measured) or _sleeps(found, measured)
        return known and not _rising(found, name, measured) and not _recovering(found, name, measured)
    return True


def _known(found: Measure) -> bool:
    if found.seconds < 0.2 or (found.error > 0.12 and found.seconds < 0.6):
        return False
    return found.steps >= 8 or (found.seconds >= 1.0 and found.steps >= 3) or found.seconds >= 4.0


def _sleeps(found: TunerState, measured: Measure) -> bool:
    """Whether calls plainly do nothing but wait, and more workers have always helped: four times as many will show."""
    helped = all(trial.verdict is Verdict.BETTER for trial in found.trials)
    return helped and measured.share < SLEEPS / 2 and measured.seconds >= 0.2 and measured.steps >= 3


def _rising(found: TunerState, name: str, measured: Measure) -> bool:
    """Whether a run that has just begun still gets faster by itself: functions are compiled, caches are filled."""
    if len(found.periods) > 1 or found.age > 2.0:
        return False
    early = found.since.early(name)
    return early.rate < 0.7 * measured.rate


def _recovering(found: TunerState, name: str, measured: Measure) -> bool:
    """Whether a trial that went badly still shows in the setting to which it was rolled back.

    What has been slow at the same rate for long is slow: the work is another.
    """
    if measured.seconds >= _LASTS:
        return False
    if found.current is not None or found.age > _STALE or len(found.since.samples) == len(found.periods[-1].samples):
        return False
    again = found.periods[-1].samples[1:]
    before = found.since.samples[: len(found.since.samples) - len(again)]
    return measure(again[-3:], name).rate < 0.7 * measure(before[-10:], name).rate


def _trial_period(made: Measure) -> float:
    return min(max(ratio(4 * made.seconds, made.steps), SHORTEST), LONGEST / 2)
