"""Propose the number of workers of the limiting segment, and their executor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.runtime.autotune.figures import LARGE_BLOCKS, Flow, Knobs, Means, Proposal
from penstock.runtime.autotune.measure import CLEARLY, SLEEPS, Measure, differs, idle, measure, ratio, starvation
from penstock.runtime.autotune.trials import CONTENT, LEAP, Action, Verdict
from penstock.runtime.autotune.tuner_state import TunerState

_SATURATED = 0.85  # share of the granted cores in use above which no knob helps: cores are divided by demand
_CROWDED = 0.1  # idle share of the granted cores below which other programs use the rest
_QUEUE = 0.3  # workers per granted core that are ready but have no core: the same sign of other programs
_QUEUED = 0.25  # share of the time inside calls without a core, above which waits may be waits for a thread without one
_TAKES_PART = 0.25  # share of the granted cores in use by a run that would be faster alone; a sleeping run uses less
_SERIAL = 0.7  # share of its time at work above which a puller limits a segment by itself
_WAITS = 0.3  # share of its time that the puller of a segment waits, above which upstream is the limit
_BLOCKED = 0.1  # share without room while the consumer waits: a slow element delays the elements after it


@dataclass(frozen=True, slots=True)
class View:
    """Measurements of the best setting."""

    state: TunerState
    means: Means
    flows: Mapping[str, Flow]  # at the last sample
    measures: Mapping[str, Measure]
    hunger: float  # share of the time that the thread of the training loop waited for workers
    used: float  # cores
    idle: float  # unused cores; infinity: not known

    @property
    def knobs(self) -> Mapping[str, Knobs]:
        return self.state.knobs

    @property
    def cores(self) -> int:
        """Number of workers that keep all granted cores busy."""
        return max(1, math.ceil(self.means.cpus))

    @property
    def content(self) -> bool:
        """True if the consumer is the slow side: it does not wait, and results are always ready."""
        roots = [self.measures[name] for name in self.roots()]
        return self.hunger < CONTENT and all(found.held_least > 0 or not found.result_bytes for found in roots)

    def roots(self) -> list[str]:
        """Return the segments whose results the training loop takes."""
        return [name for name, flow in self.flows.items() if flow.consumer not in self.flows] or list(self.flows)

    @property
    def ahead(self) -> float:
        """Cores that fill windows without a waiting consumer. More urgent work gets these cores at once."""
        return sum(found.cores for found in self.measures.values() if max(found.starved, found.full) < CONTENT)

    @property
    def saturated(self) -> bool:
        """True if this run needs all its granted cores."""
        return self.used - self.ahead >= _SATURATED * self.means.cpus

    @property
    def crowded(self) -> bool:
        """True if other programs use some of the granted cores, so that more workers bring no gain."""
        cpus = self.means.cpus
        if math.isfinite(self.idle):
            lacking = self.idle + self.ahead <= _CROWDED * cpus
        else:  # workers that pass on the interpreter's lock also queue for cores, while other cores are idle
            lacking = self.wanted - self.used - self.ahead >= _QUEUE * cpus
        return lacking and self.wanted - self.ahead >= _TAKES_PART * cpus

    @property
    def wanted(self) -> float:
        """Cores in use, and cores that ready workers wait for."""
        return self.used + sum(found.delayed for found in self.measures.values())

    @property
    def handing_over(self) -> float:
        """Cores in use outside functions and pulls: the transfer of Blocks, and the training loop."""
        return max(self.used - sum(found.cores for found in self.measures.values()), 0.0)

    def one_core(self) -> bool:
        """Return True if several threads together use one core, for example because each needs a lock."""
        inside = [name for name in self.measures if self.knobs[name].executor == "thread"]
        workers = sum(self.knobs[name].parallelism for name in inside)
        return excluding(workers, [self.measures[name] for name in inside], self.used)

    def path(self) -> list[str]:
        """Return the segments from the training loop to the limiting segment."""
        found: list[str] = []
        candidates = self.roots()
        while candidates:
            name = max(candidates, key=lambda name: self.measures[name].starved)
            if found and self.measures[name].starved < _WAITS / 2:
                break
            found.append(name)
            candidates = [n for n, flow in self.flows.items() if flow.consumer == name and n not in found]
            # a pull that fills a shuffle takes long, and reports its waiting time only at its end
            waits = [self.measures[name].waiting, *(self.measures[below].starved for below in candidates)]
            if max(waits) < _WAITS:
                break
        return found

    def blocked(self, name: str) -> bool:
        """Return True if the segment had no room while its consumer waited."""
        found = self.measures[name]
        return found.full >= _BLOCKED and found.starved >= _BLOCKED


def excluding(workers: int, inside: Sequence[Measure], used: float) -> bool:
    """Return True if workers seem to wait for each other, inside functions or before them."""
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
    begins = len(state.periods) == 1  # no earlier setting can affect the measurements
    tails = {name: state.since.tail(name) or (state.since.samples if begins else ()) for name in flows}
    measures = {name: measure(tail, name) for name, tail in tails.items()}
    longest = max(tails.values(), key=len, default=())
    used = max((m.used for m in measures.values()), default=0.0)
    return View(state, means, flows, measures, starvation(longest), used, idle(longest))


_COMPUTES = 0.85  # CPU seconds per second inside a function, above which it does not wait
_SURELY_WAITS = 0.7  # the same limit for a short measurement
_LOCK_IN_USE = 0.75  # cores in use, below which waits for the interpreter's lock are short
_LOCK_TAKEN = 0.9  # wanted cores while other programs run: a lock allows about as many, and chance rarely gives more
_MANY = 2  # calls at once per core, above which the user expects waiting calls ...
# ... unless their share of the CPU time is so large: waiting calls leave most CPU time to other code
_FUNCTIONS_ALONE = 0.9
_OFTEN = 1000.0  # Blocks per second that cost a tenth of a core or more
_LATELY = 60.0  # seconds for which a rate describes the present function
_SHORTLY = 15.0  # the same for a comparison with the present rate
_LINEAR = 0.75  # share of a proportional gain
_SMALL_BLOCKS = Knobs(1).block_seconds
_CAREFULLY = 0.5  # seconds of the present setting that a trial of fewer workers needs
_PATIENTLY = 1.0  # the same after a large gain from added workers: dozens of threads need as long to reach their speed
_MANY_WAIT = 16  # first number of workers for calls that only wait
_SPARE = 1.5  # workers per needed worker if the consumer is the slow side


def let_go(view: View) -> Iterator[Proposal]:
    """Propose fewer workers for all segments at once if a slow consumer needs fewer."""
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
    """Propose changes of the segment that limits the run."""
    found, knobs = view.measures[name], view.knobs[name]
    locked = _locked(view, name)
    spare = not view.saturated
    sleeps = found.share < SLEEPS and found.delayed < _QUEUED * found.busy
    room = spare and (sleeps or not view.crowded) and _more_may_help(view, found, knobs)
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
    """Return True if the last added workers brought a large gain, so that they do not wait for a lock."""
    last = view.state.last(name, verdict=Verdict.BETTER)
    return last is not None and last.brought_much(view.knobs[name])


def _locked(view: View, name: str) -> bool:
    """Return True if threads exclude each other, now or when there were more of them."""
    if view.one_core():
        return True
    tried = [t for t in view.state.trials if t.change.name == name and t.change.kind in (Action.MORE, Action.FEWER)]
    if not tried or view.knobs[name].executor != "thread":
        return False
    change, more = tried[-1].change, tried[-1].made if tried[-1].change.kind is Action.MORE else tried[-1].base
    return excluding(max(change.before.parallelism, change.after.parallelism), [more], more.used)


def _heaviest(view: View) -> str | None:
    """Return the segment that uses the most CPU in threads and may use processes."""
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
        return  # the calls wait
    workers = view.cores if many else max(min(view.cores, limits.most), limits.least)
    away = replace(knobs, executor="process", parallelism=workers, block_seconds=LARGE_BLOCKS)
    yield Proposal({name: away}, needs_processes=not view.means.processes_ready, sure=sure)


def _more_than_processes(view: View, name: str) -> bool:
    """Return True if threads give more than one process per core could.

    The smallest number of threads had the shortest waits for each other. One process cannot be faster than all these
    threads together.
    """
    known = _rates_of_threads(view, name, _LATELY)
    fewest = min(known, key=lambda found: (found[0], -found[1]), default=None)
    return fewest is not None and view.cores * fewest[1] < Action.PROCESSES.value[1] * view.measures[name].rate


def _too_few(view: View, name: str, workers: int) -> bool:
    """Return True if `workers` would give less than the present rate, even at the best rate per worker so far."""
    each = [rate / count for count, rate in _rates_of_threads(view, name, _SHORTLY) if count <= workers]
    rate = max(view.measures[name].rate, measure(view.state.since.lately(name), name).rate)
    return bool(each) and workers * max(each) < CLEARLY * rate


def _rates_of_threads(view: View, name: str, seconds: float) -> list[tuple[int, float]]:
    """Return the numbers of threads in the last seconds, each with its rate."""
    found = [
        (period.knobs[name].parallelism, period.late(name).rate or (0.0 if i else measure(period.samples, name).rate))
        for i, period in enumerate(view.state.periods)
        if name in period.knobs and period.knobs[name].executor == "thread" and period.stop > view.state.now - seconds
    ]
    return [(workers, rate) for workers, rate in found if rate > 0]


def _out_of_processes(view: View, name: str) -> Iterator[Proposal]:
    """Propose larger Blocks if transfer costs much, and threads if it costs very much or calls wait anyway."""
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
    """Return True if all workers are inside, and either wait there or leave cores idle."""
    # calls that still run do not count
    all_inside = found.busy >= (0.7 if found.seconds >= 0.2 else 0.5) * knobs.parallelism
    waits = found.share < (_COMPUTES if found.seconds >= 1.0 else _SURELY_WAITS)
    return all_inside and (waits or knobs.parallelism < view.cores)


def _more(view: View, name: str) -> Iterator[Proposal]:
    knobs, limits = view.knobs[name], view.flows[name].limits
    for factor in _factors(view, name):
        more = min(max(factor * knobs.parallelism, view.cores), limits.most)
        if more > knobs.parallelism:
            yield Proposal({name: replace(knobs, parallelism=more)})


def _factors(view: View, name: str) -> tuple[int, ...]:
    """Return the factors by which to raise the number of workers."""
    share = view.measures[name].share
    if share < SLEEPS / 2 and may_leap(view, name):
        return _MANY_WAIT // view.knobs[name].parallelism, 2
    return (4, 2) if share < SLEEPS and _in_proportion(view, name) else (2,)


def may_leap(view: View, name: str) -> bool:
    """Return True if the first trial may have many workers.

    This is so if calls only wait. The trial takes no longer than a trial of a few workers. The first calls show that
    they wait. Only the trial shows if they wait for each other.
    """
    tried = any(trial.change.name == name for trial in view.state.trials)
    return not tried and LEAP * view.knobs[name].parallelism <= _MANY_WAIT


def _in_proportion(view: View, name: str) -> bool:
    """Return True if all added workers brought as much as those before them. Sleeping calls do not interfere."""
    added = [t for t in view.state.trials if t.change.name == name and t.change.kind is Action.MORE]
    return bool(added) and all(
        t.gain >= _LINEAR * t.change.after.parallelism / t.change.before.parallelism for t in added
    )


def _needed(view: View, name: str) -> bool:
    """Return True if each of the present workers brought as much as earlier workers, and still does."""
    last = view.state.last(name, verdict=Verdict.BETTER)
    if last is None or last.change.after.parallelism != view.knobs[name].parallelism:
        return False
    lately = measure(view.state.since.lately(name), name)
    return last.change.kind is Action.MORE and _in_proportion(view, name) and not differs(last.made, lately)


def _fewer_may_do(view: View, found: Measure, knobs: Knobs) -> bool:
    """Return True if workers wait inside, perhaps for each other, or if there are many on a busy machine."""
    if view.saturated or view.crowded:
        return knobs.parallelism > 2 * view.cores and found.cores < 0.7 * found.busy
    return found.share < 0.6


def _fewer(view: View, name: str, least: int) -> Iterator[Proposal]:
    """Propose a quarter of the workers, then half, but no number whose rate is known to be too low."""
    knobs = view.knobs[name]
    least = max(least, view.flows[name].limits.least)
    seconds = _PATIENTLY if view.measures[name].share < SLEEPS and _climbs(view, name) else _CAREFULLY
    for fewer in dict.fromkeys((max(knobs.parallelism // 4, 1), knobs.parallelism // 2)):
        if least <= fewer < knobs.parallelism and not _too_few(view, name, fewer):
            yield Proposal({name: replace(knobs, parallelism=fewer)}, seconds=seconds)
