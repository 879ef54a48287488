"""Climb: how many workers the limiting segment should have, and of which kind."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.runtime.autotune.figures import LARGE_BLOCKS, Flow, Knobs, Means, Proposal
from penstock.runtime.autotune.measure import CLEARLY, SLEEPS, Measure, differs, idle, measure, ratio, starvation
from penstock.runtime.autotune.trials import CONTENT, LEAP, Kind, Verdict
from penstock.runtime.autotune.tuner_state import TunerState

_SATURATED = 0.85  # of the granted cores in use: work is shared out by demand, and no knob makes it less
_CROWDED = 0.1  # of the granted cores idle, when programs beside this one use the rest
_QUEUE = 0.3  # workers ready and without a core, for each granted core, that say the same
_TAKES_PART = 0.25  # of the granted cores in use by a run that would be faster alone; one that sleeps uses less
_SERIAL = 0.7  # share of its time at work from which on a puller limits a segment by itself
_WAITS = 0.3  # share of its time that a segment's puller waits for upstream, when upstream is what limits it
_BLOCKED = 0.1  # share without room, while the consumer waits: a slow element holds up those behind it


@dataclass(frozen=True, slots=True)
class View:
    """The setting that proved best, measured."""

    state: TunerState
    means: Means
    flows: Mapping[str, Flow]  # as last seen
    measures: Mapping[str, Measure]
    hunger: float  # share of the time that the loop's thread waited for workers
    used: float  # cores
    idle: float  # cores that nobody used, infinity if that is not known

    @property
    def knobs(self) -> Mapping[str, Knobs]:
        return self.state.knobs

    @property
    def cores(self) -> int:
        """Workers that keep all granted cores busy."""
        return max(1, math.ceil(self.means.cpus))

    @property
    def content(self) -> bool:
        """Whether the consumer is the slow side: it does not wait, and there is always something for it to take."""
        roots = [self.measures[name] for name in self.roots()]
        return self.hunger < CONTENT and all(found.held_least > 0 or not found.result_bytes for found in roots)

    def roots(self) -> list[str]:
        """Segments whose results the user's loop takes."""
        return [name for name, flow in self.flows.items() if flow.consumer not in self.flows] or list(self.flows)

    @property
    def ahead(self) -> float:
        """Cores that fill windows for which nobody waits: what is needed more gets them at once."""
        return sum(found.cores for found in self.measures.values() if max(found.starved, found.full) < CONTENT)

    @property
    def saturated(self) -> bool:
        """Whether this run needs all cores that it is granted."""
        return self.used - self.ahead >= _SATURATED * self.means.cpus

    @property
    def crowded(self) -> bool:
        """Whether it is granted more cores than there are, as other programs use them: more workers make no more."""
        cpus = self.means.cpus
        if math.isfinite(self.idle):
            lacking = self.idle + self.ahead <= _CROWDED * cpus
        else:  # many workers that pass the interpreter on queue for cores as well, while others stand idle
            lacking = self.wanted - self.used - self.ahead >= _QUEUE * cpus
        return lacking and self.wanted - self.ahead >= _TAKES_PART * cpus

    @property
    def wanted(self) -> float:
        """Cores in use, and those that workers are ready for and do not get."""
        return self.used + sum(found.delayed for found in self.measures.values())

    @property
    def handing_over(self) -> float:
        """Cores that are used outside functions and pulls: Blocks on their way, and the user's loop."""
        return max(self.used - sum(found.cores for found in self.measures.values()), 0.0)

    def one_core(self) -> bool:
        """Several threads are at work, and together they compute on one core, as where each needs a lock."""
        inside = [name for name in self.measures if self.knobs[name].executor == "thread"]
        workers = sum(self.knobs[name].parallelism for name in inside)
        return excluding(workers, [self.measures[name] for name in inside], self.used)

    def path(self) -> list[str]:
        """Segments from the user's loop to the one that limits them all."""
        found: list[str] = []
        candidates = self.roots()
        while candidates:
            name = max(candidates, key=lambda name: self.measures[name].starved)
            if found and self.measures[name].starved < _WAITS / 2:
                break
            found.append(name)
            candidates = [n for n, flow in self.flows.items() if flow.consumer == name and n not in found]
            # a pull that fills a shuffle takes long, and tells only at its end how long it has waited
            waits = [self.measures[name].waiting, *(self.measures[below].starved for below in candidates)]
            if max(waits) < _WAITS:
                break
        return found

    def blocked(self, name: str) -> bool:
        """Whether the segment had no room while its consumer waited."""
        found = self.measures[name]
        return found.full >= _BLOCKED and found.starved >= _BLOCKED


