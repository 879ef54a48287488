"""Meter: what every stage of a run costs, measured from outside, a Block at a time.

Calls are wrapped on the stages themselves. Each thread keeps the calls that it is inside of: the time of a call is its
own less that of the calls within it, so that a stage is not charged for those that it pulls from.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from penstock.block.block import Block
from penstock.physical.stage import Around, Stage
from penstock.physical.stretch import Stretch
from penstock.physical.transform import Outcome, Transform
from penstock.plan.node import Node
from penstock.profiler.analysis.places import alike
from penstock.runtime.autotune.figures import Flow
from penstock.runtime.executors import ThreadReader
from penstock.runtime.lane import Lane
from penstock.runtime.segment import Segment

_Cell = list[float]  # the fields of Cost
_SUMMED = (
    *("elements", "results", "nbytes", "run_seconds", "run_cpu", "delayed", "pull_seconds", "pull_cpu", "waiting"),
    *("starved", "full", "inputs"),
)


class Key(NamedTuple):
    """What is measured: a node, and which part of its work.

    `next`: a stage pulled from; `take`: a segment asked for its results; `pull` and `run`: what its workers do; `step`:
    one of the transforms that they, or a stage, take Blocks through.
    """

    node: int
    part: str
    step: int = 0


@dataclass(frozen=True, slots=True)
class Cost:
    """What was measured under one key; times are in seconds, summed over threads."""

    calls: float = 0.0
    inputs: float = 0.0  # elements that came in, where that is seen
    elements: float = 0.0  # that went out, failures among them
    failures: float = 0.0
    nbytes: float = 0.0  # that went out
    wall: float = 0.0
    cpu: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(a + b for a, b in zip(_fields(self), _fields(other), strict=True)))

    def __sub__(self, other: Cost) -> Cost:
        return Cost(*(a - b for a, b in zip(_fields(self), _fields(other), strict=True)))


def _fields(cost: Cost) -> tuple[float, ...]:
    return cost.calls, cost.inputs, cost.elements, cost.failures, cost.nbytes, cost.wall, cost.cpu


Costs = dict[Key, Cost]
NOTHING = Cost()


class Enough(BaseException):
    """The time is up. No failure of an element: the run ends."""


class Frame:
    """A call that a thread is inside of, and what the calls within it took."""

    __slots__ = ("cpu", "key", "wall")

    def __init__(self, key: Key) -> None:
        self.key = key
        self.wall = 0.0
        self.cpu = 0.0


class Meter:
    """Shown every stage of one run (`Settings.meter`), it measures all that they do.

    The run is of a copy of the `plan` by whose nodes the costs are named, or of the plan itself; with `begin` another
    pass over another copy is added to what was measured. If it is not `warm`, the first call of everything is left out:
    it imports and compiles. Inner data sets, of which an interleave may open thousands, share the keys of the first one
    like them. `stop()` ends the run where any of its threads next pulls, also while a shuffle fills. Reading is
    possible at any time, from any thread.
    """

    def __init__(self, plan: Node, copy: Node | None = None, *, warm: bool = True) -> None:
        self.nodes = {id(node): node for node in plan.walk()}
        self.opened_by: dict[int, int] = {}  # nodes that are not in the plan: the node that was running
        self.segments: set[int] = set()  # nodes that are one
        self.lanes: dict[int, Lane] = {}  # by the node that has workers: a segment, or an interleave that reads ahead
        self.stopped = False
        self.over = threading.Event()  # for who would stop it
        self._plan = plan
        self._copies: list[Node] = []  # their nodes stay alive, and with that their numbers their own
        self._numbers: dict[int, int] = {}
        self._running: set[int] = set()  # nodes whose lanes are of the pass that runs
        self._earlier: dict[int, Flow] = {}  # what the lanes of earlier passes did, by node
        self._away = 0.0  # CPU seconds that others than their workers spent for them
        self.begin(plan if copy is None else copy)
        self._alike: dict[tuple[int, str], int] = {}
        self._cold: set[Key] | None = None if warm else set()  # keys whose first call is over
        self._cells: list[dict[Key, _Cell]] = []  # of each thread
        self._local = _Local(self._cells)

    def begin(self, copy: Node) -> None:
        """A pass over a copy of the plan begins; what it costs is added to what earlier ones did."""
        if not self._copies or copy is not self._copies[-1]:
            self._copies.append(copy)
            self._numbers.update(zip(map(id, copy.walk()), map(id, self._plan.walk()), strict=True))
        for node in self._running:
            lane = self.lanes[node]
            self._earlier[node] = _added(self._earlier.get(node), lane.total())
            self._away += lane.choice.cpu_seconds()
        self._running = set()

    def flows(self) -> dict[int, Flow]:
        """What the lanes of all passes did, by node."""
        now = {node: self.lanes[node].total() for node in list(self._running)}
        return self._earlier | {node: _added(self._earlier.get(node), flow) for node, flow in now.items()}

    def away(self) -> float:
        """CPU seconds that were spent by others than the threads of this process, in all passes."""
        return self._away + sum(self.lanes[node].choice.cpu_seconds() for node in list(self._running))

    def stop(self) -> None:
        """End the run, from any thread."""
        self.stopped = True

    def frames(self) -> list[Frame]:
        """The calls that the current thread is inside of, the innermost last; the list stays up to date."""
        return self._local.frames

    def __call__(self, node: Node, stage: Stage) -> Around:
        """Watch what a stage does inside; what is returned watches its `next`, as `Lowering.meter`."""
        number, part = self._number(node), "next"
        if isinstance(stage, Segment):
            self.segments.add(number)
            self._enter(number, stage.lane)
            part = "take"
        reader = getattr(stage, "reader", None)
        if isinstance(reader, ThreadReader):
            self._enter(number, reader.lane)
        work: Any = getattr(stage, "work", None)
        if work is not None:
            work.pull = self.measured(work.pull, Key(number, "pull"))
            work.run = self.measured(work.run, Key(number, "run"))
        for index, transform in enumerate(_transforms(stage)):
            self._watch(transform, Key(number, "step", index))
        return partial(self.measured, key=Key(number, part), pulls=True)

    def _enter(self, number: int, lane: Lane) -> None:
        self.lanes[number] = lane
        self._running.add(number)

    def _number(self, node: Node) -> int:
        """What a node goes by: its own number, or that of the first one like it which the same step opened."""
        if id(node) in self._numbers:
            return self._numbers[id(node)]
        frames = self._local.frames
        opener = frames[-1].key.node if frames else 0
        number = self._alike.setdefault((opener, alike(node)), id(node))
        if number == id(node):
            self.nodes[number], self.opened_by[number] = node, opener
        return number

    def _watch(self, transform: Any, key: Key) -> None:
        transform.measured = True
        transform.run = self.measured(transform.run, key)

    def measured(self, call: Callable[..., Any], key: Key, *, pulls: bool = False) -> Callable[..., Any]:
        """The same call, measured."""
        local = self._local
        wall, cpu = time.perf_counter, time.thread_time

        def call_measured(*arguments: Any) -> Any:
            if self.stopped and pulls:
                raise Enough
            frames = local.frames
            frame = Frame(key)
            frames.append(frame)
            failed = 0
            result = None
            began, worked = wall(), cpu()
            try:
                result = call(*arguments)
            except Exception:
                failed = 1
                raise
            finally:
                work, time_spent = cpu() - worked, wall() - began
                frames.pop()
                if frames:
                    outer = frames[-1]
                    outer.wall += time_spent
                    outer.cpu += work
                if self._cold is None or key in self._cold:
                    cell = local.cells.get(key)
                    if cell is None:
                        cell = local.cells[key] = [0.0] * 7
                    cell[0] += 1
                    cell[5] += time_spent - frame.wall
                    cell[6] += work - frame.cpu
                    _count(cell, arguments, result, failed)
                else:
                    self._cold.add(key)
            return result

        return call_measured

    def cpu_of_this_thread(self) -> float:
        """CPU seconds that the calling thread has spent in what is measured."""
        return sum(cell[6] for cell in self._local.cells.values())

    def costs(self) -> Costs:
        """What was measured so far."""
        found: Costs = {}
        for cells in list(self._cells):
            for key, cell in list(cells.items()):
                found[key] = found.get(key, NOTHING) + Cost(*cell)
        return found


def _added(before: Flow | None, flow: Flow) -> Flow:
    """The counts and times of two passes, with the settings of the later one."""
    if before is None:
        return flow
    sums = {name: getattr(before, name) + getattr(flow, name) for name in _SUMMED}
    return replace(flow, held_most=max(before.held_most, flow.held_most), **sums)


class _Local(threading.local):
    """A thread's calls and cells."""

    def __init__(self, all_cells: list[dict[Key, _Cell]]) -> None:
        self.frames: list[Frame] = []
        self.cells: dict[Key, _Cell] = {}
        all_cells.append(self.cells)


def _count(cell: _Cell, arguments: tuple[Any, ...], result: Any, failed: int) -> None:
    """Elements in and out, by the type of what was called."""
    made = result
    if isinstance(result, Outcome):
        cell[1] += arguments[0].size
        failed = len(result.failures)
        made = result.block
    elif isinstance(result, Stretch):
        failed = len(result.failures)
        made = result.block
    cell[2] += failed
    cell[3] += failed
    if isinstance(made, Block):
        cell[2] += made.size
        cell[4] += made.nbytes


def _transforms(stage: Stage) -> Sequence[Transform]:
    """What a stage, or the work of a segment, takes Blocks through."""
    found: Sequence[Transform] = getattr(stage, "transforms", None) or ()
    return found or getattr(getattr(stage, "work", None), "transforms", ())
