"""Results of an analysis as plain values, and numbers formatted for people."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from penstock.hints import size_text
from penstock.plan.node import short_location

LOOP = "loop"  # the lane of the consumer's thread
LARGE = 1 << 16  # bytes of an element whose copies are worth mentioning
_AS_FAST = 0.25  # a step that handles bytes at this fraction of the copy speed, or up to its inverse, counts as copying


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the plan as it ran, with the cost of one of its elements in seconds.

    `ratio` is the number of its elements per element of the data set. `cpu` is the time of the function; `shipping` the
    additional time for sending elements to worker processes. `waiting` are seconds without work and without delays by
    other threads: sleep, a disk, another machine. `held` is the part of `cpu` under the GIL. With `parallel`, the
    workers of its lane run it at the same time; otherwise one thread at a time does.
    """

    name: str
    label: str
    kind: str
    lane: str = LOOP
    parallel: bool = False
    inputs: tuple[str, ...] = ()
    where: str | None = None
    ratio: float = 1.0
    cpu: float = 0.0
    waiting: float = 0.0
    held: float = 0.0
    shipping: float = 0.0
    nbytes: float = 0.0  # bytes of an element
    wall: float = 0.0  # seconds as in the run, with delays by other threads
    elements: float = 0.0  # number yielded in the run
    per_second: float = 0.0
    failures: float = 0.0
    per_call: float = 1.0  # elements processed at a time
    cycle: int = 0  # inputs that an interleave has open at a time
    random: bool = False  # True if it differs between epochs
    process: str | None = None  # reason why its function may not run in a worker process, if known
    changes_state: bool = False  # True if calls change outside state, so that parallel calls are not equal

    @property
    def work(self) -> float:
        """CPU seconds for one element of the step."""
        return self.cpu + self.shipping

    @property
    def seconds(self) -> float:
        """Thread seconds for one element of the data set, without delays by other threads."""
        return self.ratio * (self.cpu + self.waiting)


@dataclass(frozen=True, slots=True)
class LaneFigures:
    """Threads with the same task: the consumer's thread, or the workers of one segment.

    One worker at a time reads from the steps that are not parallel, and then runs the parallel steps on the result.
    """

    name: str
    consumer: str | None = None  # the lane that receives its results
    workers: int = 1
    executor: str = "thread"
    autotuned: bool = False
    starved: float = 0.0  # share of the time in which its consumer waited for it
    full: float = 0.0  # share of the time in which it had no room for results
    busy: float = 0.0  # average number of busy workers
    held_bytes: int = 0  # largest number of bytes computed and not consumed
    window: int | None = None  # limit of these bytes
    reason: str | None = None  # reason for its settings, if AUTOTUNE chose them


@dataclass(frozen=True, slots=True)
class Analysis:
    """A measured pipeline. `Dataset.what_if(analysis=...)` predicts from it.

    Times are in seconds. `handing` is the time of the consumer's thread for receiving one element.
    """

    steps: tuple[Step, ...]  # the source first
    lanes: tuple[LaneFigures, ...]
    cpus: float
    lock: bool  # True if threads exclude each other in Python code
    seconds: float  # duration of the measurement
    elements: int  # of the data set, in that time
    elements_per_second: float
    cpu_used: float = 0.0  # average number of cores in use
    consumer_seconds: float = 0.0  # seconds of the consumer per element
    consumer_waited: float = 0.0  # share of the time in which the consumer waited for the pipeline
    handing: float = 0.0
    slowed: float = 1.0  # wall seconds per second of CPU time, due to other work of the machine
    failures: int = 0
    first_failure: str | None = None
    passes: int = 0  # number of complete iterations: a data set that ends is run again until the time is over
    epoch_elements: int | None = None  # elements of an iteration, if known
    memory: int = 0  # bytes that this process may use
    copy_speed: float = 0.0  # bytes per second that one thread copies; 0 if not measured

    @classmethod
    def of(cls, values: dict[str, Any]) -> Analysis:
        """Return an Analysis from the result of `dataclasses.asdict`."""
        steps = tuple(Step(**(step | {"inputs": tuple(step["inputs"])})) for step in values["steps"])
        return cls(**(values | {"steps": steps, "lanes": tuple(LaneFigures(**lane) for lane in values["lanes"])}))

    def step(self, name: str) -> Step:
        return next(step for step in self.steps if step.name == name)

    def copies(self, step: Step) -> bool:
        """Return True if handling the step's elements takes about as long as copying them.

        This applies to large elements.
        """
        return self._is_copying(step.nbytes, step.cpu)

    def hands_copies(self) -> bool:
        """Return True if the same applies to the elements that the consumer receives."""
        return bool(self.steps) and self._is_copying(self.steps[-1].nbytes, self.handing)

    def _is_copying(self, nbytes: float, cpu: float) -> bool:
        if nbytes < LARGE or not cpu or not self.copy_speed:
            return False
        return _AS_FAST < nbytes / cpu / self.copy_speed < 1 / _AS_FAST

    def lane(self, name: str) -> LaneFigures:
        return next(lane for lane in self.lanes if lane.name == name)