def excluding(workers: int, inside: Sequence[Measure], used: float) -> bool:
    """Whether workers look as if each kept the others waiting, inside functions or before they get there."""
    busy = sum(found.busy for found in inside)
    delayed = sum(found.delayed for found in inside)
    cores = sum(found.cores for found in inside)
    if workers < 2 or cores + delayed < 0.5 or any(found.pulling >= _SERIAL for found in inside):
        return False
    if busy >= 1.4:
        return cores < 0.8 * (busy - delayed) and used <= 1.4 and used + delayed >= 0.75
    idle = max((max(found.waiting, found.full) for found in inside), default=0.0)
    return idle < CONTENT and 0.85 <= used <= 1.2


def view(state: TunerState, means: Means) -> View:
    latest = {flow.name: flow for period in state.periods[-2:] for flow in period.samples[-1].flows}
    flows = {name: flow for name, flow in latest.items() if name in state.knobs}
    begins = len(state.periods) == 1  # no setting was before that could still show
    tails = {name: state.since.tail(name) or (state.since.samples if begins else ()) for name in flows}
    measures = {name: measure(tail, name) for name, tail in tails.items()}
    longest = max(tails.values(), key=len, default=())
    used = max((m.used for m in measures.values()), default=0.0)
    return View(state, means, flows, measures, starvation(longest), used, idle(longest))


_COMPUTES = 0.85  # CPU seconds per second inside a function beyond which it does not wait
_SURELY_WAITS = 0.7  # the same for a short measurement
_LOCK_IN_USE = 0.75  # cores in use below which the interpreter's lock keeps nobody waiting for long
_LOCK_TAKEN = 0.9  # cores wanted among other programs: what a lock leaves, and hardly by chance
_MANY = 2  # calls at once for each core, beyond which the user has said that they wait ...
_FUNCTIONS_ALONE = 0.9  # ... unless so much of the CPU time is theirs: that of calls that wait is spent around them
_OFTEN = 1000.0  # Blocks per second, which cost a tenth of a core and more
_LATELY = 60.0  # seconds for which a rate tells of the function as it is
_SHORTLY = 15.0  # the same, where that is held against the rate now
_LINEAR = 0.75  # of what so many times the workers would give
_SMALL_BLOCKS = Knobs(1).block_seconds
_CAREFULLY = 0.5  # seconds of the setting in force that a trial of fewer workers is held against
_PATIENTLY = 1.0  # the same where the last that were added brought much: dozens of threads take as long to settle down
_MANY_WAIT = 16  # workers to begin with, of calls that do nothing but wait
_SPARE = 1.5  # workers for each that is needed, where the consumer is the slow side


def let_go(view: View) -> Iterator[Proposal]:
    """Workers beyond what a slow consumer needs, of all segments at once."""
    fewer = {}
    for name, found in view.measures.items():
        knobs = view.knobs[name]
        busy = min(found.busy * found.taken, knobs.parallelism)
        needed = max(math.ceil(busy * _SPARE), 1, view.flows[name].limits.least)
        if found.seconds > 0 and needed < knobs.parallelism:
            fewer[name] = replace(knobs, parallelism=needed)
    if fewer:
        yield Proposal(fewer, seconds=_CAREFULLY)


