"""`tf.profiler.experimental`, once `tf.python.eager.profiler`: penstock's profiler, of pipelines and their loop."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import penstock as ps
from penstock.compat.teaching import Namespace, missing_in
from penstock.errors import AlreadyExistsError, FailedPreconditionError

_running: list[Any] = []


@dataclass
class ProfilerOptions:
    """The level of detail of TensorFlow's profiler. penstock has one level, so these settings have no effect."""

    host_tracer_level: int = 2
    python_tracer_level: int = 0
    device_tracer_level: int = 1
    delay_ms: Any = None


class Profile:
    """Records the iterations that begin in `with Profile(logdir): ...`. See `penstock.profiler.Profiler`."""

    def __init__(self, logdir: Any, options: Any = None) -> None:
        self._profiler = ps.profiler.Profiler(logdir)

    def __enter__(self) -> Profile:
        self._profiler.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._profiler.stop()


Profiler = Profile  # TensorFlow's name of the same class in this module


@contextmanager
def Trace(name: str, **kwargs: Any) -> Iterator[None]:
    """Record a span of your own in the timeline. With `step_num`, the span is a training step.

    >>> with Trace("train", step_num=1, _r=1):
    ...     pass
    """
    with ps.profiler.annotate(name):
        yield
    if "step_num" in kwargs:
        ps.profiler.step()


def start(logdir: Any = "logs", options: Any = None) -> None:
    """Start to record. Raises AlreadyExistsError if a recording has started."""
    if _running:
        raise AlreadyExistsError("Another profiler is running.", hint="Call tf.profiler.experimental.stop() first.")
    profiler = ps.profiler.Profiler(logdir)
    profiler.start()
    _running.append(profiler)


def stop(save: bool = True) -> None:
    """Write the recording. Raises FailedPreconditionError if `start` was not called."""
    if not _running:
        message = "Cannot export profiling results. No profiler is running."
        raise FailedPreconditionError(message, hint="Call tf.profiler.experimental.start(logdir) first.")
    _running.pop().stop()


def _serve(port: int) -> None:
    """Warn that `penstock top` shows a run without a port."""
    text = (
        f"tf.profiler.experimental.server.start({port}) opens no port: `penstock top` shows what this process does, "
        "and PENSTOCK_PROFILE=folder records all of it."
    )
    warnings.warn(text, stacklevel=2)


server = Namespace("tf.profiler.experimental.server", start=_serve)
client = Namespace(
    "tf.profiler.experimental.client",
    dict.fromkeys(("trace", "monitor"), "Record in the process itself, with tf.profiler.experimental.Profile(logdir)."),
)

__getattr__ = missing_in("tf.profiler.experimental", globals())
