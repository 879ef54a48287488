"""Observing: records the work of iterations for any reader, and selects the active observer."""

from __future__ import annotations

import os
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from penstock.forked import in_child, new_lock
from penstock.options import Options
from penstock.physical.stage import State
from penstock.plan.node import Node
from penstock.profiler.recording.pipeline import Pipeline
from penstock.profiler.recording.tracer import Span, Tracks
from penstock.runtime import profiled
from penstock.runtime.processes import pool
from penstock.runtime.run import Iterator, RunSettings


class ProfiledIterator(Iterator):
    """An observed iterator. It adds no cost per element, and some microseconds per Block."""

    def __init__(
        self,
        plan: Node,
        options: Options,
        epoch: int,
        settings: RunSettings,
        continued: Callable[[int], None],
        recording: Observing,
    ) -> None:
        self._recording = recording
        self._pass: _Pass | None = None
        super().__init__(plan, options, epoch, settings, continued)

    def _start(self, epoch: int, state: State, skip: int) -> None:
        if self._pass is not None:
            self._pass.leave()
        found = self._recording.pipeline(self._variant.plan, self._options)
        self._pass = None
        if found is not None:
            found.began(self._variant.plan, self._written)
            self._pass = _Pass(found)
            weakref.finalize(self, self._pass.leave).atexit = False
            self._settings = replace(self._settings, meter=found.tracer)
        super()._start(epoch, state, skip)

    def _refill(self) -> Any:
        now = self._pass
        if now is None or now.left or not self._recording.goes_on:
            return super()._refill()
        clock = time.perf_counter
        asked, worked = clock(), time.thread_time()
        steps = 0
        now.inside = True
        now.pipeline.loop.asking = asked
        try:
            element = super()._refill()
            steps = self._size - self._passed
            return element
        except StopIteration:
            raise
        except Exception as error:
            now.pipeline.loop.failed(error)
            raise
        finally:
            got = clock()
            first, now.inside = now.began is None, False
            now.began, now.last = asked if first else now.began, got
            now.pipeline.refilled(asked, got, time.thread_time() - worked, steps, first=first)
            self._recording.stepped(now.pipeline, asked, got, steps)
            if now.over:
                now.leave()

    def _next_block(self) -> Any:
        block = super()._next_block()
        if block is None and self._pass is not None:
            self._pass.whole = True
        return block

    def close(self) -> None:
        super().close()
        if self._pass is not None:
            self._pass.leave()


class _Pass:
    """One iteration of a pipeline.

    It is over at its end, when it is closed, or when its iterator is garbage-collected.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.began: float | None = None
        self.last = time.perf_counter()
        self.whole = self.inside = self.over = self.left = False

    def leave(self) -> None:
        self.over = True
        if not self.left and not self.inside:
            self.left = True
            self.pipeline.loop.ended(self.last if self.began is None else self.began, self.last, whole=self.whole)


MOST_PIPELINES = 64
WAIT, STEP = "wait for data", "step"


class Observing:
    """Receives the events of iterations. A `Recording` writes them to disk; a `Live` answers requests."""

    files = False  # True if spans are recorded, too

    def __init__(self) -> None:
        self.goes_on = True
        self.tracks = Tracks() if self.files else Tracks(room=0)
        self.pipelines: dict[tuple[Any, ...], Pipeline] = {}
        self.step_marks = 0
        self._lock = new_lock()
        self._wait, self._step = self.tracks.name(WAIT), self.tracks.name(STEP)
        self._steps: deque[Span] = self.tracks._track("steps of the training loop")
        self._last: dict[str, float] = {}
        self._marked: int | None = None  # nanoseconds at the end of the latest step
        self._pid = os.getpid()

    # -- called by iterations

    def iterator(self, plan: Node, options: Options, epoch: int, settings: RunSettings, continued: Any) -> Iterator:
        return ProfiledIterator(plan, options, epoch, settings, continued, self)

    def pipeline(self, plan: Node, options: Options) -> Pipeline | None:
        """Return the pipeline of an iteration over a plan, or None if too many are running."""
        if not self.goes_on:
            return None
        shape = tuple((type(node).__name__, node.label, node.where) for node in plan.walk())
        with self._lock:
            for turn in range(MOST_PIPELINES):
                found = self.pipelines.get((turn, shape))
                if found is not None and not found.loop.running:
                    found.plan = found.tracer._plan
                    return found
                if found is None and self._has_room():
                    made = Pipeline(self._free_name(), plan, options, self.tracks)
                    self.pipelines[turn, shape] = made
                    return made
        return None

    def _has_room(self) -> bool:
        return len(self.pipelines) < MOST_PIPELINES

    def _free_name(self) -> str:
        taken = {each.name for each in self.pipelines.values()}
        return next(name for n in range(1, len(taken) + 2) if (name := f"pipeline {n}") not in taken)

    def stepped(self, pipeline: Pipeline, asked: float, got: float, steps: int) -> None:
        """Record that the loop of a pipeline requested elements and received them."""
        ring, wait = self.tracks.ring(), int(asked * 1e9)
        ring.append((self._wait, wait, int((got - asked) * 1e9)))
        last, self._last[pipeline.name] = self._last.get(pipeline.name), asked
        if last is not None and not self.step_marks and steps:
            self._steps.append((self._step, int(last * 1e9), wait - int(last * 1e9)))

    def process(self, pid: int, label: str, started: float, seconds: float) -> None:
        """Record the work of a worker process for a step."""
        self.tracks.process(pid).append((self.tracks.name(label), int(started * 1e9), int(seconds * 1e9)))

    # -- called by the user

    def mark_step(self) -> None:
        now, begun = time.perf_counter_ns(), self._marked
        if begun is None:
            begun = int(1e9 * min(self._last.values())) if self._last else now
        self._marked = now
        self.step_marks += 1
        self._steps.append((self._step, begun, now - begun))

    def annotated(self, name: int, began: float) -> None:
        now = time.perf_counter()
        self.tracks.own.add(name)
        self.tracks.ring().append((name, int(began * 1e9), int((now - began) * 1e9)))


_on: list[Observing] = []


def switch_on(observing: Observing) -> None:
    """Send iterations that start from now on to an observer. A recording has priority, because it records more."""
    _on.append(observing)
    _choose()


def switch_off(observing: Observing) -> None:
    """Remove an observer. Idempotent."""
    if observing in _on:
        _on.remove(observing)
    _choose()


def observed() -> list[Observing]:
    """Return all observers of iterations. A recorded run sees those that began during the recording."""
    return list(_on)


def recording_is_on() -> bool:
    return any(each.files for each in _on)


def _choose() -> None:
    chosen = next((each for each in _on if each.files), _on[0] if _on else None)
    profiled.recording = chosen
    pool.worker_done = chosen.process if chosen is not None and chosen.files else None


@in_child
def _forget() -> None:
    """Stop all observers in a forked child: they belong to the parent."""
    for each in _on:
        each.goes_on = False
    _on.clear()
    _choose()
