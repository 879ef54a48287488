"""What a run may use, for the tuner."""

from __future__ import annotations

import sys

from penstock.compiled import compiling
from penstock.options import Options
from penstock.runtime.autotune.figures import Means
from penstock.runtime.machine.granted import granted_cores
from penstock.runtime.memory.budget import Budget
from penstock.runtime.processes.pool import process_pool


def holds_gil() -> bool:
    """Whether threads exclude each other in Python code."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def means(options: Options, budget: Budget) -> Means:
    """As it is now: memory that others hold and processes that are starting change it."""
    bounds = (options.autotune.cpu_budget, options.threading.private_threadpool_size)
    cores = min([granted_cores(), *(float(bound) for bound in bounds if bound)])
    return Means(cores, budget.total, holds_gil(), process_pool().ready(), compiling())
