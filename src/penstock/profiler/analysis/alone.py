"""alone: a pass in a single thread, where nothing is in the way of a step.

It tells work from waiting, by a reference that only works and is run now and then between; and how much of the work
holds the interpreter's lock, by a thread that asks for it.
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
from penstock.cache.memory import MemoryStore
from penstock.options import Options
from penstock.plan.node import Node
from penstock.plan.stateful import Tally
from penstock.plan.storing import Cache, Snapshot
from penstock.profiler.analysis.meter import Costs, Enough, Frame, Key, Meter
from penstock.runtime.block_sizer import BlockSizer
from penstock.runtime.run import Run, Settings


@contextmanager
def isolated(plan: Node, options: Options) -> Iterator[Node]:
    """The same steps with caches, snapshots and counts of their own, where those of the data set are not full."""
    with ExitStack() as scratch:
        yield _isolated(plan, options, scratch)


def _isolated(plan: Node, options: Options, scratch: ExitStack) -> Node:
    inputs = tuple(_isolated(below, options, scratch) for below in plan.inputs)
    if any(new is not old for new, old in zip(inputs, plan.inputs, strict=True)):
        plan = plan.with_inputs(inputs)
    if isinstance(plan, Cache):
        return plan if plan.store.blocks() is not None else replace(plan, store=MemoryStore(silent=True))
    if isinstance(plan, Snapshot) and plan.store is not None:
        if plan.store.saved(plan.store.folder(options.seed, options.deterministic)) is not None:
            return plan
        folder = scratch.enter_context(TemporaryDirectory(prefix="penstock-"))
        return replace(plan, path=folder, store=None)
    changes: dict[str, Any] = {"tally": Tally()} if isinstance(getattr(plan, "tally", None), Tally) else {}
    if getattr(plan, "quarantine", None) is not None:
        changes["quarantine"] = None
    return replace(plan, **changes) if changes else plan


REFERENCE = Key(0, "reference")
_CONTENT = bytes(1 << 18)
_SECONDS = 0.004  # at a time
_PAUSE = 0.05  # seconds between
_COPIED = 1 << 23  # bytes


class Reference:
    """Runs now and then in the thread that is measured."""

    def __init__(self, meter: Meter) -> None:
        self._hash = meter.measured(lambda: hashlib.sha256(_CONTENT), REFERENCE)
        self._next = 0.0
        self._ratios: list[float] = []  # of wall to CPU time, for each time that it ran

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
        """Seconds that a second of CPU time takes here; a few long interruptions say nothing about the rest."""
        usual = sorted(self._ratios)[: max(len(self._ratios) * 9 // 10, 1)]
        return max(sum(usual) / len(usual), 1.0) if usual else 1.0


def copy_speed() -> float:
    """Bytes a second that a thread copies from one array into another, both larger than the nearest caches."""
    source, target = np.ones(_COPIED, np.uint8), np.ones(_COPIED, np.uint8)
    best = float("inf")
    for _ in range(3):
        began = time.thread_time()
        np.copyto(target, source)
        best = min(best, time.thread_time() - began)
    return _COPIED / max(best, 1e-9)


copy_speed_here = cache(copy_speed)  # measured once in a process: a profile asks each second

_SLEEPS = (0.0013, 0.0019, 0.0011, 0.0023, 0.0017)  # seconds; of differing length, so as not to fall in step with work
_PATIENCE = 0.0003  # seconds that a wake-up takes at most on a machine that is not busy
_CALIBRATIONS = 16
_LEAST = 8  # samples that say something
_USELESS = 0.8  # share of late wake-ups at which nothing can be told any more


def has_lock() -> bool:
    """Whether threads exclude each other in Python code."""
    enabled = getattr(sys, "_is_gil_enabled", None)
    return enabled is None or bool(enabled())


class LockProbe:
    """Samples, in a `with` block, a thread that is inside `frames`."""

    def __init__(self, frames: list[Frame]) -> None:
        self.asked: Counter[Key] = Counter()
        self.waited: Counter[Key] = Counter()
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

    def share(self, keys: Collection[Key]) -> float | None:
        """The part of some calls' time in which the lock was held; None where they were sampled too rarely to tell.

        A machine that is busy lets the probe wait as well: by so much more than during the reference's work counts.
        """
        asked = sum(self.asked[key] for key in keys)
        if asked < _LEAST:
            return None
        late = sum(self.waited[key] for key in keys) / asked
        always = self.waited[REFERENCE] / self.asked[REFERENCE] if self.asked[REFERENCE] >= _LEAST else 0.0
        return max(late - always, 0.0) / (1 - always) if always < _USELESS else None

    def rest(self) -> float:
        """The same for all those together that were sampled too rarely."""
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
                with isolated(plan, options) as copy:
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
    return Alone(meter, meter.costs(), probe, reference.slowed(), copy_speed())


def _stop_later(meter: Meter, begun: threading.Event, seconds: float) -> None:
    """What comes first may compile and fill buffers: it gets some seconds of its own."""
    if begun.wait(2 * seconds):
        meter.over.wait(seconds)
    meter.stop()


def _pull(run: Run, reference: Reference, begun: threading.Event) -> bool:
    """Make a whole pass; whether it gave any element."""
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
