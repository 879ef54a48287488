"""snapshot: the current state of all iterations of this process, as plain values for all live views.

`LiveObserving` observes the iterations for it, and writes nothing.

The figures are those of `explain(analyze=True)` for the last seconds. The verdict is that of a recorded run.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from itertools import count
from typing import Any

from penstock.forked import in_child, new_lock
from penstock.plan.node import Node, short_location
from penstock.profiler.analysis.figures import Analysis, Step, named, runs_on
from penstock.profiler.analysis.model import cpu_share
from penstock.profiler.memory import memory_report
from penstock.profiler.recording.observing import MOST_PIPELINES, Observing, observed, switch_off, switch_on
from penstock.profiler.recording.pipeline import Pipeline
from penstock.profiler.recording.sampler import Sampler
from penstock.profiler.verdict import verdict
from penstock.runtime.machine.granted import granted_cpus, granted_memory
from penstock.runtime.machine.malloc import most_resident, resident

_LOOK = 0.04  # seconds between two samples of all threads
_MARK = 1.0  # seconds between two progress marks
_SHOWN_FOR = 60.0  # seconds that an iteration is shown after its end; then its plan is freed


class LiveObserving(Observing):
    """Starts at once, with a thread that samples the running iterations."""

    def __init__(self) -> None:
        super().__init__()
        self._over = threading.Event()
        self._ended: dict[str, float] = {}
        self._thread = threading.Thread(target=self._look_on, name="penstock-live", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self.goes_on = False
        self._over.set()

    def _has_room(self) -> bool:
        """Return True if there is room for another pipeline. If needed, remove the pipeline that ended first."""
        if len(self.pipelines) >= MOST_PIPELINES:
            ended = next((key for key, each in self.pipelines.items() if not each.loop.running), None)
            if ended is None:
                return False
            del self.pipelines[ended]
        return True

    def _look_on(self) -> None:
        sampler = Sampler(self._over.wait)
        due = 0.0
        while not self._over.is_set():
            running = [each for each in list(self.pipelines.values()) if each.loop.running]
            sampler.look(_LOOK if running else _MARK, [(each.tracer.threads, each.looks) for each in running])
            now = time.perf_counter()
            if now >= due:
                due = now + _MARK
                for each in running:
                    each.watch(now)
                self._let_go(now)

    def _let_go(self, now: float) -> None:
        with self._lock:
            for key, each in list(self.pipelines.items()):
                if each.loop.running:
                    self._ended.pop(each.name, None)
                elif now - self._ended.setdefault(each.name, now) > _SHOWN_FOR:
                    del self.pipelines[key], self._ended[each.name]


_users = 0
_live: LiveObserving | None = None
_lock = new_lock()


def want() -> None:
    """Observe iterations that start from now on, until each call of `want` is matched by one of `no_longer`."""
    global _users, _live
    with _lock:
        _users += 1
        if _live is None:
            _live = LiveObserving()
            switch_on(_live)


def no_longer() -> None:
    """Undo one call of `want`."""
    global _users, _live
    with _lock:
        _users = max(_users - 1, 0)
        if not _users and _live is not None:
            switch_off(_live)
            _live.stop()
            _live = None


@in_child
def _forget() -> None:
    global _users, _live
    _users, _live = 0, None


VERSION = 1


def snapshot(plan: Node | None = None) -> dict[str, Any]:
    """Return the state of all iterations, or of those over one plan. Ended ones are included for a minute."""
    pipelines = [each for observing in observed() for each in list(observing.pipelines.values())]
    if plan is not None:
        pipelines = [each for each in pipelines if each.written is not None and each.written() is plan]
    told = [_pipeline(each) for each in pipelines]
    taken: set[str] = set()
    for each in told:  # the name of a pipeline must not change; a recording and a monitor both count from 1
        if each["name"] in taken:
            each["name"] = next(name for n in count(1) if (name := f"pipeline {n}") not in taken)
        taken.add(each["name"])
    told.sort(key=lambda each: not each["running"])
    return {
        "version": VERSION,
        "pid": os.getpid(),
        "program": _printable(" ".join(sys.argv))[:200] or "python",
        "at": time.time(),
        "cpus": float(granted_cpus()),
        "memory": resident() or most_resident(),
        "memory_granted": granted_memory(),
        "pipelines": told,
    }


def _pipeline(pipeline: Pipeline) -> dict[str, Any]:
    analysis, waits = pipeline.recent()
    start = None if pipeline.start is None else asdict(pipeline.start)
    found = verdict(analysis, asdict(waits), start)
    totals = pipeline.totals()
    now = pipeline.loop.waits_now()
    held = _held(pipeline)
    where = pipeline.plan.where
    return {
        "name": pipeline.name,
        "defined_at": _printable(short_location(where) or "") or pipeline.plan.label,
        "running": bool(pipeline.loop.running),
        "passes": now.passes,
        "elements": now.steps,
        "epoch_elements": analysis.epoch_elements,
        "elements_per_second": analysis.elements_per_second if pipeline.loop.running else 0.0,
        "waited": now.waited,
        "waited_share": found.waited_share,
        "cpu_used": analysis.cpu_used,
        "verdict": asdict(found)
        | {name: [_printable(text) for text in getattr(found, name)] for name in ("sentences", "changes")},
        "rows": [_row(analysis, totals, step, prefix, found.step, held) for prefix, step in _tree(analysis)],
    }


def _tree(analysis: Analysis) -> Iterator[tuple[str, Step]]:
    """Yield steps from the loop to the source, with a prefix that draws the tree.

    Branches and inner steps are indented.
    """
    steps = {step.name: step for step in analysis.steps}
    taken = {name for step in analysis.steps for name in step.inputs}
    ends = [step.name for step in analysis.steps if step.name not in taken and "/" not in step.name]
    waiting = [("", "", name) for name in ends[-1:]]  # (prefix of its own row, prefix of the rows below, name)
    seen: set[str] = set()
    while waiting:
        head, prefix, name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        step = steps[name]
        yield head, step
        branch = (prefix + "└ ", prefix + "  ")
        heads = (prefix, prefix) if len(step.inputs) < 2 else branch
        waiting += [(*heads, below) for below in reversed(step.inputs)]
        opened = [each.name for each in analysis.steps if each.name.startswith(f"{name}/")]
        waiting += [(branch[0 if below == opened[-1] else 1], branch[1], below) for below in opened]


def _row(
    analysis: Analysis, totals: Analysis, step: Step, prefix: str, bottleneck: str | None, held: dict[Any, int]
) -> dict[str, Any]:
    lane = analysis.lane(step.lane)
    own = [each for each in analysis.lanes if each.name in (step.name, f"{step.name} inputs")]
    inputs = [each for each in analysis.lanes if each.consumer == lane.name]
    first = next(each for each in reversed(analysis.steps) if each.lane == step.lane).name == step.name
    whole = next((each for each in totals.steps if each.name == step.name), step)
    window = own[0].window if own else None
    bounded = window is not None and window < 1 << 62
    buffered = held.get((step.label, step.where), 0)
    return {
        "name": step.name,
        "label": _printable(named(step)),
        "where": _printable(short_location(step.where) or ""),
        "prefix": prefix,
        "runs_on": runs_on(analysis, step),
        "per_second": step.per_second,
        "cpu_us": step.work * 1e6,
        "waiting_us": step.waiting * 1e6,
        "cores": step.per_second * step.work,
        "cpu_share": cpu_share(analysis, step),
        "waits": min(sum(each.starved for each in inputs), 1.0) if first and inputs else None,
        "full": own[0].full if own else None,
        "held": buffered,
        "room": window if bounded else None,
        "fill": min(buffered / window, 1.0) if bounded and window else None,
        "bottleneck": step.name == bottleneck,
        "elements": whole.elements,
        "cpu_seconds": whole.elements * whole.work,
        "failed": whole.failures,
    }


def _held(pipeline: Pipeline) -> dict[Any, int]:
    """Return the bytes that each step holds now, by label and line, as in `Dataset.memory`."""
    plan = None if pipeline.written is None else pipeline.written()
    found: dict[Any, int] = {}
    if plan is None or not pipeline.loop.running:
        return found
    for row in memory_report(plan, pipeline.options).rows:
        key = row.stage, row.where
        found[key] = found.get(key, 0) + row.nbytes
    return found


def _printable(text: str) -> str:
    """Replace characters that move a terminal's cursor."""
    return "".join(each if each.isprintable() else "?" for each in text)
