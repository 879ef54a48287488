"""Meter: measures the cost of every stage of a run from outside, per Block.

Calls on stages are wrapped. Each thread records the stack of its current calls. The time of nested calls is subtracted,
so that a stage is not charged for the stages it reads from.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import add, sub
from typing import Any, NamedTuple

from penstock.block.block import Block
from penstock.physical.stage import Around, Stage
from penstock.physical.stretch import Stretch
from penstock.physical.transform import Outcome, Transforms
from penstock.plan.node import Node
from penstock.profiler.analysis.places import alike
from penstock.runtime.autotune.figures import Flow
from penstock.runtime.lane import Lane
from penstock.runtime.segment import Segment
from penstock.runtime.thread_reader import ThreadReader

_Cell = list[float]  # the fields of Cost
Record = Callable[[float, float], None]
_SUMMED = (
    *("elements", "results", "nbytes", "run_seconds", "run_cpu", "delayed", "pull_seconds", "pull_cpu", "waiting"),
    *("starved", "full", "inputs"),
)


class MeterKey(NamedTuple):
    """The subject of a measurement: a node and a part of its work.

    `next`: a request to a stage. `take`: a request for the results of a segment. `pull` and `run`: work of the
        segment's workers. `step`: a transform of a segment or a stage.
    """

    node: int
    part: str
    step: int = 0


class Cost(NamedTuple):
    """The measurements under one key; times are in seconds, summed over threads."""

    calls: float = 0.0
    inputs: float = 0.0  # input elements, if they are visible here
    elements: float = 0.0  # output elements, including failures
    failures: float = 0.0
    nbytes: float = 0.0  # bytes of the output
    wall: float = 0.0
    cpu: float = 0.0

    def __add__(self, other: Cost) -> Cost:  # type: ignore[override]  # not the concatenation of two tuples
        return Cost(*map(add, self, other))

    def __sub__(self, other: Cost) -> Cost:
        return Cost(*map(sub, self, other))


Costs = dict[MeterKey, Cost]
NOTHING = Cost()


class Enough(BaseException):
    """The time is up. It is not the failure of an element: the run ends."""


class Frame:
    """A current call of a thread, with the time of the calls inside it."""

    __slots__ = ("cpu", "key", "wall")

    def __init__(self, key: MeterKey) -> None:
        self.key = key
        self.wall = 0.0
        self.cpu = 0.0


class Meter:
    """Receives every stage of one run (`Settings.meter`) and measures all their work.

    The run uses a copy of the `plan`, or the plan itself; costs are reported for the plan's nodes. `begin` adds another
    iteration over another copy to the measurements. If the meter is not `warm`, the first call of everything is left
    out, because it imports and compiles. Inner data sets of the same form, of which an interleave may open thousands,
    share keys. `stop()` ends the run at the next request of any of its threads, even while a shuffle fills. The results
    can be read at any time, from any thread.
    """

    def __init__(self, plan: Node, copy: Node | None = None, *, warm: bool = True) -> None:
        self.nodes = {id(node): node for node in plan.walk()}
        self.opened_by: dict[int, int] = {}  # nodes of inner data sets: the node that was running when they were opened
        self.segments: set[int] = set()  # nodes that are segments
        self.lanes: dict[int, Lane] = {}  # by the node with workers: a segment, or an interleave that reads ahead
        self.stopped = False
        self.over = threading.Event()  # for threads that stop the run
        self._plan = plan
        self._copies: list[Node] = []  # keeps their nodes alive, so that their ids stay unique
        self._numbers: dict[int, int] = {}
        self._running: set[int] = set()  # nodes whose lanes belong to the current iteration
        self._earlier: dict[int, Flow] = {}  # counts of the lanes of earlier iterations, by node
        self._away = 0.0  # CPU seconds of worker processes
        self.begin(plan if copy is None else copy)
        self._alike: dict[tuple[int, str], int] = {}
        self._warm = warm
        self.first_calls: Costs = {}  # first calls per thread, which import and compile
        self._cells: list[dict[MeterKey, _Cell]] = []  # of each thread
        self._local = _MeteredThread(self._cells)

    def begin(self, copy: Node) -> None:
        """Begin an iteration over a copy of the plan. Its costs are added to those of earlier iterations."""
        if not self._copies or copy is not self._copies[-1]:
            self._copies.append(copy)
            self._numbers.update(zip(map(id, copy.walk()), map(id, self._plan.walk()), strict=True))
        for node in self._running:
            lane = self.lanes[node]
            self._earlier[node] = _added(self._earlier.get(node), lane.total())
            self._away += lane.choice.cpu_seconds()
        self._running = set()

    def flows(self) -> dict[int, Flow]:
        """Return the counts of the lanes in all iterations, by node."""
        now = {node: self.lanes[node].total() for node in list(self._running)}
        return self._earlier | {node: _added(self._earlier.get(node), flow) for node, flow in now.items()}

    def away(self) -> float:
        """Return the CPU seconds of worker processes in all iterations."""
        return self._away + sum(self.lanes[node].choice.cpu_seconds() for node in list(self._running))

    def stop(self) -> None:
        """End the run, from any thread."""
        self.stopped = True

    def frames(self) -> list[Frame]:
        """Return the live list of the current thread's calls, the innermost last."""
        return self._local.frames

    def __call__(self, node: Node, stage: Stage) -> Around:
        """Measure the work inside a stage. The result measures its `next`, see `Lowering.meter`."""
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
            work.pull = self.measured(work.pull, MeterKey(number, "pull"))
            work.run = self.measured(work.run, MeterKey(number, "run"))
        transform: Any
        for index, transform in enumerate(_transforms(stage)):
            transform.measured = True
            transform.run = self.measured(transform.run, MeterKey(number, "step", index))
        return partial(self.measured, key=MeterKey(number, part), pulls=True)

    def _enter(self, number: int, lane: Lane) -> None:
        self.lanes[number] = lane
        self._running.add(number)

    def _number(self, node: Node) -> int:
        """Return the id of a node. Nodes of the same form that one step opened share the id of the first one."""
        if id(node) in self._numbers:
            return self._numbers[id(node)]
        frames = self._local.frames
        opener = frames[-1].key.node if frames else 0
        number = self._alike.setdefault((opener, alike(node)), id(node))
        if number == id(node):
            self.nodes[number], self.opened_by[number] = node, opener
        return number

    def measured(
        self, call: Callable[..., Any], key: MeterKey, *, pulls: bool = False, record: Record | None = None
    ) -> Callable[..., Any]:
        """Return a measured version of a call. `record` gets the start and the length of each call."""
        local = self._local
        wall, cpu = time.perf_counter, time.thread_time

        def call_measured(*arguments: Any) -> Any:
            if self.stopped and pulls:
                raise Enough
            frames = local.frames
            frame = Frame(key)
            frames.append(frame)
            failed, result = 0, None
            began, worked = wall(), cpu()
            try:
                result = call(*arguments)
            except Exception:
                failed = 1
                raise
            finally:
                work, took = cpu() - worked, wall() - began
                frames.pop()
                if frames:
                    outer = frames[-1]
                    outer.wall += took
                    outer.cpu += work
                cell = local.cells.get(key)
                first = cell is None
                if cell is None:
                    cell = local.cells[key] = [0.0] * 7
                cell[0] += 1
                cell[5] += took - frame.wall
                cell[6] += work - frame.cpu
                _count(cell, arguments, result, failed)
                if first:
                    self._called_first(key, cell)
                if record is not None:
                    record(began, took)
            return result

        return call_measured

    def _called_first(self, key: MeterKey, cell: _Cell) -> None:
        known = self.first_calls.get(key)
        self.first_calls[key] = (known or NOTHING) + Cost(*cell)
        if known is None and not self._warm:
            cell[:] = [0.0] * 7

    def cpu_of_this_thread(self) -> float:
        """Return the CPU seconds of the calling thread in measured calls."""
        return sum(cell[6] for cell in self._local.cells.values())

    def costs(self) -> Costs:
        """Return the costs so far."""
        found: Costs = {}
        for cells in list(self._cells):
            for key, cell in list(cells.items()):
                if cell[0]:
                    found[key] = found.get(key, NOTHING) + Cost(*cell)
        return found


def _added(before: Flow | None, flow: Flow) -> Flow:
    """Return the summed counts and times of two iterations, with the settings of the later one."""
    if before is None:
        return flow
    sums = {name: getattr(before, name) + getattr(flow, name) for name in _SUMMED}
    return replace(flow, held_most=max(before.held_most, flow.held_most), **sums)


class _MeteredThread(threading.local):
    """The calls and measurements of one thread."""

    def __init__(self, all_cells: list[dict[MeterKey, _Cell]]) -> None:
        self.frames: list[Frame] = []
        self.cells: dict[MeterKey, _Cell] = {}
        all_cells.append(self.cells)


def _count(cell: _Cell, arguments: tuple[Any, ...], result: Any, failed: int) -> None:
    """Count input and output elements, depending on the type of the result."""
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


def _transforms(stage: Stage) -> Transforms:
    """Return the transforms of a stage or of a segment's work."""
    found: Transforms = getattr(stage, "transforms", None) or ()
    return found or getattr(getattr(stage, "work", None), "transforms", ())
