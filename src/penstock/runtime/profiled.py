"""Profiled: whether this process records what its pipelines do. Off, it costs one look at a name for each pass."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol

from penstock.options import Options
from penstock.plan.node import Node
from penstock.runtime.run import Iterator, Settings


class Recorder(Protocol):
    """Makes iterators whose passes are recorded."""

    def iterator(self, plan: Node, options: Options, epoch: int, settings: Settings, continued: Any) -> Iterator: ...


recording: Recorder | None = None
WANTED = "PENSTOCK_PROFILE"  # names the folder for a profile of the whole process
MONITORED = "PENSTOCK_MONITOR"  # 1: `penstock top` may look at the process


def wanted() -> str | None:
    """The folder that the environment asks for, once."""
    return os.environ.pop(WANTED, None)


def monitored() -> bool:
    """Whether the environment asks for a monitor; once, and not in the processes that this one starts."""
    return os.environ.pop(MONITORED, "") not in ("", "0")


def iterator(
    plan: Node, options: Options, epoch: int, settings: Settings, continued: Callable[[int], None]
) -> Iterator:
    """A pass, recorded where that is asked for."""
    make = Iterator if recording is None else recording.iterator
    return make(plan, options, epoch, settings, continued)
