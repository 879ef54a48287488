"""Climb: how many workers the limiting segment should have, and of which kind."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from penstock.runtime.autotune.figures import LARGE_BLOCKS, Knobs
from penstock.runtime.autotune.measure import SLEEPS, Measure, measure, ratio
from penstock.runtime.autotune.proposal import Proposal
from penstock.runtime.autotune.steady_periods import differs
from penstock.runtime.autotune.trials import Kind, Verdict
from penstock.runtime.autotune.view import View, excluding

_COMPUTES = 0.85  # CPU seconds per second inside a function beyond which it does not wait
_SURELY_WAITS = 0.7  # the same for a short measurement
_LOCK_IN_USE = 0.75  # cores in use below which the interpreter's lock keeps nobody waiting for long
_LOCK_TAKEN = 0.9  # cores in use among other programs: what a lock leaves, and hardly by chance
_OFTEN = 1000.0  # Blocks per second, which cost a tenth of a core and more
_LATELY = 60.0  # seconds for which a rate tells of the function as it is
_LINEAR = 0.75  # of what so many times the workers would give
_BROUGHT = 1.25  # times the rate before, that twice as many workers gave
_SMALL_BLOCKS = Knobs(1).block_seconds
_CAREFULLY = 0.5  # seconds of the setting in force that a trial of fewer workers is held against
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
    if spare and locked and ratio(found.rate, found.result_elements) >= _OFTEN:
        yield from _larger_blocks(view, name)
    room = spare and (not view.crowded or found.share < SLEEPS) and _more_may_help(view, found, knobs)
    if room and _climbs(view, name):
        yield from _more(view, name)
    if spare and locked and (not view.crowded or view.used >= _LOCK_TAKEN):
        yield from _to_processes(view, _heaviest(view), sure=True)
    if knobs.executor == "process":
        yield from _out_of_processes(view, name)
    if spare and locked and not view.crowded:
        yield from _fewer(view, name, least=1)
    if room:
        yield from _more(view, name)
    if spare and not view.crowded and found.cores >= 0.5 and found.share < 0.8 and view.used >= _LOCK_IN_USE:
        yield from _to_processes(view, name)
    if _fewer_may_do(view, found, knobs) and not _needed(view, name):
        yield from _fewer(view, name, least=view.cores if view.saturated or view.crowded else 1)


def _climbs(view: View, name: str) -> bool:
    """Whether the last workers that were added brought much: then it is not a lock that they wait for."""
    last = view.state.last(name, verdict=Verdict.BETTER)
    return last is not None and last.change.kind is Kind.MORE and last.gain >= _BROUGHT


def _locked(view: View, name: str) -> bool:
    """Whether threads exclude each other: seen now, or when there were more of them."""
    if view.one_core():
        return True
    last = view.state.last(name, verdict=Verdict.WORSE)
    if last is None or last.change.kind is not Kind.MORE or view.knobs[name].executor != "thread":
        return False
    return excluding(last.change.after.parallelism, [last.made], last.made.used)


def _heaviest(view: View) -> str | None:
    """The segment that computes the most in threads, among those that may leave them."""
    may = [n for n in view.flows if "process" in view.flows[n].limits.executors and view.measures[n].cores >= 0.3]
    return max(
        (name for name in may if view.knobs[name].executor == "thread"),
        key=lambda name: view.measures[name].cores,
        default=None,
    )


def _to_processes(view: View, name: str | None, *, sure: bool = False) -> Iterator[Proposal]:
    if name is None or not view.means.gil or view.means.compiling:
        return
    knobs, limits = view.knobs[name], view.flows[name].limits
    if knobs.executor == "process" or "process" not in limits.executors or _more_than_processes(view, name):
        return
    away = replace(
        knobs,
        executor="process",
        parallelism=max(min(view.cores, limits.most), limits.least),
        block_seconds=LARGE_BLOCKS,
    )
    yield Proposal({name: away}, needs_processes=not view.means.processes_ready, sure=sure)


def _more_than_processes(view: View, name: str) -> bool:
    """Whether threads give more than a process for each core could.

    The fewer threads there were, the less they waited for each other, and a process is at most as fast as all of them.
    """
    found = [
        (period.knobs[name].parallelism, period.late(name).rate)
        for period in view.state.periods
        if name in period.knobs and period.knobs[name].executor == "thread" and period.stop > view.state.now - _LATELY
    ]
    known = [(workers, rate) for workers, rate in found if rate > 0]
    return bool(known) and view.cores * min(known)[1] < Kind.PROCESSES.value[1] * view.measures[name].rate


def _out_of_processes(view: View, name: str) -> Iterator[Proposal]:
    """Larger Blocks where handing them over costs; threads where it costs much, or calls wait anyway."""
    found, knobs = view.measures[name], view.knobs[name]
    costs = view.handing_over
    if costs > 0.1 * found.cores:
        yield from _larger_blocks(view, name)
    if "thread" in view.flows[name].limits.executors and (
        found.share < 0.5 or costs > 0.5 * found.cores or not view.means.gil
    ):
        yield Proposal({name: replace(knobs, executor="thread", block_seconds=_SMALL_BLOCKS)})


def _larger_blocks(view: View, name: str) -> Iterator[Proposal]:
    knobs = view.knobs[name]
    if knobs.block_seconds < LARGE_BLOCKS:
        yield Proposal({name: replace(knobs, block_seconds=LARGE_BLOCKS)})


def _more_may_help(view: View, found: Measure, knobs: Knobs) -> bool:
    """Its workers are all inside, and either they wait there or cores are idle."""
    all_inside = found.busy >= 0.7 * knobs.parallelism
    waits = found.share < (_COMPUTES if found.seconds >= 1.0 else _SURELY_WAITS)
    return all_inside and (waits or knobs.parallelism < view.cores)


def _more(view: View, name: str) -> Iterator[Proposal]:
    knobs, limits = view.knobs[name], view.flows[name].limits
    sleeps = view.measures[name].share < SLEEPS and _in_proportion(view, name)
    for factor in (4, 2) if sleeps else (2,):
        more = min(max(factor * knobs.parallelism, view.cores), limits.most)
        if more > knobs.parallelism:
            yield Proposal({name: replace(knobs, parallelism=more)})


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
    """A quarter, and if that is too few the half."""
    knobs = view.knobs[name]
    least = max(least, view.flows[name].limits.least)
    for fewer in dict.fromkeys((max(knobs.parallelism // 4, 1), knobs.parallelism // 2)):
        if least <= fewer < knobs.parallelism:
            yield Proposal({name: replace(knobs, parallelism=fewer)}, seconds=_CAREFULLY)
