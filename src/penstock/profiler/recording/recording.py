"""Recording: one profiled run: its pipelines, its tracks, and the thread that writes them to the disk."""

from __future__ import annotations

import os
import resource
import socket
import threading
import time
import warnings
from collections import deque
from dataclasses import asdict
from pathlib import Path
from typing import Any

from penstock.forked import in_child, new_lock
from penstock.options import Options
from penstock.plan.node import Node
from penstock.profiler.recording.iterating import ProfiledIterator
from penstock.profiler.recording.pipeline import Pipeline
from penstock.profiler.recording.sampler import Sampler
from penstock.profiler.recording.store import Store
from penstock.profiler.recording.tracks import Span, Tracks
from penstock.runtime import profiled
from penstock.runtime.processes import pool
from penstock.runtime.run import Iterator, Settings

_LOOK = 0.04  # seconds between two looks at what threads are at
_DRAIN = 0.2  # seconds between two looks into rings
_WRITE = 1.0  # seconds between two writings
_MOST_PIPELINES = 64
_EVERY = 50  # times as long as writing took, the next one is away at least
WAIT, STEP = "wait for data", "step"


class Recording:
    """Begins at once; `stop` writes the rest."""

    def __init__(self, logs: Path, run: str) -> None:
        self.logs, self.run = logs, run
        self.folder = logs / run
        self.goes_on = True
        self.tracks = Tracks()
        self.pipelines: dict[tuple[Any, ...], Pipeline] = {}
        self.step_marks = 0
        self._store = Store(self.folder)
        self._lock = new_lock()
        self._wait, self._step = self.tracks.name(WAIT), self.tracks.name(STEP)
        self._steps: deque[Span] = self.tracks._track("steps of the training loop")
        self._last: dict[str, float] = {}
        self._marked: float | None = None
        self._known = (-1, -1)
        self._began, self._unix = time.perf_counter(), time.time()
        self._pid = os.getpid()
        self._over = threading.Event()
        self.broken: str | None = None
        self._about()
        self._thread = threading.Thread(target=self._write_on, name="penstock-profiler", daemon=True)
        self._thread.start()
        in_child(self.forget)

    # -- the pipeline's side

    def iterator(self, plan: Node, options: Options, epoch: int, settings: Settings, continued: Any) -> Iterator:
        return ProfiledIterator(plan, options, epoch, settings, continued, self)

    def pipeline(self, plan: Node, options: Options) -> Pipeline | None:
        """The one that a pass over a plan belongs to; None for a pass too many at once."""
        if not self.goes_on:
            return None
        shape = tuple((type(node).__name__, node.label, node.where) for node in plan.walk())
        with self._lock:
            for turn in range(_MOST_PIPELINES):
                found = self.pipelines.get((turn, shape))
                if found is not None and not found.running:
                    found.plan = found.tracer._plan
                    return found
                if found is None and len(self.pipelines) < _MOST_PIPELINES:
                    name = f"pipeline {len(self.pipelines) + 1}"
                    self.pipelines[turn, shape] = made = Pipeline(name, plan, options, self.tracks)
                    return made
        return None

    def stepped(self, pipeline: Pipeline, asked: float, got: float, steps: int) -> None:
        """The loop of a pipeline asked for more, and got it."""
        ring, wait = self.tracks.ring(), int(asked * 1e9)
        ring.append((self._wait, wait, int((got - asked) * 1e9)))
        last, self._last[pipeline.name] = self._last.get(pipeline.name), asked
        if last is not None and not self.step_marks and steps:
            self._steps.append((self._step, int(last * 1e9), wait - int(last * 1e9)))

    def process(self, pid: int, label: str, started: float, seconds: float) -> None:
        """A worker process has worked for a step."""
        self.tracks.process(pid).append((self.tracks.name(label), int(started * 1e9), int(seconds * 1e9)))

    # -- the user's side

    def mark_step(self) -> None:
        now, last = time.perf_counter(), self._marked
        self._marked = now
        self.step_marks += 1
        begun = now if last is None else last
        self._steps.append((self._step, int(begun * 1e9), int((now - begun) * 1e9)))

    def annotated(self, name: int, began: float) -> None:
        now = time.perf_counter()
        self.tracks.ring().append((name, int(began * 1e9), int((now - began) * 1e9)))

    def stop(self) -> None:
        """Write what is left. Idempotent."""
        self.goes_on = False
        self._over.set()
        if self._pid == os.getpid() and self._thread.is_alive():
            self._thread.join()

    def forget(self) -> None:
        """In a forked child nothing is recorded: the files are the parent's."""
        self.goes_on = False
        if profiled.recording is self:
            profiled.recording = None
            pool.worker_done = None

    # -- the writer

    def _write_on(self) -> None:
        sampler = Sampler(self._over.wait)
        due = drain = time.perf_counter() + _WRITE
        try:
            while not self._over.is_set():
                sampler.look(_LOOK, [(each.tracer.threads, each.looks) for each in list(self.pipelines.values())])
                now = time.perf_counter()
                if now >= drain:
                    self._store.add_spans(self.tracks.drained())
                    drain = now + _DRAIN
                if now >= due:
                    self._write(now)
                    done = time.perf_counter()
                    due = max(due + _WRITE, done + _EVERY * (done - now))
            self._write(time.perf_counter())
        except Exception as error:  # a full disk, mostly: the training goes on
            self.goes_on = False
            self.broken = f"{type(error).__name__}: {error}"
            warnings.warn(
                f"The profile in {self.folder} ends here ({self.broken}); what was written is whole.", stacklevel=2
            )

    def _about(self) -> None:
        known = len(self.tracks.names), len(self.tracks.titles)
        if known == self._known:
            return
        about = {
            "run": self.run,
            "host": socket.gethostname(),
            "pid": self._pid,
            "began": self._began,
            "unix": self._unix,
            "names": self.tracks.names[: known[0]],
            "tracks": self.tracks.titles[: known[1]],
        }
        self._store.put("about.json", about)
        self._known = known

    def _write(self, now: float) -> None:
        spans = self.tracks.drained()
        self._about()
        self._store.add_spans(spans)
        sample: dict[str, Any] = {"at": now - self._began, "memory": _resident(), "pipelines": {}}
        states = []
        for pipeline in list(self.pipelines.values()):
            waits = pipeline.waits
            lanes = pipeline.watch(now)
            sample["pipelines"][pipeline.name] = {"steps": waits.steps, "waited": waits.waited, "lanes": lanes}
            states.append(
                {
                    "name": pipeline.name,
                    "title": pipeline.plan.label if pipeline.plan.where is None else f"{pipeline.plan.where}",
                    "waits": asdict(waits),
                    "start": None if pipeline.start is None else asdict(pipeline.start),
                    "choices": [each | {"at": each["at"] - self._began} for each in pipeline.choices],
                    "analysis": asdict(pipeline.analysis()),
                }
            )
        self._store.add_sample(sample)
        self._store.put("state.json", {"at": now, "steps": self.step_marks, "pipelines": states})


def _resident() -> int:
    """Bytes of memory of this process that are in use."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
