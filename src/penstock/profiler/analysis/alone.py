"""alone: runs a data set in a single thread, in which nothing delays a step.

It separates work from waiting with a reference: a function that only computes and runs now and then in between. It
measures the share of work under the GIL with a thread that requests the GIL.
"""

from __future__ import annotations

import hashlib
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.options import Options
from penstock.plan.node import Node
from penstock.plan.stateful import Tally
from penstock.plan.storing import Cache, Snapshot
from penstock.profiler.analysis.meter import Costs, Enough, Frame, Meter, MeterKey
from penstock.runtime.block_sizer import BlockSizer
from penstock.runtime.run import Run, RunSettings
from penstock.store.memory import MemoryStore


@contextmanager
def isolated(plan: Node, options: Options) -> Iterator[Node]:
    """Yield the same steps with their own empty caches, snapshots and counts.

    Caches of the data set that are full are kept.
    """
    with ExitStack() as scratch:
        yield _isolated(plan, options, scratch)


def _isolated(plan: Node, options: Options, scratch: ExitStack) -> Node:
    inputs = tuple(_isolated(below, options, scratch) for below in plan.inputs)
    if any(new is not old for new, old in zip(inputs, plan.inputs, strict=True)):
        plan = plan.with_inputs(inputs)
    if isinstance(plan, Cache):
        return plan if plan.store.blocks() is not None else replace(plan, store=MemoryStore(silent=True))
    if isinstance(plan, Snapshot):
        if plan.store.saved(plan.store.folder(options.seed, options.deterministic)) is not None:
            return plan
        folder = scratch.enter_context(TemporaryDirectory(prefix="penstock-"))
        return replace(plan, path=folder, store=None)
    changes: dict[str, Any] = {"tally": Tally()} if isinstance(getattr(plan, "tally", None), Tally) else {}
    if getattr(plan, "quarantine", None) is not None:
        changes["quarantine"] = None
    return replace(plan, **changes) if changes else plan


REFERENCE = MeterKey(0, "reference")
_CONTENT = bytes(1 << 18)
_SECONDS = 0.004  # seconds per run of the reference
_PAUSE = 0.05  # seconds between two runs
_COPIED = 1 << 23  # bytes