def number(value: float) -> str:
    """Return a number with three significant digits and thousands separators.

    >>> number(0.01234), number(3.14159), number(98.7), number(1234.5), number(9.3e7)
    ('0.0123', '3.14', '98.7', '1,234', '93,000,000')
    """
    if not math.isfinite(value):
        return "∞"
    if value >= 100:
        digits = 3 - len(str(int(value)))
        return f"{round(value, digits):,.0f}" if value >= 1e6 else f"{value:,.0f}"
    return f"{value:.3g}"


def size(nbytes: float) -> str:
    """Return bytes in a suitable unit.

    >>> size(12), size(19_267_584)
    ('12 B', '19.3 MB')
    """
    return size_text(round(nbytes)).replace("bytes", "B")


def seconds(value: float) -> str:
    """Return seconds in a suitable unit.

    >>> seconds(0.0000021), seconds(0.0123), seconds(4.0)
    ('2.1 µs', '12.3 ms', '4 s')
    """
    for factor, unit in ((1e6, "µs"), (1e3, "ms")):
        if value * factor < 1000:
            return f"{value * factor:.3g} {unit}"
    return f"{value:.3g} s"


def shortened(text: str, most: int) -> str:
    """Return at most `most` letters of a text.

    >>> shortened("map(decode_and_resize)", 12)
    'map(decode_…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def named(step: Step) -> str:
    """Return the name of a step and its argument.

    >>> named(Step("map#1", "map(decode)", "map")), named(Step("repeat#1", "repeat()", "repeat"))
    ('map#1 (decode)', 'repeat#1')
    """
    rest = step.label.removeprefix(step.kind)
    return step.name if rest in ("", "()", step.label) else f"{step.name} {rest}"


def place(where: str | None) -> str:
    """Return a line of user code for a page: the path relative to the working directory, or the name of the file.

    >>> place("/elsewhere/of/mine/train.py:12"), place(str(Path.cwd() / "data" / "read.py") + ":3")
    ('train.py:12', 'data/read.py:3')
    >>> place(None), place("batch(8)")  # steps without a file
    ('', 'batch(8)')
    """
    path, _, line = (where or "").rpartition(":")
    if not line.isdigit():
        return where or ""
    with suppress(ValueError):  # the file is outside of the working directory
        return f"{PurePath(path).relative_to(Path.cwd()).as_posix()}:{line}"
    return short_location(where)


def workers(lane: LaneFigures) -> str:
    """Return the workers of a lane in words."""
    kind = "process" if lane.executor == "process" else "thread"
    plural = "" if lane.workers == 1 else "es" if kind == "process" else "s"
    return f"{lane.workers} {kind}{plural}"


def runs_on(analysis: Analysis, step: Step) -> str:
    """Return the threads or processes of a step in words."""
    if step.lane == LOOP:
        return "loop"
    return workers(analysis.lane(step.lane)) if step.parallel else "1 thread"


def waited_text(analysis: Analysis) -> str:
    """Return how long the consumer waited. All tools use these words."""
    return f"the loop waited for data {percent(analysis.consumer_waited)} of the time"


def rate_text(analysis: Analysis) -> str:
    return f"{number(analysis.elements_per_second)} elements a second"
