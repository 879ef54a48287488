"""alone: a pass in a single thread, where nothing is in the way of a step.

It tells work from waiting, and how much of the work holds the interpreter's lock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.block.block import Block
from penstock.options import Options
from penstock.plan.node import Node
from penstock.profiler.analysis.apart import apart
from penstock.profiler.analysis.lock_probe import LockProbe
from penstock.profiler.analysis.meter import Costs, Enough, Meter
from penstock.profiler.analysis.reference import Reference
from penstock.runtime.pace import Pace
from penstock.runtime.run import Run, Settings

_FIRST_REFERENCE = 0.05  # seconds


@dataclass(slots=True)
class Alone:
    """What a pass in one thread showed."""

    meter: Meter
    costs: Costs
    probe: LockProbe
    slowed: float  # seconds that a second of CPU time takes, for what else the machine does


def alone(plan: Node, options: Options, seconds: float, dataset: Callable[[Node], Any]) -> Alone:
    """One thread does everything, for some seconds behind the first result or to the end."""
    with apart(plan, options) as copy:
        meter = Meter(plan, copy, warm=False)
        probe = LockProbe(meter.frames())
        reference = Reference(meter)
        begun = threading.Event()
        timer = threading.Thread(target=_stop_later, args=(meter, begun, seconds), name="penstock-timer", daemon=True)
        run = Run(copy, options, 0, Settings("inline", dataset=dataset, meter=meter))
        try:
            with probe:
                reference.run(_FIRST_REFERENCE)
                timer.start()
                _pull(run, reference, begun)
        except Enough:
            pass
        finally:
            meter.over.set()
            begun.set()
            run.close()
    return Alone(meter, meter.costs(), probe, reference.slowed())


def _stop_later(meter: Meter, begun: threading.Event, seconds: float) -> None:
    """What comes first may compile and fill buffers: it gets some seconds of its own."""
    if begun.wait(2 * seconds):
        meter.over.wait(seconds)
    meter.stop()


def _pull(run: Run, reference: Reference, begun: threading.Event) -> None:
    pace = Pace()
    while True:
        reference.run_when_due()
        began = time.perf_counter()
        block = run.pull(pace.want)
        begun.set()
        if block is None:
            return
        if isinstance(block, Block):
            pace.observe(block.size, time.perf_counter() - began, block.nbytes)
