"""Trials compare a change of knobs with the setting before it, and give a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from penstock.runtime.autotune.figures import Knobs, Sample
from penstock.runtime.autotune.measure import CLEARLY, Measure, SteadyPeriod, measure, ratio, starvation

CONTENT = 0.05  # share of waiting time below which the consumer is the slow side
_STARVES_AGAIN = 0.08
_SOON = 0.15  # seconds before which there is no verdict
_EQUAL = 0.97  # ratio of rates that counts as equal
_DOUBT = 0.01  # tolerance of a measured ratio
_WAITS = 0.2  # CPU seconds per second inside functions, below which the functions mostly wait
_RISE = 0.25  # seconds that more waiting workers may need: threads start, and inputs are opened early
_ARRIVE = 0.5  # seconds that worker processes may need until all are at work: they load the function's imports
_MUCH = 1.25  # ratio of rates that counts as a large gain of more workers
LEAP = 4  # factor of workers in a first trial of many
_LEAPT = 1.25  # ratio of rates that such a trial must reach within ...
_SHOWS = 0.2  # ... this number of seconds, if the workers do not wait for each other
NO_CORE = 0.25  # idle cores below which a rate depends on the cores that other programs leave
OF_CORES = 1.33  # least ratio between the cores of two processes and of one thread, while other programs run
_DOUBTFUL = 1.5  # seconds before which processes are not refused in that case
_LATEST = 8.0  # seconds after which there is always a verdict


class Action(Enum):
    """The kind of a change. Its three ratios of rates: worse for certain, accepted at the end, better for certain."""

    PROCESSES = (0.97, 1.15, 1.18)
    THREADS = (0.93, 0.97, 0.99)
    MORE = (1.03, 1.06, 1.12)
    WIDER = (1.02, 1.04, 1.08)  # a larger window
    BLOCKS = (0.92, 1.04, 1.08)
    FEWER = (0.93, 0.97, 0.98)
    NARROWER = (0.92, 0.95, 0.97)

    @property
    def gives_back(self) -> bool:
        """True if the change saves resources instead of time."""
        return self in (Action.FEWER, Action.NARROWER, Action.THREADS)


class Verdict(Enum):
    OPEN = "open"
    BETTER = "better"
    WORSE = "worse"


@dataclass(frozen=True, slots=True)
class Change:
    """A change from one setting to another. If several knobs change, the most important one defines the kind."""

    kind: Action
    name: str  # the segment
    before: Knobs
    after: Knobs


def change_between(before: Mapping[str, Knobs], after: Mapping[str, Knobs]) -> Change | None:
    """Return the most important change between two settings, or None."""
    changes = [
        Change(kind, name, before[name], after[name])
        for name in before
        if name in after and (kind := _kind(before[name], after[name])) is not None
    ]
    order = list(Action)
    return min(changes, key=lambda change: order.index(change.kind), default=None)


def _kind(before: Knobs, after: Knobs) -> Action | None:
    if before.executor != after.executor:
        return Action.PROCESSES if after.executor == "process" else Action.THREADS
    if before.parallelism != after.parallelism:
        return Action.MORE if after.parallelism > before.parallelism else Action.FEWER
    if before.window < after.window:
        return Action.WIDER
    if before.block_seconds != after.block_seconds:
        return Action.BLOCKS
    return Action.NARROWER if before.window > after.window else None


@dataclass(frozen=True, slots=True)
class Trial:
    """A change that was tried, with the measurements before and during it."""

    change: Change
    base: Measure
    made: Measure
    verdict: Verdict
    stop: float  # time at which the setting was last in force

    @property
    def gain(self) -> float:
        """Ratio of the rate to the rate before."""
        return gain_of(self.change, self.base, self.made)

    def brought_much(self, now: Knobs) -> bool:
        """Return True if this trial added the present workers with a large gain: they do not wait for a lock."""
        return (
            self.change.kind is Action.MORE and self.change.after.parallelism == now.parallelism and self.gain >= _MUCH
        )

    @property
    def went_badly(self) -> bool:
        """True if the rate was clearly lower, as far as the trial went."""
        return self.made.seconds >= _SOON and self.made.rate < CLEARLY * self.base.rate


def gain_of(change: Change, base: Measure, made: Measure) -> float:
    """Return the ratio of the rate under a change to the rate before.

    While no core is idle, a rate depends on the cores that other programs leave. The gain of processes is then limited:
    one core per process, by the CPU time of an element.
    """
    gain = ratio(made.rate, base.rate, without=1.0)
    if change.kind is not Action.PROCESSES or min(made.idle, base.idle) >= NO_CORE:
        return gain
    most = change.after.parallelism * base.cost
    return min(gain, ratio(most, made.cost * min(base.used + base.delayed, 1.0), without=gain))


def tried(change: Change, base: tuple[Sample, ...], period: SteadyPeriod, earlier: Sequence[Trial] = ()) -> Trial:
    """Return the trial after `earlier` ones. Its verdict is the first one; later periods do not change it."""
    enough = _enough_for(change, [trial for trial in earlier if trial.change.name == change.name])
    before = measure(base, change.name)
    hunger = starvation(base)
    warm = period.warm(change.name)
    made, verdict = Measure(), Verdict.OPEN
    for count in range(1, len(warm) + 1):
        made = measure(warm[:count], change.name)
        verdict = _verdict(change, before, made, hunger, starvation(warm[:count]), enough)
        rise = _rise(change, before, made) if verdict is Verdict.WORSE else 0.0
        if rise:
            risen = tuple(sample for sample in warm[:count] if sample.start >= warm[0].start + rise)
            made = measure(risen, change.name)
            verdict = _verdict(change, before, made, hunger, starvation(risen), enough)
        if verdict is not Verdict.OPEN:
            break
    if verdict is Verdict.OPEN and hunger >= CONTENT and _hopeless(change, before, period):
        return Trial(change, before, measure(period.samples[1:], change.name), Verdict.WORSE, period.stop)
    return Trial(change, before, made, verdict, period.stop)


def _enough_for(change: Change, earlier: Sequence[Trial]) -> float:
    """Return the gain that a trial must show early, if earlier trials of the segment make this likely, else 0.

    A first trial of many workers gains much at once if the calls do not wait for each other. After its failure, a trial
    of twice as many workers must gain as early, because many workers may hinder each other. Workers that brought a
    large gain are removed only if this costs nothing.
    """
    if change.kind is Action.MORE:
        if not earlier:
            return _LEAPT if _leaps(change) else 0.0
        in_vain = len(earlier) == 1 and earlier[0].verdict is Verdict.WORSE and _leaps(earlier[0].change)
        return Action.MORE.value[2] if in_vain else 0.0
    if change.kind is Action.FEWER:
        last = next((trial for trial in reversed(earlier) if trial.verdict is Verdict.BETTER), None)
        return 1.0 if last is not None and last.brought_much(change.before) else 0.0
    return 0.0


def _leaps(change: Change) -> bool:
    return change.kind is Action.MORE and change.after.parallelism >= LEAP * change.before.parallelism


def _rise(change: Change, base: Measure, made: Measure) -> float:
    """Return the seconds in which a lower rate may only mean that the new setting has not reached its speed."""
    if change.kind is Action.PROCESSES:
        return _ARRIVE if made.used < base.used else 0.0
    falls = made.rate < _EQUAL * base.rate and base.share < _WAITS
    return _RISE if change.kind is Action.MORE and falls else 0.0


def _hopeless(change: Change, base: Measure, period: SteadyPeriod) -> bool:
    """Return True if the rate is so low, long before the setting is warm, that the trial cannot succeed."""
    made = measure(period.samples[1:], change.name)
    expected = ratio(base.steps * made.seconds, base.seconds)
    patience = max(2 * _SOON, min(1.5 * base.step_seconds, 2.0))
    if change.kind is Action.PROCESSES and made.used < base.used:
        patience += _ARRIVE
    return made.seconds >= patience and expected >= 16 and made.rate < 0.5 * base.rate


def _verdict(change: Change, base: Measure, made: Measure, hunger: float, hunger_now: float, enough: float) -> Verdict:
    """Return the verdict of the periods so far. A gain below `enough` counts as none, also early."""
    kind = change.kind
    if made.seconds < _SOON:
        return Verdict.OPEN
    if hunger < CONTENT and kind.gives_back:
        return _still_content(made, hunger_now)
    if not base.rate > 0:
        return Verdict.BETTER if made.seconds >= 2 * _SOON else Verdict.OPEN
    gain = gain_of(change, base, made)
    error = gain * (base.error**2 + made.error**2) ** 0.5
    surely_not, kept_from, surely = kind.value
    if gain - error >= surely:
        return Verdict.BETTER
    # While no core is idle, processes may later get more cores than one thread at a time.
    doubt = kind is Action.PROCESSES and made.idle < NO_CORE and OF_CORES * base.cost >= kept_from * made.cost
    if doubt and made.seconds < _DOUBTFUL:
        return Verdict.OPEN
    if gain + error <= surely_not:
        return Verdict.WORSE
    if made.seconds >= _SHOWS and gain < enough:
        return Verdict.WORSE
    if not _enough(made, 0.35 if gain < 1.0 and not kind.gives_back else 0.5):
        return Verdict.OPEN
    if kind is Action.FEWER and change.before.parallelism <= 2:
        kept_from += _DOUBT  # the gain from one worker less is small
    elif kind.gives_back:
        kept_from -= min(error / 2, _DOUBT)  # a resource is given back unless its loss has a known cost
    kept = gain >= (_EQUAL if doubt else kept_from) or _pays(kind, base, made, gain, hunger, hunger_now)
    return Verdict.BETTER if kept else Verdict.WORSE


def _still_content(made: Measure, hunger: float) -> Verdict:
    """Judge a change that gives back resources which a slow consumer does not need."""
    if hunger >= _STARVES_AGAIN:
        return Verdict.WORSE
    return Verdict.BETTER if made.seconds >= 0.5 else Verdict.OPEN


def _enough(made: Measure, seconds: float) -> bool:
    """Return True if the measurement is sufficient for a verdict. Few results and differing rates take longer."""
    if made.seconds >= _LATEST:
        return True
    if made.steps < 16 or made.error > 0.1:
        return made.steps >= 4 and made.seconds >= 1.5
    return made.seconds >= seconds


def _pays(kind: Action, base: Measure, made: Measure, gain: float, hunger: float, hunger_now: float) -> bool:
    """Return True if, at about equal speed, the consumer waits much less or elements cost less."""
    if kind in (Action.MORE, Action.WIDER):
        return gain >= _EQUAL and hunger_now <= 0.5 * hunger
    cost = ratio(made.cost, base.cost, without=1.0)
    return kind is Action.BLOCKS and ((gain >= _EQUAL and cost <= 0.92) or (gain >= 0.92 and cost <= 0.7))
