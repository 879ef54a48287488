"""Reasons: a sentence for each segment on why its knobs are what they are."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.runtime.autotune.figures import Knobs
from penstock.runtime.autotune.trials import CONTENT, Kind, Trial, Verdict
from penstock.runtime.autotune.view import View


def reasons(view: View, knobs: Mapping[str, Knobs]) -> dict[str, str]:
    """By segment; `knobs` are those from here on."""
    path = view.path()
    return {name: f"{_subject(view, name, knobs[name])}: {_why(view, name, knobs[name], path)}" for name in knobs}


def _subject(view: View, name: str, knobs: Knobs) -> str:
    count = knobs.parallelism
    kind = "worker" if count == 1 else "workers"
    return f"{count} {kind} in processes" if knobs.executor == "process" else f"{count} {kind}"


def _why(view: View, name: str, knobs: Knobs, path: list[str]) -> str:
    best, found = view.knobs[name], view.measures[name]
    if knobs != best:
        return f"on trial against {_setting(best, knobs)}"
    if not found.seconds > 0:
        return "not measured yet"
    sentences = []
    if view.content:
        sentences.append(f"the consumer waits {_percent(view.hunger)} of the time")
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
    better = trial.verdict is Verdict.BETTER
    gave = f"gave {trial.gain:.3g} times as much"
    if trial.change.kind is Kind.PROCESSES:
        if better and knobs.executor == "process":
            return f"worker processes {gave} as threads, which held the interpreter's lock"
        return "" if better else f"worker processes {gave}"
    if better and knobs.executor == "thread":
        return f"threads {gave} as worker processes"
    return "" if better else f"threads {gave} as worker processes"


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
