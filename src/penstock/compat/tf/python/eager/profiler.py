"""`tf.python.eager.profiler`: penstock's profiler, which records input pipelines and the loop around them."""

from __future__ import annotations

from typing import Any

import penstock as ps

_running: list[Any] = []


class Profiler:
    """`with Profiler(logdir): ...` records the passes that begin inside; see `penstock.profiler.Profiler`."""

    def __init__(self, logdir: Any, options: Any = None) -> None:
        self._profiler = ps.profiler.Profiler(logdir)

    def __enter__(self) -> Profiler:
        self._profiler.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._profiler.stop()


def start(logdir: Any = "logs", options: Any = None) -> None:
    """Begin to record."""
    profiler = ps.profiler.Profiler(logdir)
    profiler.start()
    _running.append(profiler)


def stop(save: bool = True) -> None:
    """Write what was recorded."""
    _running.pop().stop()
