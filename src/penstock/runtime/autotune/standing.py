"""Standing: where the tuner is, read off the history: what proved best, what was tried, what is on trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.runtime.autotune.figures import Knobs, Sample
from penstock.runtime.autotune.measure import measure, starvation
from penstock.runtime.autotune.spells import Spell, spells
from penstock.runtime.autotune.trials import CONTENT, Change, Kind, Trial, Verdict, change_between, tried

_STANDS = 10.0  # seconds: what was in force for longer is no trial
_BREAK = 4.0  # seconds that a trial may have taken, so that what was before still counts


@dataclass(frozen=True, slots=True)
class Standing:
    """What a history says of the knobs."""

    spells: tuple[Spell, ...]
    knobs: Mapping[str, Knobs]  # that proved best
    since: Spell  # when they were last in force; a trial in between left out
    trials: tuple[Trial, ...]  # that have a verdict, oldest first
    current: Trial | None  # the change in force, if it is a trial: open, or found worse just now

    @property
    def now(self) -> float:
        return self.spells[-1].stop

    @property
    def age(self) -> float:
        """Seconds since a knob was turned."""
        return self.now - self.spells[-1].start

    def last(self, name: str, *, verdict: Verdict) -> Trial | None:
        """The last trial of a segment that ended so."""
        return next((t for t in reversed(self.trials) if t.change.name == name and t.verdict is verdict), None)


def standing(history: Sequence[Sample]) -> Standing:
    """Replay the history: each change is a trial against the best so far, which it replaces if it was better."""
    found = spells(history)
    best, knobs = found[0], dict(found[0].knobs)
    trials: list[Trial] = []
    current: Trial | None = None
    for spell in found[1:]:
        current = None
        change = change_between(knobs, spell.knobs)
        knobs = {**spell.knobs, **knobs}  # a segment may begin at any time
        if change is not None and spell.seconds < _STANDS:
            trial = tried(change, _base(best, change), spell)
            trials.append(trial)
            if trial.verdict is not Verdict.BETTER:
                current = trial
                continue
        elif change is not None:
            trials.append(tried(change, _base(best, change), spell))
        best = _continued(best, spell) if change is None else spell
        knobs.update(spell.knobs)
    closed = [trial for trial in trials if trial.verdict is not Verdict.OPEN]
    return Standing(tuple(found), knobs, best, tuple(closed), current)


def _continued(before: Spell, again: Spell) -> Spell:
    """The same setting before and after a trial of another, as one spell, if that was short."""
    if again.start - before.stop > _BREAK:
        return again
    return Spell(again.knobs, before.samples + again.samples[1:])


def _base(spell: Spell, change: Change) -> tuple[Sample, ...]:
    """The periods that a trial is measured against; without any that are warm, all there are.

    Fewer workers for a consumer that waits have to do as well as the setting did over some seconds, if its last moments
    were worse than that: in such a moment anything looks as good.
    """
    name = change.name
    tail = spell.tail(name) or spell.samples
    if change.kind is Kind.FEWER and starvation(tail) >= CONTENT:
        longer = spell.lately(name)
        if measure(longer, name).rate > measure(tail, name).rate:
            return longer
    return tail
