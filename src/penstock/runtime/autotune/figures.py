"""What the tuner reads and what it may turn: plain values, so that a trace can be recorded, simulated and replayed.

A *segment* here is one place in a plan where workers run ahead of a consumer: a parallel map, a filled batch, or all
the inputs that one interleave reads ahead, which share their knobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    compiling: bool = False  # plain versions of kernels, which keep the interpreter's lock, run until these are there


@dataclass(frozen=True, slots=True)
class Decision:
    """What the tuner wants from here on."""

    knobs: Mapping[str, Knobs]  # by segment
    reasons: Mapping[str, str] = field(default_factory=dict)  # by segment: a sentence with figures, for people
    period: float = 0.1  # seconds until it wants to look again
    settled: bool = False  # nothing is on trial
    crowded: bool = False  # other programs had a part in it: it may not hold without them
    want_processes: bool = False  # it is about to try processes: have them started
