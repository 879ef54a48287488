"""What the tuner reads and what it may turn.

Plain values, so that a trace can be recorded, and replayed without a run.

A *segment* here is one place in a plan where workers run ahead of a consumer: a parallel map, a filled batch, or all
the inputs that one interleave reads ahead, which share their knobs.
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

LARGE_BLOCKS = 0.02  # seconds of work in a Block, where handing it over costs


@dataclass(frozen=True, slots=True)
class Knobs:
    """The settings of one segment."""

    parallelism: int  # workers inside at once; for an interleave, inputs read at once
    executor: str = "thread"  # or "process"
    window: int = 1 << 26  # bytes of results it may hold ahead of its consumer
    block_seconds: float = 0.005  # of work that a Block should hold


@dataclass(frozen=True, slots=True)
class Limits:
    """Between which the tuner may choose: equal bounds, or a single executor, are the user's own choice."""

    least: int = 1
    most: int = 1
    executors: tuple[str, ...] = ("thread",)  # the first is what a run begins with

    def bounded(self, workers: int, executor: str) -> int:
        """The nearest number of workers that is allowed.

        A number by hand is one of calls at once. Where nobody has asked for processes it may be far more than there are
        cores, and so many processes would each have to start.
        """
        least = 1 if executor == "process" and len(self.executors) > 1 else max(self.least, 1)
        return min(max(workers, least), max(self.most, least))


@dataclass(frozen=True, slots=True)
class Flow:
    """What one segment did in a period. Seconds are of wall time unless they are CPU seconds; workers' times add up."""

    name: str  # the same in every run of the plan
    knobs: Knobs  # in force for the whole period
    limits: Limits
    elements: int = 0  # results' elements that were made
    results: int = 0  # Blocks that were made
    nbytes: int = 0  # of them
    run_seconds: float = 0.0  # inside the user's functions
    run_cpu: float = 0.0  # CPU seconds of it, in this process or in worker processes
    delayed: float = 0.0  # seconds of the above in which a worker was ready and got no core; 0 where nobody knows
    pull_seconds: float = 0.0  # pulling from upstream, without waiting for upstream segments
    pull_cpu: float = 0.0
    waiting: float = 0.0  # its puller waited for an upstream segment
    starved: float = 0.0  # its consumer waited for its next result
    full: float = 0.0  # there was no room for another result
    held_most: int = 0  # bytes made and not taken: most and least in the period
    held_least: int = 0
    busy_most: int = 0  # workers inside at once
    consumer: str | None = None  # the segment that takes its results; None: the user's loop
    inputs: int = 0  # upstream elements that went through the functions: finer than elements where these are batches


@dataclass(frozen=True, slots=True)
class Sample:
    """A period of a run."""

    start: float  # seconds of one clock
    stop: float
    cpu: float  # CPU seconds that this process and its workers used
    flows: tuple[Flow, ...]
    idle: float | None = None  # core seconds that nobody used, of the cores this process may run on; None: not known


@dataclass(frozen=True, slots=True)
class Means:
    """What the run may use."""

    cpus: float  # granted cores, perhaps a fraction
    ram: int  # bytes for all windows together
    gil: bool = True  # whether threads exclude each other in Python code
    processes_ready: bool = True  # whether worker processes are up; a trial of them waits until they are


@dataclass(frozen=True, slots=True)
class Decision:
    """What the tuner wants from here on."""

    knobs: Mapping[str, Knobs]  # by segment
    reasons: Mapping[str, str] = field(default_factory=dict)  # by segment: a sentence with figures, for people
    period: float = 0.1  # seconds until it wants to look again
    settled: bool = False  # nothing is on trial
    crowded: bool = False  # other programs had a part in it: it may not hold without them
    want_processes: bool = False  # it is about to try processes: have them started


@dataclass(frozen=True, slots=True)
class Proposal:
    """New knobs for some segments."""

    knobs: dict[str, Knobs]
    seconds: float = 0.0  # that no knob was turned before
    needs_processes: bool = False  # which are not up yet
    sure: bool = False  # enough to wait for it


_FORMAT = 1


def to_json(samples: Sequence[Sample], means: Means) -> str:
    """The periods of a run and what it might use.

    >>> from penstock.runtime.autotune.figures import Flow, Knobs, Limits, Means, Sample
    >>> sample = Sample(0.0, 0.1, 0.1, (Flow("map", Knobs(2), Limits(1, 2)),))
    >>> from_json(to_json([sample], Means(2, 1 << 30))) == ([sample], Means(2, 1 << 30))
    True
    """
    lines = ",\n".join(json.dumps(asdict(sample), separators=(",", ":")) for sample in samples)
    return f'{{"format":{_FORMAT},"means":{json.dumps(asdict(means))},"samples":[\n{lines}\n]}}\n'


def from_json(text: str) -> tuple[list[Sample], Means]:
    """What `to_json` was given. Raises ValueError for text of another format."""
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
    return Flow(**{**found, "knobs": Knobs(**found["knobs"]), "limits": Limits(**limits)})


def holds_gil() -> bool:
    """Whether threads exclude each other in Python code."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def means(options: Options, budget: Budget) -> Means:
    """As it is now: memory that others hold and processes that are starting change it."""
    bounds = (options.autotune.cpu_budget, options.threading.private_threadpool_size)
    cores = min([granted_cores(), *(float(bound) for bound in bounds if bound)])
    return Means(cores, budget.total, holds_gil(), process_pool().ready())
