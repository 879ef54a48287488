"""alone: a pass in a single thread, where nothing is in the way of a step.

It tells work from waiting, and how much of the work holds the interpreter's lock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from itertools import count
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
    copy_speed: float  # bytes a second that one thread copies


def alone(
    plan: Node,
    options: Options,
    seconds: float,
    dataset: Callable[[Node], Any],
    most_passes: int | None = None,
) -> Alone:
    """One thread does everything, for some seconds behind the first result; what ends sooner is run again."""
    meter = Meter(plan, warm=False)
    probe = LockProbe(meter.frames())
    reference = Reference(meter)
    begun = threading.Event()
    timer = threading.Thread(target=_stop_later, args=(meter, begun, seconds), name="penstock-timer", daemon=True)
    try:
        with probe:
            reference.run(_FIRST_REFERENCE)
            timer.start()
            for epoch in count() if most_passes is None else range(most_passes):
                with apart(plan, options) as copy:
                    meter.begin(copy)
                    settings = Settings("inline", dataset=dataset, meter=meter)
                    with closing(Run(copy, options, epoch, settings)) as run:
                        gave = _pull(run, reference, begun)
                if not gave or meter.stopped:
                    break
    except Enough:
        pass
    finally:
        meter.over.set()
        begun.set()
    return Alone(meter, meter.costs(), probe, reference.slowed(), reference.copy_speed())


def _stop_later(meter: Meter, begun: threading.Event, seconds: float) -> None:
    """What comes first may compile and fill buffers: it gets some seconds of its own."""
    if begun.wait(2 * seconds):
        meter.over.wait(seconds)
    meter.stop()


def _pull(run: Run, reference: Reference, begun: threading.Event) -> bool:
    """Make a whole pass; whether it gave any element."""
    pace = Pace()
    gave = False
    while True:
        reference.run_when_due()
        began = time.perf_counter()
        block = run.pull(pace.want)
        begun.set()
        if block is None:
            return gave
        if isinstance(block, Block):
            gave = True
            pace.observe(block.size, time.perf_counter() - began, block.nbytes)
