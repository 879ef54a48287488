"""Recording: one profiled run: its pipelines, its tracks, and the thread that writes them to the disk."""

from __future__ import annotations

import os
import socket
import threading
import time
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

from penstock.profiler.analysis.figures import Step
from penstock.profiler.recording.observing import Observing, resident
from penstock.profiler.recording.sampler import Sampler
from penstock.profiler.recording.store import Store

_LOOK, _LATER_LOOK = 0.05, 0.2  # seconds between two looks at what threads are at: each takes the lock from them
_EARLY = 30.0  # seconds in which there is looked more often, so that a short run is told as well as a long one
_DRAIN = 0.2  # seconds between two looks into rings
_WRITE = 1.0  # seconds between two writings
_EVERY = 50  # times as much CPU time as writing took, the next one is away at least


class Recording(Observing):
    """Begins at once; `stop` writes the rest."""

    files = True

    def __init__(self, logs: Path, run: str) -> None:
        super().__init__()
        self.logs, self.run = logs, run
        self.folder = logs / run
        self._store = Store(self.folder)
        self._known = (-1, -1, -1)
        self._began, self._unix = time.perf_counter(), time.time()
        self._over = threading.Event()
        self.broken: str | None = None
        self._about()
        self._thread = threading.Thread(target=self._write_on, name="penstock-profiler", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Write what is left. Idempotent."""
        self.goes_on = False
        self._over.set()
        if self._pid == os.getpid() and self._thread.is_alive():
            self._thread.join()

    # -- the writer

    def _write_on(self) -> None:
        sampler = Sampler(self._over.wait)
        due = drain = time.perf_counter() + _WRITE
        try:
            while not self._over.is_set():
                pause = _LOOK if time.perf_counter() - self._began < _EARLY else _LATER_LOOK
                sampler.look(pause, [(each.tracer.threads, each.looks) for each in list(self.pipelines.values())])
                now = time.perf_counter()
                if now >= drain:
                    self._store.add_spans(self.tracks.drained())
                    drain = now + _DRAIN
                if now >= due:
                    worked = time.thread_time()
                    self._write(now)
                    due = max(now + _WRITE, now + _EVERY * (time.thread_time() - worked))
            self._write(time.perf_counter())
        except Exception as error:  # a full disk, mostly: the training goes on
            self.goes_on = False
            self.broken = f"{type(error).__name__}: {error}"
            warnings.warn(
                f"The profile in {self.folder} ends here ({self.broken}); what was written is whole.", stacklevel=2
            )

    def _about(self) -> None:
        known = len(self.tracks.names), len(self.tracks.titles), len(self.tracks.own)
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
            "own": sorted(self.tracks.own),
            "reading": sorted(self.tracks.reading),
        }
        self._store.put("about.json", about)
        self._known = known

    def _write(self, now: float) -> None:
        spans = self.tracks.drained()
        self._about()
        self._store.add_spans(spans)
        sample: dict[str, Any] = {"at": now - self._began, "memory": resident(), "pipelines": {}}
        states = []
        for pipeline in list(self.pipelines.values()):
            lanes = pipeline.watch(now)
            waits = pipeline.waits_now()
            analysis = pipeline.analysis()
            sample["pipelines"][pipeline.name] = {
                "steps": waits.steps,
                "waited": waits.waited,
                "lanes": lanes,
                "stages": {step.name: _sampled(step) for step in analysis.steps},
            }
            states.append(
                {
                    "name": pipeline.name,
                    "title": pipeline.plan.label if pipeline.plan.where is None else f"{pipeline.plan.where}",
                    "written": pipeline.as_written,
                    "waits": asdict(waits),
                    "start": None if pipeline.start is None else asdict(pipeline.start),
                    "choices": [each | {"at": each["at"] - self._began} for each in pipeline.choices],
                    "analysis": asdict(analysis),
                }
            )
        self._store.add_sample(sample)
        self._store.put("state.json", {"at": now, "steps": self.step_marks, "pipelines": states})


def _sampled(step: Step) -> tuple[int, float]:
    """The elements that a step has made up to now, and the microseconds of CPU time of each."""
    return round(step.elements), float(f"{1e6 * (step.cpu + step.shipping):.4g}")