class ReferenceWork:
    """A function that only computes. It runs now and then in the measured thread."""

    def __init__(self, meter: Meter) -> None:
        self._hash = meter.measured(lambda: hashlib.sha256(_CONTENT), REFERENCE)
        self._next = 0.0
        self._ratios: list[float] = []  # ratio of wall time to CPU time in each run

    def run_when_due(self) -> None:
        if time.perf_counter() >= self._next:
            self.run()

    def run(self, seconds: float = _SECONDS) -> None:
        began, worked = time.perf_counter(), time.thread_time()
        until = began + seconds
        while time.perf_counter() < until:
            self._hash()
        now, cpu = time.perf_counter(), time.thread_time() - worked
        if cpu > 0:
            self._ratios.append((now - began) / cpu)
        self._next = now + _PAUSE

    def slowed(self) -> float:
        """Return the wall seconds per second of CPU time. The slowest tenth of the runs is ignored."""
        usual = sorted(self._ratios)[: max(len(self._ratios) * 9 // 10, 1)]
        return max(sum(usual) / len(usual), 1.0) if usual else 1.0


def copy_speed() -> float:
    """Return the bytes per second that a thread copies between two arrays, both larger than the inner caches."""
    source, target = np.ones(_COPIED, np.uint8), np.ones(_COPIED, np.uint8)
    best = float("inf")
    for _ in range(3):
        began = time.thread_time()
        np.copyto(target, source)
        best = min(best, time.thread_time() - began)
    return _COPIED / max(best, 1e-9)


copy_speed_here = cache(copy_speed)  # measured once per process, because a profile needs it each second

# seconds; of different lengths, to avoid a common rhythm with the work
_SLEEPS = (0.0013, 0.0019, 0.0011, 0.0023, 0.0017)
_PATIENCE = 0.0003  # seconds of the longest wake-up on an idle machine
_CALIBRATIONS = 16
_LEAST = 8  # minimum number of samples for an estimate
_USELESS = 0.8  # share of late wake-ups above which no estimate is possible


def has_lock() -> bool:
    """Return True if threads exclude each other in Python code (a GIL)."""
    enabled = getattr(sys, "_is_gil_enabled", None)
    return enabled is None or bool(enabled())


class LockProbe:
    """Samples a thread inside `frames` during a `with` block."""

    def __init__(self, frames: list[Frame]) -> None:
        self.asked: Counter[MeterKey] = Counter()
        self.waited: Counter[MeterKey] = Counter()
        self._frames = frames
        self._over = threading.Event()
        self._calibrated = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="penstock-lock-probe", daemon=True)

    def __enter__(self) -> LockProbe:
        if has_lock():
            self._thread.start()
            self._calibrated.wait()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def share(self, keys: Collection[MeterKey]) -> float | None:
        """Return the share of calls' time under the GIL, or None if there are too few samples.

        On a busy machine, the probe waits as well. Only waiting beyond that during the reference's work counts.
        """
        asked = sum(self.asked[key] for key in keys)
        if asked < _LEAST:
            return None
        late = sum(self.waited[key] for key in keys) / asked
        always = self.waited[REFERENCE] / self.asked[REFERENCE] if self.asked[REFERENCE] >= _LEAST else 0.0
        return max(late - always, 0.0) / (1 - always) if always < _USELESS else None

    def rest(self) -> float:
        """Return the share for all calls with too few samples together."""
        return self.share([key for key, count in self.asked.items() if count < _LEAST]) or 0.0

    def _sample(self) -> None:
        late = sorted(self._lateness(_SLEEPS[i % len(_SLEEPS)]) for i in range(_CALIBRATIONS))
        patience = max(_PATIENCE, 2 * late[_CALIBRATIONS // 2])
        self._calibrated.set()
        number = 0
        while not self._over.is_set():
            waited = self._lateness(_SLEEPS[number % len(_SLEEPS)]) > patience
            number += 1
            frames = self._frames
            try:
                key = frames[-1].key
            except IndexError:
                continue
            self.asked[key] += 1
            self.waited[key] += waited

    def _lateness(self, seconds: float) -> float:
        began = time.perf_counter()
        self._over.wait(seconds)
        return time.perf_counter() - began - seconds


_FIRST_REFERENCE = 0.05  # seconds


@dataclass(slots=True)
class Alone:
    """The results of a run in one thread."""

    meter: Meter
    costs: Costs
    probe: LockProbe
    slowed: float  # wall seconds per second of CPU time, due to other work of the machine
    copy_speed: float  # bytes per second that one thread copies


def alone(
    plan: Node,
    options: Options,
    seconds: float,
    dataset: Callable[[Node], Any],
    most_passes: int | None = None,
) -> Alone:
    """Run everything in one thread, for some seconds after the first result.

    A data set that ends earlier is run again.
    """
    meter = Meter(plan, warm=False)
    probe = LockProbe(meter.frames())
    reference = ReferenceWork(meter)
    begun = threading.Event()
    timer = threading.Thread(target=_stop_later, args=(meter, begun, seconds), name="penstock-timer", daemon=True)
    try:
        with probe:
            reference.run(_FIRST_REFERENCE)
            timer.start()
            for epoch in count() if most_passes is None else range(most_passes):
                with isolated(plan, options) as copy:
                    meter.begin(copy)
                    settings = RunSettings("inline", dataset=dataset, meter=meter)
                    with closing(Run(copy, options, epoch, settings)) as run:
                        gave = _pull(run, reference, begun)
                if not gave or meter.stopped:
                    break
    except Enough:
        pass
    finally:
        meter.over.set()
        begun.set()
    return Alone(meter, meter.costs(), probe, reference.slowed(), copy_speed())


def _stop_later(meter: Meter, begun: threading.Event, seconds: float) -> None:
    """Stop the run some seconds after the first result. Before it, the run may compile and fill buffers."""
    if begun.wait(2 * seconds):
        meter.over.wait(seconds)
    meter.stop()


def _pull(run: Run, reference: ReferenceWork, begun: threading.Event) -> bool:
    """Run a whole iteration; return True if it yielded an element."""
    sizer = BlockSizer()
    gave = False
    while True:
        reference.run_when_due()
        began = time.perf_counter()
        block = run.pull(sizer.want)
        begun.set()
        if block is None:
            return gave
        if isinstance(block, Block):
            gave = True
            sizer.observe(block.size, time.perf_counter() - began, block.nbytes, columns=len(block.columns))
