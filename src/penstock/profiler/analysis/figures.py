"""What an analysis found out, as plain values; and numbers as people read them."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath

from penstock.hints import size_text
from penstock.plan.node import short_location

LOOP = "loop"  # the lane of the thread that takes the elements
LARGE = 1 << 16  # bytes of an element whose copy is worth a word
_AS_FAST = 0.25  # of the speed at which memory is copied; fresh memory is slower, and what is not copied much faster


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the plan as it ran, and what one of its own elements costs, in seconds.

    `ratio` is how many of its elements one element of the data set takes. `cpu` is the function's; `shipping` what
    sending elements to worker processes takes beside it. `waiting` are seconds without work and without any other
    thread in the way: sleep, a disk, another machine. `held` is the part of `cpu` under the interpreter's lock. With
    `parallel` the workers of its lane run it side by side; else one thread at a time.
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
    nbytes: float = 0.0  # of an element
    wall: float = 0.0  # beside all others, as it was in the run
    elements: float = 0.0  # made in the run
    per_second: float = 0.0
    failures: float = 0.0
    per_call: float = 1.0  # elements that are handled at a time
    cycle: int = 0  # inputs that an interleave has open at a time
    random: bool = False  # differs from epoch to epoch
    process: str | None = None  # why its function may not go to a worker process, where that is known
    changes_state: bool = False  # of something outside: calls side by side are not the same

    @property
    def seconds(self) -> float:
        """Seconds of a thread for one element of the data set, with nothing in its way."""
        return self.ratio * (self.cpu + self.waiting)


@dataclass(frozen=True, slots=True)
class Lane:
    """Threads that do the same: the loop's, or the workers of one hand-over ("segment").

    A worker pulls (one at a time) what the steps that are not parallel make, and runs the parallel ones on it.
    """

    name: str
    consumer: str | None = None  # the lane that takes its results
    workers: int = 1
    executor: str = "thread"
    autotuned: bool = False
    starved: float = 0.0  # share of the time in which its consumer waited for it
    full: float = 0.0  # share of the time in which it could not go on for want of room
    busy: float = 0.0  # workers inside, on the average
    held_bytes: int = 0  # made and not taken, at most
    window: int | None = None  # bytes it may hold
    reason: str | None = None  # why its settings are what they are, where AUTOTUNE chose


@dataclass(frozen=True, slots=True)
class Analysis:
    """A pipeline measured. `Dataset.what_if(analysis=...)` predicts from it.

    Times are in seconds. `handing` is what the loop's thread takes for getting hold of one element.
    """

    steps: tuple[Step, ...]  # the source first
    lanes: tuple[Lane, ...]
    cpus: float
    lock: bool  # whether threads exclude each other in Python code
    seconds: float  # measured
    elements: int  # of the data set, in that time
    elements_per_second: float
    cpu_used: float = 0.0  # cores, on the average
    consumer_seconds: float = 0.0  # that the loop took for each element
    consumer_waited: float = 0.0  # share of the time in which the loop waited for the pipeline
    handing: float = 0.0
    slowed: float = 1.0  # seconds that a second of CPU time took, for what else the machine did
    failures: int = 0
    first_failure: str | None = None
    passes: int = 0  # that came to their end: a data set that ends is run again until the time is over
    epoch_elements: int | None = None  # elements of a pass, where known
    memory: int = 0  # bytes that this process may use
    copy_speed: float = 0.0  # bytes a second that one thread copies here; 0 where it was not measured

    def step(self, name: str) -> Step:
        return next(step for step in self.steps if step.name == name)

    def copies(self, step: Step) -> bool:
        """Whether handling its elements takes about as long as copying them: large ones, at the speed of memory."""
        return self._is_copying(step.nbytes, step.cpu)

    def hands_copies(self) -> bool:
        """The same of what the loop gets."""
        return bool(self.steps) and self._is_copying(self.steps[-1].nbytes, self.handing)

    def _is_copying(self, nbytes: float, cpu: float) -> bool:
        if nbytes < LARGE or not cpu or not self.copy_speed:
            return False
        return _AS_FAST < nbytes / cpu / self.copy_speed < 1 / _AS_FAST

    def lane(self, name: str) -> Lane:
        return next(lane for lane in self.lanes if lane.name == name)


def number(value: float) -> str:
    """Three digits that count, and a comma every three.

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
    """Bytes in the unit that suits.

    >>> size(12), size(19_267_584)
    ('12 B', '19.3 MB')
    """
    return size_text(round(nbytes)).replace("bytes", "B")


def seconds(value: float) -> str:
    """Seconds in the unit that suits.

    >>> seconds(0.0000021), seconds(0.0123), seconds(4.0)
    ('2.1 µs', '12.3 ms', '4 s')
    """
    for factor, unit in ((1e6, "µs"), (1e3, "ms")):
        if value * factor < 1000:
            return f"{value * factor:.3g} {unit}"
    return f"{value:.3g} s"


def percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def named(step: Step) -> str:
    """A step's name, and what it is of.

    >>> named(Step("map#1", "map(decode)", "map")), named(Step("repeat#1", "repeat()", "repeat"))
    ('map#1 (decode)', 'repeat#1')
    """
    rest = step.label.removeprefix(step.kind)
    return step.name if rest in ("", "()", step.label) else f"{step.name} {rest}"


def place(where: str | None) -> str:
    """A line of the user's as a page shows it: the path below the folder that the program runs in, or the file's name.

    >>> place("/elsewhere/of/mine/train.py:12"), place(str(Path.cwd() / "data" / "read.py") + ":3")
    ('train.py:12', 'data/read.py:3')
    >>> place(None), place("batch(8)")  # steps that stand in no file
    ('', 'batch(8)')
    """
    path, _, line = (where or "").rpartition(":")
    if not line.isdigit():
        return where or ""
    with suppress(ValueError):  # not below it
        return f"{PurePath(path).relative_to(Path.cwd()).as_posix()}:{line}"
    return short_location(where)


def workers(lane: Lane) -> str:
    """Name the workers of a lane."""
    kind = "process" if lane.executor == "process" else "thread"
    plural = "" if lane.workers == 1 else "es" if kind == "process" else "s"
    return f"{lane.workers} {kind}{plural}"


def waited_text(analysis: Analysis) -> str:
    """Say how long the loop waited; every tool says it in these words."""
    return f"the loop waited for data {percent(analysis.consumer_waited)} of the time"


def rate_text(analysis: Analysis) -> str:
    return f"{number(analysis.elements_per_second)} elements a second"
