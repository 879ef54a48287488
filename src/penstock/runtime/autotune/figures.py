"""The measurements that the tuner reads, and the knobs that it sets.

All are plain values, so that a trace can be recorded and replayed without a run.

A *segment* here is one place in a plan where workers run ahead of a consumer: a parallel map, a filled batch, or all
inputs that one interleave reads ahead. These inputs share their knobs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.options import Options
from penstock.runtime.machine.granted import granted_cores
from penstock.runtime.memory.budget import Budget
from penstock.runtime.processes.pool import process_pool

LARGE_BLOCKS = 0.02  # seconds of work in a Block if its transfer is expensive


@dataclass(frozen=True, slots=True)
class Knobs:
    """The settings of one segment."""

    parallelism: int  # workers inside at once; for an interleave, inputs read at once
    executor: str = "thread"  # or "process"
    window: int = 1 << 26  # bytes of results that may wait for the consumer
    block_seconds: float = 0.005  # seconds of work in a Block


@dataclass(frozen=True, slots=True)
class TunerLimits:
    """The range in which the tuner may choose. Equal bounds, or a single executor, are the choice of the user."""

    least: int = 1
    most: int = 1
    executors: tuple[str, ...] = ("thread",)  # the first is the start of a run

    def bounded(self, workers: int, executor: str) -> int:
        """Return the nearest allowed number of workers.

        A number set by the user is a number of calls at once. It may be far larger than the number of cores. If the
        user did not ask for processes, fewer processes are therefore allowed, because each of them would have to start.
        """
        least = 1 if executor == "process" and len(self.executors) > 1 else max(self.least, 1)
        return min(max(workers, least), max(self.most, least))


@dataclass(frozen=True, slots=True)
class Flow:
    """Measurements of one segment in a period.

    Seconds are wall time unless the comment says CPU seconds. The times of workers add up.
    """

    name: str  # the same in every run of the plan
    knobs: Knobs  # in force for the whole period
    limits: TunerLimits
    elements: int = 0  # computed elements
    results: int = 0  # computed Blocks
    nbytes: int = 0  # bytes of the results
    run_seconds: float = 0.0  # inside the functions of the user
    run_cpu: float = 0.0  # CPU seconds inside the functions, in this process or in worker processes
    delayed: float = 0.0  # part of run_seconds in which a worker was ready but had no core; 0 if not known
    pull_seconds: float = 0.0  # pulling from upstream, without waits for upstream segments
    pull_cpu: float = 0.0
    waiting: float = 0.0  # its puller waited for an upstream segment
    starved: float = 0.0  # its consumer waited for its next result
    full: float = 0.0  # there was no room for another result
    held_most: int = 0  # most bytes of results that waited for the consumer
    held_least: int = 0
    busy_most: int = 0  # most workers inside at once
    consumer: str | None = None  # the segment that takes its results; None: the training loop
    inputs: int = 0  # upstream elements that went through the functions: a finer count if the elements are batches


@dataclass(frozen=True, slots=True)
class Sample:
    """A period of a run."""

    start: float  # seconds of one clock
    stop: float
    cpu: float  # CPU seconds that this process and its workers used
    flows: tuple[Flow, ...]
    idle: float | None = None  # core seconds that no process used, of the cores of this process; None: not known


@dataclass(frozen=True, slots=True)
class Means:
    """The resources that the run may use."""

    cpus: float  # granted cores, possibly a fraction
    ram: int  # bytes for all windows together
    gil: bool = True  # True if threads exclude each other in Python code
    processes_ready: bool = True  # True if worker processes have started; a trial of processes waits for them


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of the tuner."""

    knobs: Mapping[str, Knobs]  # by segment
    reasons: Mapping[str, str] = field(default_factory=dict)  # by segment: a sentence with figures for the user
    period: float = 0.1  # seconds until the next sample
    settled: bool = False  # True if no change is on trial
    crowded: bool = False  # True if other programs affected the decision
    want_processes: bool = False  # True if worker processes must start for the next trial


@dataclass(frozen=True, slots=True)
class Proposal:
    """Proposed knobs for some segments."""

    knobs: dict[str, Knobs]
    seconds: float = 0.0  # time without a change that this proposal needs
    needs_processes: bool = False  # True if worker processes must start first
    sure: bool = False  # True if the expected gain is worth the wait for processes


_FORMAT = 1


def to_json(samples: Sequence[Sample], means: Means) -> str:
    """Return the samples and means of a run as JSON.

    >>> from penstock.runtime.autotune.figures import Flow, Knobs, TunerLimits, Means, Sample
    >>> sample = Sample(0.0, 0.1, 0.1, (Flow("map", Knobs(2), TunerLimits(1, 2)),))
    >>> from_json(to_json([sample], Means(2, 1 << 30))) == ([sample], Means(2, 1 << 30))
    True
    """
    lines = ",\n".join(json.dumps(asdict(sample), separators=(",", ":")) for sample in samples)
    return f'{{"format":{_FORMAT},"means":{json.dumps(asdict(means))},"samples":[\n{lines}\n]}}\n'


def from_json(text: str) -> tuple[list[Sample], Means]:
    """Return the samples and means of a JSON text from `to_json`. Raises ValueError for another format."""
    found = json.loads(text)
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        message = f"A trace has format {_FORMAT}, got {text[:40]!r}."
        raise ValueError(message)
    return [_sample(sample) for sample in found["samples"]], Means(**found["means"])


def _sample(found: dict[str, Any]) -> Sample:
    flows = tuple(_flow(flow) for flow in found["flows"])
    return Sample(found["start"], found["stop"], found["cpu"], flows, found.get("idle"))


def _flow(found: dict[str, Any]) -> Flow:
    limits = dict(found["limits"])
    limits["executors"] = tuple(limits["executors"])
    return Flow(**{**found, "knobs": Knobs(**found["knobs"]), "limits": TunerLimits(**limits)})


def holds_gil() -> bool:
    """Return True if threads exclude each other in Python code."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def means(options: Options, budget: Budget) -> Means:
    """Return the present means. Memory of other programs and starting processes change them."""
    bounds = (options.autotune.cpu_budget, options.threading.private_threadpool_size)
    cores = min([granted_cores(), *(float(bound) for bound in bounds if bound)])
    return Means(cores, budget.total, holds_gil(), process_pool().ready())