def climb(view: View, name: str) -> Iterator[Proposal]:
    """Changes of the segment that limits the run."""
    found, knobs = view.measures[name], view.knobs[name]
    locked = _locked(view, name)
    spare = not view.saturated
    room = spare and (not view.crowded or found.share < SLEEPS) and _more_may_help(view, found, knobs)
    if room and found.share < SLEEPS and _in_proportion(view, name):
        yield from _more(view, name)
    if spare and locked and ratio(found.rate, found.result_elements) >= _OFTEN:
        yield from _larger_blocks(view, name)
    if room and _climbs(view, name):
        yield from _more(view, name)
    needed = _needed(view, name)
    if spare and locked and (not view.crowded or view.wanted >= _LOCK_TAKEN):
        yield from _to_processes(view, _heaviest(view), sure=True)
    if knobs.executor == "process":
        yield from _out_of_processes(view, name)
    if spare and locked and not view.crowded and not needed:
        yield from _fewer(view, name, least=1)
    if room:
        yield from _more(view, name)
    if spare and not view.crowded and found.cores >= 0.5 and found.share < 0.8 and view.used >= _LOCK_IN_USE:
        yield from _to_processes(view, name)
    if _fewer_may_do(view, found, knobs) and not (needed or (view.crowded and _climbs(view, name))):
        yield from _fewer(view, name, least=view.cores if view.saturated or view.crowded else 1)


def _climbs(view: View, name: str) -> bool:
    """Whether the last workers that were added brought much: then it is not a lock that they wait for."""
    last = view.state.last(name, verdict=Verdict.BETTER)
    return last is not None and last.brought_much(view.knobs[name])


def _locked(view: View, name: str) -> bool:
    """Whether threads exclude each other: seen now, or when there were more of them."""
    if view.one_core():
        return True
    tried = [t for t in view.state.trials if t.change.name == name and t.change.kind in (Kind.MORE, Kind.FEWER)]
    if not tried or view.knobs[name].executor != "thread":
        return False
    change, more = tried[-1].change, tried[-1].made if tried[-1].change.kind is Kind.MORE else tried[-1].base
    return excluding(max(change.before.parallelism, change.after.parallelism), [more], more.used)


def _heaviest(view: View) -> str | None:
    """The segment that computes the most in threads, among those that may leave them."""
    found = {name: view.measures[name] for name, flow in view.flows.items() if "process" in flow.limits.executors}
    heavy = [n for n, m in found.items() if view.knobs[n].executor == "thread" and m.cores + m.delayed >= 0.3]
    return max(heavy, key=lambda name: found[name].cores, default=None)


def _to_processes(view: View, name: str | None, *, sure: bool = False) -> Iterator[Proposal]:
    if name is None or not view.means.gil:
        return
    knobs, limits = view.knobs[name], view.flows[name].limits
    if knobs.executor == "process" or "process" not in limits.executors or _more_than_processes(view, name):
        return
    many = limits.least > _MANY * view.cores
    if many and view.measures[name].computing < _FUNCTIONS_ALONE * view.used:
        return  # they wait
    workers = view.cores if many else max(min(view.cores, limits.most), limits.least)
    away = replace(knobs, executor="process", parallelism=workers, block_seconds=LARGE_BLOCKS)
    yield Proposal({name: away}, needs_processes=not view.means.processes_ready, sure=sure)


def _more_than_processes(view: View, name: str) -> bool:
    """Whether threads give more than a process for each core could.

    The fewer threads there were, the less they waited for each other, and a process is at most as fast as all of them.
    """
    known = _rates_of_threads(view, name, _LATELY)
    fewest = min(known, key=lambda found: (found[0], -found[1]), default=None)
    return fewest is not None and view.cores * fewest[1] < Kind.PROCESSES.value[1] * view.measures[name].rate


def _too_few(view: View, name: str, workers: int) -> bool:
    """Whether so many would make less than is made now, even if each made as much as where there were fewer."""
    each = [rate / count for count, rate in _rates_of_threads(view, name, _SHORTLY) if count <= workers]
    rate = max(view.measures[name].rate, measure(view.state.since.lately(name), name).rate)
    return bool(each) and workers * max(each) < CLEARLY * rate


def _rates_of_threads(view: View, name: str, seconds: float) -> list[tuple[int, float]]:
    """Threads that there were in the last seconds, and what they gave."""
    found = [
        (period.knobs[name].parallelism, period.late(name).rate or (0.0 if i else measure(period.samples, name).rate))
        for i, period in enumerate(view.state.periods)
        if name in period.knobs and period.knobs[name].executor == "thread" and period.stop > view.state.now - seconds
    ]
    return [(workers, rate) for workers, rate in found if rate > 0]


