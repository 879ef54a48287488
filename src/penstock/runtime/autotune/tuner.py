"""The function `decide` computes knobs from measurements. It is pure: equal histories give equal decisions.

Each period of the history contains the knobs in force. The history thus shows past trials, their results and the
current trial, and no other state is needed. A change that failed recently is not tried for a while (`barred`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from penstock.runtime.autotune.climb import View, climb, let_go, may_leap, view
from penstock.runtime.autotune.figures import Decision, Flow, Knobs, Means, Proposal, Sample, TunerLimits
from penstock.runtime.autotune.measure import CLEARLY, SLEEPS, Measure, differs, knobs_of, measure, ratio
from penstock.runtime.autotune.trials import CONTENT, NO_CORE, OF_CORES, Action, Change, Trial, Verdict, change_between
from penstock.runtime.autotune.tuner_state import TunerState, tuner_state

_AGAIN = 15.0  # seconds until a change is tried again; the time is multiplied by four after each trial
_SOON_AGAIN = 4.0  # the same, once, after a possible bad moment: for sleeping calls, or while other programs run


def barred(view: View, proposal: Proposal) -> bool:
    """Return True if the same setting was in force recently, and the work has not changed since."""
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
    if change.kind is Action.MORE and made.starved < CONTENT <= now.starved:
        return False  # the change was not needed at that time
    if change.kind.gives_back and not view.content and made.seconds > 0 and made.rate < CLEARLY * then.rate:
        return True
    moment = (
        change.kind in (Action.PROCESSES, Action.THREADS) and made.idle < NO_CORE and made.cost < OF_CORES * then.cost
    )
    soon = moment or (change.kind is Action.MORE and now.share < SLEEPS and made.rate >= CLEARLY * then.rate)
    return view.state.now - tried.stop < (_SOON_AGAIN if soon and len(met) == 1 else _AGAIN * 4 ** min(len(met) - 1, 8))


def _lasts(view: View, change: Change, then: Measure) -> bool:
    """Return True if the work has differed for some seconds, so that one bad moment does not argue for the change."""
    if change.kind not in (Action.FEWER, Action.PROCESSES) or view.content:
        return True
    return differs(then, measure(view.state.since.lately(change.name), change.name))


def _alike(change: Change) -> Callable[[Knobs], bool]:
    """Return a test for settings whose trial also informs about the wanted setting."""
    kind, wanted = change.kind, change.after

    def alike(knobs: Knobs) -> bool:
        if kind in (Action.PROCESSES, Action.THREADS):
            return knobs.executor == wanted.executor
        if knobs.executor != wanted.executor:
            return False
        if kind is Action.BLOCKS:
            return knobs.block_seconds == wanted.block_seconds
        if kind is Action.WIDER:
            return knobs.window >= wanted.window
        if kind is Action.NARROWER:
            return knobs.window <= wanted.window
        if kind is Action.FEWER:
            return wanted.parallelism <= knobs.parallelism < change.before.parallelism
        return knobs.parallelism == wanted.parallelism

    return alike


def _then(view: View, name: str, index: int) -> Measure:
    """Measure the setting that is best now, close to the trial of the other setting."""
    periods = view.state.periods
    best = _workers(view.knobs[name])
    same = [i for i, period in enumerate(periods) if name in period.knobs and _workers(period.knobs[name]) == best]
    nearest = min(same, key=lambda i: abs(i - index), default=None)
    if nearest is None:
        return Measure()
    return periods[nearest].early(name) if nearest > index else periods[nearest].late(name)


def _workers(knobs: Knobs) -> tuple[str, int]:
    return knobs.executor, knobs.parallelism


LEAST_WINDOW = 1  # a segment always has room for one result


def within(knobs: Knobs, limits: TunerLimits) -> Knobs:
    """Return the nearest allowed knobs."""
    executor = knobs.executor
    if limits.executors and executor not in limits.executors:
        executor = limits.executors[0]
    workers = limits.bounded(knobs.parallelism, executor)
    return replace(knobs, parallelism=workers, executor=executor, window=max(knobs.window, LEAST_WINDOW))


def bounded(knobs: Mapping[str, Knobs], flows: Mapping[str, Flow], ram: int) -> dict[str, Knobs]:
    """Return the knobs of all segments within their limits, and with windows that together fit the budget."""
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


_AHEAD = 2.0  # seconds of a slow consumer's use that stay ready
_LEFT = 1 << 22  # smallest number of bytes of a window that is worth taking away
_UNUSED = 8  # ratio of a window to its highest use, above which it is too large
_FULL_FOR = 2.0  # seconds without a change before a window that is always full shrinks
_UNUSED_FOR = 10.0  # the same for a window that is hardly used
_BADLY = 0.3  # share of blocked time, above which a window grows much


def wider(view: View, name: str) -> Iterator[Proposal]:
    """Propose a larger window for a segment that had no room while its consumer waited."""
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
    """Propose a smaller window if it is always full for a slow consumer, or hardly used."""
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
    """Return the bytes that a segment needs: twice its highest use, and at least one result per worker."""
    found = view.measures[name]
    results = 2 * view.knobs[name].parallelism + 2
    return max(2 * found.held_most, int(results * found.result_bytes), 1)


def _use_by_rate(view: View, name: str) -> int:
    """Return the bytes that keep the consumer supplied for some time."""
    found = view.measures[name]
    results = 2 * view.knobs[name].parallelism + 2
    per_second = found.rate * found.result_bytes / max(found.result_elements, 1e-9)
    return int(min(max(results * found.result_bytes, _AHEAD * per_second), 1e15))


def reasons(view: View, knobs: Mapping[str, Knobs]) -> dict[str, str]:
    """Return a sentence per segment about its knobs from now on."""
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
    """Return the results of two trials of this setting: threads against processes, and more or fewer workers."""
    trials = [trial for trial in view.state.trials if trial.change.name == name]
    told = []
    executor = next((t for t in reversed(trials) if t.change.kind in (Action.PROCESSES, Action.THREADS)), None)
    if executor is not None:
        told.append(_of_executor(executor, knobs))
    for kind in (Action.MORE, Action.FEWER):
        last = next((t for t in reversed(trials) if t.change.kind is kind), None)
        if last is not None and last.base.starved >= CONTENT and knobs.parallelism in _compared(last):
            told.append(_of_number(last))
    return [text for text in told if text]


def _compared(trial: Trial) -> tuple[int, int]:
    return trial.change.before.parallelism, trial.change.after.parallelism


def _of_executor(trial: Trial, knobs: Knobs) -> str:
    if trial.verdict is Verdict.BETTER and knobs.executor != trial.change.after.executor:
        return ""
    if trial.change.kind is Action.THREADS:
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
_STEPS = 8  # results that determine a rate
_LASTS = 1.0  # seconds of a constant rate that are no bad moment
_STALE = 3.0  # seconds until a setting is measured again, as the base of new trials


def decide(history: Sequence[Sample], means: Means) -> Decision:
    """Return the best knobs so far, or a trial of promising knobs.

    The decision has three goals, in this order: the consumer does not wait, elements cost little CPU time, little
    memory is used. All knobs are within the limits of their segments, and the windows together are within `means.ram`.

    Args:
        history: The last periods, oldest first. About 64 periods record failed trials for a minute, and for longer
            after
            `compacted`.
        means: The resources of the run.
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
    """Return the best setting, or a trial against it."""
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
    """Yield promising changes, the best first. The caller skips recent trials (`barred`)."""
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
    """Return True if the best setting is measured well enough for a comparison with others."""
    found = seen.state
    if found.current is not None and (
        found.now - found.since.stop > _STALE or found.current.change.kind in (Action.PROCESSES, Action.THREADS)
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
    """Return True for a change that is tried, or prepared, before the rate is well known."""
    if not proposal.sure or seen.state.current is not None:
        return False
    seconds = SHORTEST / 2 if proposal.needs_processes else 2 * SHORTEST
    return all(seen.measures[n].steps >= _STEPS and seen.measures[n].seconds >= seconds for n in proposal.knobs)


def _known(found: Measure) -> bool:
    if found.seconds < 0.2 or (found.error > 0.12 and found.seconds < 0.6):
        return False
    return found.steps >= _STEPS or (found.seconds >= 1.0 and found.steps >= 3) or found.seconds >= 4.0


def _sleeps(measured: Measure, *, seconds: float, steps: float) -> bool:
    """Return True if calls clearly only wait, so that many more workers show a result soon."""
    return measured.share < SLEEPS / 2 and measured.seconds >= seconds and measured.steps >= steps


def _rising(found: TunerState, name: str, measured: Measure) -> bool:
    """Return True if a new run still gets faster by itself, because functions are compiled or caches are filled."""
    if len(found.periods) > 1 or found.age > 2.0:
        return False
    early = found.since.early(name)
    return early.rate < 0.7 * measured.rate


def _recovering(found: TunerState, name: str, measured: Measure) -> bool:
    """Return True if a bad trial still affects the setting that was restored after it.

    A low rate that lasts has another cause: the work has changed.
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
