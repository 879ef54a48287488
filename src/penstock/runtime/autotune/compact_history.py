"""compacted: a history that stays short and reaches far back; continued: the same from one pass to the next."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from penstock.runtime.autotune.figures import Flow, Sample
from penstock.runtime.autotune.steady_periods import SteadyPeriod, knobs_of
from penstock.runtime.autotune.trials import Verdict
from penstock.runtime.autotune.tuner_state import tuner_state

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