def _out_of_processes(view: View, name: str) -> Iterator[Proposal]:
    """Larger Blocks where handing them over costs; threads where it costs much, or calls wait anyway."""
    found, knobs = view.measures[name], view.knobs[name]
    costs = view.handing_over
    if costs > 0.1 * found.cores:
        yield from _larger_blocks(view, name)
    waits = found.share < 0.5 and not view.crowded
    if "thread" in view.flows[name].limits.executors and (waits or costs > 0.5 * found.cores or not view.means.gil):
        yield Proposal({name: replace(knobs, executor="thread", block_seconds=_SMALL_BLOCKS)})


def _larger_blocks(view: View, name: str) -> Iterator[Proposal]:
    if view.knobs[name].block_seconds < LARGE_BLOCKS:
        yield Proposal({name: replace(view.knobs[name], block_seconds=LARGE_BLOCKS)})


def _more_may_help(view: View, found: Measure, knobs: Knobs) -> bool:
    """Its workers are all inside, and either they wait there or cores are idle."""
    all_inside = found.busy >= (0.7 if found.seconds >= 0.2 else 0.5) * knobs.parallelism  # less those not over yet
    waits = found.share < (_COMPUTES if found.seconds >= 1.0 else _SURELY_WAITS)
    return all_inside and (waits or knobs.parallelism < view.cores)


def _more(view: View, name: str) -> Iterator[Proposal]:
    knobs, limits = view.knobs[name], view.flows[name].limits
    for factor in _factors(view, name):
        more = min(max(factor * knobs.parallelism, view.cores), limits.most)
        if more > knobs.parallelism:
            yield Proposal({name: replace(knobs, parallelism=more)})


def _factors(view: View, name: str) -> tuple[int, ...]:
    """How many times as many workers to try."""
    share = view.measures[name].share
    if share < SLEEPS / 2 and may_leap(view, name):
        return _MANY_WAIT // view.knobs[name].parallelism, 2
    return (4, 2) if share < SLEEPS and _in_proportion(view, name) else (2,)


def may_leap(view: View, name: str) -> bool:
    """Whether many workers may be the first trial, where calls do nothing but wait: it takes no longer than of a few.

    That they wait the first of them tell; whether it is for each other, only the trial.
    """
    tried = any(trial.change.name == name for trial in view.state.trials)
    return not tried and LEAP * view.knobs[name].parallelism <= _MANY_WAIT


def _in_proportion(view: View, name: str) -> bool:
    """Whether all workers that were added brought as much as those before them: calls that sleep do not meet."""
    added = [t for t in view.state.trials if t.change.name == name and t.change.kind is Kind.MORE]
    return bool(added) and all(
        t.gain >= _LINEAR * t.change.after.parallelism / t.change.before.parallelism for t in added
    )


def _needed(view: View, name: str) -> bool:
    """Whether the workers that there are brought as much each, when they were added, as those before; and still do."""
    last = view.state.last(name, verdict=Verdict.BETTER)
    if last is None or last.change.after.parallelism != view.knobs[name].parallelism:
        return False
    lately = measure(view.state.since.lately(name), name)
    return last.change.kind is Kind.MORE and _in_proportion(view, name) and not differs(last.made, lately)


def _fewer_may_do(view: View, found: Measure, knobs: Knobs) -> bool:
    """Workers wait inside, perhaps for each other; or there are many on a machine that is busy."""
    if view.saturated or view.crowded:
        return knobs.parallelism > 2 * view.cores and found.cores < 0.7 * found.busy
    return found.share < 0.6


def _fewer(view: View, name: str, least: int) -> Iterator[Proposal]:
    """A quarter, and if that is too few the half; not so few that they cannot do."""
    knobs = view.knobs[name]
    least = max(least, view.flows[name].limits.least)
    seconds = _PATIENTLY if view.measures[name].share < SLEEPS and _climbs(view, name) else _CAREFULLY
    for fewer in dict.fromkeys((max(knobs.parallelism // 4, 1), knobs.parallelism // 2)):
        if least <= fewer < knobs.parallelism and not _too_few(view, name, fewer):
            yield Proposal({name: replace(knobs, parallelism=fewer)}, seconds=seconds)
