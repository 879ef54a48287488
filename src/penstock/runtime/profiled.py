"""Starts the profiler of this process. If it is off, it costs one access to a name per iteration."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol

from penstock.options import Options
from penstock.plan.node import Node
from penstock.runtime.run import Iterator, RunSettings


class IterationRecorder(Protocol):
    """Makes iterators whose iterations are recorded."""

    def iterator(self, plan: Node, options: Options, epoch: int, settings: RunSettings, continued: Any) -> Iterator: ...


recording: IterationRecorder | None = None
WANTED = "PENSTOCK_PROFILE"  # names the folder for a profile of the whole process
MONITORED = "PENSTOCK_MONITOR"  # 1: `penstock top` may connect to the process


def wanted() -> str | None:
    """Return the folder that the environment asks for, once."""
    return os.environ.pop(WANTED, None)


def monitored() -> bool:
    """Return True if the environment asks for a monitor. True at most once, and not in child processes."""
    return os.environ.pop(MONITORED, "") not in ("", "0")


def iterator(
    plan: Node, options: Options, epoch: int, settings: RunSettings, continued: Callable[[int], None]
) -> Iterator:
    """Return an iterator, which records if a recorder is set."""
    make = Iterator if recording is None else recording.iterator
    return make(plan, options, epoch, settings, continued)
