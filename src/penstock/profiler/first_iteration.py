"""The start of the first iteration over a data set: what the environment asks for, and warnings about the plan."""

from __future__ import annotations

import os

from penstock.options import Options
from penstock.plan.node import Node
from penstock.profiler.lint.kept import warn_of_kept
from penstock.profiler.lint.names import warn_of_no_file
from penstock.profiler.lint.unkeyed import warn_of_unkeyed
from penstock.runtime.profiled import MONITORED, WANTED


def begin_first_iteration(plan: Node, options: Options) -> None:
    """Start the profiler and the monitor of the process if the environment asks for them. Warn of mistakes."""
    if WANTED in os.environ:
        from penstock.profiler.recording.profiler import begin_as_asked

        begin_as_asked()
    if MONITORED in os.environ:
        from penstock.profiler.live.monitor import begin_as_asked as monitor_as_asked

        monitor_as_asked()
    warn_of_kept(plan)
    warn_of_unkeyed(plan, options)
    warn_of_no_file(plan)
