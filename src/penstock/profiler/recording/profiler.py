"""Profiler: what a user switches on."""

from __future__ import annotations

import atexit
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.errors import FailedPreconditionError
from penstock.profiler.recording.observing import recording_is_on, switch_off, switch_on
from penstock.profiler.recording.recording import Recording
from penstock.runtime import profiled


class Profiler:
    """Records what pipelines and the training loop do, into a folder, while they do it.

    In a `with` block around a training loop, or between `start()` and `stop()`. Every pass that begins meanwhile is
    recorded, those of worker processes included. `stop` writes, into `folder`:

    - `report.html`: the verdict, a timeline, a table of the steps; needs no network.
    - `summary.json`: the same figures for programs.
    - `trace.json.gz`: for ui.perfetto.dev or chrome://tracing.
    - what `tensorboard --logdir logs` shows: scalars, the verdict as text, the Profile tab (with `xprof`).

    Files and memory stay bounded however long the run is: old spans are thinned, sums stay exact. A process that is
    killed leaves all but its last second; `penstock report FOLDER` makes the same files of it. Where nothing can be
    written, a warning says so and the training goes on.

    >>> import tempfile
    >>> import penstock as ps
    >>> with tempfile.TemporaryDirectory() as logs, ps.profiler.Profiler(logs) as profiler:
    ...     for batch in ps.Dataset.range(1000).map(lambda x: x + 1).batch(10):
    ...         ps.profiler.step()

    Raises FailedPreconditionError where `stop` comes before `start`.
    """

    def __init__(self, logs: str | os.PathLike[str] = "logs", *, run: str | None = None) -> None:
        self.logs = Path(logs)
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime())
        self.run = run or f"{stamp}-{os.getpid()}-{time.perf_counter_ns() % 100_000:05d}"
        self._recording: Recording | None = None
        self._begun = False

    @property
    def folder(self) -> Path:
        """Where the files of this run are."""
        return self.logs / self.run

    def start(self) -> Profiler:
        """Record passes that begin from now on."""
        self._begun = True
        if recording_is_on():
            warnings.warn("A profiler is on in this process already: this one records nothing.", stacklevel=2)
            return self
        try:
            self._recording = made = Recording(self.logs, self.run)
        except OSError as error:
            warnings.warn(f"No profile can be written to {self.logs} ({error}): nothing is recorded.", stacklevel=2)
            return self
        switch_on(made)
        atexit.register(self._left_open)
        return self

    def stop(self) -> None:
        """Stop recording, and write the report. Idempotent."""
        if not self._begun:
            message = "This profiler was not started."
            raise FailedPreconditionError(message, hint="Write with ps.profiler.Profiler('logs'):, or call start().")
        made, self._recording = self._recording, None
        if made is None:
            return
        atexit.unregister(self._left_open)
        switch_off(made)
        if made._pid != os.getpid():
            return  # a forked child: the files are the parent's
        made.stop()
        from penstock.profiler.views.write import write_views

        try:
            write_views(self.folder)
        except OSError as error:
            warnings.warn(
                f"The report of {self.folder} could not be written ({error}); "
                f"`penstock report {self.folder}` makes it of what was recorded.",
                stacklevel=2,
            )

    def _left_open(self) -> None:
        self.stop()

    def __enter__(self) -> Profiler:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()


def step() -> None:
    """Say that a training step is over. Without it steps are taken to be what lies between two batches.

    Nothing happens where no profiler is on.
    """
    made: Any = profiled.recording
    if made is not None:
        made.mark_step()


@contextmanager
def annotate(name: str) -> Iterator[None]:
    """A span of your own in the timeline: `with ps.profiler.annotate("forward"):`."""
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
    """Record the whole process if the environment asks for it (PENSTOCK_PROFILE=folder)."""
    folder = profiled.wanted()
    if folder:
        Profiler(folder).start()
