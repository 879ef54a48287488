"""Profiler: the user's recorder of training runs.

`Recording` is one profiled run: its pipelines, its tracks, and the thread that writes them.
"""

from __future__ import annotations

import atexit
import os
import socket
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from penstock.errors import FailedPreconditionError
from penstock.profiler.analysis.figures import Step
from penstock.profiler.recording.observing import Observing, recording_is_on, switch_off, switch_on
from penstock.profiler.recording.sampler import Sampler
from penstock.profiler.recording.store import Store
from penstock.runtime import profiled
from penstock.runtime.machine.malloc import most_resident, resident

_LOOK, _LATER_LOOK = 0.05, 0.2  # seconds between two samples of all threads; each sample takes the GIL
_EARLY = 30.0  # seconds with more frequent samples, so that short runs have enough samples
_DRAIN = 0.2  # seconds between two reads of the rings
_WRITE = 1.0  # seconds between two writes
_EVERY = 50  # the time to the next write is at least this multiple of the CPU time of the last one


class Recording(Observing):
    """Starts at once; `stop` writes the remaining data."""

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
        """Write the remaining data. Idempotent."""
        self.goes_on = False
        self._over.set()
        if self._pid == os.getpid() and self._thread.is_alive():
            self._thread.join()

    # -- writer thread

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
        except Exception as error:  # usually a full disk: the training continues
            self.goes_on = False
            self.broken = f"{type(error).__name__}: {error}"
            warnings.warn(
                f"The profile in {self.folder} ends here ({self.broken}); the data written so far is complete.",
                stacklevel=2,
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
        sample: dict[str, Any] = {"at": now - self._began, "memory": resident() or most_resident(), "pipelines": {}}
        states = []
        for pipeline in list(self.pipelines.values()):
            lanes = pipeline.watch(now)
            waits = pipeline.loop.waits_now()
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
                    "choices": [each | {"at": each["at"] - self._began} for each in pipeline.lanes.choices],
                    "analysis": asdict(analysis),
                }
            )
        self._store.add_sample(sample)
        self._store.put("state.json", {"at": now, "steps": self.step_marks, "pipelines": states})


def _sampled(step: Step) -> tuple[int, float]:
    """Return the number of elements of a step so far, and the CPU microseconds per element."""
    return round(step.elements), float(f"{1e6 * (step.work):.4g}")


class Profiler:
    """Recorder of pipelines and of the training loop, which writes a report.

    Use it in a `with` block around your training loop, or between `start()` and `stop()`. It records every iteration
    that starts in this time, also in worker processes. `stop` writes these files to `folder`:

    - `report.html`: the verdict, a timeline and a table of the steps. It needs no network.
    - `summary.json`: the same figures for programs.
    - `trace.json.gz`: for ui.perfetto.dev or chrome://tracing.
    - Files for `tensorboard --logdir logs`: scalars, the verdict as text, and the Profile tab (with `xprof`).

    Files and memory stay bounded in long runs: old spans are thinned out, sums stay exact. If the process is killed,
    only its last second is lost, and `penstock report FOLDER` writes the files. If the folder cannot be written,
    penstock warns, and the training continues.

    Args:
        logs: Folder for the folders of all runs. Default: `logs`.
        run: Name of the folder of this run. Default: the time.

    Raises:
        FailedPreconditionError: If `stop` is called before `start`.

    Example:
        >>> import tempfile
        >>> import penstock as ps
        >>> with tempfile.TemporaryDirectory() as logs, ps.profiler.Profiler(logs) as profiler:
        ...     for batch in ps.Dataset.range(1000).map(lambda x: x + 1).batch(10):
        ...         ps.profiler.step()
    """

    def __init__(self, logs: str | os.PathLike[str] = "logs", *, run: str | None = None) -> None:
        self.logs = Path(logs).expanduser()
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime())
        self.run = run or f"{stamp}-{os.getpid()}-{time.perf_counter_ns() % 100_000:05d}"
        self._recording: Recording | None = None
        self._begun = False

    @property
    def folder(self) -> Path:
        """Folder of the files of this run."""
        return self.logs / self.run

    def start(self) -> Profiler:
        """Record iterations that start from now on."""
        self._begun = True
        if recording_is_on():
            warnings.warn("Another profiler already runs in this process: this one records nothing.", stacklevel=2)
            return self
        try:
            self._recording = made = Recording(self.logs, self.run)
        except OSError as error:
            warnings.warn(f"No profile can be written to {self.logs} ({error}): nothing is recorded.", stacklevel=2)
            return self
        switch_on(made)
        atexit.register(self.stop)
        return self

    def stop(self) -> None:
        """Stop recording, and write the report. Idempotent."""
        if not self._begun:
            message = "This profiler was not started."
            raise FailedPreconditionError(message, hint="Write with ps.profiler.Profiler('logs'):, or call start().")
        made, self._recording = self._recording, None
        if made is None:
            return
        atexit.unregister(self.stop)
        switch_off(made)
        if made._pid != os.getpid():
            return  # a forked child: the files belong to the parent
        made.stop()
        from penstock.profiler.views.write import write_views

        try:
            write_views(self.folder)
        except OSError as error:
            warnings.warn(
                f"The report of {self.folder} could not be written ({error}); "
                f"`penstock report {self.folder}` makes it from the recorded data.",
                stacklevel=2,
            )

    def __enter__(self) -> Profiler:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()


def step() -> None:
    """Mark the end of a training step for the profiler. Without this call, a step is the time between two batches.

    The call does nothing if no profiler runs.

    Example:
        >>> import penstock as ps
        >>> ps.profiler.step()
    """
    made: Any = profiled.recording
    if made is not None:
        made.mark_step()


@contextmanager
def annotate(name: str) -> Iterator[None]:
    """Add a span of your own to the timeline of the profiler.

    Args:
        name: Name of the span.

    Returns:
        A context manager: the span is its block.

    Example:
        >>> import penstock as ps
        >>> with ps.profiler.annotate("forward"):
        ...     pass
    """
    made: Any = profiled.recording
    if made is None:
        yield
        return
    number, began = made.tracks.name(name), time.perf_counter()
    try:
        yield
    finally:
        made.annotated(number, began)


def begin_as_asked() -> None:
    """Record the whole process if the environment requests it (PENSTOCK_PROFILE=folder)."""
    folder = profiled.wanted()
    if folder:
        Profiler(folder).start()
