"""decide: from what was measured to the knobs. Pure: the same history always gives the same decision.

What was tried, what came of it and what is on trial are read off the history, in which the knobs in force are part of
every period. There is no state beside it. What did not help lately is left alone for a while (`barred`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from penstock.runtime.autotune.climb import View, climb, let_go, may_leap, view
from penstock.runtime.autotune.figures import Decision, Flow, Knobs, Limits, Means, Proposal, Sample
from penstock.runtime.autotune.measure import CLEARLY, SLEEPS, Measure, differs, knobs_of, measure, ratio
from penstock.runtime.autotune.trials import CONTENT, NO_CORE, OF_CORES, Change, Kind, Trial, Verdict, change_between
from penstock.runtime.autotune.tuner_state import TunerState, tuner_state

_AGAIN = 15.0  # seconds until something is tried again; four times as many after each time
_SOON_AGAIN = 4.0  # the same, once, where it may have been a bad moment: for calls that sleep, among other programs


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
    moment = change.kind in (Kind.PROCESSES, Kind.THREADS) and made.idle < NO_CORE and made.cost < OF_CORES * then.cost
    soon = moment or (change.kind is Kind.MORE and now.share < SLEEPS and made.rate >= CLEARLY * then.rate)
    return view.state.now - tried.stop < (_SOON_AGAIN if soon and len(met) == 1 else _AGAIN * 4 ** min(len(met) - 1, 8))


def _lasts(view: View, change: Change, then: Measure) -> bool:
    """Return True if the work is another over some seconds, where a bad moment speaks for the change."""
    if change.kind not in (Kind.FEWER, Kind.PROCESSES) or view.content:
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
    best = _workers(view.knobs[name])
    same = [i for i, period in enumerate(periods) if name in period.knobs and _workers(period.knobs[name]) == best]
    nearest = min(same, key=lambda i: abs(i - index), default=None)
    if nearest is None:
        return Measure()
    return periods[nearest].early(name) if nearest > index else periods[nearest].late(name)


def _workers(knobs: Knobs) -> tuple[str, int]:
    return knobs.executor, knobs.parallelism


LEAST_WINDOW = 1  # a segment always has room for one result, whatever its window says


def within(knobs: Knobs, limits: Limits) -> Knobs:
    """The nearest knobs that are allowed."""
    executor = knobs.executor
    if limits.executors and executor not in limits.executors:
        executor = limits.executors[0]
    workers = limits.bounded(knobs.parallelism, executor)
    return replace(knobs, parallelism=workers, executor=executor, window=max(knobs.window, LEAST_WINDOW))


def bounded(knobs: Mapping[str, Knobs], flows: Mapping[str, Flow], ram: int) -> dict[str, Knobs]:
    """All segments' knobs within their limits, and their windows together within the budget."""
    allowed = {name: within(value, flows[name].limits) for name, value in knobs.items() if name in flows}
    total = sum(value.window for value in allowed.values())
    if total <= ram:
        return allowed
    room, windows = max(ram, 0), {}
    for name, value in sorted(allowed.items(), key=lambda item: item[1].window):
        windows[name] = max(value.window * room // total, LEAST_WINDOW)
        total -= value.window
        room = max(room - windows[name], 0)
    return {name: replace(value, window=windows[name]) for name, value in allowed.items()}


_AHEAD = 2.0  # seconds of what a slow consumer takes, that it keeps ahead
_LEFT = 1 << 22  # bytes of a window that are not worth taking away
_UNUSED = 8  # a window is large if it is this many times what was ever held
_FULL_FOR = 2.0  # seconds without a change before a window that is always full shrinks
_UNUSED_FOR = 10.0  # the same for one that is hardly used
_BADLY = 0.3  # share of time blocked that asks for much more room


def wider(view: View, name: str) -> Iterator[Proposal]:
    """More room for a segment that had none while its consumer waited."""
    knobs, found = view.knobs[name], view.measures[name]
    factor = 4 if min(found.full, found.starved) >= _BADLY else 2
    spare = view.means.ram - sum(value.window for other, value in view.knobs.items() if other in view.flows)
    taken: dict[str, Knobs] = {}
    wanted = knobs.window * (factor - 1)
    for other in view.flows:
        if spare >= wanted:
            break
        use = _use(view, other)
        if other != name and use < view.knobs[other].window:
            spare += view.knobs[other].window - use
            taken[other] = replace(view.knobs[other], window=use)
    more = min(wanted, spare)
    if more >= knobs.window // 4 and more > 0:
        yield Proposal({name: replace(knobs, window=knobs.window + more), **taken})


def narrower(view: View) -> Iterator[Proposal]:
    """Less room where it is always full before a slow consumer, or never used."""
    for name, found in view.measures.items():
        window = view.knobs[name].window
        target, quiet = window, _UNUSED_FOR
        if view.content and 2 * found.held_least >= window:
            target, quiet = max(_use_by_rate(view, name), _LEFT), _FULL_FOR
        elif found.held_most * _UNUSED <= window:
            target = max(window // 4, _use(view, name), _LEFT)
        if 2 * target <= window:
            yield Proposal({name: replace(view.knobs[name], window=target)}, seconds=quiet)


def _use(view: View, name: str) -> int:
    """Bytes that a segment needs by what it held: twice that, and no less than a result for each worker."""
    found = view.measures[name]
    results = 2 * view.knobs[name].parallelism + 2
    return max(2 * found.held_most, int(results * found.result_bytes), 1)


def _use_by_rate(view: View, name: str) -> int:
    """Bytes that keep the consumer from waiting for some time."""
    found = view.measures[name]
    results = 2 * view.knobs[name].parallelism + 2
    per_second = found.rate * found.result_bytes / max(found.result_elements, 1e-9)
    return int(min(max(results * found.result_bytes, _AHEAD * per_second), 1e15))


def reasons(view: View, knobs: Mapping[str, Knobs]) -> dict[str, str]:
    """By segment; `knobs` are those from here on."""
    path = view.path()
    return {name: f"{_subject(view, name, knobs[name])}: {_why(view, name, knobs[name], path)}" for name in knobs}


def _subject(view: View, name: str, knobs: Knobs) -> str:
    kind = "worker" if knobs.parallelism == 1 else "workers"
    return f"{knobs.parallelism} {kind}" + (" in processes" if knobs.executor == "process" else "")


def _why(view: View, name: str, knobs: Knobs, path: list[str]) -> str:
    best, found = view.knobs[name], view.measures[name]
    if knobs != best:
        return f"on trial against {_setting(best, knobs)}"
    if not found.seconds > 0:
        return "not measured yet"
    sentences = []
    if view.content:
        sentences.append(f"the workers are waited for {_percent(view.hunger)} of the time")
    elif path and name != path[-1]:
        sentences.append(
            f"it waits for its input {_percent(found.waiting)} of the time" if name in path else "others limit the run"
        )
    elif view.saturated or view.crowded:
        others = "" if view.saturated else ", other programs use the rest"
        sentences.append(f"{view.used:.2g} of {view.means.cpus:g} cores are in use{others}")
    elif view.one_core():
        sentences.append(f"its calls exclude each other, all workers together compute on {view.used:.2g} cores")
    elif found.share < 0.85:
        sentences.append(f"its calls wait {_percent(1 - found.share)} of their time")
    else:
        sentences.append(f"its calls compute on {found.cores:.2g} cores")
    if view.blocked(name):
        sentences.append(f"without room {_percent(found.full)} of the time")
    sentences += _learnt(view, name, knobs)
    return "; ".join(sentences)


def _learnt(view: View, name: str, knobs: Knobs) -> list[str]:
    """What trials said of this setting: the last against threads or processes, and the last of more workers."""
    trials = [trial for trial in view.state.trials if trial.change.name == name]
    told = []
    executor = next((t for t in reversed(trials) if t.change.kind in (Kind.PROCESSES, Kind.THREADS)), None)
    if executor is not None:
        told.append(_of_executor(executor, knobs))
    for kind in (Kind.MORE, Kind.FEWER):
        last = next((t for t in reversed(trials) if t.change.kind is kind), None)
        if last is not None and last.base.starved >= CONTENT and knobs.parallelism in _compared(last):
            told.append(_of_number(last))
    return [text for text in told if text]


def _compared(trial: Trial) -> tuple[int, int]:
    return trial.change.before.parallelism, trial.change.after.parallelism


def _of_executor(trial: Trial, knobs: Knobs) -> str:
    if trial.verdict is Verdict.BETTER and knobs.executor != trial.change.after.executor:
        return ""
    if trial.change.kind is Kind.THREADS:
        return f"threads gave {trial.gain:.3g} times as much as worker processes"
    why = ", which held the interpreter's lock" if trial.verdict is Verdict.BETTER else ""
    return f"worker processes gave {trial.gain:.3g} times as much as threads{why}"


def _of_number(trial: Trial) -> str:
    other = trial.change.before if trial.verdict is Verdict.BETTER else trial.change.after
    gain = 1 / trial.gain if trial.verdict is Verdict.BETTER and trial.gain > 0 else trial.gain
    return f"{other.parallelism} gave {gain:.3g} times as much"


def _setting(best: Knobs, now: Knobs) -> str:
    if best.executor != now.executor:
        return "worker processes" if best.executor == "process" else "threads"
    if best.parallelism != now.parallelism:
        return str(best.parallelism)
    if best.window != now.window:
        return f"a window of {best.window / (1 << 20):.3g} MiB, with {now.window / (1 << 20):.3g}"
    return f"Blocks of {best.block_seconds * 1e3:.3g} ms, with {now.block_seconds * 1e3:.3g} ms"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


SHORTEST = 0.1  # seconds of a period
LONGEST = 1.0
_UNSURE = 0.3  # seconds of a period after one that was unlike those before
_STEPS = 8  # results that tell a rate
_LASTS = 1.0  # seconds of one rate that are no moment
_STALE = 3.0  # seconds after which a setting is measured again before others are held against it, and may recover


def decide(history: Sequence[Sample], means: Means) -> Decision:
    """The knobs from here on: those that proved best so far, or a trial of what promises to be better.

    `history` holds the last periods, oldest first; about 64 of them let failed trials be remembered for a minute
    (`compacted` makes them last longer). In the order of what matters: the consumer does not wait, elements cost little
    CPU, little memory is held. All knobs are within the limits of their segments, and the windows together within
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
    for proposal in proposals(seen):
        if barred(seen, proposal) or (waits and not _may_be_early(seen, proposal)):
            continue
        knobs = bounded({**seen.knobs, **proposal.knobs}, seen.flows, ram)
        if knobs == best:
            continue
        asked = asked or proposal.needs_processes
        early = found.age < proposal.seconds
        if (proposal.needs_processes and proposal.sure) or (early and proposal.seconds < LONGEST):
            waits = True
            break
        if not (early or proposal.needs_processes):
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
        if may_leap(seen, name) and _sleeps(measured, seconds=SHORTEST / 2, steps=2):
            return True
        helped = all(trial.verdict is Verdict.BETTER for trial in found.trials)
        known = _known(measured) or (helped and _sleeps(measured, seconds=0.2, steps=3))
        return known and not _rising(found, name, measured) and not _recovering(found, name, measured)
    return True


def _may_be_early(seen: View, proposal: Proposal) -> bool:
    """Return True for a change that is tried before the rate is well known, or prepared even before that."""
    if not proposal.sure or seen.state.current is not None:
        return False
    seconds = SHORTEST / 2 if proposal.needs_processes else 2 * SHORTEST
    return all(seen.measures[n].steps >= _STEPS and seen.measures[n].seconds >= seconds for n in proposal.knobs)


def _known(found: Measure) -> bool:
    if found.seconds < 0.2 or (found.error > 0.12 and found.seconds < 0.6):
        return False
    return found.steps >= _STEPS or (found.seconds >= 1.0 and found.steps >= 3) or found.seconds >= 4.0


def _sleeps(measured: Measure, *, seconds: float, steps: float) -> bool:
    """Whether calls plainly do nothing but wait: many times as many workers will show."""
    return measured.share < SLEEPS / 2 and measured.seconds >= seconds and measured.steps >= steps


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
